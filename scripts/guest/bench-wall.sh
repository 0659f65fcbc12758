# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2154 # variables come from bench-init.sh
# How long it takes to go through seven tracers, on an idle and a busy machine.

tracers=
for t in blk wakeup function_graph wakeup_rt irqsoff function nop; do
	if grep -qw $t available_tracers; then
		tracers="$tracers $t"
	else
		tell "missing $t"
	fi
done

go_round() {
	for t in $tracers; do
		step "$1-$t" current_tracer "$t"
	done
}

for round in $(seq 0 "$bench_rounds"); do
	tell "round $round"
	wanted idle && go_round idle
	if wanted busy; then
		busy_start fork
		go_round busy
		busy_stop
	fi
done
