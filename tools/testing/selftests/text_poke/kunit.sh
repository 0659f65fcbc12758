#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The KUnit suite once more: it ran at boot, before text was made read-only.

# shellcheck source=functions.sh
. "$(dirname "$(readlink -f "$0")")/functions.sh"

suite=$debug/kunit/text_poke

passed()
{
	tr -d '\0' <$suite/results >"$tmp/results"
	grep -q '^ok [0-9]* text_poke' "$tmp/results" && return 0
	grep -E '^ *not ok|# .*(EXPECT|ASSERT)' "$tmp/results" | sed 's/^/# /'
	return 1
}

run() { echo 1 >$suite/run; }

begin
need $suite/run "no $suite/run: the kernel needs CONFIG_TEXT_POKE_KUNIT_TEST, and kunit.enable=1"
save_text
ktap_set_plan 4
ktap_test_result "kunit: the suite runs" run
ktap_test_result "kunit: and passes" passed
check_end
