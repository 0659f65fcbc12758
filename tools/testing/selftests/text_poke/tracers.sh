#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Switch from tracer to tracer over all call sites: text comes back as it was.

# shellcheck source=functions.sh
. "$(dirname "$(readlink -f "$0")")/functions.sh"

tracers="blk wakeup function_graph wakeup_rt irqsoff function nop"

begin
save_text
ktap_set_plan 9
for tracer in $tracers; do
	if ! grep -qw "$tracer" $tracing/available_tracers; then
		ktap_test_skip "tracers: $tracer (the kernel lacks it)"
		continue
	fi
	ktap_test_result "tracers: $tracer" set_tracer "$tracer"
done
check_end
