#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Check the model of text poking with Spin: the protocol must hold, and with
# any part of it broken the property that rests on this part must be violated.
# Output is TAP, exit status 1 if anything failed. Wants 1 GB of memory.

model=$(cd "$(dirname "$0")" && pwd)/text_poke.pml
nr=0 passed=0 failed=0 skipped=0

result()
{
	nr=$((nr + 1))
	if [ "$1" = ok ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
	echo "$1 $nr $2"
}

finish()
{
	echo "1..$nr"
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
	exit
}

# build <flags of the model> <flags of the checker>
build()
{
	rm -f check
	# Both are lists of words.
	# shellcheck disable=SC2086
	spin $1 -a "$model" > log 2>&1 &&
		"${CC:-gcc}" -O2 -w -DMEMLIM=3500 $2 -o check pan.c >> log 2>&1 && return

	sed 's/^/# /' log
	return 1
}

# Every state is visited, and none violates anything.
# search <name> <flags of the model> <flags of the checker> <its options>
search()
{
	status="not ok"
	# shellcheck disable=SC2086
	if build "$2" "$3" && ./check -n -m1000000 $4 > log 2>&1 &&
	   grep -q 'errors: 0$' log && ! grep -q 'not completed\|too small' log; then
		status=ok
	fi

	result "$status" "$1"
	[ "$status" = ok ] || sed -n '/^pan:/s/^/# /p' log
	awk '/states, stored/ { states = $1 } /total actual memory/ { mb = $1 } /elapsed/ { s = $4 }
	     END { printf "# %s states, %.0f MB, %s s\n", states, mb, s }' log
}

holds()
{
	search "$1" "$2" -DSAFETY ""
}

ends()
{
	search "$1" "-DPROMPT $2" -DNFAIR=3 "-a -f"
}

# The given property is violated. Others may be too, so don't stop at the first.
# fails <property> <name> <flags of the model>
fails()
{
	status="not ok"
	if build "$3" -DSAFETY &&
	   ./check -n -c0 -m1000000 2> /dev/null | grep -q "assertion violated.*||$1)"; then
		status=ok
	fi

	result "$status" "$2: $1"
}

echo "TAP version 13"

for tool in spin "${CC:-gcc}"; do
	if ! command -v "$tool" > /dev/null; then
		skipped=1 nr=1
		echo "ok 1 model # SKIP $tool not found, install it"
		finish
	fi
done

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
cd "$dir" || exit 1

holds "the protocol"				"-DNSITE=4"
holds "the protocol, stale traps"		"-DNSITE=4 -DSTALE"
holds "the protocol, NMIs in the handler"	"-DNEST=2 -DMAXK=4"
holds "the protocol, NMIs and stale traps"	"-DNEST=2 -DMAXK=4 -DSTALE"
holds "the protocol, two CPUs"			"-DNCPU=2 -DMAXK=4"
ends "the writer ends"				"-DMAXK=4"
ends "the writer ends, stale traps"		"-DMAXK=4 -DSTALE"
ends "the writer ends, two CPUs"		"-DNCPU=2 -DMAXK=2"

fails TORN "no sync after int3"				"-DSKIP_SYNC=1"
fails TORN "no sync after the tails"			"-DSKIP_SYNC=2"
fails LATE "no sync after the first bytes"		"-DSKIP_SYNC=3"
fails FOREIGN "int3 before publishing"			"-DPUBLISH_LATE"
fails FOREIGN "no barrier between publishing and int3"	"-DNO_WMB_INT3"
fails RECYCLED "no barrier between filling and publishing" "-DNO_WMB_FILL"
fails FOREIGN "unpublished before the first bytes"	"-DUNPUBLISH_FIRST"
fails FALSE_STALE "unpublished before the last sync"	"-DUNPUBLISH_EARLY"
fails RECYCLED "slot reused without a sync"		"-DNSLOT=3"
fails RECYCLED "slot reused without a sync, unless int3 stays" "-DNSLOT=3 -DINT3_SYNC -DNSITE=4"
fails RECYCLED "the same, stale traps"			"-DNSLOT=3 -DINT3_SYNC -DSTALE"
fails RECYCLED "IRQs on in the handler"			"-DIRQS_ON"
fails TORN "IRQs on in the handler, stale traps"	"-DIRQS_ON -DSTALE"
fails FOREIGN "only one look-up, stale traps"		"-DNO_RELOOKUP -DSTALE"
fails FOREIGN "no recovery from stale traps"		"-DNO_RECOVERY -DSTALE"
fails TORN "an address in two live slots"		"-DDUP_LIVE"
fails LOST "finish stops one step short"		"-DSHORT_FINISH"

finish
