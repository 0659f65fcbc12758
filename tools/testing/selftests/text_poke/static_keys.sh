#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Flip the static key of every pr_debug() on and off: a batch, whatever its slots.

# shellcheck source=functions.sh
. "$(dirname "$(readlink -f "$0")")/functions.sh"

rounds=3
control=/proc/dynamic_debug/control
instance=$tracing/instances/text_poke_selftest
event=$instance/events/text_poke/text_poke_batch
printk=/proc/sys/kernel/printk
was=

# Code that is built with DEBUG prints from the start.
as_before()
{
	echo -p >$control
	sed -E 's/^([^ ]+):([0-9]+) .*/file \1 line \2 +p/' "$tmp/printed" |
		while read -r query; do
			echo "$query" >$control
		done
}

put_back()
{
	[ -z "$was" ] || echo "$was" >$batch_max
	[ -z "$loglevel" ] || {
		as_before
		echo "$loglevel" >$printk
	}
	[ ! -d $instance ] || {
		echo 0 >$event/enable
		rmdir $instance
	}
}

# Function-call interrupts of all CPUs
calls()
{
	awk '$1 == "CAL:" { for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i } END { print n + 0 }' \
		/proc/interrupts
}

# Dynamic debug says "file:line [module]function =flags format".
flags='^[^ ]+ \[[^ ]*\][^ ]* ='
printing() { grep -cE "${flags}[a-z]*p[a-z]* " $control; }
all_print() { [ "$(printing)" -eq "$callsites" ]; }
none_prints() { [ "$(printing)" -eq 0 ]; }

# With a class they are left alone by a query that names none.
nr_callsites() { grep -v ' class:' $control | grep -cE "${flags}[a-z_]+ "; }

# Two reads of /proc/interrupts cost calls, too; not many.
flip()
{
	echo 0 >$event/enable
	echo >$instance/trace
	echo 1 >$event/enable
	called=$(calls)
	echo "$1" >$control || return 1
	called=$(($(calls) - called))
	echo 0 >$event/enable
	sed -n 's/.*text_poke_batch: //p' $instance/trace | sort -t= -k2 -n >"$tmp/batches"
	echo "# $1, slots of at most $size: $called calls; the largest of" \
		"$(wc -l <"$tmp/batches") batches: $(tail -n 1 "$tmp/batches")"
}

flip_all()
{
	flip "$1" || return 1
	case $1 in
	+p) all_print ;;
	-p) none_prints ;;
	esac
}

# of_batch FIELD: of the largest one
of_batch()
{
	tail -n 1 "$tmp/batches" | tr ' ' '\n' | sed -n "s/^$1=//p"
}

# Init text is gone, and with it some of the branches.
one_batch() { [ "$(of_batch sites)" -ge $((callsites / 2)) ] && [ "$(of_batch error)" = 0 ]; }
syncs_shared() { [ "$(of_batch syncs)" -eq $(($(of_batch slots) + 2)) ]; }

# Of the usual slots one holds hundreds of sites: 3 syncs, and 3 more each thousand.
few_syncs() { [ "$(of_batch syncs)" -le $((3 + 3 * $(of_batch sites) / 1000)) ]; }

# The other CPUs, once for each sync, and some that are none of ours
few_calls() { [ "$called" -le $(($(of_batch syncs) * $(nproc) + 50)) ]; }
text_is_patched() { ! "$here/textcmp" check "$tmp/text" >"$tmp/textcmp" 2>&1; }

loglevel=
begin
mount -t proc proc /proc 2>/dev/null
need $control "no $control: the kernel needs CONFIG_DYNAMIC_DEBUG"
need $batch_max "no kernel.text_poke_batch_max: the kernel has no CONFIG_X86_TEXT_PATCH"
need $tracing/events/text_poke/text_poke_batch "no event text_poke:text_poke_batch"
grep -E "${flags}[a-z]*p[a-z]* " $control >"$tmp/printed"
mkdir $instance || skip_all "cannot make $instance"
# Messages go to the log, and must not wait for a slow console.
loglevel=$(cat $printk)
echo 1 >$printk
was=$(cat $batch_max)
callsites=$(nr_callsites)
save_text
ktap_set_plan $((3 * rounds * 9 + 2 * rounds * 2 + 2))
echo "# $callsites debug messages"

for size in 0 64 1024; do
	echo "$size" >$batch_max
	round=1
	while [ $round -le $rounds ]; do
		now="slots of $size, round $round"
		for to in +p -p; do
			ktap_test_result "static_keys: $to, $now" flip_all $to
			ktap_test_result "static_keys: $to in one batch, $now" one_batch
			ktap_test_result "static_keys: $to with shared syncs, $now" syncs_shared
			[ "$size" = 64 ] ||
				ktap_test_result "static_keys: $to with few syncs, $now" few_syncs
			ktap_test_result "static_keys: $to with few calls, $now" few_calls
			[ $to = -p ] ||
				ktap_test_result "static_keys: $to shows in text, $now" text_is_patched
		done
		round=$((round + 1))
	done
done
as_before
check_end
