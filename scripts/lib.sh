# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
# What every script here shares: where things are, how to speak, how to stop.
# Read with '.', never run.

set -euo pipefail
# Our own parallelism is JOBS; a make above us must not pass its flags down.
unset MAKEFLAGS MFLAGS MAKELEVEL

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$top/build
: "${JOBS:=$(nproc)}" "${SMP:=2}" "${MEM:=1G}" "${ACCEL:=auto}"
: "${KSRC:=}" "${KCONFIG:=}"
overlay_dirs="Documentation arch include kernel lib tools"

say() { printf '%s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# A line that tells how far a long step is: rewritten in place on a terminal,
# one line every half minute anywhere else.
progress_at=-30
progress()
{
	if [ -t 1 ]; then
		printf '\r\033[K%s' "$*"
	elif [ $((SECONDS - progress_at)) -ge 30 ]; then
		progress_at=$SECONDS
		printf '%s\n' "$*"
	fi
}
progress_end() { progress_at=-30; [ ! -t 1 ] || printf '\r\033[K'; }

duration() { printf '%dm%02ds' $(($1 / 60)) $(($1 % 60)); }

# The outermost script says it, once.
nested=${TEXT_POKE_NESTED:-}
export TEXT_POKE_NESTED=1
interrupted()
{
	trap - INT TERM
	[ -n "$nested" ] ||
		printf '\nerror: interrupted; nothing half-done is taken as good, run the same command again\n' >&2
	exit 130
}
trap interrupted INT TERM

# Two commands may not write one build directory at the same time.
take_lock()
{
	mkdir -p "$build"
	[ -z "${TEXT_POKE_LOCKED:-}" ] || return 0
	exec 9>"$build/.lock"
	if ! flock -n 9; then
		say "waiting for another command that is building in $build"
		flock 9
	fi
	export TEXT_POKE_LOCKED=1
}

tree_version()
{
	awk '$1 == "VERSION" { v = $3 } $1 == "PATCHLEVEL" { p = $3 }
	     $1 == "SUBLEVEL" { s = $3 }
	     $1 == "EXTRAVERSION" { print v "." p "." s $3; exit }' "$1/Makefile"
}
