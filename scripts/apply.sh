#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# build/stock: the kernel as it came.  build/linux: the same with the overlay
# laid over it and the quilt queue pushed.
#
# The queue is pushed in build/queue, which holds only the files it touches, and
# what differs is then copied into build/linux. So a file that did not change
# keeps its time and is not compiled again, and a queue that does not apply
# leaves build/linux alone.

# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
take_lock

stock=$build/stock
tree=$build/linux
queue=$build/queue
manifest=$build/linux.manifest	# "sum  file" of every file that is not stock's

find_source()
{
	local src=$KSRC

	if [ -z "$src" ]; then
		for src in /usr/src/linux-source-6.12.tar.*; do :; done
		[ -e "$src" ] ||
			die "no kernel source: install linux-source-6.12 (make -f Makefile.patches deps) or give KSRC=DIRECTORY-OR-TARBALL"
	fi
	[ -e "$src" ] || die "KSRC=$src does not exist: give a 6.12.y tree or tarball"
	realpath "$src"
}

# Whoever edited a file of ours in build/linux would not like it overwritten.
check_edits()
{
	local f was

	[ -f "$manifest" ] || return 0
	[ -z "${DISCARD:-}" ] || return 0
	cut -c67- "$manifest" | sort -u | while read -r f; do
		[ -f "$tree/$f" ] || continue
		! cmp -s "$tree/$f" "$queue/$f" || continue
		! cmp -s "$tree/$f" "$stock/$f" || continue
		was=$(sha256sum <"$tree/$f")
		grep -qxF "${was%% *}  $f" "$manifest" ||
			die "build/linux/$f was edited there: keep it with 'make -f Makefile.patches refresh', or drop it with DISCARD=1"
	done
}

# Unpack what find_source() named, unless build/stock already is that.
unpack()
{
	local src id free version

	src=$(find_source)
	if [ -d "$src" ]; then
		[ -f "$src/Makefile" ] || die "KSRC=$src is no kernel tree: it has no Makefile"
		id="$src $(stat -c %Y "$src/Makefile")"
	else
		id="$src $(stat -c '%s %Y' "$src")"
	fi
	if [ "$(cat "$build/stock.id" 2>/dev/null)" = "$id" ] && [ -d "$stock" ]; then
		return 0
	fi

	free=$(df --output=avail -k "$build" | tail -n1)
	[ "$free" -ge $((12 * 1024 * 1024)) ] ||
		die "$build has $((free / 1024 / 1024)) GB free and 12 are needed: free some, or clone onto a larger disk"

	say "unpacking $src"
	rm -rf "$build/unpack"
	mkdir "$build/unpack"
	if [ -d "$src" ]; then
		cp -a --reflink=auto "$src/." "$build/unpack" ||
			die "cannot copy $src: see above"
	else
		tar -xf "$src" -C "$build/unpack" --strip-components=1 ||
			die "cannot unpack $src: see above"
	fi
	[ -f "$build/unpack/Makefile" ] || die "$src is no kernel source: it has no Makefile"
	version=$(tree_version "$build/unpack")
	case $version in
	6.12.*) ;;
	*) die "$src is Linux $version and the series is for 6.12.y: give another KSRC=" ;;
	esac
	if [ -e "$build/unpack/.config" ] || [ -e "$build/unpack/include/config" ]; then
		die "$src has been built in: run 'make mrproper' there first"
	fi
	check_edits
	# Objects may be newer than the sources of another version.
	rm -rf "$build/stock.id" "$stock" "$tree" "$manifest" "$build"/obj-*
	mv "$build/unpack" "$stock"
	printf '%s\n' "$id" >"$build/stock.id"
}

copy_stock()
{
	[ ! -d "$tree" ] || return 0
	rm -rf "$build/linux.new" "$manifest"
	cp -a --reflink=auto "$stock" "$build/linux.new"
	ln -s ../../patches "$build/linux.new/patches"
	mv "$build/linux.new" "$tree"
}

overlay_files()
{
	cd "$top" || return
	# Leave out what git ignores; a tree that is no checkout has nothing ignored.
	if git rev-parse --git-dir >/dev/null 2>&1; then
		# shellcheck disable=SC2086
		git ls-files -co --exclude-standard -- $overlay_dirs | sort -u
	else
		# shellcheck disable=SC2086
		find $overlay_dirs -type f 2>/dev/null | sort
	fi | while read -r f; do
		case $f in
		*~ | *.orig | *.rej | *.o) ;;
		*) [ ! -f "$f" ] || printf '%s\n' "$f" ;;
		esac
	done
}

series()
{
	[ ! -f "$top/patches/series" ] || sed 's/[ \t]*#.*//; /^[ \t]*$/d' "$top/patches/series"
}

patched_files()
{
	local p

	for p in $(series); do
		[ -f "$top/patches/$p" ] || die "patches/series names $p, which is not in patches/"
		sed -nE 's,^(---|\+\+\+) [^/ ]+/([^ \t]+).*,\2,p' "$top/patches/$p"
	done | sort -u
}

push_queue()
{
	local f log=$build/queue.log

	rm -rf "$queue"
	mkdir -p "$queue"
	# quilt wants its directory under this name in both trees
	ln -s ../../patches "$queue/patches"
	{ patched_files; cat "$build/overlay.list"; } | sort -u >"$build/queue.list"
	while read -r f; do
		mkdir -p "$queue/$(dirname "$f")"
		[ ! -f "$stock/$f" ] || cp -p "$stock/$f" "$queue/$f"
		! grep -qxF "$f" "$build/overlay.list" || cp -p "$top/$f" "$queue/$f"
	done <"$build/queue.list"
	[ -n "$(series)" ] || return 0
	(cd "$queue" && QUILT_PATCHES=patches QUILT_NO_RCFILE=1 LC_ALL=C \
		quilt --quiltrc=- push -a --fuzz=0) >"$log" 2>&1 || queue_failed "$log"
}

queue_failed()
{
	local p f where

	p=$(sed -nE 's,^Applying patch (patches/)?,,p' "$1" | tail -n1)
	f=$(awk '/^patching file / { f = $3 } / FAILED/ { print f; exit }
		 /^can.t find file/ { print "a file that is not there"; exit }' "$1")
	where=$(sed -nE "s/^(Hunk #[0-9]+) FAILED( at [0-9]+).*/, \1\2/p" "$1" | head -n1)
	die "patches/$p does not apply to ${f:-the tree} of Linux $(tree_version "$stock")$where: adapt the patch (whole log: build/queue.log)"
}

put()
{
	mkdir -p "$(dirname "$2")"
	cp "$1" "$2.new~" && mv "$2.new~" "$2"
}

sync_tree()
{
	local f old

	# Named before they are written: an interrupted run finds them all again.
	touch "$manifest"
	old=$(cut -c67- "$manifest" | sort -u)
	(cd "$queue" && while read -r f; do
		[ ! -f "$f" ] || sha256sum "$f"
	done <"$build/queue.list") >"$manifest.new"
	cat "$manifest.new" >>"$manifest"

	while read -r f; do
		if [ ! -f "$queue/$f" ]; then
			rm -f "$tree/$f"
		elif ! cmp -s "$queue/$f" "$tree/$f"; then
			put "$queue/$f" "$tree/$f"
			[ ! -x "$queue/$f" ] || chmod +x "$tree/$f"
		fi
	done <"$build/queue.list"
	for f in $old; do
		grep -qxF "$f" "$build/queue.list" && continue
		if [ ! -f "$stock/$f" ]; then
			rm -f "$tree/$f"
		elif ! cmp -s "$stock/$f" "$tree/$f"; then
			put "$stock/$f" "$tree/$f"
		fi
	done

	rm -rf "$tree/.pc"
	[ ! -d "$queue/.pc" ] || cp -a "$queue/.pc" "$tree/.pc"
	mv "$manifest.new" "$manifest"
}

refresh()
{
	local f

	[ -f "$manifest" ] || die "nothing to refresh: run 'make -f Makefile.patches apply' first"
	overlay_files | while read -r f; do
		[ -f "$tree/$f" ] || continue
		! cmp -s "$tree/$f" "$top/$f" || continue
		if [ "$top/$f" -nt "$tree/$f" ]; then
			say "left alone: $f is newer here than in build/linux"
		else
			cp "$tree/$f" "$top/$f"
			say "copied back: $f"
		fi
	done
	[ -z "$(series)" ] || (cd "$tree" && QUILT_PATCHES=patches quilt --quiltrc=- refresh -p ab --no-timestamps --no-index)
}

case ${1:-} in
refresh) refresh ;;
'') ;;
*) die "usage: $0 [refresh]" ;;
esac
unpack
copy_stock
overlay_files >"$build/overlay.list"
push_queue
check_edits
sync_tree
say "build/linux is Linux $(tree_version "$tree") + $(wc -l <"$build/overlay.list") files + $(series | wc -l) patches"
