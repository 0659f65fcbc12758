# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2034,SC2154
# What the tests share: read with '.', with the number of tests as $plan, after
# which the kernel's text is saved, and everything is put back at the end.

here=$(dirname "$(readlink -f "$0")")
# shellcheck source=../kselftest/ktap_helpers.sh
. "$here/../kselftest/ktap_helpers.sh"

tracing=/sys/kernel/tracing
debug=/sys/kernel/debug
counters=$debug/x86/text_poke
batch_max=/proc/sys/kernel/text_poke_batch_max
name=$(basename "$0" .sh)
tmp=$(mktemp -d) || exit 1

skip_all()
{
	ktap_skip_all "$*"
	exit "$KSFT_SKIP"
}

need()
{
	[ -e "$1" ] || skip_all "$2"
}

mount_tracing()
{
	[ -e $tracing/current_tracer ] || mount -t tracefs tracefs $tracing 2>/dev/null
	need $tracing/current_tracer "no tracefs: the kernel needs CONFIG_FUNCTION_TRACER"
}

mount_debugfs()
{
	[ -e $debug/x86 ] || mount -t debugfs debugfs $debug 2>/dev/null
}

# counter NAME: now, as a number
counter()
{
	cat "$counters/$1"
}

# A test's own way back is put_back(), which it may define.
put_back() { :; }

at_exit()
{
	put_back
	echo nop >$tracing/current_tracer
	rm -rf "$tmp"
}

begin()
{
	ktap_print_header
	[ "$(id -u)" = 0 ] || skip_all "be root to run this"
	mount_tracing
	mount_debugfs
	trap at_exit EXIT
	trap 'exit 1' INT TERM
}

# save_text: after all that skips
save_text()
{
	mark="text_poke selftest $name, process $$"
	echo "$mark" >/dev/kmsg
	echo nop >$tracing/current_tracer
	"$here/textcmp" save "$tmp/text" >"$tmp/textcmp" 2>&1 ||
		skip_all "$(tail -n 1 "$tmp/textcmp")"
}

# What textcmp has found is told, too.
same_text()
{
	"$here/textcmp" check "$tmp/text" >"$tmp/textcmp" 2>&1 && return 0
	sed 's/^/# /' "$tmp/textcmp"
	return 1
}

# Since save_text
no_splat()
{
	dmesg | sed "1,/$mark/d" >"$tmp/dmesg"
	grep -E 'BUG:|WARNING:|Oops|[Pp]anic|ftrace failed|soft lockup|stall' "$tmp/dmesg" \
		>"$tmp/splats" || return 0
	sed 's/^/# /' "$tmp/splats"
	return 1
}

# set_tracer NAME: and see that it is
set_tracer()
{
	echo "$1" >$tracing/current_tracer && [ "$(cat $tracing/current_tracer)" = "$1" ]
}

# wait_until SECONDS COMMAND...
wait_until()
{
	tries=$(($1 * 10))
	shift
	while ! "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.1
	done
}

# The last two tests of each script
check_end()
{
	ktap_test_result "$name: text is what it was" same_text
	ktap_test_result "$name: the kernel has not complained" no_splat
	ktap_finished
}
