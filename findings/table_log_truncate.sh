#!/bin/bash
#
# findings/table_log_truncate.sh
#	  table_log: a table that is restored as of now has the rows that TRUNCATE removed.
#
# The guess, before it was run: table_log_restore_table() for this moment gives the table as it
# is, for table_log_init() set the triggers for all that changes it.
#
# What happens: table_log 0.6.3 has triggers for INSERT, UPDATE and DELETE of rows.  TRUNCATE is
# not in the log, and nothing says so.  The restored table has the old rows beside the new ones.
# A table that is truncated and filled again, as nightly loads do, has a log that only grows.
# Seen on 2026-12-01 with the packages named below.
#
# Needs apt; fetches into a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fetch postgresql-15-tablelog=0.6.3-2+b1
start
sql "CREATE EXTENSION table_log" "CREATE TABLE t (id int PRIMARY KEY, v text)" "SELECT table_log_init(5, 't')" \
	"INSERT INTO t VALUES (1, 'old'), (2, 'old')" "TRUNCATE t" "INSERT INTO t VALUES (3, 'new')" >/dev/null
there=$(sql "SELECT id FROM t ORDER BY id" | xargs)
restored=$(psql -X -q -A -t -c "DO 'BEGIN PERFORM table_log_restore_table(''t'', ''id'', ''t_log'', ''trigger_id'', ''r'', clock_timestamp()); END'" \
	-c "SELECT id FROM r ORDER BY id" 2>&1 | xargs)
echo "in the table: $there"
echo "restored:     $restored"
[ "$there" = "3" ] && [ "$restored" = "1 2 3" ]
verdict $?
