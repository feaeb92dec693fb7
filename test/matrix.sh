#!/bin/bash
#
# test/matrix.sh
#	  Build artidx, warnings as errors, against every PostgreSQL 15 to 18 found.
#
# Looks at /usr/lib/postgresql/N/bin/pg_config and at every path named in
# PG_CONFIGS.  The tree is copied; nothing is built in it, nothing installed.
#
set -u
cd "$(dirname "$0")/.." || exit 1
tmp=$(mktemp -d "${TMPDIR:-/tmp}/artidx-matrix.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP
unset MAKEFLAGS MAKELEVEL MFLAGS
clang_flags="-Wno-unknown-warning-option -Wno-ignored-attributes"
clang_flags+=" -Wno-ignored-optimization-argument"
clang_flags+=" -Wno-missing-field-initializers"
passed=0
failed=0

for c in /usr/lib/postgresql/{15,16,17,18}/bin/pg_config ${PG_CONFIGS:-}; do
	[ -x "$c" ] && [ -f "$("$c" --pgxs)" ] || continue
	for cc in gcc clang; do
		command -v $cc >/dev/null 2>&1 || continue
		rm -rf "$tmp/src"
		mkdir "$tmp/src"
		tar --exclude=./.git --exclude='*.o' --exclude='*.so' \
			--exclude='./sql/artidx--?.?.?.sql' -cf - . |
			tar -C "$tmp/src" -xf -
		opts=()
		# the server's recorded flags are for the compiler that built it
		[ $cc = clang ] && opts+=(EXTRA_CFLAGS="$clang_flags")
		if make -s -C "$tmp/src" PG_CONFIG="$c" CC=$cc WERROR=1 "${opts[@]}" \
			all >"$tmp/log" 2>&1; then
			echo "ok $("$c" --version), $cc"
			passed=$((passed + 1))
		else
			cat "$tmp/log"
			echo "not ok $("$c" --version), $cc"
			failed=$((failed + 1))
		fi
	done
done

if [ $((passed + failed)) -eq 0 ]; then
	echo "no PostgreSQL 15 to 18 with server headers here; on Debian: apt-get install postgresql-server-dev-15" >&2
	exit 1
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
