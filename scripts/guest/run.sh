#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# In the guest: patch all call sites in turn for every tracer, optimise some
# hundred kprobes, and see whether kernel text then is what it was.
#
# $RESULTS/steps   step, ms, sites, syncs, traps, planted us, irqoff us
# $RESULTS/facts   name=value

tracing=/sys/kernel/tracing
counters=/sys/kernel/debug/x86/text_poke
tracers="blk wakeup function_graph wakeup_rt irqsoff function nop"
probes=300

say() { echo "@ $*" >/dev/console; }
fact() { printf '%s=%s\n' "$1" "$2" >>"$RESULTS/facts"; }

# Nanoseconds of the monotonic clock: what a shell can read without a fork
now()
{
	{ read -r _; read -r _; read -r _ _ t _; } </proc/timer_list
}

counter()
{
	if [ -r "$counters/$1" ]; then
		read -r value <"$counters/$1"
		case $1 in
		*_ns) value=$(((value + 500) / 1000)) ;;
		esac
	else
		value=-
	fi
}

start()
{
	say "$1"
	[ ! -w $counters/reset ] || echo 1 >$counters/reset
	now
	started=$t
}

# finish STEP [NS]: NS of waiting that are no part of the step
finish()
{
	now
	line="$1	$(((t - started - ${2:-0}) / 1000000))"
	for c in sites syncs traps planted_max_ns irqoff_max_ns; do
		counter $c
		line="$line	$value"
	done
	echo "$line" >>"$RESULTS/steps"
}

optimised() { grep -c '\[OPTIMIZED\]' /sys/kernel/debug/kprobes/list; }

# The optimiser works in the background: wait until the number of optimised
# probes has stood still for a second.
settle()
{
	last=-1
	now
	still=$t
	give_up=$((t + 60000000000))
	while n=$(optimised); now; [ $((t - still)) -lt 1000000000 ] && [ "$t" -lt $give_up ]; do
		if [ "$n" != "$last" ]; then
			last=$n
			still=$t
		elif [ "$n" -eq 0 ] && [ "$1" = none ]; then
			break
		fi
		sleep 0.1
	done
}

# After the ENDBR and the call site, or after the call site only: which of them
# is an instruction boundary depends on the configuration.
define_probes()
{
	defined=0
	step=$(($(wc -l <$tracing/available_filter_functions) / (probes + 60)))
	awk -v step=$step 'NR % step == 0 && $2 == "" && $1 !~ /[.]/ { print $1 }' \
		$tracing/available_filter_functions >/tmp/functions
	while read -r f; do
		[ $defined -lt $probes ] || break
		for offset in 9 5; do
			if echo "p:run/p$defined $f+$offset" >>$tracing/kprobe_events; then
				defined=$((defined + 1))
				break
			fi
		done
	done 2>/dev/null </tmp/functions
}

rm -f "$RESULTS/steps" "$RESULTS/facts"
fact kernel "$(uname -r)"
fact cpus "$(nproc)"
read -r sites _ <$tracing/dyn_ftrace_total_info
fact call_sites "$sites"
if [ -d $counters ]; then fact engine yes; else fact engine no; fi
say "booted Linux $(uname -r) with $(nproc) CPUs: $sites call sites"

./textcmp save /tmp/text || exit 1

absent=
for tracer in $tracers; do
	case " $(cat $tracing/available_tracers) " in
	*" $tracer "*) ;;
	*)
		absent="$absent $tracer"
		continue ;;
	esac
	start "tracer $tracer"
	echo "$tracer" >$tracing/current_tracer || exit 1
	finish "$tracer"
done
fact absent "${absent# }"

start "defining $probes kprobes"
define_probes
finish "define kprobes"
start "enabling and optimising $defined kprobes"
echo 1 >$tracing/events/run/enable || exit 1
settle some
finish "optimise kprobes" $((t - still))
fact probes "$defined"
fact optimised "$n"
start "disabling and unoptimising $defined kprobes"
echo 0 >$tracing/events/run/enable || exit 1
settle none
finish "unoptimise kprobes" $((t - still))
start "removing $defined kprobes"
echo >$tracing/kprobe_events || exit 1
finish "remove kprobes"

say "comparing kernel text"
./textcmp check /tmp/text >"$RESULTS/textcmp.out"
case $? in
0) fact text identical ;;
1) fact text differs ;;
*) fact text unknown ;;
esac
cat "$RESULTS/textcmp.out"
