#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# In the guest: switch all functions on and off under load, for as many seconds
# as it is called with. Tells how far it is all the time, for it may not live to
# see the end.

# shellcheck source=scripts/guest/bench-common.sh
. ./bench-common.sh

seconds=$rounds
stale() { cat /sys/kernel/debug/x86/text_poke/stale_traps 2> /dev/null || echo -; }
uptime_s() { cut -d. -f1 /proc/uptime; }

busy_start
begin=$(uptime_s)
switches=0
told=0
while gone=$(($(uptime_s) - begin)); [ $gone -lt "$seconds" ]; do
	echo function > current_tracer || tell "failed function"
	echo nop > current_tracer || tell "failed nop"
	switches=$((switches + 2))
	echo "load seconds=$gone switches=$switches stale=$(stale)" > "$RESULTS/load"
	if [ $((gone - told)) -ge 30 ]; then
		say "$gone s, $switches switches, $(stale) stale traps"
		told=$gone
	fi
done
busy_stop
tell "done"
