#!/bin/bash
#
# test/bench/advise.sh
#	  What artidx_advise() expects, beside what it comes to: "make advise" calls it.
#
# Ten small workloads, each with a table and a btree index of its own, are run, and
# artidx_advise() is asked for its scores, and artidx_trial() tries each.  Then the same tables are made again with art
# indexes, and the same is run.  What is saved is processor time of the backend, so what
# else the machine does hardly counts, and WAL.  Prints all, and the rank correlations
# (Spearman's) between the score, the trial's verdict and the time that was saved.  Then how long
# artidx_advise() takes for 1,000 indexes more.
#
#	ROWS=200000		of each table
#	OPS=20000		what a workload does, look-ups or rows
#	REPS=15			runs of each, of which the median counts
#	TRIAL=5			seconds of each trial
#	RESULTS=dir		default: bench-results/advise-<date> in the tree
#
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

: "${ROWS:=200000}" "${OPS:=20000}" "${REPS:=15}" "${TRIAL:=5}"
: "${RESULTS:=$TREE/bench-results/advise-$(date +%Y%m%d-%H%M%S)}"
art_whole_numbers 1000 ROWS OPS
art_whole_numbers 1 REPS TRIAL
art_results_dir

art_setup advise
art_cluster advise \
	"shared_preload_libraries = 'artidx,pg_stat_statements'" \
	"pg_stat_statements.track = all" \
	"artidx.memory = '$((ROWS / 500 + 256))MB'" \
	"shared_buffers = '$((ROWS / 500 + 256))MB'" \
	"fsync = off" \
	"autovacuum = off" \
	"checkpoint_timeout = '1d'" \
	"max_wal_size = '20GB'" \
	"max_parallel_workers_per_gather = 0" \
	"enable_hashjoin = off" \
	"enable_mergejoin = off" \
	"enable_seqscan = off" \
	"enable_bitmapscan = off" \
	"jit = off"
sql "CREATE EXTENSION artidx; CREATE EXTENSION pg_stat_statements;
	CREATE TABLE result (am text, workload text, rep int, ns float8, wal float8);
	CREATE TABLE advice (workload text, score float8, wal float8, tried float8);
	CREATE FUNCTION cpu() RETURNS bigint LANGUAGE sql VOLATILE
		RETURN split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::bigint;
	CREATE FUNCTION wide(i bigint) RETURNS text LANGUAGE sql IMMUTABLE RETURN md5(i::text) || md5((-i)::text) || md5((7 * i)::text);
	CREATE TABLE drive AS SELECT 1 + (random() * ($ROWS - 1))::bigint AS k FROM generate_series(1, $OPS)" >/dev/null ||
	art_die "no tables"

workloads="uuid_inserts append_inserts look_ups ranges joins updates wide_text few_values index_only rarely"

# Keys that look random are those of a permutation: i * a large prime, modulo a prime.
key='(i * 7368787 % 15485863)'

# columns and rows of a table; what is done; each for a workload
table_of()
{
	case $1 in
		uuid_inserts) echo "k uuid, v int|gen_random_uuid(), i" ;;
		wide_text) echo "k text COLLATE \"en-x-icu\", v int|wide(i), i" ;;
		few_values) echo "k int, v int|i % 100, i" ;;
		look_ups | joins | updates) echo "k bigint, v int|$key, i" ;;
		*) echo "k bigint, v int|i, i" ;;
	esac
}

loop()
{
	echo "DO \$\$ DECLARE r record; i bigint; BEGIN FOR i IN SELECT k FROM drive LIMIT $1 LOOP $2; END LOOP; END \$\$"
}

work_of()
{
	case $1 in
		uuid_inserts) echo "INSERT INTO $1 SELECT gen_random_uuid(), i FROM generate_series(1, $OPS) i" ;;
		append_inserts) echo "INSERT INTO $1 SELECT i, i FROM generate_series($ROWS + 1, $ROWS + $OPS) i" ;;
		look_ups) loop "$OPS" "SELECT v INTO r FROM $1 WHERE k = $key" ;;
		ranges) loop $((OPS / 200)) "SELECT sum(v) INTO r FROM $1 WHERE k BETWEEN i AND i + 1000" ;;
		joins) echo "SELECT sum(x.v) FROM drive d JOIN $1 x ON x.k = d.k * 7368787 % 15485863" ;;
		updates) loop "$OPS" "UPDATE $1 SET k = k + 15485863 WHERE k = $key" ;;
		wide_text) loop $((OPS / 2)) "SELECT v INTO r FROM $1 WHERE k = wide(i)" ;;
		few_values) echo "INSERT INTO $1 SELECT i % 100, i FROM generate_series(1, $OPS) i" ;;
		index_only) loop $((OPS / 200)) "SELECT count(k) INTO r FROM $1 WHERE k BETWEEN i AND i + 1000" ;;
		rarely) loop 100 "SELECT v INTO r FROM $1 WHERE k = i" ;;
	esac
}

# make_table WORKLOAD AM
make_table()
{
	local of

	of=$(table_of "$1")
	sql "DROP TABLE IF EXISTS $1" 2>/dev/null >/dev/null
	sql "CREATE TABLE $1 (${of%%|*}) WITH (fillfactor = 100)" >/dev/null
	sql "INSERT INTO $1 SELECT ${of#*|} FROM generate_series(1::bigint, $ROWS) i" >/dev/null
	sql "CREATE INDEX ${1}_k ON $1 USING $2 (k)" >/dev/null
	sql "VACUUM ANALYZE $1" >/dev/null
}

# run_one WORKLOAD AM REP: in a session of its own, whose processor time it is
run_one()
{
	as_user "$BIN/psql" -X -q -A -t -v ON_ERROR_STOP=1 >/dev/null <<-END || art_die "$1 on $2"
		SELECT count(*) FROM $1 WHERE k IS NULL;
		SELECT cpu() AS cpu, pg_current_wal_insert_lsn() AS lsn \\gset
		$(work_of "$1");
		INSERT INTO result SELECT '$2', '$1', $3, cpu() - :cpu, pg_current_wal_insert_lsn() - :'lsn';
	END
}

for rep in $(seq "$REPS"); do
	for am in btree art; do
		for w in $workloads; do make_table "$w" $am; done
		sql "CHECKPOINT" >/dev/null
		sql "SELECT pg_stat_reset(), pg_stat_reset_shared('bgwriter'), pg_stat_statements_reset()" >/dev/null
		for w in $workloads; do
			run_one "$w" $am "$rep"
		done
		[ $am$rep = btree1 ] || continue
		sql "INSERT INTO advice SELECT indrelid::text, score, wal_bytes FROM artidx_advise() WHERE indrelid::text = ANY (string_to_array('$workloads', ' '))" >/dev/null
		for w in $workloads; do
			sql "CALL artidx_trial('${w}_k', $TRIAL)" >/dev/null || art_die "no trial of $w"
		done
		sql "UPDATE advice SET tried = btree - art FROM artidx_trials WHERE measure = 'verdict' AND index_name = 'public.' || workload || '_k'" >/dev/null
	done
done
[ "$(sql "SELECT count(*) FROM advice")" = 10 ] || art_die "not all indexes have advice"
sql "CREATE VIEW saved AS
	SELECT a.workload, a.score, a.wal, a.tried, (b.ns - r.ns) / 1e6 AS ms, b.ns / 1e6 AS btree_ms, r.ns / 1e6 AS art_ms, b.wal - r.wal AS bytes
	FROM advice a, LATERAL (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY ns) AS ns, percentile_cont(0.5) WITHIN GROUP (ORDER BY wal) AS wal
			FROM result WHERE workload = a.workload AND am = 'btree') b,
		LATERAL (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY ns) AS ns, percentile_cont(0.5) WITHIN GROUP (ORDER BY wal) AS wal
			FROM result WHERE workload = a.workload AND am = 'art') r" >/dev/null
{
	echo "$ROWS rows, $OPS operations, $REPS runs; $(sql "SHOW server_version")"
	as_user "$BIN/psql" -X -q --pset footer=off -c "SELECT workload, round(score::numeric, 1) AS score, round(tried::numeric, 1) AS trial,
		round(ms::numeric, 1) AS saved_ms, round(btree_ms::numeric, 1) AS btree_ms, round(art_ms::numeric, 1) AS art_ms,
		round(wal / 1024) AS expected_wal_kb, round(bytes / 1024) AS saved_wal_kb FROM saved ORDER BY score DESC"
	sql "SELECT 'rank correlation, score and time saved: ' || round(corr(s, m)::numeric, 2) || E'\n' ||
			'rank correlation, trial and time saved: ' || round(corr(t, m)::numeric, 2) || E'\n' ||
			'rank correlation, score and trial: ' || round(corr(s, t)::numeric, 2) || E'\n' ||
			'rank correlation, WAL expected and saved: ' || round(corr(w, b)::numeric, 2)
		FROM (SELECT rank() OVER (ORDER BY score) AS s, rank() OVER (ORDER BY ms) AS m, rank() OVER (ORDER BY tried) AS t,
				rank() OVER (ORDER BY wal) AS w, rank() OVER (ORDER BY round(bytes / 1024)) AS b FROM saved) r"
	# how long it takes: of ten calls in one session
	sql "CREATE EXTENSION pg_walinspect; DO \$\$ BEGIN FOR i IN 1 .. 250 LOOP
			EXECUTE format('CREATE TABLE many_%s (a int, b text, c uuid, d timestamptz)', i);
			EXECUTE format('CREATE INDEX ON many_%s (a); CREATE INDEX ON many_%1\$s (b); CREATE INDEX ON many_%1\$s (c); CREATE INDEX ON many_%1\$s (d, a)', i);
		END LOOP; END \$\$; ANALYZE" >/dev/null
	as_user "$BIN/psql" -X -q -A -t -v ON_ERROR_STOP=1 <<-END
		CREATE TEMP TABLE took (ms float8, cpu float8);
		DO \$\$ DECLARE t timestamptz; c bigint; BEGIN FOR i IN 1 .. 10 LOOP
			t := clock_timestamp(); c := cpu();
			PERFORM count(*) FROM artidx_advise();
			INSERT INTO took VALUES (1000 * extract(epoch FROM clock_timestamp() - t), (cpu() - c) / 1e6);
		END LOOP; END \$\$;
		SELECT 'artidx_advise() of ' || (SELECT count(*) FROM artidx_advise()) || ' indexes, ms: ' || round(min(ms)) || ' at least, ' ||
			round(percentile_cont(0.5) WITHIN GROUP (ORDER BY ms)) || ' median; of processor time ' || round(min(cpu)) || ' at least, ' ||
			round(percentile_cont(0.5) WITHIN GROUP (ORDER BY cpu)) || ' median' FROM took;
	END
} | tee "$RESULTS/advise.txt"
