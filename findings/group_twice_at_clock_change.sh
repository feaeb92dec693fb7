#!/bin/bash
#
# findings/group_twice_at_clock_change.sh
#	  ORDER BY does not sort, and GROUP BY gives a group twice, where a timestamp is compared with a timestamptz.
#
# The guess, before it was run: WHERE at = (a timestamptz) GROUP BY v has one row for each v,
# and ORDER BY v sorts, whichever plan is taken: with an index on (at, v) or without.
#
# What happens: when clocks are put forward, an hour of local time does not exist, and a
# timestamp of that hour is the same moment as one an hour later.  Both equal the timestamptz,
# and not each other.  The planner takes a column that is compared with "=" for a single value,
# whatever the type of the other side: so the index on (at, v) is read in the order of v alone.
# The rows are not in that order, nothing sorts them, and each v comes twice.  Without the
# index there is one.
# Indexes on columns that data without a time zone was loaded into have such hours.
# Seen on 2026-11-29 with the packages named below.
#
# Needs apt; fetches into a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fetch
start "timezone = 'Europe/Berlin'"
sql "CREATE TABLE t AS SELECT timestamp '2026-03-29 02:30' + h * interval '1 hour' AS at, v
		FROM generate_series(0, 1) h, generate_series(1, 2) v" \
	"CREATE INDEX ON t (at, v)" \
	"ANALYZE t"
query="FROM t WHERE at = timestamptz '2026-03-29 03:30+02'"
hashed=$(PGOPTIONS='-c enable_indexscan=off -c enable_indexonlyscan=off -c enable_bitmapscan=off' \
	sql "SELECT v, count(*) $query GROUP BY v ORDER BY v" | xargs)
sorted=$(PGOPTIONS='-c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashagg=off' \
	sql "SELECT v, count(*) $query GROUP BY v" | xargs)
distinct=$(PGOPTIONS='-c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashagg=off' \
	sql "SELECT DISTINCT v $query" | xargs)
ordered=$(PGOPTIONS='-c enable_seqscan=off -c enable_bitmapscan=off' \
	sql "SELECT v $query ORDER BY v" | xargs)
echo "without the index, GROUP BY v: $hashed"
echo "with the index, GROUP BY v:    $sorted"
echo "with the index, DISTINCT v:    $distinct"
echo "with the index, ORDER BY v:    $ordered"
[ "$hashed" = "1|2 2|2" ] && [ "$sorted" = "1|1 2|1 1|1 2|1" ] && [ "$distinct" = "1 2 1 2" ] && [ "$ordered" = "1 2 1 2" ]
verdict $?
