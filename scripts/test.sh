#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# test.sh [STEP...]: everything that proves the series, or the steps named.
#
# Prints one 'ok N name', 'not ok N name: why' or 'ok N name # SKIP why' for each
# test, and last 'N passed, N failed, N skipped'. Exits with 1 if one failed.

# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

steps="apply check model race boot startup run kselftest debug"
out=$build/test
tree=$build/linux
number=0 passed=0 failed=0 skipped=0

pass() { number=$((number + 1)) passed=$((passed + 1)); say "ok $number $1"; }
fail() { number=$((number + 1)) failed=$((failed + 1)); say "not ok $number $1: $2"; }
skip() { number=$((number + 1)) skipped=$((skipped + 1)); say "ok $number $1 # SKIP $2"; }

# check NAME COMMAND...: a test that is one command; the end of what it says is why
check()
{
	local name=$1 log=$out/$1.log

	shift
	mkdir -p "$(dirname "$log")"
	if "$@" >"$log" 2>&1; then
		pass "$name"
		return 0
	fi
	sed 's/^/# /' "$log" | tail -n 25
	# checkpatch's first complaint, or anyone's last word
	fail "$name" "$(grep -m1 -E '^(ERROR|WARNING|CHECK): ' "$log" || grep -v '^$' "$log" | tail -n 1)"
	return 1
}

# The same where the command shows how far it is: what it prints is shown.
watch()
{
	local name=$1

	shift
	if "$@"; then
		pass "$name"
		return 0
	fi
	fail "$name" "see above"
	return 1
}

guest() { "$top/scripts/guest.sh" "$@"; }

# The console without time stamps
console() { tr -d '\r' <"$1" | sed -E 's/^\[ *[0-9.]+\] //'; }

our_files() { cut -c67- "$build/linux.manifest"; }

step_apply()
{
	watch queue-applies "$top/scripts/apply.sh"
}

# style IGNORED ARG...: checkpatch, without what its own helpers say where they lack
# a Python module or a git history. No sign-off before the mails are made.
style()
(
	cd "$out" && "$tree/scripts/checkpatch.pl" "--root=$tree" --strict --quiet --no-summary \
		--ignore "MISSING_SIGN_OFF,FILE_PATH_CHANGES,$1" "${@:2}" 2>/dev/null
)

step_check()
{
	local f p scripts

	while read -r f; do
		case $f in
		# It stands for headers of the kernel, which have such things.
		tools/*/shim.h)
			check "checkpatch/$f" style COMPLEX_MACRO,MACRO_ARG_REUSE,MACRO_ARG_UNUSED,MEMORY_BARRIER,NEW_TYPEDEFS,PREFER_DEFINED_ATTRIBUTE_MACRO,VOLATILE \
				-f "$tree/$f" || : ;;
		# User space has Elf64_Ehdr and no __noreturn.
		tools/*.[ch])
			check "checkpatch/$f" style CAMELCASE,PREFER_DEFINED_ATTRIBUTE_MACRO -f "$tree/$f" || : ;;
		# As all headers of trace events, written in their own language.
		*/trace/text_poke.h)
			check "checkpatch/$f" style OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT,SPACING \
				-f "$tree/$f" || : ;;
		# An iterator has to name its arguments more than once.
		*.h)
			check "checkpatch/$f" style MACRO_ARG_REUSE,MACRO_ARG_UNUSED,BRACES \
				-f "$tree/$f" || : ;;
		*.[chS] | *.rst)
			check "checkpatch/$f" style '' -f "$tree/$f" || : ;;
		esac
	done <"$build/overlay.list"
	for p in "$top"/patches/*.patch; do
		[ -e "$p" ] || continue
		check "checkpatch/$(basename "$p")" style '' "$p" || :
	done

	mapfile -t scripts < <(cd "$top" && grep -rlE --exclude-dir={build,.git,patches} '^#!/bin/(ba)?sh' .)
	cd "$top"
	if command -v shellcheck >/dev/null; then
		check shellcheck shellcheck -x -P SCRIPTDIR -e SC1091 "${scripts[@]}" || :
	else
		skip shellcheck "not installed"
	fi
	if command -v codespell >/dev/null; then
		check codespell codespell -q 3 -L extraversion,struc --skip './build,./.git' . || :
	else
		skip codespell "not installed"
	fi
}

# Files that did not change are not compiled again, and would not warn again.
compile_ours_again()
{
	our_files | while read -r f; do
		case $f in
		*.[cS]) [ ! -f "$tree/$f" ] || touch "$tree/$f" ;;
		esac
	done
}

warnings_in_ours()
{
	local bad

	bad=$(grep -F 'warning:' "$build/obj-$1/build.log" | sed "s,$tree/,,g; s,\.\./linux/,,g" |
		grep -F -f <(our_files) || :)
	[ -z "$bad" ] || { printf '%s\n' "$bad"; return 1; }
}

kernel()
{
	compile_ours_again
	watch "build-$1" "$top/scripts/build.sh" "$1" || return 1
	check "build-$1-no-warnings" warnings_in_ours "$1" || :
}

step_run()
{
	local sites

	# The test kernel is the base kernel and more: one build less. An empty
	# kprobe_event= keeps it from testing itself before.
	watch run "$top/scripts/run.sh" --kind test --append "kunit.enable=0 kprobe_event=" || return 0
	check run-text-identical grep -q '"text": "identical"' "$build/run/report.json" || :
	if grep -q '"engine": "no"' "$build/run/report.json"; then
		skip run-all-sites "this kernel does not count sites"
	else
		sites=$(sed -nE 's/.*"step": "function".*"sites": ([0-9]+).*/\1/p' "$build/run/report.json")
		check run-all-sites test "${sites:-0}" -gt 20000 || :
	fi
}

# kunit_cases LOG OBJ: every case of the suites that patch text
kunit_cases()
{
	local suite option status name why

	for suite in text_poke:TEXT_POKE_KUNIT_TEST kprobes_test:KPROBES_SANITY_TEST \
		     ftrace_batch:FTRACE_BATCH_KUNIT_TEST; do
		option=${suite#*:} suite=${suite%:*}
		if ! grep -q "^CONFIG_$option=y" "$build/obj-$2/.config"; then
			skip "$2/kunit/$suite" "this tree has no CONFIG_$option"
			continue
		fi
		console "$1" | awk -v suite="$suite" '
			/# Subtest: / { on = $0 ~ "# Subtest: " suite "$"; next }
			on && $0 ~ "^(not )?ok [0-9]+ " suite "( |$)" { done = 1; on = 0 }
			on && /^    (not )?ok [0-9]+ / {
				bad = $1 == "not"
				skip = $0 ~ /# SKIP/
				print bad ? "fail" : skip ? "skip" : "pass", bad ? $4 : $3
				n++
			}
			END { if (!n || !done) print "fail suite-incomplete" }' >"$out/kunit"
		while read -r status name; do
			why="see ${1#"$top"/}"
			$status "$2/kunit/$suite/$name" "$why"
		done <"$out/kunit"
	done
}

step_boot()
{
	kernel test || return 0
	watch test-boot guest --kind test --time 900 --results "$out/test" \
		--append "kunit.enable=1" "$top/scripts/guest/tests.sh" boot || :
	kunit_cases "$out/test/console.log" test
	console "$out/test/console.log" >"$out/test/ktap"
	check test-kunit-parse python3 "$tree/tools/testing/kunit/kunit.py" parse "$out/test/ktap" || :
}

step_startup()
{
	local line log=$out/test/console.log

	[ -s "$log" ] || { fail startup "the test kernel did not boot"; return 0; }
	console "$log" >"$out/startup"
	while read -r line; do
		case $line in
		'#'*) ;;
		*)
			if grep -qF "$line" "$out/startup"; then
				pass "startup/${line%: PASSED}"
			else
				fail "startup/${line%: PASSED}" "'$line' is not in build/test/test/console.log"
			fi ;;
		esac
	done <"$top/scripts/startup-tests.list"
	if line=$(grep -m1 -E 'Testing.*FAILED|^FAILED|\.\. no entries found \.\.' "$out/startup"); then
		fail startup/none-failed "$line"
	else
		pass startup/none-failed
	fi
}

step_debug()
{
	kernel debug || return 0
	watch debug-boot-and-20-switches guest --kind debug --time 900 --results "$out/debug" \
		--append "kunit.enable=1" "$top/scripts/guest/tests.sh" switch 20 || :
	kunit_cases "$out/debug/console.log" debug
}

step_kselftest()
{
	local line name

	if [ ! -f "$tree/tools/testing/selftests/text_poke/Makefile" ]; then
		skip kselftest "no tools/testing/selftests/text_poke/Makefile"
		return 0
	fi
	rm -rf "$out/kselftest"
	mkdir -p "$out/kselftest"
	check kselftest-build make -s -C "$tree/tools/testing/selftests" \
		O="$out/kselftest" KBUILD_OUTPUT="$out/kselftest" TARGETS=text_poke \
		INSTALL_PATH="$out/kselftest/install" install || return 0
	watch kselftest-guest guest --kind test --root host --time 900 --results "$out/host" \
		--append "kprobe_event=" "$top/scripts/guest/tests.sh" kselftest \
		"${out#"$top"/}/kselftest/install" || :
	[ -s "$out/host/tap" ] || { fail kselftest "no result: see build/test/host/console.log"; return 0; }
	while read -r line; do
		name=$(sed -E 's/^(not )?ok [0-9]+ (selftests: )?//; s/ #.*//; s/: /\//g' <<<"$line")
		case $line in
		*'# SKIP'*) skip "kselftest/$name" "see build/test/host/tap" ;;
		not*) fail "kselftest/$name" "see build/test/host/tap" ;;
		ok*) pass "kselftest/$name" ;;
		esac
	done < <(grep -E '^(not )?ok [0-9]+ ' "$out/host/tap")
}

# taps NAME: every result of a suite that wrote TAP into build/test/NAME.log
taps()
{
	local line name log=$out/$1.log

	while read -r line; do
		name=$1/$(sed -E 's/^(not )?ok [0-9]+ //; s/ #.*//; s/^- //' <<<"$line")
		case $line in
		*'# SKIP'*) skip "$name" "${line#*# SKIP }" ;;
		not*) fail "$name" "see build/test/$1.log" ;;
		ok*) pass "$name" ;;
		esac
	done < <(grep -E '^(not )?ok [0-9]+ ' "$log")
	grep -qE '^[0-9]+ passed' "$log" || fail "$1/complete" "see build/test/$1.log"
}

# The protocol, checked exhaustively, and that the checker finds what is broken
step_model()
{
	mkdir -p "$out"
	"$top/tools/testing/text_poke/model/check.sh" >"$out/model.log" 2>&1 || :
	taps model
}

# The engine in user space on this machine's cores, and that the race notices what is broken
step_race()
{
	local dir=$tree/tools/testing/text_poke/race

	check race-build make -s -C "$dir" "O=$out/race" || return 0
	"$dir/check.sh" "$out/race/race" >"$out/race.log" 2>&1 || :
	sed -nE '/^# [1-9][0-9]* calls/p' "$out/race.log"
	taps race
}

mkdir -p "$out"
steps_wanted=("$@")
[ $# -gt 0 ] || read -ra steps_wanted <<<"$steps"
for step in "${steps_wanted[@]}"; do
	case " $steps " in
	*" $step "*) ;;
	*) die "no step $step: there are $steps" ;;
	esac
done
for step in "${steps_wanted[@]}"; do
	start=$SECONDS
	say "# $step"
	"step_$step" || say "# $step stopped early"
	say "# $step took $(duration $((SECONDS - start)))"
	[ "$step" != apply ] || [ $failed -eq 0 ] || break
done
say "# all took $(duration $SECONDS)"
say "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
