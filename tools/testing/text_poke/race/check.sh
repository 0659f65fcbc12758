#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# check.sh [PROGRAM]: race the engine; and with each thing that it rests on switched
# off, the race must notice. Output is TAP, exit status 1 if anything failed. SEED= is
# the seed of all races, what time it is if not given.

race=${1:-$(dirname "$0")/race}
cpus=$(getconf _NPROCESSORS_ONLN)
nr=0 passed=0 failed=0 skipped=0

result()
{
	nr=$((nr + 1))
	echo "$1 $nr $2"
}

finish()
{
	echo "1..$nr"
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
	exit
}

skip()
{
	skipped=$((skipped + 1))
	result ok "$1 # SKIP $2"
}

# run <options>: sets status and took
run()
{
	start=$(date +%s%N)
	status=0
	# Rubbish that is executed may well stop the race from ending.
	timeout -s KILL 300 "$race" "$@" > "$log" 2>&1 || status=$?
	took=$((($(date +%s%N) - start) / 1000000))
	sed 's/^#* */# /' "$log"
}

# holds <name> <options>: nothing is wrong
holds()
{
	name=$1
	shift
	run "$@"
	if [ "$status" -eq 0 ]; then
		passed=$((passed + 1))
		result ok "$name"
	else
		failed=$((failed + 1))
		result "not ok" "$name # exit status $status"
	fi
}

# Something is wrong, or a thread went where no signal handler can be run.
caught()
{
	[ "$status" -eq 1 ] || [ "$status" -ge 128 ]
}

# fails <name> <options>: this is noticed
fails()
{
	name=$1
	shift
	run "$@"
	if caught; then
		passed=$((passed + 1))
		result ok "$name # caught after $took ms"
	else
		failed=$((failed + 1))
		result "not ok" "$name # not caught in $took ms"
	fi
}

# may_fail <name> <options>: not every processor goes wrong here
may_fail()
{
	name=$1
	shift
	run "$@"
	if caught; then
		passed=$((passed + 1))
		result ok "$name # caught after $took ms"
	else
		skip "$name" "this processor does not go wrong in $((took / 1000)) s"
	fi
}

echo "TAP version 13"

log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
trap 'exit 1' INT TERM

if [ "$(uname -m)" != x86_64 ]; then
	skip race "not x86-64"
	finish
fi
run --seconds=0
if [ "$status" -eq 4 ]; then
	skip race "no membarrier() that serialises"
	finish
fi
if [ "$cpus" -eq 1 ]; then
	skip race "one CPU cannot race"
	finish
fi

seed=${SEED:-$(date +%s)}
echo "# SEED=$seed"

holds "cores alone"		"--seed=$seed" --seconds=15 --calls=100000000 --fetchers=0
holds "cores and a slow fetcher" "--seed=$seed" --seconds=10
holds "slow handlers"		"--seed=$seed" --seconds=5 --slow
holds "one instruction at a time" "--seed=$seed" --seconds=10 --narrow --threads=1 --fetchers=0
holds "more threads than cores"	"--seed=$seed" --seconds=10 --threads=$((4 * cpus)) --fetchers=2

fails "no sync after INT3"		"--seed=$seed" --no-sync=1
fails "no sync after the tail"		"--seed=$seed" --no-sync=2
fails "no sync after the first byte"	"--seed=$seed" --no-sync=3
fails "a sync does not wait for handlers" "--seed=$seed" --fetchers=0 --no-handler
fails "published after INT3"		"--seed=$seed" --fetchers=0 --late-publish
fails "tail before INT3"		"--seed=$seed" --fetchers=0 --tail-first
fails "tail without INT3"		"--seed=$seed" --fetchers=0 --bare-tail

alone="--fetchers=0 --threads=1 --narrow"
# shellcheck disable=SC2086
{
	may_fail "no sync at all, cores alone" "--seed=$seed" $alone \
		--no-sync=1 --no-sync=2 --no-sync=3
	may_fail "no sync after INT3, cores alone" "--seed=$seed" $alone --no-sync=1
	may_fail "no sync after the tail, cores alone" "--seed=$seed" $alone --no-sync=2 --seconds=5
	may_fail "no sync after the first byte, cores alone" "--seed=$seed" $alone --no-sync=3 \
		--seconds=5
}

finish
