#!/bin/bash
#
# test/checks.sh
#	  Rules of the tree that a compiler does not check.
#
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0

fail()
{
	echo "checks: $*" >&2
	bad=1
}

# The wall: the core includes nothing of PostgreSQL, nor of the layers above.
if grep -nE '#[[:space:]]*include[[:space:]]*[<"](postgres|access/|storage/|utils/|miscadmin|\.\./(am|pg|key)/|am/|pg/|key/|artidx\.h)' \
	src/core/*.[ch]; then
	fail "src/core includes a header from outside the core"
fi

# Where the core would answer wrongly it does not compile.
for d in __BYTE_ORDER__=__ORDER_BIG_ENDIAN__ __SIZEOF_POINTER__=4; do
	"${CC:-cc}" -std=gnu11 -fsyntax-only -w -U"${d%%=*}" -D"$d" -x c src/core/ax.h 2>&1 | grep -q 'artidx needs a little-endian' ||
		fail "src/core/ax.h compiles with $d"
done

# Server files start with postgres.h, directly or through artidx.h.
for f in src/*.c src/am/*.c src/pg/*.c; do
	[ -f "$f" ] || continue
	first=$(grep -m1 -E '^#[[:space:]]*include' "$f")
	case $first in
		*'"postgres.h"'* | *'artidx.h"'*) ;;
		*) fail "$f: the first include is not postgres.h" ;;
	esac
done

while IFS= read -r f; do
	n=$(wc -l <"$f")
	[ "$n" -lt 1300 ] || fail "$f has $n lines"
done < <(find src test -name '*.[ch]')

if grep -nE '\b(TODO|FIXME|XXX)\b' -r src --include='*.[ch]'; then
	fail "unfinished work is marked in src"
fi

if grep -n '@extschema@' src/sql/*.sql; then
	fail "the extension is relocatable: no @extschema@; what a view names is found when it is made"
fi

# sql/ has the inputs of the regression tests: each is in REGRESS, and has its output.
listed=" $(sed -n '/^REGRESS /,/[^\\]$/p; /^REGRESS += /p' Makefile | sed 's/^REGRESS [+]*= //; s/\\$//' | tr -s ' \t\n' ' ') "
for f in sql/*; do
	name=$(basename "$f" .sql)
	case $listed in
		*" $name "*) [ -f "expected/$name.out" ] || fail "$f has no expected/$name.out" ;;
		*) fail "$f is not in REGRESS of the Makefile" ;;
	esac
done
for f in expected/*.out; do
	name=$(basename "$f" .out)
	[ -f "sql/${name%_[0-9]}.sql" ] || fail "$f has no sql/${name%_[0-9]}.sql"
done

# What a comment must say (test/comments.pl): each longer function what it does,
# each that takes a lock or calls the core which (src/README.md, Contracts).
# The core's own functions are still to come.
check_comments()
{
	local all server

	mapfile -t all < <(find src -name '*.[ch]' | sort)
	mapfile -t server < <(printf '%s\n' "${all[@]}" | grep -v '^src/core/')
	perl test/comments.pl functions "${server[@]}" ||
		fail "functions without a sentence"
	perl test/comments.pl contracts "${server[@]}" ||
		fail "functions that do not say which locks they take"
	perl test/comments.pl sentences 40 "${server[@]}" ||
		fail "long sentences, or some that hide who acts"
}
check_comments

if command -v python3 >/dev/null 2>&1; then
	python3 -c 'import json; json.load(open("META.json"))' ||
		fail "META.json is not JSON"
fi

version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" artidx.control)
grep -q "\"version\": \"$version\"" META.json ||
	fail "META.json and artidx.control name different versions"
grep -q "^EXTVERSION = $version\$" Makefile ||
	fail "Makefile and artidx.control name different versions"

bash test/conformance/selftest.sh || fail "test/conformance does not notice differences"

[ $bad -eq 0 ] && echo "checks: clean"
exit $bad
