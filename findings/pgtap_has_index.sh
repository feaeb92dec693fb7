#!/bin/bash
#
# findings/pgtap_has_index.sh
#	  pgTAP's has_index() takes INCLUDE columns for columns of the key.
#
# The guess: has_index(table, index, columns) compares the key's columns, so a test of the
# schema passes for UNIQUE (id) INCLUDE (name) with 'id', and fails with {id,name}.
#
# What happens: it is the other way round.  pgTAP 1.2.0 reads all of indkey.  So a test that
# asks for UNIQUE (id, name) passes on a key of id alone.  Seen on 2026-11-29.
#
# Needs apt; fetches into a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fetch postgresql-15-pgtap=1.2.0-3
start
sql "CREATE EXTENSION pgtap" "CREATE TABLE t (id int, name text)" \
	"CREATE UNIQUE INDEX narrow ON t (id) INCLUDE (name)" >/dev/null
ask()
{
	sql "SELECT plan(1); SELECT has_index('public', 't', 'narrow', $1, 'it')" | grep -E '^(not )?ok'
}
key=$(ask "ARRAY['id']")
both=$(ask "ARRAY['id', 'name']")
printf '%s\n' "has_index(..., {id}): $key" "has_index(..., {id,name}): $both"
[[ $key == "not ok"* && $both == ok* ]]
verdict $?
