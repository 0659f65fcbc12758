#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The counters in debugfs, and the event of a finished batch.

# shellcheck source=functions.sh
. "$(dirname "$(readlink -f "$0")")/functions.sh"

all="batches slots sites pages windows syncs traps stale_traps irqoff_max_ns planted_max_ns planted_ns batch_size"
instance=$tracing/instances/text_poke_selftest
event=$instance/events/text_poke/text_poke_batch

put_back()
{
	[ -d $instance ] || return 0
	echo 0 >$event/enable
	rmdir $instance
}

is_number()
{
	case $(counter "$1") in
	'' | *[!0-9]*) return 1 ;;
	esac
}

# The events of one switch, the fields of the largest batch as sites=N slots=N ...
largest_batch()
{
	sed -n 's/.*text_poke_batch: //p' $instance/trace | sort -t= -k2 -n | tail -n 1
}

field()
{
	largest_batch | tr ' ' '\n' | sed -n "s/^$1=//p"
}

# Some functions are taken out of tracing by whoever else uses their call site.
all_sites()
{
	echo "# $functions functions; the largest batch: $(largest_batch)"
	[ "$(field sites)" -ge $((functions * 9 / 10)) ]
}

# K slots take K + 2 syncs; those that stay a breakpoint would take more.
syncs_shared() { [ "$(field syncs)" -eq $(($(field slots) + 2)) ]; }
counted() { [ "$(counter "$1")" -ge "$(field "$1")" ]; }
no_error() { [ "$(field error)" = 0 ]; }
nothing_stale() { [ "$(counter stale_traps)" -eq 0 ]; }

# Someone else may have patched a branch since.
was_reset() { [ "$(counter sites)" -lt 100 ] && [ "$(counter syncs)" -lt 100 ]; }
refuses_write() { ! { echo 1 >$counters/sites; } 2>/dev/null; }
positive() { [ "$(counter "$1")" -gt 0 ]; }

begin
need $counters "no $counters: the kernel has no CONFIG_X86_TEXT_PATCH or no CONFIG_DEBUG_FS"
need $tracing/events/text_poke/text_poke_batch "no event text_poke:text_poke_batch"
mkdir $instance || skip_all "cannot make $instance"
save_text
ktap_set_plan 28

for file in $all; do
	ktap_test_result "counters: $file is a number" is_number "$file"
done
functions=$(wc -l <$tracing/available_filter_functions)
echo 1 >$counters/reset
ktap_test_result "counters: reset" was_reset
echo 1 >$event/enable
ktap_test_result "counters: function tracer on" set_tracer function
ktap_test_result "counters: event with all sites" all_sites
ktap_test_result "counters: event with shared syncs" syncs_shared
ktap_test_result "counters: event without error" no_error
for file in sites slots windows syncs; do
	ktap_test_result "counters: $file as in the event" counted $file
done
for file in irqoff_max_ns planted_max_ns; do
	ktap_test_result "counters: $file is measured" positive $file
done
if nothing_stale; then
	ktap_test_pass "counters: no stale traps"
else
	ktap_test_skip "counters: no stale traps ($(counter stale_traps): the emulator has some)"
fi
set_tracer nop
ktap_test_result "counters: sites cannot be written" refuses_write
echo 1 >$counters/reset
ktap_test_result "counters: reset again" was_reset
put_back
check_end
