#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Switch from tracer to tracer over all call sites: text comes back as it was.

# shellcheck source=functions.sh
. "$(dirname "$(readlink -f "$0")")/functions.sh"

tracers="blk wakeup function_graph wakeup_rt irqsoff function nop"

instance=$tracing/instances/text_poke_selftest
shared=kernel_clone

all_off()
{
	for user in "$instance" $tracing; do
		[ ! -d "$user" ] || echo nop >"$user/current_tracer"
	done
}

put_back()
{
	all_off
	[ ! -d "$instance" ] || rmdir "$instance"
	echo >$tracing/set_ftrace_filter
}

# Starting a program calls it.
sees() { /bin/true; grep -q "$shared" "$1/trace"; }

# Two users of one function, in the order given: both see it called, then the
# one that is left. The instance's is the kind that is called by a list.
both_see()
{
	for user; do
		echo $shared >"$user/set_ftrace_filter"
		echo function >"$user/current_tracer"
	done
	sees "$1" && sees "$2" || return 1

	echo nop >"$1/current_tracer"
	echo >"$2/trace"
	sees "$2"
}

begin
mkdir "$instance" || skip_all "cannot make $instance"
save_text
ktap_set_plan 11
for tracer in $tracers; do
	if ! grep -qw "$tracer" $tracing/available_tracers; then
		ktap_test_skip "tracers: $tracer (the kernel lacks it)"
		continue
	fi
	ktap_test_result "tracers: $tracer" set_tracer "$tracer"
done
ktap_test_result "tracers: one function, an instance first" both_see "$instance" $tracing
all_off
ktap_test_result "tracers: one function, an instance second" both_see $tracing "$instance"
put_back
check_end
