#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Filters: what is found by name, and that a switch costs what its functions cost.

# shellcheck source=functions.sh
. "$(dirname "$(readlink -f "$0")")/functions.sh"

one=vfs_statfs
rounds=100
available=$tracing/available_filter_functions
instance=$tracing/instances/text_poke_selftest

put_back()
{
	for user in "$instance" $tracing; do
		[ ! -d "$user" ] || echo nop >"$user/current_tracer"
	done
	[ ! -d "$instance" ] || rmdir "$instance"
	echo >$tracing/set_ftrace_filter
}

# filter FILE [USER]: trace the functions in FILE
filter()
{
	cat "$1" >"${2:-$tracing}/set_ftrace_filter"
}

# switch TRACER [USER]: and count
switch()
{
	sites=$(counter sites)
	syncs=$(counter syncs)
	echo "$1" >"${2:-$tracing}/current_tracer" || return 1
	sites=$(($(counter sites) - sites))
	syncs=$(($(counter syncs) - syncs))
}

# lines_named NAME: in the list of all functions; there may be several of one name
lines_named()
{
	awk -v name="$1" '$1 == name' $available
}

finds_what_is_listed()
{
	while read -r function; do
		echo "$function" >$tracing/set_ftrace_filter || return 1
		[ "$(lines_named "$function")" != "$(cat $tracing/set_ftrace_filter)" ] || continue
		echo "# $function: listed $(lines_named "$function" | wc -l) times," \
			"found $(wc -l <$tracing/set_ftrace_filter) times"
		return 1
	done <"$1"
}

refuses()
{
	! { echo "$1" >$tracing/set_ftrace_filter; } 2>/dev/null
}

takes_out()
{
	filter "$tmp/a" && echo "!$(head -n 1 "$tmp/a")" >>$tracing/set_ftrace_filter &&
		! grep -qx "$(head -n 1 "$tmp/a")" $tracing/set_ftrace_filter &&
		[ "$(wc -l <$tracing/set_ftrace_filter)" -eq $(($(wc -l <"$tmp/a") - 1)) ]
}

finds_a_modules()
{
	echo ":mod:$module" >$tracing/set_ftrace_filter &&
		[ "$(grep -F "[$module]" $available)" = "$(cat $tracing/set_ftrace_filter)" ]
}

# A switch waits three times for the call site and ftrace_caller, which change
# together, and records command lines: three times for the static calls of its
# tracepoints, and three times for their static keys.
one_is_cheap()
{
	echo $one >$tracing/set_ftrace_filter || return 1
	round=0
	while [ $round -lt $rounds ]; do
		for tracer in function nop; do
			switch $tracer || return 1
			[ "$syncs" -le 9 ] && [ "$sites" -le 100 ] && continue
			echo "# $tracer, round $round: $sites sites, $syncs syncs"
			return 1
		done
		round=$((round + 1))
	done
	echo "# $one: $sites sites, $syncs syncs"
}

# switch_costs TRACER SITES USER: no more than SITES call sites, and the side changes
switch_costs()
{
	switch "$1" "$3" || return 1
	echo "# $1: $sites sites, $syncs syncs"
	[ "$sites" -le $(($2 + side_sites)) ]
}

# Count the functions that call a tracer; those of tracers that are always there stay.
enabled() { wc -l <$tracing/enabled_functions; }
enabled_are() { [ "$(enabled)" -eq $((always + $1)) ] || { echo "# $(enabled) enabled"; return 1; }; }

# Two users, whose functions overlap; the first one leaves first.
both_then()
{
	filter "$tmp/a" $tracing && filter "$tmp/b" "$instance" &&
		echo function >$tracing/current_tracer &&
		enabled_are 1000 &&
		echo function >"$instance/current_tracer" &&
		enabled_are 1500 &&
		echo nop >"$1/current_tracer" &&
		enabled_are 1000 &&
		echo nop >"$2/current_tracer" &&
		enabled_are 0
}

begin
mkdir "$instance" || skip_all "cannot make $instance"
need $counters "no $counters: the kernel has no CONFIG_X86_TEXT_PATCH or no CONFIG_DEBUG_FS"
lines_named $one | grep -q . || skip_all "the kernel has no function $one to trace"
save_text
ktap_set_plan 18

always=$(enabled)
# Names that come once, every tenth: then so many functions as names
awk 'NF == 1' $available | sort | uniq -u | awk 'NR % 10 == 0' >"$tmp/some"
head -n 1000 "$tmp/some" >"$tmp/a"
tail -n +501 "$tmp/some" | head -n 1000 >"$tmp/b"
awk 'NF == 1' $available | sort | uniq -d | head -n 20 >"$tmp/twice"
head -n 50 "$tmp/some" >"$tmp/names"
[ "$(wc -l <"$tmp/b")" -eq 1000 ] || skip_all "the kernel has too few functions"

ktap_test_result "filters: names are found" finds_what_is_listed "$tmp/names"
ktap_test_result "filters: names of several functions are found" \
	finds_what_is_listed "$tmp/twice"
ktap_test_result "filters: no function, no filter" refuses no_such_function_at_all
ktap_test_result "filters: the name has to be all of it" refuses ${one%s}
ktap_test_result "filters: a name is taken out" takes_out
module=$(sed -n 's/.*\[\(.*\)\]$/\1/p' $available | head -n 1)
if [ -n "$module" ]; then
	ktap_test_result "filters: a module's functions are found" finds_a_modules
else
	ktap_test_skip "filters: a module's functions are found (no module is loaded)"
fi
ktap_test_result "filters: one function, $rounds times on and off" one_is_cheap
ktap_test_result "filters: one function leaves text as it was" same_text
# Besides the function's
side_sites=$((sites - 1))

echo >$tracing/set_ftrace_filter
filter "$tmp/a"
ktap_test_result "filters: 1000 functions on" switch_costs function 1000 $tracing
filter "$tmp/a" "$instance"
ktap_test_result "filters: the same for an instance, on" switch_costs function 0 "$instance"
ktap_test_result "filters: both call them" enabled_are 1000
ktap_test_result "filters: the same for an instance, off" switch_costs nop 0 "$instance"
ktap_test_result "filters: 1000 functions off" switch_costs nop 1000 $tracing

ktap_test_result "filters: two that overlap, first in, first out" both_then $tracing "$instance"
ktap_test_result "filters: ... leave text as it was" same_text
ktap_test_result "filters: two that overlap, first in, last out" both_then "$instance" $tracing
put_back
check_end
