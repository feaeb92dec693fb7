#!/bin/bash
#
# test/conformance/selftest.sh
#	  Does compare.pl notice what it is there for?  Run by test/checks.sh.
#
set -u
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
compare=$(dirname "${BASH_SOURCE[0]}")/compare.pl
bad=0

mkdir -p "$dir/btree" "$dir/art" "$dir/explained/regress" "$dir/out"
echo "test: same listed other" >"$dir/schedule"

# judge STATUS WHAT: compare.pl must end with that status
judge()
{
	perl "$compare" regress "$dir/schedule" "$dir/btree" "$dir/art" \
		"$dir/explained" "$dir/out" >"$dir/log" 2>&1
	[ $? -eq "$1" ] || { echo "conformance/selftest: $2" >&2; cat "$dir/log" >&2; bad=1; }
}

printf ' a   | b\n-----+---\n x   | 1\n' | tee "$dir/btree/same.out" >"$dir/art/same.out"
printf ' am    | n\n-------+---\n btree | 1\n\nnext\n' >"$dir/btree/listed.out"
printf ' am  | n\n-----+---\n art | 1\n\nnext\n' >"$dir/art/listed.out"
printf 'SELECT 1\n one\n two\n' >"$dir/btree/other.out"
printf 'SELECT 1\n one\nERROR:  three\n' >"$dir/art/other.out"

judge 1 "a difference without explanation passes"
printf 'class: core\nwhy: so it is\n\n@@\n- two\n+ERROR:  three\n' >"$dir/explained/regress/other"
judge 0 "an explained difference, or a listing, does not pass"
grep -q '2 of 3 identical (1 without renaming art), 1 explained (core 1), 0 not' "$dir/log" ||
	{ echo "conformance/selftest: wrong counts" >&2; cat "$dir/log" >&2; bad=1; }
printf 'SELECT 1\n two\nERROR:  three\n' >"$dir/art/other.out"
judge 1 "another difference passes for the explained one"
printf 'SELECT 1\n one\nERROR:  three\n' >"$dir/art/other.out"
printf ' a | b\n-----+---\n x   | 1\n' >"$dir/art/same.out"
judge 1 "blanks do not count where no access method is named"
cp "$dir/btree/same.out" "$dir/art/same.out"
printf ' am  | n\n-----+---\n art | 2\n\nnext\n' >"$dir/art/listed.out"
judge 1 "another value in a listing passes"
cp "$dir/btree/listed.out" "$dir/art/listed.out"
judge 0 "no difference does not pass"
printf 'NOTICE:  index "i" is rebuilt with access method "btree"\nDETAIL:  d\nHINT:  h\n' |
	cat - "$dir/btree/listed.out" >"$dir/art/listed.out"
judge 0 "the NOTICE of an index that is rebuilt counts"
sed 's/is rebuilt/went/' "$dir/art/listed.out" >"$dir/log" && cp "$dir/log" "$dir/art/listed.out"
judge 1 "any other NOTICE passes"
cp "$dir/btree/listed.out" "$dir/art/listed.out"
# what the second directory explains holds where the first says nothing
mv "$dir/explained" "$dir/second"
mkdir -p "$dir/first/regress"
perl "$compare" regress "$dir/schedule" "$dir/btree" "$dir/art" "$dir/first:$dir/second" "$dir/out" >"$dir/log" 2>&1 ||
	{ echo "conformance/selftest: the second directory explains nothing" >&2; bad=1; }
mv "$dir/second" "$dir/explained"
rm "$dir/art/listed.out"
judge 1 "a test without result passes"
exit $bad
