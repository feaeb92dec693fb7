# test/applications/monitoring.sh
#	  The files of doc/monitoring.md with Debian's programs: two exporters, Prometheus and
#	  promtool (sourced by run.sh).
#
# A primary and its standby, at work, are scraped every second.  Each query of doc/grafana.json
# is put to Prometheus until it answers with all labels of its legend (monitoring/ask.pl).  The
# alerts are judged by monitoring/alerts_test.yml.  The packages are unpacked, not installed,
# so that no service starts.  Grafana is in no Debian, and nobody has imported the dashboard.

# daemon LOG PROGRAM...: in the background; it ends with this script, however that ends
daemon()
{
	local log=$1 as=()

	shift
	[ "$(id -u)" -ne 0 ] || as=(--reuid "$RUN_AS" --regid "$(id -g "$RUN_AS")" --clear-groups)
	setpriv --pdeathsig TERM "${as[@]}" "$@" >"$log" 2>&1 </dev/null &
	daemons+=($!)
}

# answers URL: it does, within a minute
answers()
{
	local i

	for ((i = 0; i < 600; i++)); do
		perl -MHTTP::Tiny -e 'exit !HTTP::Tiny->new(timeout => 5)->get($ARGV[0])->{success}' "$1" && return 0
		sleep 0.1
	done
	return 1
}

# yaml_of HEADING: the first block of yaml in doc/monitoring.md behind it
yaml_of()
{
	awk -v heading="## $1" '$0 == heading { found = 1 } /^```/ { if (inside) exit; inside = found && $0 == "```yaml"; next } inside' \
		"$TREE/doc/monitoring.md"
}

# as_server SETTING=VALUE...: without a restart
as_server()
{
	local s

	for s in "$@"; do
		sql "ALTER SYSTEM SET ${s%%=*} = ${s#*=}"
	done
	sql "SELECT pg_reload_conf()" >/dev/null
}

# at_work FILE: what the dashboard is to show goes on, until there is the file.  A build of a small
# part of its pace, one that its worker has left, one that ends; a server that starts.
at_work()
{
	local structure

	until [ -f "$1" ]; do
		for structure in btree art; do
			as_server artidx.build_workers=1 artidx.build_priority=1
			sql "ALTER INDEX p_k SET (structure = $structure)"
			sleep 4
			as_server artidx.build_workers=0
			sql "SELECT pg_terminate_backend(pid) FROM artidx_progress WHERE pid IS NOT NULL" >/dev/null
			sleep 4
			as_server artidx.build_workers=2 artidx.build_priority=100
			sql "INSERT INTO p SELECT generate_series(1, 1000)"
			until [ "$(sql "SELECT count(*) FROM artidx_indexes WHERE state <> 'ready'")" = 0 ] || [ -f "$1" ]; do
				sleep 0.2
			done
		done
		as_user "$BIN/pg_ctl" -D "$DATA" -l "$DATA.log" -m fast -w -t 120 restart >/dev/null
	done
}

app_monitoring()
{
	local dir=$WORK/monitoring bin=$WORK/monitoring/x/usr/bin daemons=() worker pid out
	local standby=$((PGPORT + 1)) sqlex=$((PGPORT + 2)) pgex=$((PGPORT + 3)) prom=$((PGPORT + 4))

	mkdir -m 777 "$dir"
	(cd "$dir" && apt-get -qq download prometheus prometheus-sql-exporter prometheus-postgres-exporter &&
		for d in *.deb; do dpkg-deb -x "$d" x || exit 1; done) >"$dir/download.log" 2>&1 ||
		{ skip monitoring "Debian's prometheus and two exporters are needed: $(tail -1 "$dir/download.log")"; return; }
	echo "# $(cd "$dir" && echo *.deb | sed 's/_amd64\.deb//g')"

	# ---- the alerts ----
	out=$("$bin/promtool" check rules "$TREE/doc/alerts.yml" 2>&1; cp "$TREE/doc/alerts.yml" "$dir/"
		"$bin/promtool" test rules "$TREE/test/applications/monitoring/alerts_test.yml" 2>&1)
	has "monitoring: promtool" "$out" "  SUCCESS: 5 rules found"
	has "monitoring: promtool" "$out" "  SUCCESS"

	# ---- the servers ----
	export PGDATABASE=postgres
	sql "CREATE DATABASE monitoring" && sql "CREATE ROLE monitor LOGIN; GRANT pg_monitor TO monitor"
	PGDATABASE=monitoring
	as_server artidx.build_wait=off
	sql "CREATE EXTENSION artidx; CREATE TABLE p (k int); INSERT INTO p SELECT generate_series(1, 400000);
		CREATE INDEX p_k ON p USING art (k); CREATE INDEX p_k2 ON p USING art (k) WHERE k < 100; ANALYZE p"
	as_user "$BIN/pg_basebackup" -D "$WORK/standby" -R -c fast 2>&1
	echo "port = $standby" | as_user tee -a "$WORK/standby/postgresql.auto.conf" >/dev/null
	as_user "$BIN/pg_ctl" -D "$WORK/standby" -l "$WORK/standby.log" -w -t 120 start >/dev/null || tail "$WORK/standby.log"

	# ---- what looks at them ----
	sed "s#^      - postgres://monitor@.*#      - postgres://monitor@127.0.0.1:$PGPORT/monitoring?sslmode=disable\n      - postgres://monitor@127.0.0.1:$standby/monitoring?sslmode=disable#; s/interval: 30s/interval: 1s/" \
		"$TREE/doc/sql_exporter.yml" >"$dir/sql_exporter.yml"
	{
		printf 'global: {scrape_interval: 1s, evaluation_interval: 1s}\n'
		yaml_of "Prometheus and Grafana" | sed "s/localhost:9237/127.0.0.1:$sqlex/; s/localhost:9187/127.0.0.1:$pgex/"
	} >"$dir/prometheus.yml"
	out=$("$bin/promtool" check config "$dir/prometheus.yml" 2>&1)
	has "monitoring: promtool" "$out" " SUCCESS: $dir/prometheus.yml is valid prometheus config file syntax"
	daemon "$dir/sql_exporter.log" "$bin/prometheus-sql-exporter" -config.file "$dir/sql_exporter.yml" -web.listen-address "127.0.0.1:$sqlex"
	daemon "$dir/postgres_exporter.log" env DATA_SOURCE_NAME="postgres://monitor@127.0.0.1:$PGPORT/monitoring?sslmode=disable" \
		"$bin/prometheus-postgres-exporter" --web.listen-address "127.0.0.1:$pgex"
	daemon "$dir/prometheus.log" "$bin/prometheus" --config.file "$dir/prometheus.yml" --storage.tsdb.path "$dir/data" \
		--web.listen-address "127.0.0.1:$prom"
	answers "http://127.0.0.1:$prom/-/ready" || tail -5 "$dir/prometheus.log"

	# ---- they are asked while something goes on ----
	at_work "$dir/stop" >"$dir/work.log" 2>&1 &
	worker=$!
	out=$(perl "$TREE/test/applications/monitoring/ask.pl" "http://127.0.0.1:$prom" "$TREE/doc/grafana.json" 2>&1)
	touch "$dir/stop"
	wait "$worker"
	passed=$((passed + $(grep -c '^ok ' <<<"$out")))
	failed=$((failed + $(grep -c '^not ok ' <<<"$out")))
	sed 's/^\(not \)\?ok /\1ok - monitoring: /' <<<"$out"
	has "monitoring: ask.pl" "$(tail -1 <<<"$out" | sed 's/: .*//')" "# asked"
	if grep -q '^not ok ' <<<"$out"; then
		tail -n 5 "$dir"/*.log | sed 's/^/# /'
	fi

	for pid in "${daemons[@]}"; do
		kill "$pid"
		wait "$pid" 2>/dev/null
	done
	as_user "$BIN/pg_ctl" -D "$WORK/standby" -m immediate -w stop >/dev/null
	PGDATABASE=postgres
	as_server artidx.build_wait=DEFAULT artidx.build_workers=DEFAULT artidx.build_priority=DEFAULT
}
