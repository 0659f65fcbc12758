#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# mutate.sh [NAME...]: break the code on purpose, in every way that mutations/ has or
# in those named, and see whether the KUnit case finds it that is there for it.
#
# A mutation is a patch whose text says what it breaks, with a line
#
#   Breaks: SUITE.CASE
#
# Each is built into a test kernel, in which only this case is run. The case must
# fail; or the kernel must panic or hang in it. Without arguments, every case must
# have a mutation that breaks it.
#
# The kernel tree is left alone: make finds the broken file in build/obj-mutant, the
# object directory of these kernels, before it looks into the tree.

# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
take_lock

tree=$build/linux
obj=$build/obj-mutant
out=$build/mutate
mutations=$top/scripts/mutations
suites="text_poke ftrace_batch"
# Nothing else patches text before the tests do; hung is who calls nobody for 20 s.
cmdline="kprobe_event= softlockup_panic=1 kunit_shutdown=reboot ftrace_batch_test.seed=612"

number=0 passed=0 failed=0 skipped=0
pass() { number=$((number + 1)) passed=$((passed + 1)); say "ok $number $1"; }
fail() { number=$((number + 1)) failed=$((failed + 1)); say "not ok $number $1"; }
skip() { number=$((number + 1)) skipped=$((skipped + 1)); say "ok $number $1 # SKIP $2"; }

broken_case() { sed -n 's/^Breaks: //p' "$mutations/$1.patch"; }

# boot NAME FILTER GUEST-ARGUMENT...: the console is left in $out/NAME.log
boot()
{
	local status=0

	rm -f "$out/$1.log"
	"$top/scripts/guest.sh" --results "$out/results" --log "$out/$1.log" --time 240 \
		--append "$cmdline kunit.filter_glob=$2" "${@:3}" \
		"$top/scripts/guest/tests.sh" boot >"$out/$1.guest" 2>&1 || status=$?
	printf '%s\n' $status >"$out/$1.status"
}

console() { tr -d '\r' <"$out/$1.log" | sed -E 's/^\[ *[0-9.]+\] //'; }

# results NAME: "pass CASE", "fail CASE" or "skip CASE", as the guest said
results()
{
	console "$1" | sed -nE 's/^    ok [0-9]+ ([a-z0-9_]+) # SKIP.*/skip \1/p; t
		s/^    ok [0-9]+ ([a-z0-9_]+).*/pass \1/p
		s/^    not ok [0-9]+ ([a-z0-9_]+).*/fail \1/p'
}

# Put a mutation's files in front of the tree's.
mutated_files() { sed -nE 's,^\+\+\+ b/,,p' "$mutations/$1.patch"; }

restore()
{
	local f

	while read -r f; do
		rm -f "${obj:?}/$f"
	done < <(cat "$out/files")
	: >"$out/files"
}

mutate()
{
	local f

	restore
	# Named before they are written: an interrupted run's are taken away by the next.
	mutated_files "$1" >"$out/files"
	while read -r f; do
		cp "$tree/$f" "$obj/$f"
	done <"$out/files"
	patch -d "$obj" -p1 --fuzz=0 --no-backup-if-mismatch -r - <"$mutations/$1.patch" >"$out/$1.patch.log"
}

# Whether the guest found what is wrong. Sets how.
caught()
{
	local suite=${2%.*} status

	status=$(cat "$out/$1.status")
	how=$(results "$1" | awk -v case="${2#*.}" '$2 == case { print $1 }')
	case $how in
	fail) how="it failed" ;;
	pass) how="it passed" ;;
	skip) how="it was skipped" ;;
	*)
		if ! console "$1" | grep -qE "^ *# Subtest: $suite$"; then
			how="the kernel did not come to it"
		elif [ "$status" -eq 124 ]; then
			how="it hung"
		elif console "$1" | grep -q 'Kernel panic.*softlockup'; then
			how="it hung"
		elif console "$1" | grep -q 'Kernel panic'; then
			how="the kernel panicked in it"
		elif [ "$status" -eq 125 ]; then
			how="the machine went down in it"
		else
			how="no result, see ${out#"$top"/}/$1.guest"
		fi ;;
	esac
	case $how in
	"it failed" | "it hung" | *" in it") return 0 ;;
	esac
	return 1
}

judge()
{
	local case

	case=$(broken_case "$1")
	if caught "$1" "$case"; then
		pass "$1: $case: $how"
	else
		fail "$1: $case: NOT CAUGHT, $how"
	fi
}

# The guest of one mutation runs while the kernel of the next is built.
guest='' guest_of=''
wait_for_guest()
{
	[ -n "$guest" ] || return 0
	wait "$guest" || :
	judge "$guest_of"
	guest=
}

stop_guest()
{
	[ -z "$guest" ] || kill "$guest" 2>/dev/null || :
	interrupted
}
trap stop_guest INT TERM

try()
{
	local case

	case=$(broken_case "$1")
	if ! grep -qx "$case" "$out/cases"; then
		if grep -qx "$case" "$out/skipped"; then
			skip "$1: $case" "it is skipped here"
		else
			fail "$1: '$case' is no case that passes"
		fi
		return 0
	fi
	if ! mutate "$1"; then
		fail "$1: does not apply: see ${out#"$top"/}/$1.patch.log"
		return 0
	fi
	if ! "$top/scripts/build.sh" mutant >"$out/$1.build" 2>&1; then
		fail "$1: does not build: see ${out#"$top"/}/$1.build"
		return 0
	fi
	cp "$obj/arch/x86/boot/bzImage" "$out/next"
	wait_for_guest
	mv "$out/next" "$out/bzImage"
	boot "$1" "$case" --kernel "$out/bzImage" &
	guest=$! guest_of=$1
}

# What there is to break, and that none of it is broken by itself
baseline()
{
	local suite status name

	: >"$out/cases"
	: >"$out/skipped"
	for suite in $suites; do
		boot "$suite" "$suite" --kind test
		results "$suite" >"$out/$suite.results"
		grep -q . "$out/$suite.results" || fail "unbroken $suite: no results, see ${out#"$top"/}/$suite.log"
		while read -r status name; do
			case $status in
			pass) printf '%s\n' "$suite.$name" >>"$out/cases" ;;
			skip) printf '%s\n' "$suite.$name" >>"$out/skipped" ;;
			fail) fail "unbroken $suite.$name: it failed, see ${out#"$top"/}/$suite.log" ;;
			esac
		done <"$out/$suite.results"
	done
	[ $failed -ne 0 ] || pass "unbroken: $(wc -l <"$out/cases") cases pass"
}

mkdir -p "$out"
touch "$out/files"
"$top/scripts/build.sh" test
if [ ! -d "$obj" ]; then
	rm -rf "$obj.new"
	cp -a --reflink=auto "$build/obj-test" "$obj.new"
	mv "$obj.new" "$obj"
fi

names=("$@")
if [ $# -eq 0 ]; then
	mapfile -t names < <(cd "$mutations" && printf '%s\n' *.patch | sed 's/\.patch$//')
fi
for name in "${names[@]}"; do
	[ -f "$mutations/$name.patch" ] || die "there is no scripts/mutations/$name.patch"
done
baseline
for name in "${names[@]}"; do
	try "$name"
done
wait_for_guest
restore

if [ $# -eq 0 ]; then
	while read -r case; do
		fail "$case: no mutation breaks it"
	done < <(sort "$out/cases" | comm -23 - <(for name in "${names[@]}"; do broken_case "$name"; done | sort -u))
fi
say "# all took $(duration $SECONDS)"
say "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
