#!/bin/bash
#
# findings/hashes_without_hash.sh
#	  Two tables cannot be joined by a key of asn1oid, nor of numeral, zahl or roman.
#
# The guess: a type that has "=" can be joined by it.
#
# What happens: the scripts of both extensions create "=" with HASHES, and no operator
# class for hash.  The planner believes HASHES, takes a hash join, and the executor errs:
# "could not find hash function for hash operator".  enable_hashjoin = off helps.
# CREATE OPERATOR does not check it.  Tables of some hundred rows are enough.  Seen on 2026-11-29.
#
# Needs apt; fetches into a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fetch postgresql-15-asn1oid=1.4-4+b1 postgresql-15-numeral=1.3-5+b1
start
good=0
sql "CREATE EXTENSION asn1oid" "CREATE EXTENSION numeral" >/dev/null
for type in asn1oid numeral zahl roman; do
	sql "CREATE TABLE t_$type AS SELECT (CASE '$type' WHEN 'asn1oid' THEN '1.3.' ELSE '' END || i)::$type AS k FROM generate_series(1, 1000) i" \
		"ANALYZE t_$type" >/dev/null
	join="SELECT count(*) FROM t_$type a JOIN t_$type b USING (k)"
	hash=$(sql "$join")
	merge=$(sql "SET enable_hashjoin = off; $join" | tail -1)
	echo "$type: $hash; without hash joins: $merge"
	[[ $hash == *"could not find hash function for hash operator"* ]] && [ "$merge" = 1000 ] || good=1
done
verdict $good
