# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# In the guest: what the benchmarks share. Read with '.' by each of them, which
# is called with the number of rounds and the groups of steps to measure.

# shellcheck disable=SC2034 # for those who read this
rounds=${1:-3} groups=${2:-all}
cd /sys/kernel/tracing || exit

# The results share may be slow and interrupt: keep to memory until the end.
results=/tmp/results
: > $results
# shellcheck disable=SC2153 # set by the guest's init
trap 'cp $results "$RESULTS/results"' EXIT

tell() { echo "$*" >> $results; }
say() { echo "@ $*" > /dev/console; }
mark() { /tmp/job/mark "$@" >> $results; }

# step NAME FILE TEXT: measure writing TEXT to FILE
step() { mark write "$@" || tell "failed $1"; }

wanted() {
	case ",$groups," in
	*,all,* | *,"$1",*) return 0 ;;
	esac
	return 1
}

# Keep every CPU busy with system calls and new processes.
busy_start() {
	busy=
	for _ in $(seq "$(nproc)"); do
		while :; do cat /proc/stat; done > /dev/null 2>&1 &
		busy="$busy $!"
	done
}

busy_stop() {
	# shellcheck disable=SC2086 # a list of numbers
	kill $busy
	# shellcheck disable=SC2086
	wait $busy 2> /dev/null
}

call_sites() { cut -d' ' -f1 dyn_ftrace_total_info; }

tell "kernel $(uname -r)"
tell "sites $(call_sites)"
