#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Install what is missing of the Debian packages the other scripts use. Asks nothing.

# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

packages=(gcc libc6-dev make bc bison flex libelf-dev libssl-dev cpio kmod perl
	python3 xz-utils patch quilt ccache busybox-static qemu-system-x86)
[ -n "$KSRC" ] || packages+=(linux-source-6.12)
# Only the tests need these.
[ "${1:-}" != test ] || packages+=(shellcheck codespell spin rsync)

if [ ! -e /etc/debian_version ] || ! command -v dpkg-query >/dev/null; then
	stamp=$build/.deps-not-debian
	[ -e "$stamp" ] || die "not a Debian system: install what these packages hold, then 'mkdir -p build && touch ${stamp#"$top"/}': ${packages[*]}"
	exit 0
fi

missing=()
for p in "${packages[@]}"; do
	case $(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null || :) in
	installed) ;;
	*) missing+=("$p") ;;
	esac
done
[ ${#missing[@]} -gt 0 ] || exit 0

root=()
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null ||
		die "neither root nor sudo: have an administrator run: apt-get install ${missing[*]}"
	root=(sudo)
fi

say "installing ${missing[*]}"
log=$build/deps.log
mkdir -p "$build"
apt()
{
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1 </dev/null
}
: >"$log"
# A package index that is out of date asks for files that are gone.
apt update || say "apt-get update failed (see ${log#"$top"/}), trying with the index at hand"
apt install --no-install-recommends -y "${missing[@]}" ||
	die "apt-get install ${missing[*]} failed: $(grep -m1 '^E:' "$log" || tail -n1 "$log") (whole log: ${log#"$top"/})"
