#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# In the guest: how long it takes to go through seven tracers, on an idle and
# on a busy machine.

# shellcheck source=scripts/guest/bench-common.sh
. ./bench-common.sh

tracers=
for t in blk wakeup function_graph wakeup_rt irqsoff function nop; do
	case " $(cat available_tracers) " in
	*" $t "*) tracers="$tracers $t" ;;
	*) tell "missing $t" ;;
	esac
done

go_round() {
	say "round $round of $rounds, $1"
	for t in $tracers; do
		step "$1-$t" current_tracer "$t"
	done
}

for round in $(seq 0 "$rounds"); do
	tell "round $round"
	! wanted idle || go_round idle
	if wanted busy; then
		busy_start
		go_round busy
		busy_stop
	fi
done
tell "done"
