#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Measures a stock and a patched kernel (same configuration) in turn, in QEMU.

set -euo pipefail
usage()
{
	cat <<-'END'
	usage: scripts/bench.sh --ours BZIMAGE --stock BZIMAGE [options]
	  --mode cost    what a switch costs in guest instructions, interrupts and
	                 traps; instructions are the guest's clock (default)
	  --mode wall    how long seven tracers take, idle and busy
	  --mode load    toggle all functions under load, emulated by one thread
	                 per CPU: does the kernel survive?
	  --only A,B     cost: function graph one thousand second busy kprobes
	                 wall: idle busy
	  --rounds N     rounds within a boot, after one to warm up (3)
	  --boots N      boots of each kernel, in alternation (1)
	  --minutes N    how long to go on (load, 10)
	  --reuse-stock  take stock's results from the last run if its kernel and
	                 these options are the same
	  --out DIR      where results go (build/bench)
	One of --ours and --stock will do. SMP= and MEM= as everywhere.
	END
}

mode=cost only=all rounds=3 boots=1 minutes=10 reuse="" out=""
declare -A image=()
fresh=()
args=$*
while [ $# -gt 0 ]; do
	case $1 in
	--reuse-stock) reuse=y; shift; continue ;;
	-h | --help) usage; exit ;;
	esac
	[ $# -gt 1 ] || { usage >&2; exit 2; }
	case $1 in
	--stock | --ours) image[${1#--}]=$(realpath "$2") ;;
	--mode) mode=$2 ;;
	--only) only=$2 ;;
	--rounds) rounds=$2 ;;
	--boots) boots=$2 ;;
	--minutes) minutes=$2 ;;
	--out) mkdir -p "$2"; out=$(realpath "$2") ;;
	*) usage >&2; exit 2 ;;
	esac
	shift 2
done

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
: "${out:=$build/bench}" "${QEMU:=qemu-system-x86_64}"
kernels=()
for kernel in stock ours; do
	[ -n "${image[$kernel]:-}" ] || continue
	[ -r "${image[$kernel]}" ] ||
		die "no $kernel kernel ${image[$kernel]}: build it first"
	kernels+=("$kernel")
done
[ ${#kernels[@]} -gt 0 ] || { usage >&2; exit 2; }
[ -r "$top/scripts/guest/bench-$mode.sh" ] ||
	die "unknown mode $mode: use cost, wall or load"
for tool in "$QEMU" busybox python3 gcc; do
	command -v "$tool" > /dev/null ||
		die "$tool is missing: install qemu-system-x86 busybox-static python3 gcc"
done

mkdir -p "$out"
make -s -C "$top/tools/testing/text_poke/qemu" O="$out" QEMU="$QEMU"

make_initramfs()
{
	local root=$out/root

	rm -rf "$root"
	mkdir -p "$root/bin"
	cp "$(command -v busybox)" "$root/bin/busybox"
	cp "$out/mark" "$root/bin/"
	cp "$top"/scripts/guest/bench-*.sh "$root/"
	cp "$top/scripts/guest/bench-init.sh" "$root/init"
	chmod +x "$root/init"
	(cd "$root" && find . | busybox cpio -o -H newc 2> /dev/null) |
		gzip -1 > "$out/initramfs.gz"
	rm -rf "$root"
}

# Silence of the guest for longer than this means that it hangs.
declare -A patience=([cost]=900 [wall]=600 [load]=120)
declare -A accel=(
	[cost]='-accel tcg,thread=single -icount shift=0,sleep=off'
	[wall]='-accel tcg,thread=single'
	[load]='-accel tcg,thread=multi'
)

qemu_pid=
trap '[ -z "$qemu_pid" ] || kill "$qemu_pid" 2> /dev/null || :' EXIT

# What the log's last line means to the person who waits.
show_progress()
{
	local line

	line=$(grep -E '^(round|step|load|probes) ' "$1/results" 2> /dev/null |
		tail -n 1 | cut -d' ' -f1-5) || :
	progress "$2: ${line:-booting}"
}

# boot KERNEL DIR: one guest; returns 1 if it did not come to its end
boot()
{
	local kernel=$1 dir=$2 size=0 grown=$SECONDS now plugin=()

	rm -rf "$dir"
	mkdir -p "$dir"
	[ "$mode" != cost ] ||
		plugin=(-plugin "$out/insncount.so,out=$dir/marks")
	# shellcheck disable=SC2086 # several words
	"$QEMU" -nodefaults -no-user-config -display none -no-reboot \
		${accel[$mode]} -cpu max -smp "$SMP" -m "$MEM" \
		"${plugin[@]}" -kernel "${image[$kernel]}" \
		-initrd "$out/initramfs.gz" \
		-serial "file:$dir/console" -serial "file:$dir/results" \
		-append "console=ttyS0 loglevel=5 panic=-1 oops=panic \
idle=halt nokaslr kunit.enable=0 bench_mode=$mode bench_only=$only \
bench_rounds=$rounds bench_seconds=$((minutes * 60))" \
		2> "$dir/qemu" &
	qemu_pid=$!
	while kill -0 "$qemu_pid" 2> /dev/null; do
		sleep 0.5
		now=$(stat -c %s "$dir/results" 2> /dev/null || echo 0)
		if [ "$now" != "$size" ]; then
			size=$now grown=$SECONDS
		elif [ $((SECONDS - grown)) -gt "${patience[$mode]}" ]; then
			kill "$qemu_pid"
			echo hung > "$dir/ended"
		fi
		show_progress "$dir" "$kernel"
	done
	wait "$qemu_pid" || :
	qemu_pid=
	progress_end
	grep -q '^done' "$dir/results" 2> /dev/null && return
	[ -e "$dir/ended" ] || echo died > "$dir/ended"
	return 1
}

# A guest that ended before it was done: say how, with what it said last.
explain()
{
	local kernel=$1 dir=$2

	[ ! -s "$dir/qemu" ] || tail -n 3 "$dir/qemu" >&2
	grep -aE 'Oops|BUG|panic' "$dir/console" | head -n 3 >&2 ||
		tail -n 20 "$dir/console" >&2
	die "the $kernel kernel $(cat "$dir/ended"): see $dir/console"
}

# What stock's results depend on.
key()
{
	echo "$mode $only $rounds $boots $minutes $SMP $MEM"
	cat "${image[$1]}" "$top"/scripts/guest/bench-*.sh | sha256sum
}

make_initramfs
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
		if ! boot "$kernel" "$dir" && [ "$mode" != load ]; then
			explain "$kernel" "$dir"
		fi
		say "$kernel: boot $n, $(duration $((SECONDS - start)))"
	done
done
for kernel in "${fresh[@]}"; do
	key "$kernel" > "$out/$mode-$kernel.key"
done

python3 "$top/scripts/bench-report.py" "$mode" "$out" "${kernels[@]}" "bench.sh $args"
