#!/bin/bash
# SPDX-License-Identifier: GPL-2.0

usage="usage: scripts/guest.sh [OPTION...] SCRIPT [ARG...]
Boot one of the kernels built here in QEMU, run SCRIPT in it as root, and exit with
SCRIPT's status. What SCRIPT prints goes to the console log; its lines that begin
with '@ ' are shown as they come. SCRIPT finds a writable folder in \$RESULTS and
this repository in \$REPO; it is run from a folder that also holds the --file files.
  --kind KIND    kernel in build/obj-KIND: base (default), test, debug, stock-base
  --kernel FILE  a bzImage from elsewhere
  --root ROOT    busybox (default): initramfs, boots in a second or two
                 host: the host's root directory, read-only
  --results DIR  the folder behind \$RESULTS (default build/results)
  --log FILE     console log (default DIR/console.log)
  --file FILE    copy FILE next to SCRIPT (may be repeated)
  --smp N, --mem SIZE, --accel auto|kvm|tcg      (default SMP, MEM, ACCEL)
  --thread single|multi                          of the emulator (default single)
  --icount ARG   instructions as the clock, such as shift=0,sleep=off
  --plugin ARG   QEMU plugin, such as file=insncount.so,arg=value
  --qemu ARG     any other QEMU argument (may be repeated)
  --append ARGS  more kernel command line
  --time S       call it hung after S seconds (default 300)
  --allow REGEX  console lines that are no failure though they look like one
  --interactive  the console on this terminal, no time limit
Exit status: SCRIPT's, or 122 QEMU did not run, 123 something was wrong on the
console, 124 hung, 125 panicked."

# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

kind=base kernel='' root=busybox results=$build/results log='' thread=single icount='' append=''
limit=300 allow='^$' interactive='' files=() extra=()
while [ $# -gt 0 ]; do
	case $1 in
	--interactive) interactive=1; shift; continue ;;
	--) shift; break ;;
	--*) [ $# -ge 2 ] || die "$1 needs a value; $usage" ;;
	*) break ;;
	esac
	case $1 in
	--kind) kind=$2 ;;
	--kernel) kernel=$2 ;;
	--root) root=$2 ;;
	--results) results=$2 ;;
	--log) log=$2 ;;
	--file) files+=("$2") ;;
	--smp) SMP=$2 ;;
	--mem) MEM=$2 ;;
	--accel) ACCEL=$2 ;;
	--thread) thread=$2 ;;
	--icount) icount=$2 ;;
	--plugin) extra+=(-plugin "$2") ;;
	--qemu) extra+=("$2") ;;
	--append) append=$2 ;;
	--time) limit=$2 ;;
	--allow) allow=$2 ;;
	*) die "unknown option $1; $usage" ;;
	esac
	shift 2
done
[ $# -gt 0 ] || die "$usage"

fail() { printf 'error: %s\n' "$2" >&2; exit "$1"; }

qemu=$(command -v qemu-system-x86_64) ||
	fail 122 "qemu-system-x86_64 is not installed: run 'make -f Makefile.patches deps'"
: "${kernel:=$build/obj-$kind/arch/x86/boot/bzImage}"
[ -f "$kernel" ] || fail 122 "there is no $kind kernel: run 'scripts/build.sh ${kind/#stock-/--stock }'"
mkdir -p "$results"
results=$(cd "$results" && pwd)
: "${log:=$results/console.log}"

# busybox and init, nothing else: the job comes through a share
initramfs()
{
	local dir=$build/initramfs

	[ "$top/scripts/guest/init" -nt "$dir.gz" ] || [ ! -e "$dir.gz" ] || return 0
	rm -rf "$dir.$$"
	mkdir -p "$dir.$$"/{bin,dev,proc,sys,tmp,run,var,root,usr/lib}
	cp "$(command -v busybox)" "$dir.$$/bin/busybox"
	ln -s busybox "$dir.$$/bin/sh"
	cp "$top/scripts/guest/init" "$dir.$$/init"
	(cd "$dir.$$" && find . | cpio -o -H newc --quiet --owner 0:0 | gzip -1) >"$dir.gz.$$"
	mv "$dir.gz.$$" "$dir.gz"
	rm -rf "$dir.$$"
}

# Hardware may claim KVM and still not run a guest: believe a test boot only.
kvm_works()
{
	local id was probe_log=$build/kvm-probe.log

	grep -qwE 'svm|vmx' /proc/cpuinfo || return 1
	[ -w /dev/kvm ] || return 1
	id="$(cat /proc/sys/kernel/random/boot_id) $(stat -c %Y "$kernel")"
	was=$(cat "$build/kvm-probe" 2>/dev/null || :)
	if [ "${was% *}" != "$id" ]; then
		timeout 60 "$qemu" -accel kvm -cpu max -smp 2 -m 512M -nodefaults \
			-display none -no-reboot -serial "file:$probe_log" \
			-kernel "$kernel" -initrd "$build/initramfs.gz" \
			-append "console=ttyS0 panic=-1 guest.probe" >/dev/null 2>&1 || :
		was="$id $(grep -ac '^guest: init reached' "$probe_log" 2>/dev/null || :)"
		printf '%s\n' "$was" >"$build/kvm-probe"
	fi
	[ "${was##* }" = 1 ]
}

command -v busybox >/dev/null ||
	fail 122 "busybox is not installed: run 'make -f Makefile.patches deps'"
initramfs
case $ACCEL in
auto)
	ACCEL=tcg
	[ -n "$icount" ] || ! kvm_works || ACCEL=kvm ;;
kvm | tcg) ;;
*) die "ACCEL=$ACCEL: say auto, kvm or tcg" ;;
esac

args=(-nodefaults -no-user-config -display none -no-reboot -cpu max -smp "$SMP" -m "$MEM"
	-kernel "$kernel"
	-virtfs "local,path=$results,mount_tag=results,security_model=none,id=results"
	-virtfs "local,path=$top,mount_tag=repo,security_model=none,readonly=on,multidevs=remap,id=repo")
case $ACCEL in
tcg) args+=(-accel "tcg,thread=$thread") ;;
kvm) args+=(-accel kvm) ;;
esac
[ -z "$icount" ] || args+=(-icount "$icount")

level=8
[ -z "$interactive" ] || level=4
cmdline="console=ttyS0 loglevel=$level oops=panic panic=-1 $append"
case $root in
busybox) args+=(-initrd "$build/initramfs.gz") ;;
host)
	args+=(-virtfs "local,path=/,mount_tag=hostroot,security_model=none,readonly=on,multidevs=remap,id=hostroot")
	cmdline+=" root=hostroot rootfstype=9p ro"
	cmdline+=" rootflags=trans=virtio,version=9p2000.L,msize=524288,cache=loose"
	cmdline+=" init=$top/scripts/guest/init" ;;
*) die "--root $root: say busybox or host" ;;
esac
args+=(-append "$cmdline" "${extra[@]}")

# The job: the script, its files, and how to call it
job=$results/.guest
rm -rf "$job"
mkdir -p "$job"
cp "$1" "${files[@]}" "$job/" || fail 122 "cannot copy $1 ${files[*]}: see above"
printf 'export MODULES=%s SMP=%s\n' "build/obj-$kind/root/lib/modules" "$SMP" >"$job/env"
{
	printf '#!/bin/sh\nexec'
	printf " '%s'" sh "./$(basename "$1")" "${@:2}"
	echo
} >"$job/command"
if head -n1 "$1" | grep -q bash; then
	sed -i "s/ 'sh'/ 'bash'/" "$job/command"
fi
chmod +x "$job/command"

if [ -n "$interactive" ]; then
	trap - INT
	"$qemu" "${args[@]}" -serial mon:stdio
	exit
fi

: >"$log"
"$qemu" "${args[@]}" -serial "file:$log" >"$job/qemu.log" 2>&1 &
pid=$!
trap 'kill $pid 2>/dev/null || :; interrupted' INT TERM
start=$SECONDS shown=0 hung=
show()
{
	local n

	n=$(grep -ac '^@ ' "$log" || :)
	[ "$n" -gt "$shown" ] || return 0
	grep -a '^@ ' "$log" | tr -d '\r' | sed -n "$((shown + 1)),${n}s/^@ //p"
	shown=$n
}
while kill -0 $pid 2>/dev/null; do
	show
	if [ $((SECONDS - start)) -ge "$limit" ]; then
		hung=1
		kill $pid
		break
	fi
	sleep 0.3
done
qemu_status=0
wait $pid || qemu_status=$?
trap interrupted INT TERM
show

clean() { tr -d '\r' <"$log"; }
splats='BUG:|WARNING:|Oops:|general protection fault|soft lockup|hard LOCKUP'
splats+='|blocked for more than|detected stalls|self-detected stall|possible .*locking'
splats+='|inconsistent lock state|suspicious RCU|INFO: rcu|KASAN:|UBSAN:|invalid opcode'
splats+='|unable to handle|ftrace failed|Failed on adding breakpoints|segfault'
found=$(clean | grep -aE "^\[ *[0-9.]+\]" | grep -aE "$splats" | grep -avE "$allow" || :)

if clean | grep -aq 'Kernel panic'; then
	clean | grep -aE 'BUG:|Oops:|RIP: 0010|Kernel panic' | head -n 8 >&2
	fail 125 "the guest panicked: see above and ${log#"$top"/}"
fi
if [ -n "$hung" ]; then
	clean | tail -n 20 >&2
	fail 124 "the guest hung: not done after $limit s; its last lines are above, all are in ${log#"$top"/}"
fi
if [ $qemu_status -ne 0 ]; then
	fail 122 "QEMU failed: $(tail -n1 "$job/qemu.log")"
fi
if [ -z "$hung" ] && grep -q 'terminating on signal' "$job/qemu.log"; then
	fail 122 "QEMU was stopped from outside: $(tail -n1 "$job/qemu.log")"
fi
if [ ! -s "$job/status" ]; then
	clean | tail -n 5 >&2
	fail 125 "the guest went down before its job was done: see above and ${log#"$top"/}"
fi
if [ -n "$found" ]; then
	printf '%s\n' "$found" | head -n 10 >&2
	fail 123 "the guest's kernel complained: see above and ${log#"$top"/}"
fi
exit "$(cat "$job/status")"
