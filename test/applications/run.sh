#!/bin/bash
#
# test/applications/run.sh [application ...]
#	  The examples of doc/applications.md with the real libraries: django,
#	  sqlalchemy, rails, hibernate, prisma; and the tools of its table (tools.sh).
#	  dumps: extensions that Debian has, whose types are keys, through dump and restore
#	  in every order.
#	  monitoring: exporters, Prometheus, the dashboard's queries, the alerts (monitoring.sh).
#	  pgxn: the archive of "make dist" by PGXN's client.
#	  types: those of Debian's extensions, and the table of doc/keys.md (TYPE_TABLE=write
#	  makes it anew).
#
# Each gets a database of a throwaway cluster.  The libraries come from PyPI, npm,
# Maven Central and Debian; an application whose tools are not on this machine is
# named with the reason, and counts neither as passed nor as failed.  Ends with the
# line "N passed, N failed".
#
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
. "$TREE/test/applications/tools.sh"
. "$TREE/test/applications/monitoring.sh"

APPS=("$@")
[ ${#APPS[@]} -gt 0 ] || APPS=(django sqlalchemy rails hibernate prisma dumps types monitoring "${TOOLS[@]}" pgxn)
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

# told LOG: the versions and seeds that an application printed, and what it skipped
told()
{
	grep -E '^# (SKIP .*:|[A-Za-z_]+(==| |=)[0-9])' "$1" | sed 's/^#/;/' | tr -d '\n'
}

# indexes TABLE: its indexes as pg_indexes says, but for the primary key
indexes()
{
	sql "SELECT indexdef FROM pg_indexes WHERE tablename = '$1' AND indexname !~ 'pkey' ORDER BY 1"
}

# database NAME: a new one, which PGDATABASE then names.  The user has the name of the
# extension's schema, so his tables would go there ("$user").
database()
{
	export PGDATABASE=postgres
	sql "CREATE DATABASE $1" && PGDATABASE=$1 && sql "CREATE SCHEMA artidx; GRANT USAGE ON SCHEMA artidx TO PUBLIC;
		CREATE EXTENSION artidx SCHEMA artidx;
		ALTER DATABASE $1 SET search_path = public"
}

# python APPLICATION PACKAGE...: sets VENV to an environment that has them
python()
{
	VENV=$WORK/venv-$1
	python3 -m venv "$VENV" && "$VENV/bin/pip" -q install "${@:2}" || return 1
	echo "# $("$VENV/bin/pip" list --format freeze | grep -iE '^(django|sqlalchemy|alembic|migra|pgxnclient)==' | xargs)"
}

app_django()
{
	local out

	python django 'django>=5.2,<5.3' 'psycopg[binary]' ||
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

	python sqlalchemy sqlalchemy alembic 'psycopg[binary]' ||
		{ skip sqlalchemy "python3 -m venv and pip are needed"; return; }
	database sqlalchemy
	out=$("$VENV/bin/python" "$TREE/test/applications/sqlalchemy/app.py" 2>&1; indexes orders)
	has sqlalchemy "$out" "autogenerate: []"
	has sqlalchemy "$out" "replace_btree = indexes: []"
	has sqlalchemy "$out" "CREATE INDEX orders_created ON public.orders USING art (created)"
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

# through ORDER EXTENSION TYPE VALUE: both extensions, an index, a dump, and its copies
through()
{
	local order=$1 type=$3 value=$4 db=from_$2 copy what
	local query="SELECT pg_get_indexdef('t_k'::regclass), opcname, opcnamespace::regnamespace
		FROM pg_opclass JOIN pg_index ON indclass[0] = pg_opclass.oid WHERE indexrelid = 't_k'::regclass"

	export PGDATABASE=postgres
	sql "DROP DATABASE IF EXISTS $db" && sql "CREATE DATABASE $db TEMPLATE template0" && PGDATABASE=$db
	for what in $order; do
		sql "CREATE EXTENSION $what"
	done
	sql "CREATE TABLE t (k $type); CREATE UNIQUE INDEX t_k ON t USING art (k); INSERT INTO t VALUES ('$value')"
	as_user "$BIN/pg_dump" --clean --if-exists -f "$WORK/tmp/dump.sql" && as_user "$BIN/pg_dump" -Fc -f "$WORK/tmp/dump.c"
	what=$(sql "$query")
	for copy in sql c; do
		PGDATABASE=postgres
		sql "DROP DATABASE IF EXISTS copy" && sql "CREATE DATABASE copy TEMPLATE template0" && PGDATABASE=copy
		case $copy in
			sql) as_user "$BIN/psql" -X -q -v ON_ERROR_STOP=1 -f "$WORK/tmp/dump.sql" ;;
			c) as_user "$BIN/pg_restore" --exit-on-error -j2 -d copy "$WORK/tmp/dump.c" ;;
		esac >/dev/null
		echo "$order, dump.$copy: $([ -n "$what" ] && [ "$(sql "$query")" = "$what" ] && echo the same index)"
		sql "INSERT INTO t VALUES ('$value')" 2>&1 | grep -o 'violates unique constraint "t_k"'
	done
}

app_dumps()
{
	local version out extension package type value order

	version=$("$PG_CONFIG" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
	while read -r extension type value; do
		package=postgresql-$version-${extension#pg_}
		if ! [ -f "$("$PG_CONFIG" --sharedir)/extension/$extension.control" ]; then
			# into the private installation, which is laid out as Debian's is
			(cd "$WORK/tmp" && apt-get -qq download "$package" && dpkg -x "$package"_*.deb "$ROOT") \
				>/dev/null 2>&1 || { skip "dumps: $extension" "Debian's $package is needed"; continue; }
		fi
		for order in "artidx $extension" "$extension artidx"; do
			out=$(through "$order" "$extension" "$type" "$value" 2>&1)
			has "dumps: $extension" "$out" "$order, dump.sql: the same index"
			has "dumps: $extension" "$out" "$order, dump.c: the same index"
			has "dumps: $extension" "$(grep -c '^violates' <<<"$out") refusals" "2 refusals"
		done
		echo "# $extension $(PGDATABASE=from_$extension sql "SELECT extversion FROM pg_extension WHERE extname = '$extension'")"
	done <<-END
		citext citext a
		isn isbn 0-201-03801-3
		ltree ltree a.b
		ip4r ip4 192.0.2.1
		semver semver 1.2.3
		prefix prefix_range 0123
		pg_rational rational 1/3
		numeral numeral eleven
		pgmp mpz 12345678901234567890
	END
	PGDATABASE=postgres
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
	tap all_types TYPES="asn1oid ean13 geography geometry ip4 ip4r ip6 ip6r ipaddress iprange isbn isbn13 ismn ismn13 issn issn13
		jsquery mpq mpz numeral nvarchar2 prefix rational roman semver unit upc varchar2 zahl"
	tap type_table TYPE_TABLE="${TYPE_TABLE:-}"
	[ "${TYPE_TABLE:-}" != write ] || cp "$SRC/doc/keys.md" "$TREE/doc/keys.md"
	unset LD_LIBRARY_PATH
}

# The archive of "make dist", which PGXN's client unpacks, builds, installs and creates.
app_pgxn()
{
	local out zip

	python pgxn pgxnclient 'setuptools<81' || { skip pgxn "python3 -m venv and pip are needed"; return; }
	zip=$(OUT=$WORK/dist bash "$TREE/packaging/dist.sh") && chmod -R a+rX "$WORK/dist" ||
		{ failed=$((failed + 1)); echo "not ok - pgxn: make dist"; return; }
	database pgxn
	sql "DROP EXTENSION artidx"
	rm "$("$PG_CONFIG" --sharedir)/extension/artidx.control"
	# the client refuses a server without that folder, which the headers alone do not make
	mkdir -p "$("$PG_CONFIG" --libdir)"
	# not as the servers' user, who may not reach the Python that made the environment
	out=$(cd "$WORK/tmp" && "$VENV/bin/pgxnclient" install --nosudo --unstable --pg_config "$PG_CONFIG" "$zip" 2>&1 &&
		PATH="$BIN:$PATH" "$VENV/bin/pgxnclient" load --yes --unstable --pg_config "$PG_CONFIG" -d pgxn --schema artidx "$zip" 2>&1
		sql "SELECT extname || ' is loaded' FROM pg_extension ORDER BY oid")
	has pgxn "$out" "artidx is loaded"
	has pgxn "$out" "artidx_debug is loaded"
}

tool_packages "${APPS[@]}"
art_setup applications
# Java's driver wants TCP
port=$((40000 + RANDOM % 20000))
art_cluster applications "shared_preload_libraries = 'artidx'" "artidx.memory = '256MB'" \
	"listen_addresses = '127.0.0.1'" "port = $port"
export PGPORT=$port
rows=()
for app in "${APPS[@]}"; do
	before=$passed
	before_failed=$failed
	if declare -F "app_$app" >/dev/null; then
		"app_$app" > >(tee "$WORK/app.log")
		wait $!
		rows+=("$app" "$((passed - before)) passed, $((failed - before_failed)) failed$(told "$WORK/app.log")")
	else
		art_die "no such application: $app"
	fi
done
echo "$passed passed, $failed failed"
art_evidence applications "make applications" \
	"Frameworks and tools of others used art indexes, and each line that they had to print was compared." \
	"${rows[@]}" "in all" "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
