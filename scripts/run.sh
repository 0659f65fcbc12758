#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The main job: boot the patched kernel, let it patch itself, say what that cost.
# Arguments are passed on to guest.sh (such as --kind stock-base).

# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

out=$build/run
textcmp=$out/textcmp
mkdir -p "$out"
rm -f "$out"/{report.json,steps,facts,textcmp.out}
gcc -O2 -static -o "$textcmp" "$top/tools/testing/selftests/text_poke/textcmp.c"

status=0
"$top/scripts/guest.sh" --results "$out" --file "$textcmp" "$@" \
	"$top/scripts/guest/run.sh" || status=$?
[ -s "$out/steps" ] || exit $status

awk -F '\t' -v facts="$out/facts" -v json="$out/report.json" '
BEGIN {
	while ((getline line < facts) > 0) {
		name = line
		sub(/=.*/, "", name)
		sub(/^[^=]*=/, "", line)
		fact[name] = line
	}
	n = split("step ms sites syncs traps planted_us irqoff_us", column, " ")
	printf "\n%-20s%8s%8s%7s%8s%13s%13s\n", "step", "ms", "sites", "syncs",
	       "traps", "planted (us)", "IRQ off (us)"
	printf "{\n" > json
	for (name in fact)
		printf "  \"%s\": \"%s\",\n", name, fact[name] > json
	printf "  \"steps\": [" > json
}
{
	printf "%-20s%8s%8s%7s%8s%13s%13s\n", $1, $2, $3, $4, $5, $6, $7
	printf "%s\n    { \"step\": \"%s\"", comma, $1 > json
	comma = ","
	for (i = 2; i <= n; i++)
		printf ", \"%s\": %s", column[i], ($i == "-" ? "null" : $i) > json
	printf " }" > json
}
END {
	printf "\n  ]\n}\n" > json
	printf "\nLinux %s, %s CPUs, %s call sites; %s of %s kprobes optimised\n",
	       fact["kernel"], fact["cpus"], fact["call_sites"],
	       fact["optimised"], fact["probes"]
	if (fact["absent"] != "")
		printf "tracers this kernel lacks, left out: %s\n", fact["absent"]
	if (fact["engine"] == "no")
		print "this kernel has no counters in debugfs x86/text_poke"
}' "$out/steps"

text=$(sed -n 's/^text=//p' "$out/facts")
case $text in
identical) say "kernel text is byte for byte what it was at boot" ;;
differs)
	cat "$out/textcmp.out"
	status=1
	say "kernel text is NOT what it was at boot" ;;
*)
	[ $status -ne 0 ] || status=1
	say "kernel text was not compared" ;;
esac
exit $status
