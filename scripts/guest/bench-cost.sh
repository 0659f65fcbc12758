#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# In the guest: what one switch costs. Each group of steps leaves the kernel as
# it found it.

# shellcheck source=scripts/guest/bench-common.sh
. ./bench-common.sh

function_steps() {
	step function-on current_tracer function
	step function-off current_tracer nop
}

graph_steps() {
	step graph-on current_tracer function_graph
	step graph-off current_tracer nop
}

one_steps() {
	step one-filter set_ftrace_filter vfs_statfs
	step one-on current_tracer function
	step one-off current_tracer nop
	echo > set_ftrace_filter
}

# By number, for stock looks through all functions for every name.
thousand() {
	every=$(($(call_sites) / 1010))
	seq $every $every $((every * 1000))
}

thousand_steps() {
	thousand | step thousand-filter set_ftrace_filter
	step thousand-on current_tracer function
	step thousand-off current_tracer nop
	echo > set_ftrace_filter
}

# A second user of functions that are traced already.
second_steps() {
	mkdir instances/second
	echo function > current_tracer
	step second-on instances/second/current_tracer function
	step second-off instances/second/current_tracer nop
	echo nop > current_tracer
	thousand > set_ftrace_filter
	thousand > instances/second/set_ftrace_filter
	echo function > current_tracer
	step second-thousand-on instances/second/current_tracer function
	step second-thousand-off instances/second/current_tracer nop
	echo nop > current_tracer
	echo > set_ftrace_filter
	rmdir instances/second
}

# Right behind the call that ftrace uses, which an ENDBR may come before.
place_probes() {
	placed=0
	awk -v every="$(($(call_sites) / 400))" \
		'NR % every == 0 && $2 == "" && $1 !~ /[.]/ { print $1 }' \
		available_filter_functions > /tmp/candidates
	while read -r name && [ $placed -lt 300 ]; do
		for at in 9 5; do
			echo "p:bench/b$placed $name+$at" >> kprobe_events ||
				continue
			placed=$((placed + 1))
			break
		done
	done < /tmp/candidates 2> /dev/null
	tell "probes $placed"
}

kprobe_steps() {
	step kprobes-enable events/bench/enable 1
	mark settle kprobes-optimise
	tell "optimised $(grep -c OPTIMIZED /sys/kernel/debug/kprobes/list)"
	step kprobes-disable events/bench/enable 0
	mark settle kprobes-unoptimise
}

# The static keys of all debug messages, which are one for each. A message goes to
# the log; on the console it would be what is measured.
keys_steps() {
	control=/proc/dynamic_debug/control
	tell "messages $(grep -c ' =_ ' $control)"
	step keys-on $control +p
	tell "printed $(grep -c ' =p ' $control)"
	step keys-off $control -p
}

# For the traps that other programs run into; their instructions count too.
busy_steps() {
	busy_start
	sleep 0.1
	step busy-on current_tracer function
	sleep 0.1
	step busy-off current_tracer nop
	busy_stop
}

! wanted kprobe || place_probes
for round in $(seq 0 "$rounds"); do
	tell "round $round"
	mark nothing nothing
	for group in function graph one thousand second busy kprobe keys; do
		wanted $group || continue
		say "round $round of $rounds, $group"
		${group}_steps
	done
done
tell "done"
