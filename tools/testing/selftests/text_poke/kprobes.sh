#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Optimise and unoptimise many kprobes: text comes back as it was.

# shellcheck source=functions.sh
. "$(dirname "$(readlink -f "$0")")/functions.sh"

wanted=128
rounds=3
group=text_poke_selftest

put_back()
{
	echo 0 >$tracing/events/$group/enable
	echo "-:$group/" >>$tracing/kprobe_events
} 2>/dev/null

# Behind the call site, as probes on it are left to ftrace: that is 9 bytes on if
# the function begins with ENDBR, otherwise 5. Where neither begins an instruction,
# or there must be no probe, the kernel refuses it and the next function has a try.
add_probes()
{
	count=$(wc -l <$tracing/available_filter_functions)
	awk -v every=$((count / 1000 + 1)) 'NF == 1 && NR % every == 0' \
		$tracing/available_filter_functions >"$tmp/functions"
	probes=0
	while read -r function && [ $probes -lt $wanted ]; do
		for offset in 9 5; do
			if echo "p:$group/p$probes $function+$offset" \
				>>$tracing/kprobe_events; then
				probes=$((probes + 1))
				break
			fi
		done 2>/dev/null
	done <"$tmp/functions"
	[ $probes -ge 100 ]
}

optimised()
{
	grep -c '\[OPTIMIZED\]' $debug/kprobes/list
}

enough_optimised() { [ "$(optimised)" -ge 100 ]; }
none_optimised() { [ "$(optimised)" -eq 0 ]; }
text_is_patched() { ! "$here/textcmp" check "$tmp/text" >"$tmp/textcmp" 2>&1; }

# One sync to arm each of them; optimised one at a time, each would take three more.
in_batches() { [ "$syncs" -lt $((2 * probes)) ]; }

begin
need $tracing/kprobe_events "no kprobe events: the kernel needs CONFIG_KPROBE_EVENTS"
need /proc/sys/debug/kprobes-optimization "the kernel needs CONFIG_OPTPROBES"
need $debug/kprobes/list "no $debug/kprobes: the kernel needs CONFIG_DEBUG_FS"
[ "$(cat /proc/sys/debug/kprobes-optimization)" = 1 ] ||
	skip_all "kprobes are not to be optimised: set debug.kprobes-optimization to 1"
none_optimised || skip_all "there are optimised kprobes already: remove them first"
save_text
ktap_set_plan $((1 + 4 * rounds + 3))

ktap_test_result "kprobes: 100 or more are accepted" add_probes
round=1
while [ $round -le $rounds ]; do
	[ ! -d $counters ] || syncs=$(counter syncs)
	echo 1 >$tracing/events/$group/enable
	ktap_test_result "kprobes: optimised, round $round" wait_until 60 enough_optimised
	[ ! -d $counters ] || syncs=$(($(counter syncs) - syncs))
	ktap_test_result "kprobes: they show in text, round $round" text_is_patched
	[ $round -gt 1 ] || echo "# $(optimised) of $probes probes are optimised"
	echo 0 >$tracing/events/$group/enable
	ktap_test_result "kprobes: unoptimised, round $round" wait_until 60 none_optimised
	ktap_test_result "kprobes: text is what it was, round $round" wait_until 20 same_text
	round=$((round + 1))
done
if [ -d $counters ]; then
	echo "# $syncs syncs to arm and optimise $probes probes"
	ktap_test_result "kprobes: optimised in batches" in_batches
else
	ktap_test_skip "kprobes: optimised in batches (the kernel does not count)"
fi
put_back
check_end
