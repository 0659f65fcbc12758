#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# The benchmark's guest: init of a busybox initramfs. What to measure comes from
# the kernel's command line, which the kernel passes on as variables:
#
#	bench_mode=cost|wall|load	which of the bench-*.sh here
#	bench_rounds=N			rounds after one that only warms up
#	bench_only=NAME,NAME,...	only these groups of steps
#	bench_seconds=N			how long to go on (load)
#
# Everything runs in tracefs. Results go to the second serial line, so kernel messages never mix with them.

/bin/busybox mkdir -p /bin /dev /proc /sys /tmp
/bin/busybox --install -s /bin
export PATH=/bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tracefs tracing /sys/kernel/tracing
mount -t debugfs debug /sys/kernel/debug

: "${bench_mode:=cost}" "${bench_rounds:=3}" "${bench_only:=all}"
: "${bench_seconds:=600}"
cd /sys/kernel/tracing || exit
results=/dev/ttyS1
stty -F "$results" raw -echo

tell() { echo "$*" > "$results"; }

# step NAME FILE TEXT: measure writing TEXT to FILE
step() { mark write "$@" > "$results" || tell "failed $1"; }

wanted() {
	case ",$bench_only," in
	*,all,* | *,"$1",*) return 0 ;;
	esac
	return 1
}

# Keep every CPU busy with system calls and, with "fork", new processes too.
busy_pids=
busy_start() {
	for _ in $(seq "$(nproc)"); do
		if [ "${1:-}" = fork ]; then
			while :; do cat /proc/stat; (:); done > /dev/null 2>&1 &
		else
			while :; do cat /proc/stat; done > /dev/null 2>&1 &
		fi
		busy_pids="$busy_pids $!"
	done
}

busy_stop() {
	# shellcheck disable=SC2086 # a list of numbers
	kill $busy_pids
	# shellcheck disable=SC2086
	wait $busy_pids 2>/dev/null
	busy_pids=
}

tell "kernel $(uname -r)"
tell "sites $(cut -d' ' -f1 dyn_ftrace_total_info)"
sleep 1
# shellcheck source=/dev/null # one of the three beside this file
. "/bench-$bench_mode.sh"
tell "done"
sleep 1
reboot -f
