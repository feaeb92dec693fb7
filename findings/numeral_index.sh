#!/bin/bash
#
# findings/numeral_index.sh
#	  An index on a numeral is created, maintained, even unique, and no "=" ever reads it.
#
# The guess: where CREATE INDEX finds a default operator class for a column, "=" and "<"
# of the column's type are in it.
#
# What happens: the extension's types have "=" and "<" of their own and no operator class.
# A cast to bigint that is implicit and binary is enough for core to take bigint's class.
# The index orders by bigint's operators, and ORDER BY reads it.  But "k = 'ten'" is
# numeral's own operator, which is in no class, so a look-up reads the whole table,
# or the whole primary key.  Casting the column to bigint in the query helps.  Seen on 2026-11-29.
#
# Needs apt; fetches into a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fetch postgresql-15-numeral=1.3-5+b1
start
sql "CREATE EXTENSION numeral" "CREATE TABLE n (k numeral PRIMARY KEY)" \
	"INSERT INTO n SELECT i::text::numeral FROM generate_series(1, 5000) i" "VACUUM ANALYZE n" >/dev/null
plan()
{
	sql "SET enable_seqscan = off; EXPLAIN (COSTS OFF) SELECT * FROM n $1" | tr '\n' ' ' 
}
own=$(plan "WHERE k = 'ten'")
cast=$(plan "WHERE k::bigint = 10")
order=$(plan "ORDER BY k")
printf '%s\n' "k = 'ten': $own" "k::bigint = 10: $cast" "ORDER BY k: $order"
[[ $own != *"Index Cond"* && $cast == *"n_pkey"*"Index Cond"* && $order == *"n_pkey"* ]]
verdict $?
