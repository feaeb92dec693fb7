#!/bin/bash
#
# findings/pgcopydb_deferrable.sh
#	  pgcopydb 0.10: a unique constraint that was DEFERRABLE is not in the copy.
#
# The guess: pgcopydb clone gives a database whose constraints are those of the source, as
# pg_dump and pg_restore would.
#
# What happens: pgcopydb builds the indexes itself, to do so in parallel, and makes the
# constraints by ALTER TABLE ... ADD CONSTRAINT ... USING INDEX, which it writes anew without
# DEFERRABLE and INITIALLY DEFERRED.  So UPDATE t SET id = id + 1 errs in the copy where it
# works in the source.  No message says so.  Seen on 2026-11-29.
#
# Needs apt; fetches into a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fetch pgcopydb=0.10-1
start "wal_level = logical"
sql "CREATE DATABASE source" "CREATE DATABASE copy" >/dev/null
PGDATABASE=source sql "CREATE TABLE t (id int, CONSTRAINT t_id UNIQUE (id) DEFERRABLE INITIALLY DEFERRED)" \
	"INSERT INTO t SELECT generate_series(1, 100)" >/dev/null
"${as[@]}" XDG_DATA_HOME="$tmp/x" TMPDIR="$tmp" "$root/usr/bin/pgcopydb" clone --dir "$tmp/copydb" --skip-vacuum \
	--source "host=$tmp user=me dbname=source" --target "host=$tmp user=me dbname=copy" >copy.log 2>&1
copied=$?
for db in source copy; do
	export PGDATABASE=$db
	printf '%s: %s: %s\n' "$db" "$(sql "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 't_id'")" \
		"$(sql "UPDATE t SET id = id + 1" | head -1)"
done | tee both
[ $copied -eq 0 ] && grep -q '^source: UNIQUE (id) DEFERRABLE INITIALLY DEFERRED: $' both && grep -q '^copy: UNIQUE (id): ERROR:  duplicate key' both
verdict $?
