# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2154 # variables come from bench-init.sh
# Switch all functions on and off under load until the time is up.

stale() { cat /sys/kernel/debug/x86/text_poke/stale_traps 2>/dev/null || echo -; }
uptime_s() { cut -d. -f1 /proc/uptime; }

busy_start fork
begin=$(uptime_s)
rounds=0
while now=$(uptime_s); [ $((now - begin)) -lt "$bench_seconds" ]; do
	echo function > current_tracer || tell "failed function"
	echo nop > current_tracer || tell "failed nop"
	rounds=$((rounds + 1))
	tell "load rounds=$rounds seconds=$((now - begin)) stale=$(stale)"
done
busy_stop
