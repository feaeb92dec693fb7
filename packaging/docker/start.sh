#!/bin/sh
#
# packaging/docker/start.sh [option of postgres ...]
#	  Makes the cluster at the first start, and becomes its server.  A cluster that is
#	  there already is served as it is.
#
# At the first start, under the names that the official image of PostgreSQL has:
#	POSTGRES_PASSWORD		the superuser's; or POSTGRES_PASSWORD_FILE, a file with it
#	POSTGRES_USER			the superuser (postgres)
#	POSTGRES_DB				a database to make (that of POSTGRES_USER)
#	POSTGRES_INITDB_ARGS	options of initdb
# At each start:
#	ARTIDX_MEMORY			artidx.memory, as 2GB; else what postgresql.conf says
#
set -eu

fail()
{
	echo "artidx-start: $1" >&2
	exit 1
}

make_cluster()
{
	if [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then
		[ -r "$POSTGRES_PASSWORD_FILE" ] || fail "cannot read POSTGRES_PASSWORD_FILE ($POSTGRES_PASSWORD_FILE)"
		POSTGRES_PASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
	fi
	[ -n "${POSTGRES_PASSWORD:-}" ] ||
		fail "the superuser needs a password: docker run -e POSTGRES_PASSWORD=... (or POSTGRES_PASSWORD_FILE)"
	password=$(mktemp)
	printf '%s\n' "$POSTGRES_PASSWORD" >"$password"
	# shellcheck disable=SC2086 # several options
	initdb -D "$PGDATA" -U "$user" --pwfile="$password" --auth-local=trust --auth-host=scram-sha-256 \
		--data-checksums -E UTF8 --locale=C.UTF-8 ${POSTGRES_INITDB_ARGS:-} || { rm -f "$password"; exit 1; }
	rm -f "$password"
	touch "$PGDATA/artidx-unfinished"
}

sql()
{
	psql -X -q -v ON_ERROR_STOP=1 -h "$private" -U "$user" "$@"
}

# Each step may have run before: a container may be stopped in the middle of it.
finish_cluster()
{
	if ! grep -q '^host all all all ' "$PGDATA/pg_hba.conf"; then
		printf "shared_preload_libraries = 'artidx'\nlisten_addresses = '*'\n" >>"$PGDATA/postgresql.conf"
		echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
	fi
	# nobody comes in until the extension is there: no client, and not the health check
	private=$(mktemp -d)
	pg_ctl -D "$PGDATA" -s -w -o "-c listen_addresses='' -c unix_socket_directories='$private'" start
	for d in template1 postgres; do
		sql -d "$d" -c 'SET client_min_messages = warning; CREATE EXTENSION IF NOT EXISTS artidx'
	done
	sql -d postgres -v db="${POSTGRES_DB:-$user}" <<-'END'
		SELECT format('CREATE DATABASE %I', :'db')
		WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'db') \gexec
	END
	pg_ctl -D "$PGDATA" -s -w -m fast stop
	rmdir "$private"
	rm "$PGDATA/artidx-unfinished"
}

user=${POSTGRES_USER:-postgres}
[ -e "$PGDATA/PG_VERSION" ] || make_cluster
[ ! -e "$PGDATA/artidx-unfinished" ] || finish_cluster
[ -z "${ARTIDX_MEMORY:-}" ] || set -- -c "artidx.memory=$ARTIDX_MEMORY" "$@"
exec postgres -D "$PGDATA" "$@"
