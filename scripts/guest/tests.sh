#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# In the guest: what the test target wants from one boot beyond what the kernel
# tests by itself.
#
# tests.sh boot           nothing more
# tests.sh switch N       N switches between tracers over all call sites
# tests.sh kselftest DIR  the installed kselftest in $REPO/DIR; TAP in $RESULTS/tap

tracing=/sys/kernel/tracing

if [ "$(nproc)" -ne "$SMP" ]; then
	echo "@ $(nproc) of $SMP CPUs came up"
	exit 1
fi

case $1 in
boot)
	echo "@ booted"
	;;
switch)
	i=0
	while [ "$i" -lt "$2" ]; do
		for tracer in function function_graph wakeup nop; do
			[ "$i" -lt "$2" ] || break
			i=$((i + 1))
			echo "@ switch $i of $2: $tracer"
			echo $tracer >$tracing/current_tracer || exit 1
		done
	done
	echo nop >$tracing/current_tracer
	;;
kselftest)
	cd "$REPO/$2" || exit 1
	# A pipe would hide the status of the left side.
	./run_kselftest.sh >"$RESULTS/tap" 2>&1
	grep -qE '^ok ' "$RESULTS/tap"
	;;
esac
