#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# kernel.text_poke_batch_max: what is accepted, and what it does.

# shellcheck source=functions.sh
. "$(dirname "$(readlink -f "$0")")/functions.sh"

put_back()
{
	echo nop >$tracing/current_tracer
	echo >$tracing/set_ftrace_filter
	[ -z "$was" ] || echo "$was" >$batch_max
}

accepts() { echo "$1" >$batch_max && [ "$(cat $batch_max)" = "$1" ]; }
refuses() { ! { echo "$1" >$batch_max; } 2>/dev/null && [ "$(cat $batch_max)" = 0 ]; }

# syncs_at SIZE: of switching the tracer on, in $syncs
syncs_at()
{
	accepts "$1" && set_tracer nop || return 1
	syncs=$(counter syncs)
	set_tracer function || return 1
	syncs=$(($(counter syncs) - syncs))
	set_tracer nop || return 1
	echo "# $syncs syncs for $functions functions, at most $1 in a slot"
}

# fewer SIZE: than there were at a smaller size
fewer()
{
	syncs_at "$1" || return 1
	[ "$syncs" -lt "$last" ] || return 1
	last=$syncs
}

# One slot of one site, K of them in a row: K + 2 syncs.
one_for_each_site()
{
	syncs_at 1 || return 1
	last=$syncs
	[ "$syncs" -ge "$functions" ]
}

begin
need $batch_max "no kernel.text_poke_batch_max: the kernel has no CONFIG_X86_TEXT_PATCH"
need $counters "no $counters: the kernel needs CONFIG_DEBUG_FS"
was=$(cat $batch_max)
save_text
ktap_set_plan 14

ktap_test_result "sysctl: 0 is accepted" accepts 0
for size in 1025 -1 4294967296 some; do
	ktap_test_result "sysctl: $size is refused" refuses $size
done
for size in 1 64 1024; do
	ktap_test_result "sysctl: $size is accepted" accepts $size
done

# Not all functions: at one site a sync that would take its time.
echo 's*' >$tracing/set_ftrace_filter
functions=$(wc -l <$tracing/set_ftrace_filter)
ktap_test_result "sysctl: slots of 1" one_for_each_site
ktap_test_result "sysctl: slots of 64 take fewer syncs" fewer 64
ktap_test_result "sysctl: slots of 1024 take fewer syncs" fewer 1024
put_back
accepts 0
ktap_test_result "sysctl: 0, with all functions" set_tracer function
set_tracer nop
put_back
check_end
