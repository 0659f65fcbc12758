#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Measures a stock and a patched kernel (same configuration) in turn, in QEMU.

usage="usage: scripts/bench.sh --ours BZIMAGE --stock BZIMAGE [OPTION...]
One of the two will do. Results: a table in report.txt, all in bench.json.
  --mode cost    what a switch costs in guest instructions, interrupts and traps;
                 instructions are the guest's clock (default)
  --mode traps   how often other programs trap while they keep the CPUs busy
  --mode wall    how long seven tracers take, idle and busy
  --mode load    switch all functions on and off under load, emulated by a thread
                 for each CPU: does the kernel survive?
  --only A,B     cost: function graph one thousand second kprobe keys busy
                 wall: idle busy
  --rounds N     rounds within a boot, after one to warm up (3)
  --boots N      boots of each kernel, in alternation (1)
  --minutes N    how long to go on (load; 10)
  --limit S      seconds after which a guest counts as hung
  --reuse-stock  take stock's last results if its kernel and the options are as
                 they were then
  --out DIR      where results go (build/bench)
SMP= and MEM= are the guest's CPUs and memory."

bad_call()
{
	printf '%s\n' "$usage" >&2
	exit 2
}

mode=cost only=all rounds=3 boots=1 minutes=10 limit="" reuse="" out=""
declare -A image=()
fresh=()
asked=$*
while [ $# -gt 0 ]; do
	case $1 in
	--reuse-stock) reuse=y; shift; continue ;;
	-h | --help) printf '%s\n' "$usage"; exit ;;
	esac
	[ $# -gt 1 ] || bad_call
	case $1 in
	--stock | --ours) image[${1#--}]=$(realpath -m "$2") ;;
	--mode) mode=$2 ;;
	--only) only=$2 ;;
	--rounds) rounds=$2 ;;
	--boots) boots=$2 ;;
	--minutes) minutes=$2 ;;
	--limit) limit=$2 ;;
	--out) mkdir -p "$2"; out=$(realpath "$2") ;;
	*) bad_call ;;
	esac
	shift 2
done

# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
: "${out:=$build/bench}"
kernels=()
for kernel in stock ours; do
	[ -n "${image[$kernel]:-}" ] || continue
	[ -r "${image[$kernel]}" ] ||
		die "no $kernel kernel ${image[$kernel]}: build it first"
	kernels+=("$kernel")
done
[ ${#kernels[@]} -gt 0 ] || bad_call
case $mode in
cost | wall | load) job=$mode ;;
traps) job=cost only=busy ;;
*) die "unknown mode $mode: use cost, traps, wall or load" ;;
esac
for tool in python3 gcc; do
	command -v "$tool" > /dev/null ||
		die "$tool is missing: install python3 gcc"
done

if [ -z "$limit" ]; then
	limit=$(((rounds + 1) * 900))
	[ "$mode" != load ] || limit=$((minutes * 60 + 120))
fi

mkdir -p "$out"
make -s -C "$top/tools/testing/text_poke/qemu" O="$out"

# boot KERNEL DIR: one guest, from start to end
boot()
{
	local args=(--kernel "${image[$1]}" --results "$2" --root busybox
		    --append 'idle=halt nokaslr kunit.enable=0')
	local call=("$top/scripts/guest/bench-$job.sh" "$rounds" "$only")

	rm -rf "$2"
	mkdir -p "$2"
	case $mode in
	cost) args+=(--plugin "$out/insncount.so,out=$2/marks"
		     --icount 'shift=0,sleep=off') ;;
	traps) args+=(--plugin "$out/insncount.so,out=$2/marks") ;;
	load) args+=(--thread multi)
	      call[1]=$((minutes * 60)) ;;
	esac
	"$top/scripts/guest.sh" --accel tcg --time "$limit" "${args[@]}" \
		--file "$out/mark" --file "$top/scripts/guest/bench-common.sh" \
		"${call[@]}"
}

# Seconds of CPU that all guests took so far, into $cpu: steadier than their
# clocks when the host has other work too.
take_cpu_time()
{
	times > "$out/times"
	cpu=$(awk 'NR == 2 { split($1, t, "[ms]"); print t[1] * 60 + t[2] }' "$out/times")
}

# What stock's results depend on.
key()
{
	echo "$mode $only $rounds $boots $minutes $SMP $MEM"
	cat "${image[$1]}" "$top"/scripts/guest/bench-*.sh | sha256sum
}

say "bench: mode $mode, ${kernels[*]}, $rounds rounds, $boots boots each"
for kernel in "${kernels[@]}"; do
	if [ "$reuse$kernel" = ystock ] &&
	   [ "$(cat "$out/$mode-stock.key" 2> /dev/null)" = "$(key stock)" ]; then
		say "stock: results of the last run"
		continue
	fi
	rm -rf "$out/$mode-$kernel".*
	fresh[${#fresh[@]}]=$kernel
done
for n in $(seq "$boots"); do
	for kernel in "${fresh[@]}"; do
		dir=$out/$mode-$kernel.$n
		start=$SECONDS
		take_cpu_time
		cpu_before=$cpu
		say "boot $n of $boots, $kernel kernel"
		status=0
		boot "$kernel" "$dir" || status=$?
		case $status in
		0) ended=well ;;
		124) ended=hung ;;
		125) ended=panicked ;;
		*) ended=complaining ;;
		esac
		take_cpu_time
		echo "$ended $cpu $cpu_before" |
			awk '{ print "ended", $1; print "cpu_seconds", $2 - $3 }' > "$dir/ended"
		# under load, dying is a result
		[ $status = 0 ] || [ "$mode" = load ] ||
			die "the $kernel kernel was not measured to the end: see above"
		say "took $(duration $((SECONDS - start)))"
	done
done
for kernel in "${fresh[@]}"; do
	key "$kernel" > "$out/$mode-$kernel.key"
done

python3 "$top/scripts/bench-report.py" "$mode" "$out" "${kernels[@]}" "bench.sh $asked"
