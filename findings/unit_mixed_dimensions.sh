#!/bin/bash
#
# findings/unit_mixed_dimensions.sh
#	  unit: a range in metres returns kilograms, while "+" and max() of the two err.
#
# The guess, before it was run: '6 kg' > '5 m' errs with a mismatch of dimensions, as '6 kg' + '5 m'
# does.
#
# What happens: postgresql-unit 7.7 on PostgreSQL 15.20 orders units by their number in base units,
# whatever they measure.  A column that holds both is sorted and indexed without an error, and
# WHERE v > '5 m' returns '6 kg'.  max() compares them too, and errs.
# Seen on 2026-12-01 with the packages named below.
#
# Needs apt; fetches into a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fetch postgresql-15-unit=7.7-1
start
sql "CREATE EXTENSION unit" "CREATE TABLE t (v unit)" "CREATE INDEX ON t (v)" \
	"INSERT INTO t VALUES ('6 kg'), ('4 m'), ('6 m'), ('5 s'), ('10 cd')"
above=$(sql "SELECT string_agg(v::text, ', ' ORDER BY v) FROM t WHERE v > '5 m'")
sum=$(sql "SELECT '6 kg'::unit + '5 m'")
max=$(sql "SELECT max(v) FROM t")
printf '%s\n' "above 5 m: $above" "6 kg + 5 m: $sum" "max: $max"
[ "$above" = "6 kg, 6 m, 10 cd" ] && [[ $sum == *"dimension mismatch"* && $max == *"dimension mismatch"* ]]
verdict $?
