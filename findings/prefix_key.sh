#!/bin/bash
#
# findings/prefix_key.sh
#	  An ordinary index on a prefix_range does not find rows that are there.
#
# The guess: a default operator class for btree is a total order.
#
# What happens: of the prefix '1' and the range '[1-3]' none is the smaller, and they are
# not equal, as the type's operators say.  btree sorts by such a function without an
# error, and looks for a key where it would have to be.  So an equal row that is in the
# table is not found by the index.  The extension's documents speak of its class for GiST;
# the one for btree is the default, which CREATE INDEX and
# PRIMARY KEY take.  Seen on 2026-11-29.
#
# Needs apt; fetches into a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fetch postgresql-15-prefix=1.2.9-5+b1
start
sql "CREATE EXTENSION prefix" "CREATE TABLE p (k prefix_range)" \
	"INSERT INTO p SELECT i::text::prefix_range FROM generate_series(1, 300) i" \
	"INSERT INTO p SELECT format('%s[%s-%s]', NULLIF(i, 0), j, j + 3)::prefix_range FROM generate_series(0, 30) i, generate_series(0, 5) j" \
	"CREATE INDEX p_k ON p (k)" "VACUUM ANALYZE p" >/dev/null
none=$(sql "SELECT '1'::prefix_range < '[1-3]', '1'::prefix_range = '[1-3]', '1'::prefix_range > '[1-3]'")
# how many rows find themselves
found="SELECT sum(n) FROM (SELECT k FROM p OFFSET 0) a, LATERAL (SELECT count(*) AS n FROM p WHERE p.k = a.k) b"
table=$(sql "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; $found" | tail -1)
index=$(sql "SET enable_seqscan = off; $found" | tail -1)
plan=$(sql "SET enable_seqscan = off; EXPLAIN $found" | grep -c p_k)
echo "'1' <, =, > '[1-3]': $none"
echo "rows that find themselves: $table in the table, $index by the index"
[ "$none" = "f|f|f" ] && [ "$index" -lt "$table" ] && [ "$plan" -ge 1 ]
verdict $?
