#!/bin/bash
#
# packaging/deb.sh
#	  Debian packages postgresql-VERSION-artidx, the way Debian's own extensions of
#	  PostgreSQL are built; "make deb" calls it.
#
#	OUT=dir				where they go (build-deb in the tree)
#	VERSIONS="15 17"	for these (each of 15 and later whose postgresql-server-dev is here)
#	DEB_VERSION=v		the packages' version.  That of CHANGELOG.md; an unreleased one gets
#						the time of the commit, before the release: 0.2.0~20261129103000-1
#	LINTIAN=0			without lintian
#
# The tree is copied; nothing is installed, and no root is needed.
#
. "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"

: "${OUT:=$TREE/build-deb}" "${LINTIAN:=1}"

missing=
for c in dpkg-buildpackage:build-essential dh:debhelper pg_buildext:postgresql-server-dev-all make:make; do
	command -v "${c%:*}" >/dev/null 2>&1 || missing+=" ${c#*:}"
done
[ "$LINTIAN" = 0 ] || command -v lintian >/dev/null 2>&1 || missing+=" lintian"
[ -z "$missing" ] ||
	art_die "missing packages.  As root: apt-get install$missing libicu-dev liburcu-dev (LINTIAN=0 does without lintian)"

if [ -z "${VERSIONS:-}" ]; then
	VERSIONS=$(for v in $ART_VERSIONS; do
		[ ! -f "/usr/lib/postgresql/$v/lib/pgxs/src/makefiles/pgxs.mk" ] || echo "$v"
	done)
	[ -n "$VERSIONS" ] ||
		art_die "no headers of PostgreSQL 15 or later.  As root: apt-get install postgresql-server-dev-all"
fi
# pg_buildext asks for them in one line each
PG_SUPPORTED_VERSIONS=$(echo $VERSIONS)
export PG_SUPPORTED_VERSIONS

WORK=$(mktemp -d "${TMPDIR:-/tmp}/artidx-deb.XXXXXX") || art_die "no temporary directory"
trap 'rm -rf "$WORK"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# "## 0.2.0 (unreleased)" or "## 0.2.0 (2026-12-24)"
read -r version state < <(sed -nE '/^## /{s/^## ([0-9.]+) \((.*)\)$/\1 \2/p;q}' "$TREE/CHANGELOG.md")
[ -n "$version" ] && [ "$version" = "$(sed -n 's/^EXTVERSION = //p' "$TREE/Makefile")" ] ||
	art_die "the first version of CHANGELOG.md is \"$version\", not that of the Makefile"
time=$(git -C "$TREE" log -1 --format=%ct 2>/dev/null) || time=$(stat -c %Y "$TREE/CHANGELOG.md")
[ "$state" != unreleased ] || version+=~$(date -u -d "@$time" +%Y%m%d%H%M%S)
: "${DEB_VERSION:=$version-1}"
upstream=${DEB_VERSION%-*}

SRC=$WORK/artidx-$upstream
art_copy_tree
tar -C "$WORK" --exclude=packaging/debian --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$time" \
	-cJf "$WORK/artidx_$upstream.orig.tar.xz" "artidx-$upstream" || art_die "could not pack the tree"
rm -rf "$SRC/packaging/debian"
cp -r "$TREE/packaging/debian" "$SRC/debian"
{
	echo "artidx ($DEB_VERSION) $([ "$state" = unreleased ] && echo UNRELEASED || echo unstable); urgency=medium"
	echo
	echo "  * Version ${version%%~*} of artidx; CHANGELOG.md says what is new."
	echo
	echo " -- $(sed -n 's/^Maintainer: //p' "$SRC/debian/control.in")  $(date -u -R -d "@$time")"
} >"$SRC/debian/changelog"
cd "$SRC" || exit 1
pg_buildext updatecontrol || exit 1
why=$(dpkg-checkbuilddeps 2>&1) || art_die "${why#*error: }.  Install these as root, with apt-get install"

mkdir -p "$OUT" && OUT=$(cd "$OUT" && pwd) && [ -w "$OUT" ] || art_die "cannot write to $OUT"
art_say "artidx $DEB_VERSION for PostgreSQL $PG_SUPPORTED_VERSIONS; log: $OUT/build.log"
# -F: source and binaries; debian/control is new, and has no other's versions
dpkg-buildpackage -us -uc -F >"$OUT/build.log" 2>&1 </dev/null ||
	{ tail -40 "$OUT/build.log" >&2; art_die "dpkg-buildpackage failed, log: $OUT/build.log"; }
grep -E '^(not )?ok ' "$OUT/build.log" | sed 's/^/# /' >&2
if [ "$LINTIAN" != 0 ]; then
	as=()
	[ "$(id -u)" -ne 0 ] || as=(--allow-root)
	lintian "${as[@]}" --fail-on error,warning,info "$WORK"/*.changes >"$OUT/lintian.log" 2>&1 ||
		{ cat "$OUT/lintian.log" >&2; art_die "lintian is not content"; }
	art_say "lintian is content"
fi
for f in "$WORK"/artidx_* "$WORK"/postgresql-*; do
	[ ! -f "$f" ] || { cp "$f" "$OUT/" && echo "$OUT/${f##*/}"; }
done
