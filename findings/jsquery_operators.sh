#!/bin/bash
#
# findings/jsquery_operators.sh
#	  jsquery: "<>" finds what is equal, and ">" finds it, too, unless an index is read.
#
# The guess: a type with a default operator class for btree has "<>" for what is not equal,
# and an index on it changes the plan of "k > x", and not its rows.
#
# What happens: the extension's script (1.1, of 1.1.1) makes "<>" of jsquery_eq(), and ">" of
# jsquery_ge().  So "<>" is "=", and ">" is ">=".  btree takes ">" for strategy 5 and leaves
# the equal rows out, by its comparison function, which is right.  So a query has one row
# more without the index.  Seen on 2026-11-29.
#
# Needs apt; fetches into a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fetch postgresql-15-jsquery=1.1.1-6+b1
start
sql "CREATE EXTENSION jsquery" "CREATE TABLE q (k jsquery)" \
	"INSERT INTO q VALUES ('a = 1'), ('a = 2'), ('a = 3')" "CREATE INDEX ON q (k)" >/dev/null
unequal=$(sql "SELECT string_agg(k::text, '; ' ORDER BY k) FROM q WHERE k <> 'a = 2'")
greater="SELECT count(*) FROM q WHERE k > 'a = 2'"
table=$(sql "SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; $greater" | tail -1)
index=$(sql "SET enable_seqscan = off; $greater" | tail -1)
echo "k <> 'a = 2' finds: $unequal"
echo "k > 'a = 2' finds $table rows in the table, $index by the index"
[ "$unequal" = '"a" = 2' ] && [ "$table $index" = "2 1" ]
verdict $?
