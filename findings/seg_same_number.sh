#!/bin/bash
#
# findings/seg_same_number.sh
#	  seg: 5 is not equal to 5.0, nor to ~5, and a join by "=" does not find it.
#
# The guess, before it was run: '5' = '5.0', for "=" is said to compare the boundaries, and '5' =
# '~5', for the documentation says that operations ignore the mark.
#
# What happens: contrib's seg of PostgreSQL 15.20 orders equal boundaries by the mark, and then by
# how many digits were written, and "=" is true only where all three agree.  So DISTINCT keeps
# all three, UNIQUE takes them, and a join misses rows, while each of the three contains
# each other one.
# Seen on 2026-12-01 with the packages named below.
#
# Needs apt; fetches into a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fetch
start
sql "CREATE EXTENSION seg" "CREATE TABLE t (v seg UNIQUE)" "INSERT INTO t VALUES ('5'), ('5.0'), ('~5')"
equal=$(sql "SELECT '5'::seg = '5.0', '5'::seg = '~5', '5'::seg @> '5.0' AND '5'::seg <@ '5.0'")
rows=$(sql "SELECT count(*), (SELECT count(*) FROM t a JOIN t b ON a.v = b.v) FROM (SELECT DISTINCT v FROM t) d")
echo "5 = 5.0, 5 = ~5, 5 within 5.0 and around it: $equal"
echo "distinct, and pairs that join: $rows"
[ "$equal" = "f|f|t" ] && [ "$rows" = "3|3" ]
verdict $?
