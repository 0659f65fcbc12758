#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# build.sh [--stock] [base|test|debug|mutant]
#
# Build one kernel in build/obj-KIND from build/linux, or with --stock in
# build/obj-stock-KIND from the tree as it came. The configuration is tinyconfig
# and the fragments in configs/, then KCONFIG=.

# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
take_lock

tree=$build/linux
name=
if [ "${1:-}" = --stock ]; then
	tree=$build/stock
	name=stock-
	shift
fi
kind=${1:-base}
targets=(bzImage modules)
case $kind in
base) fragments=(configs/base.config) ;;
test | debug) fragments=(configs/base.config "configs/$kind.config") ;;
# The test kernel with something broken in it, see mutate.sh
mutant) fragments=(configs/base.config configs/test.config) targets=(bzImage) ;;
*) die "usage: $0 [--stock] [base|test|debug|mutant]" ;;
esac
name+=$kind
obj=$build/obj-$name
log=$obj/build.log
[ -d "$tree" ] || die "no kernel tree: run 'make -f Makefile.patches apply' first"
cd "$top"
if [ -n "$KCONFIG" ]; then
	[ -f "$KCONFIG" ] || die "KCONFIG=$KCONFIG does not exist: give a file of CONFIG_ lines"
	fragments+=("$KCONFIG")
fi

# The same words in every build, so that ccache finds what it has seen before
export KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 1970'
export KBUILD_BUILD_USER=text-poke KBUILD_BUILD_HOST=build KBUILD_BUILD_VERSION=1
export CCACHE_BASEDIR=$build CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
compiler=gcc
if command -v ccache >/dev/null; then
	compiler='ccache gcc'
fi
kmake()
{
	nice make -C "$tree" O="$obj" CC="$compiler" HOSTCC="$compiler" \
		LOCALVERSION= -j"$JOBS" "$@"
}

# The last word of a fragment on each option, as "OPTION value"
wanted()
{
	cat "${fragments[@]}" |
		sed -nE 's/^CONFIG_([A-Za-z0-9_]+)=(.*)/\1 \2/p
			 s/^# CONFIG_([A-Za-z0-9_]+) is not set.*/\1 n/p' |
		awk '{ o = $1; sub(/^[^ ]* /, ""); v[o] = $0 } END { for (o in v) print o, v[o] }' | sort
}

check_config()
{
	local option want is bad=

	while read -r option want; do
		is=$(sed -n "s/^CONFIG_$option=//p" "$obj/.config.new")
		[ "${is:-n}" != "$want" ] || continue
		# The series' own options exist only where the queue is applied.
		case $option in
		TEXT_POKE_* | X86_TEXT_PATCH*)
			if ! grep -rqx --include='Kconfig*' "config $option" \
				"$tree"/{lib,arch/x86,kernel}; then
				say "note: this tree has no CONFIG_$option"
				continue
			fi ;;
		esac
		bad+=" CONFIG_$option=$want (is ${is:-n})"
	done < <(wanted)
	[ -z "$bad" ] || die "options that did not come out as ${fragments[*]} ask:$bad; see which dependency is missing"
}

configure()
{
	local id

	id=$( { cat "${fragments[@]}" "$0"; grep -s Kconfig "$build/linux.manifest" || :
		cat "$build/stock.id"; $compiler --version; } | sha256sum)
	[ "$(cat "$obj/config.id" 2>/dev/null)" != "$id" ] || [ ! -f "$obj/.config" ] || return 0
	say "configuring the $name kernel: tinyconfig ${fragments[*]}"
	mkdir -p "$obj"
	rm -f "$obj/config.id"
	{
		kmake KCONFIG_CONFIG=.config.new tinyconfig &&
		(cd "$tree" && KCONFIG_CONFIG="$obj/.config.new" \
			scripts/kconfig/merge_config.sh -m -O "$obj" "$obj/.config.new" \
			"${fragments[@]/#configs/$top/configs}") &&
		kmake KCONFIG_CONFIG=.config.new olddefconfig
	} >"$obj/config.log" 2>&1 || die "the configuration failed: $(tail -n1 "$obj/config.log") (whole log: build/obj-$name/config.log)"
	check_config
	cmp -s "$obj/.config.new" "$obj/.config" || mv "$obj/.config.new" "$obj/.config"
	printf '%s\n' "$id" >"$obj/config.id"
}

compile()
{
	local start=$SECONDS pid

	: >"$log"

	# A group of its own, so that all of it can be stopped
	set -m
	kmake "${targets[@]}" >"$log" 2>&1 &
	pid=$!
	set +m
	trap 'kill -- -$pid 2>/dev/null || :; wait $pid || :; interrupted' INT TERM
	while kill -0 $pid 2>/dev/null; do
		progress "building the $name kernel: $(grep -cE '^  (CC|AS|LD|AR) ' "$log" || :) objects, $(duration $((SECONDS - start)))"
		sleep 1
	done
	progress_end
	wait $pid || {
		grep -E -m5 'error:|undefined reference|\*\*\*|Error ' "$log" >&2 || tail -n5 "$log" >&2
		die "the $name kernel does not build: see above (whole log: build/obj-$name/build.log)"
	}
	trap interrupted INT TERM
	grep 'warning:' "$log" || :
	say "built the $name kernel in $(duration $((SECONDS - start))): build/obj-$name/arch/x86/boot/bzImage"
}

# Modules under obj/root/lib/modules, where a guest can find them
install_modules()
{
	[[ " ${targets[*]} " = *' modules '* ]] || return 0
	grep -q '=m$' "$obj/.config" || return 0
	rm -rf "$obj/root"
	kmake INSTALL_MOD_PATH="$obj/root" modules_install >>"$log" 2>&1 ||
		die "installing the $name kernel's modules failed: $(tail -n1 "$log")"
}

configure
compile
install_modules
