#!/bin/bash
#
# findings/extensions_15_20.sh
#	  CREATE EXTENSION debversion and pg_sphere, as Debian 12 packages them, err on 15.20.
#
# The guess: an extension of a stable distribution can be created on every minor release
# that its updates bring; a newer one refuses no valid script of an extension.
#
# What happens: CREATE OPERATOR errs when an operator is to become the negator or the
# commutator of two ("negator operator >= is already the negator of operator <").  15.18
# creates both extensions.  Both scripts have such a slip, of many years.  A dump of a
# database that has one of them does not restore on 15.20.  Seen on 2026-11-29.
#
# Needs apt; fetches into a temporary directory, and leaves nothing.
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fetch postgresql-15-debversion=1.1.2-1+b1 "postgresql-15-pgsphere=1.1.1+2021-11-10-2+b1"
start
debversion=$(sql "CREATE EXTENSION debversion")
sphere=$(sql "CREATE EXTENSION pg_sphere")
printf '%s\n' "debversion: $debversion" "pg_sphere: $sphere"
[[ $debversion == *"is already the negator of operator"* && $sphere == *"is already the commutator of operator"* ]]
verdict $?
