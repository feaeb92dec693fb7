#!/bin/bash
#
# findings/first_last_two_rows.sh
#	  first(a ORDER BY at) and first(b ORDER BY at) can come from two rows.
#
# The guess, before it was run: first() of the extension first_last_agg is the value of the first
# row by that order, NULL where that row has none, like first_value() of a window.
#
# What happens: both aggregates of 0.1.4 leave NULLs out (their functions are STRICT; the README
# does not say so).  So the "latest state" of a thing, last(a ORDER BY at), last(b ORDER BY at), is put
# together from rows of different times, and a value that was set to NULL comes back.
# Seen on 2026-12-01 with the packages named below.
#
# Needs apt; fetches into a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fetch postgresql-15-first-last-agg=0.1.4-4-gd63ea3b-6+b1
start
sql "CREATE EXTENSION first_last_agg" "CREATE TABLE t (at int, owner text, price int)" \
	"INSERT INTO t VALUES (1, 'ann', 10), (2, 'bob', 20), (3, NULL, 30)"
both=$(sql "SELECT last(owner ORDER BY at), last(price ORDER BY at) FROM t")
window=$(sql "SELECT coalesce(owner, '-'), price FROM t ORDER BY at DESC LIMIT 1")
echo "last(owner), last(price): $both"
echo "the last row:             $window"
[ "$both" = "bob|30" ] && [ "$window" = "-|30" ]
verdict $?
