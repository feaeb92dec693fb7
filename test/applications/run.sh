#!/bin/bash
#
# test/applications/run.sh [application ...]
#	  The examples of doc/applications.md with the real libraries: django,
#	  sqlalchemy, rails, hibernate, prisma.  And types: those of Debian's extensions, and
#	  the table of doc/keys.md (TYPE_TABLE=write makes it anew).
#
# Each gets a database of a throwaway cluster.  The libraries come from PyPI, npm,
# Maven Central and Debian; an application whose tools are not on this machine is
# named with the reason, and counts neither as passed nor as failed.  Ends with the
# line "N passed, N failed".
#
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

APPS=("$@")
[ ${#APPS[@]} -gt 0 ] || APPS=(django sqlalchemy rails hibernate prisma types)
passed=0
failed=0

# has NAME OUTPUT LINE: the program printed this line
has()
{
	if grep -qxF -- "$3" <<<"$2"; then
		passed=$((passed + 1))
		echo "ok - $1: $3"
	else
		failed=$((failed + 1))
		echo "not ok - $1: $3"
		printf '%s\n' "$2" | tail -20 | sed 's/^/# /'
	fi
}

skip()
{
	echo "# SKIP $1: $2"
}

# indexes TABLE: its indexes as pg_indexes says, but for the primary key
indexes()
{
	sql "SELECT indexdef FROM pg_indexes WHERE tablename = '$1' AND indexname !~ 'pkey' ORDER BY 1"
}

# database NAME: a new one, which PGDATABASE then names
database()
{
	export PGDATABASE=postgres
	sql "CREATE DATABASE $1" && PGDATABASE=$1 && sql "CREATE EXTENSION artidx"
}

# python PACKAGE...: sets VENV to an environment that has them
python()
{
	VENV=$WORK/venv
	[ -d "$VENV" ] || python3 -m venv "$VENV" || return 1
	"$VENV/bin/pip" -q install "$@"
}

app_django()
{
	local out

	python 'django>=5.2,<5.3' 'psycopg[binary]' ||
		{ skip django "python3 -m venv and pip are needed"; return; }
	export DJANGO_SETTINGS_MODULE=settings PYTHONPATH=$TREE/test/applications/django \
		PYTHONDONTWRITEBYTECODE=1
	database django
	out=$("$VENV/bin/django-admin" migrate 2>&1; "$VENV/bin/python" "$PYTHONPATH/use.py" 2>&1
		"$VENV/bin/django-admin" makemigrations --check 2>&1; indexes shop_order)
	has django "$out" "No changes detected"
	has django "$out" "CREATE INDEX order_token_art ON public.shop_order USING art (token) WITH (sync=rowex)"
	has django "$out" "CREATE INDEX order_account_art ON public.shop_order USING art (account, created DESC)"
	has django "$out" "found: True"
	has django "$out" "seen: art [None, None]"
	has django "$out" "replace_btree = off: db_index can be set and taken away"
	has django "$out" 'replace_btree = indexes: relation "shop_order_account_9eb6740e" already exists'
	unset PYTHONPATH
}

app_sqlalchemy()
{
	local out

	python sqlalchemy alembic 'psycopg[binary]' ||
		{ skip sqlalchemy "python3 -m venv and pip are needed"; return; }
	database sqlalchemy
	out=$("$VENV/bin/python" "$TREE/test/applications/sqlalchemy/app.py" 2>&1; indexes orders)
	has sqlalchemy "$out" "autogenerate: []"
	has sqlalchemy "$out" "CREATE UNIQUE INDEX orders_token ON public.orders USING art (token) WITH (sync=rowex)"
	has sqlalchemy "$out" "CREATE INDEX orders_account ON public.orders USING art (account, created) WITH (structure=btree)"
}

app_rails()
{
	local out

	if ! ruby -e 'require "active_record"; require "pg"' 2>/dev/null; then
		[ "$(id -u)" -eq 0 ] && (art_apt update; art_apt install ruby ruby-activerecord ruby-pg) ||
			{ skip rails "ruby with ActiveRecord and pg is needed"; return; }
	fi
	database rails
	out=$(ruby "$TREE/test/applications/rails/app.rb" 2>&1; indexes orders)
	has rails "$out" '    t.index ["token"], name: "index_orders_on_token", unique: true, using: :art'
	has rails "$out" 'index_orders_on_account_and_created_at art false ["account", "created_at"] {"created_at"=>:desc}'
	has rails "$out" "CREATE UNIQUE INDEX index_orders_on_token ON public.orders USING art (token)"
	has rails "$out" "CREATE INDEX index_orders_on_account_and_created_at ON public.orders USING art (account, created_at DESC)"
}

app_hibernate()
{
	local out

	command -v mvn >/dev/null 2>&1 || { skip hibernate "Maven is needed"; return; }
	cp -r "$TREE/test/applications/hibernate" "$WORK/hibernate"
	database hibernate
	out=$(cd "$WORK/hibernate" &&
		JDBC_URL="jdbc:postgresql://127.0.0.1:$PGPORT/hibernate" mvn -q -B compile exec:java 2>&1; echo; indexes orders)
	has hibernate "$out" "validate: true"
	has hibernate "$out" "update: true"
	has hibernate "$out" "CREATE UNIQUE INDEX orders_token ON public.orders USING art (token) WITH (sync=rowex)"
	has hibernate "$out" "CREATE INDEX orders_account ON public.orders USING art (account, created DESC)"
}

# The client is Prisma's own.  Its schema engine, which applies migrations, is no
# npm package, so psql applies the migration; the client does not need that engine.
app_prisma()
{
	local out

	command -v npm >/dev/null 2>&1 || { skip prisma "npm is needed"; return; }
	cp -r "$TREE/test/applications/prisma" "$WORK/prisma"
	database prisma
	out=$(cd "$WORK/prisma" && "$BIN/psql" -X -q -v ON_ERROR_STOP=1 -f migration.sql &&
		npm install --silent --no-audit --no-fund 2>&1 &&
		PRISMA_SCHEMA_ENGINE_BINARY=/bin/true npx prisma generate 2>&1 && node app.js 2>&1; indexes orders)
	has prisma "$out" "found: true"
	has prisma "$out" "duplicate: P2002"
	has prisma "$out" "CREATE UNIQUE INDEX orders_token ON public.orders USING art (token) WITH (sync=rowex)"
}

# tap NAME [VARIABLE=...]: a file of test/t, which counts as its tests
tap()
{
	local pgxs out

	pgxs=$(dirname "$("$PG_CONFIG" --pgxs)")/..
	as_user mkdir -p "$WORK/tap"
	out=$(as_user env TESTDIR="$WORK/tap" TESTDATADIR="$WORK/tap" TESTLOGDIR="$WORK/tap/log" PGPORT=65432 \
		PG_TEST_PORT_DIR="$WORK/tap" PG_REGRESS="$pgxs/test/regress/pg_regress" "${@:2}" \
		prove -v --nocolor -I "$pgxs/test/perl" -I "$SRC/test/perl" "$SRC/test/t/$1.pl" 2>&1)
	passed=$((passed + $(grep -c '^ok [0-9]' <<<"$out")))
	failed=$((failed + $(grep -c '^not ok [0-9]' <<<"$out")))
	grep -E '^(ok|not ok) [0-9]|^# SEED' <<<"$out"
	grep -qx 'Result: PASS' <<<"$out" || { failed=$((failed + 1)); tail -40 <<<"$out" | sed 's/^/# /'; }
}

# The packages' files go into the test's own PostgreSQL, and what they need beside it.
app_types()
{
	local packages=(asn1oid ip4r jsquery numeral orafce pgmp postgis-3 prefix rational semver unit)
	local lib=$ROOT/usr/lib/$(gcc -print-multiarch) share deb

	[ "$("$PG_CONFIG" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')" = 15 ] && share=$("$PG_CONFIG" --sharedir)/extension &&
		apt-cache show postgresql-15-semver >/dev/null 2>&1 ||
		{ skip types "a Debian 12 with PostgreSQL 15 is needed"; return; }
	mkdir "$WORK/debs"
	# the third field is the version, whose colon is %3a in the file's name
	(cd "$WORK/debs" && apt-get -qq install --print-uris --no-install-recommends "${packages[@]/#/postgresql-15-}" |
		sed -n "s/^'[^']*' \([^_]*\)_.*/\1/p" | xargs apt-get -qq download) >"$WORK/debs.log" 2>&1
	for deb in "$WORK"/debs/*.deb; do
		dpkg-deb -x "$deb" "$ROOT" || { cat "$WORK/debs.log"; skip types "apt-get download failed"; return; }
	done
	ln -sf postgis-3.control "$share/postgis.control"
	sed -i "s#/usr/share/postgresql#$ROOT/usr/share/postgresql#" "$share"/unit--*.sql
	export LD_LIBRARY_PATH=$lib:$lib/blas:$lib/lapack
	tap 035_types TYPES="asn1oid ean13 geography geometry ip4 ip4r ip6 ip6r ipaddress iprange isbn isbn13 ismn ismn13 issn issn13
		jsquery mpq mpz numeral nvarchar2 prefix rational roman semver unit upc varchar2 zahl"
	tap 036_type_table TYPE_TABLE="${TYPE_TABLE:-}"
	[ "${TYPE_TABLE:-}" != write ] || cp "$SRC/doc/keys.md" "$TREE/doc/keys.md"
	unset LD_LIBRARY_PATH
}

art_setup applications
# Java's driver wants TCP
port=$((40000 + RANDOM % 20000))
art_cluster applications "shared_preload_libraries = 'artidx'" "artidx.memory = '256MB'" \
	"listen_addresses = '127.0.0.1'" "port = $port"
export PGPORT=$port
for app in "${APPS[@]}"; do
	if declare -F "app_$app" >/dev/null; then
		"app_$app"
	else
		art_die "no such application: $app"
	fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
