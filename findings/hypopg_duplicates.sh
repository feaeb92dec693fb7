#!/bin/bash
#
# findings/hypopg_duplicates.sh
#	  HypoPG: an index with few different values is said to be several times its size.
#
# The guess, before it was run: hypopg_relation_size() of an index that does not exist is within
# a fifth of the size that CREATE INDEX gives, as it is for different values.
#
# What happens: since PostgreSQL 13 btree keeps a value once for many rows.  HypoPG 1.3.1 counts
# an entry for each row.  For 100 values in 300,000 rows it says 3.7 times the size.  The costs
# of scans of all of it go by the same number of pages.  So does advice that weighs the size.
# Seen on 2026-12-01 with the packages named below.
#
# Needs apt; fetches into a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fetch postgresql-15-hypopg=1.3.1-2+b1
start
sql "CREATE EXTENSION hypopg" "CREATE TABLE t AS SELECT i AS one, i % 100 AS many FROM generate_series(1, 300000) i" \
	"VACUUM ANALYZE t" "CREATE INDEX t_one ON t (one)" "CREATE INDEX t_many ON t (many)"
ratio()
{
	sql "SELECT hypopg_create_index('CREATE INDEX ON t ($1)');
		SELECT round(hypopg_relation_size(indexrelid)::numeric / pg_relation_size('t_$1'), 1) FROM hypopg_list_indexes" | tail -1
}
one=$(ratio one)
many=$(ratio many)
echo "said to be, of its size: $one with different values, $many with 3,000 rows of each"
[ "${one%.*}" -eq 1 ] && [ "${many%.*}" -eq 3 ]
verdict $?
