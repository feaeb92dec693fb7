#!/bin/bash
#
# test/bench/bench.sh
#	  art, nbtree and hash on the same work in one run; "make bench" calls it.
#
# Prints one line a measure with the medians, the ratio of art to nbtree, the
# goal, and whether it was reached (figures.pl, which has the goals); writes every
# single measurement and the machine into bench.tsv in RESULTS.
#
#	ROWS=10000000	rows of the big tables; everything else scales along
#	REPS=5			repetitions, of which the median counts
#	ONLY=a,b		only these: lookup join count build vacuum lookup1 stmt page skip distinct
#					aggregates insert insel clients wal bytes freed dups small restart tail fk
#	AMS="btree hash art empty"	access methods; empty is what PostgreSQL itself spends (test/modules/art_empty). hash is
#					measured once
#	SKIP_BIN=dir	the programs of a PostgreSQL 18, whose btree is measured by skip and distinct, too; default:
#					this machine's, or npm's (test/roots.sh)
#	RESULTS=dir		default: bench-results/<date> in the tree
#	FIGURES=1		the results become those of doc/figures.md
#	MEMORY, BUFFERS	artidx.memory and shared_buffers of the cluster (scale with ROWS)
#	HUGE_PAGES=try	on, off: of both
#
# Look-ups among 100 million keys, for which the machine needs 12 GB of huge pages:
#	ONLY=lookup ROWS=100000000 MEMORY=3GB BUFFERS=8GB HUGE_PAGES=on make bench
#
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

: "${ROWS:=10000000}" "${REPS:=5}" "${ONLY:=all}" "${AMS:=btree hash art empty}"
: "${RESULTS:=$TREE/bench-results/$(date +%Y%m%d-%H%M%S)}"

art_whole_numbers 10000 ROWS
art_whole_numbers 1 REPS
: "${MEMORY:=$((ROWS / 4000 + 512))MB}" "${BUFFERS:=$((ROWS / 2500 + 256))MB}" "${HUGE_PAGES:=try}"
art_results_dir
TSV=$RESULTS/bench.tsv
FIGURES_PL=$TREE/test/bench/figures.pl

SMALL=$((ROWS / 10))			# the 1 M of the goals
LOOKUPS=$((ROWS / 10))
PROBES=$((ROWS / 20))

started=$(date +%s)
art_setup bench
for m in art_bench art_empty; do
	as_user make -s -C test/modules/$m PG_CONFIG="$PG_CONFIG" install \
		>>"$WORK/build.log" 2>&1 ||
		{ tail -30 "$WORK/build.log" >&2; art_die "$m does not build"; }
done

PRELOAD=
case " $AMS " in
	*" art "*) PRELOAD=artidx ;;
esac
CONF=("huge_pages = '$HUGE_PAGES'"
	"shared_buffers = '$BUFFERS'"
	"fsync = off"
	"autovacuum = off"
	"checkpoint_timeout = '1d'"
	"max_wal_size = '200GB'"
	"wal_level = replica"
	"max_parallel_workers_per_gather = 0"
	"max_parallel_maintenance_workers = 0"
	"maintenance_work_mem = '1GB'"
	"work_mem = '256MB'"
	"synchronize_seqscans = off"
	"jit = off"
	"max_locks_per_transaction = 256")
art_cluster bench "shared_preload_libraries = '$PRELOAD'" "artidx.memory = '$MEMORY'" "${CONF[@]}"

sql "CREATE EXTENSION art_bench; CREATE EXTENSION art_empty" >/dev/null || art_die "no art_bench or art_empty"
[ -z "$PRELOAD" ] || sql "CREATE EXTENSION artidx; CREATE EXTENSION artidx_debug" >/dev/null ||
	art_die "no artidx"

art_results "$TSV" "make bench$([ "$ONLY" = all ] || echo " ONLY=$ONLY")" \
	"$ROWS rows, $REPS repetitions" \
	"fsync off, tables cached, autovacuum and parallel query off$([ "$HUGE_PAGES" = try ] || echo ", huge_pages $HUGE_PAGES")"
printf 'measure\tam\trep\tvalue\tunit\n' >>"$TSV"

RELEASE=						# of the server, where its btree is measured beside

wants()
{
	local w

	[ "$ONLY" = all ] && return 0
	for w in "$@"; do
		case ",$ONLY," in
			*",$w,"*) return 0 ;;
		esac
	done
	return 1
}

# ams_but AM...: the access methods that have a measure; "none" is no index
ams_but()
{
	local am

	for am in none $AMS; do
		case " $* " in
			*" $am "*) ;;
			*) echo "$am" ;;
		esac
	done
}

# record MEASURE AM REP VALUE UNIT
record()
{
	set -- "$1" "$2$RELEASE" "${@:3}"
	[ -n "$4" ] || art_die "no value for $1 of $2"
	printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "$5" >>"$TSV"
	printf '#   %-14s %-6s %2s  %14s %s\n' "$1" "$2" "$3" "$4" "$5" >&2
}

# Milliseconds of a statement; SETTINGS go before it, and BEFORE, which is a statement.
timed()
{
	local out

	out=$(as_user env PGOPTIONS="${SETTINGS:-}" "$BIN/psql" -X -q -A -t \
		-v ON_ERROR_STOP=1 -c '\timing on' ${BEFORE:+-c "$BEFORE"} -c "$1" 2>&1) ||
		{ echo "$out" >&2; return 1; }
	echo "$out" | awk '/^Time: /{t = $2} END {print t}'
}

calc()
{
	awk "BEGIN { printf(\"%.${2:-1}f\", ($1)) }"
}

index_size()
{
	if [ "$1" = art ]; then
		sql "SELECT artidx_index_size('$2')"
	else
		sql "SELECT pg_relation_size('$2')"
	fi
}

lsn_diff()
{
	sql "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '$1')::bigint"
}

# The columns, by name: seq (bigint in order), rnd (bigint), uuid, text (25
# bytes).  Tables are made once and keep no index.
column_type()
{
	case $1 in
		seq | rnd) echo "bigint" ;;
		uuid) echo "uuid" ;;
		text) echo 'text COLLATE "C"' ;;
	esac
}

column_value()
{
	case $1 in
		seq) echo "i" ;;
		rnd) echo "hashint8extended(i, 42)" ;;
		uuid) echo "gen_random_uuid()" ;;
		text) echo "substr(md5(i::text), 1, 25)" ;;
	esac
}

# need_table NAME COLUMN ROWS
need_table()
{
	[ "$(sql "SELECT to_regclass('$1') IS NOT NULL")" = t ] && return 0
	sql "CREATE TABLE $1 (k $(column_type "$2"));
		INSERT INTO $1 SELECT $(column_value "$2")
			FROM generate_series(1, $3::bigint) i" >/dev/null &&
		sql "VACUUM (FREEZE, ANALYZE) $1" >/dev/null || art_die "table $1"
	sql "CHECKPOINT" >/dev/null
}

# ---- what needs an index on the big tables ----------------------------------
# told INDEX EACH QUERY: SQL after which scans of an empty index find what the query says (f tid, k
# bigint, o their order), EACH at a time
told()
{
	echo "DO \$told\$ BEGIN PERFORM empty_answers('$1', array_agg(f ORDER BY o), array_agg(k ORDER BY o), $2) FROM ($3) s; END \$told\$"
}

# group_big TABLE COLUMN: the access methods in turn, for a machine's speed may change on the way
group_big()
{
	local am rep ms lo hi t=$1 col=$2

	need_table "$t" "$col" "$ROWS"
	if wants count; then			# big_queries wants them
		lo=$(sql "SELECT k FROM $t ORDER BY k OFFSET $((ROWS / 3)) LIMIT 1")
		hi=$(sql "SELECT k FROM $t ORDER BY k OFFSET $((ROWS / 3 + SMALL)) LIMIT 1")
	fi
	if [ "$col" = rnd ] && wants join; then
		sql "CREATE TABLE probe AS SELECT k FROM $t
			ORDER BY hashint8extended(k, 7) LIMIT $PROBES" >/dev/null
		sql "VACUUM (FREEZE, ANALYZE) probe" >/dev/null
	fi
	for ((rep = 1; rep <= REPS; rep++)); do
		for am in $(ams_but none); do
			# hash only where the table of goals has it
			if [ "$am" = hash ] && { [ "$col" != rnd ] || ! wants lookup join || [ "$rep" -gt 1 ]; } then
				continue
			fi
			[ "$am" != empty ] || wants build vacuum join count || continue
			ms=$(timed "CREATE INDEX ${t}_i ON $t USING $am (k)") ||
				art_die "CREATE INDEX"
			wants build && record "build_$col" "$am" "$rep" \
				"$(calc "$ms / 1000" 3)" s
			if wants build && [ "$am" != hash ] && [ "$am" != empty ]; then
				sql "DROP INDEX ${t}_i" >/dev/null
				ms=$(SETTINGS="-c max_parallel_maintenance_workers=2" \
					timed "CREATE INDEX ${t}_i ON $t USING $am (k)") ||
					art_die "CREATE INDEX by several"
				record "build2_$col" "$am" "$rep" "$(calc "$ms / 1000" 3)" s
			fi
			big_queries "$t" "$col" "$am" "$rep"
			if [ "$col" = rnd ] && [ "$am" != hash ] && wants vacuum; then
				big_vacuum "$t" "$am" "$rep"
			fi
			sql "DROP INDEX ${t}_i" >/dev/null
		done
	done
}

# join_of MEASURE TABLE AM REP SETTINGS: each row of probe finds its own in the table.
join_of()
{
	local q="SELECT count(*) FROM probe p JOIN $2 r ON r.k = p.k" many=0 ms

	SETTINGS=$5
	case $1 in *_many) many=1 ;; esac
	as_user env PGOPTIONS="$SETTINGS" "$BIN/psql" -X -q -c "EXPLAIN $q" |
		grep -c 'Batched Nested Loop' | grep -qx "$many" || art_die "$1 has another plan"
	ms=$(timed "$q") || art_die "join"
	record "$1" "$3" "$4" "$(calc "$ms * 1e6 / $PROBES")" ns
}

big_queries()
{
	local t=$1 col=$2 am=$3 rep=$4 ms n i BEFORE=

	if [ "$col" = rnd ] && [ "$am" != empty ] && wants lookup; then
		record lookup "$am" "$rep" "$(sql "SELECT round(bench_lookup(
			'${t}_i', $LOOKUPS, $rep)::numeric, 1)")" ns
	fi
	if [ "$col" = rnd ] && wants join; then
		local nl="-c enable_hashjoin=off -c enable_mergejoin=off
			-c enable_memoize=off -c enable_bitmapscan=off
			-c enable_seqscan=on -c enable_material=off"
		local one="-c artidx.batched_joins=off"
		[ "$am" != empty ] || BEFORE="SET enable_hashjoin = on; $(told "${t}_i" 1 \
			"SELECT r.ctid AS f, r.k, p.ctid AS o FROM probe p JOIN $t r ON r.k = p.k"); SET enable_hashjoin = off"
		join_of join_heap "$t" "$am" "$rep" "$nl $one -c enable_indexonlyscan=off"
		if [ "$am" != hash ]; then
			join_of join_ios "$t" "$am" "$rep" "$nl $one"
		fi
		if [ "$am" = art ]; then
			join_of join_heap_many "$t" "$am" "$rep" "$nl -c enable_indexonlyscan=off"
			join_of join_ios_many "$t" "$am" "$rep" "$nl"
		fi
		SETTINGS= BEFORE=
	fi
	if { [ "$col" = rnd ] || [ "$col" = seq ]; } && [ "$am" != hash ] &&
		wants count; then
		[ "$am" != empty ] || BEFORE="SET enable_seqscan = on; $(told "${t}_i" "$SMALL" \
			"SELECT ctid AS f, k, k AS o FROM $t WHERE k >= $lo AND k < $hi"); SET enable_seqscan = off"
		SETTINGS="-c enable_seqscan=off -c enable_bitmapscan=off"
		n=$(SETTINGS='' sql "SELECT count(*) FROM $t WHERE k >= $lo AND k < $hi")
		[ "$n" = "$SMALL" ] || art_die "count is $n, not $SMALL"
		for i in 0 1; do
			ms=$(timed "SELECT count(*) FROM $t WHERE k >= $lo AND k < $hi") ||
				art_die "count"
			[ "$i" -eq 0 ] ||
				record "count_$col" "$am" "$rep" "$(calc "$ms * 1e6 / $SMALL")" ns
		done
		SETTINGS= BEFORE=
	fi
}

big_vacuum()
{
	local t=$1 am=$2 rep=$3 lsn ms

	sql "CHECKPOINT" >/dev/null
	lsn=$(sql "SELECT pg_current_wal_insert_lsn()")
	ms=$(sql "SELECT round(ms::numeric, 1) FROM bench_vacuum('${t}_i', 10, $rep)")
	record vacuum "$am" "$rep" "$(calc "$ms / 1000" 3)" s
	[ "$am" = empty ] || record vacuum_wal "$am" "$rep" "$(calc "$(lsn_diff "$lsn") / 1e6" 1)" MB
}

# ---- look-ups and statements in a tenth ---------------------------------------
# loop_of MEASURE AM REP ROUNDS KEYS AFTER SETTINGS STATEMENT: a PL/pgSQL loop around a
# statement that sets r from lo and hi, the first and the last of so many KEYS, of which the first one
# found is so many AFTER lo; nanoseconds a round, and a key of it
loop_of()
{
	local ns told=

	[ "$2" != empty ] || told="$(told s_rnd_i "$5" "SELECT r.f, r.k, (b.i, r.n) AS o FROM bounds b JOIN ranked r
		ON $([ "$5" = "$SMALL" ] && echo true || echo "r.n BETWEEN b.n + $6 AND b.n + $6 + $5 - 1") WHERE b.i <= $4");"
	ns=$(PGOPTIONS="-c enable_seqscan=off -c enable_bitmapscan=off -c plan_cache_mode=force_generic_plan $7" sql "
		$told
		CREATE OR REPLACE FUNCTION loop_of() RETURNS numeric LANGUAGE plpgsql AS \$\$
		DECLARE los bigint[]; his bigint[]; m int; lo bigint; hi bigint; r bigint; t timestamptz; took numeric;
		BEGIN
			SELECT array_agg(k ORDER BY i), array_agg(CASE $5 WHEN 100 THEN hi100 ELSE hi1000 END ORDER BY i), count(*)
				INTO los, his, m FROM bounds;
			t := clock_timestamp();
			FOR i IN 0..$4 - 1 LOOP
				lo := los[i % m + 1]; hi := his[i % m + 1];
				$8;
			END LOOP;
			took := extract(epoch FROM clock_timestamp() - t);
			m := pg_stat_get_xact_numscans('s_rnd_i'::regclass);
			IF m <> $4 THEN RAISE '% scans of the index, not $4', m; END IF;
			IF $5 <> 1 AND r <> $5 THEN RAISE '% keys, not $5', r; END IF;
			RETURN round(took * 1e9 / $4 / $5, 1);
		END \$\$;
		SELECT loop_of()") || art_die "$1"
	record "$1" "$2" "$3" "$ns" ns
}

statements()
{
	local am=$1 rep=$2 n=$((SMALL / 10)) count="SELECT count(*) INTO r FROM s_rnd"

	[ "$am" = empty ] ||
		record begin "$am" "$rep" "$(sql "SELECT round(bench_begin('s_rnd_i', $((SMALL + 50000)))::numeric, 1)")" ns
	loop_of point "$am" "$rep" "$n" 1 0 "-c enable_indexonlyscan=off" "SELECT k INTO STRICT r FROM s_rnd WHERE k = lo"
	loop_of next "$am" "$rep" "$n" 1 1 "-c enable_indexonlyscan=off" \
		"SELECT k INTO STRICT r FROM s_rnd WHERE k > lo ORDER BY k LIMIT 1"
	loop_of plan "$am" "$rep" "$n" 1 0 "" "EXECUTE 'SELECT k FROM s_rnd WHERE k = ' || lo INTO STRICT r"
	loop_of count_100 "$am" "$rep" $((n / 10)) 100 0 "" "$count WHERE k BETWEEN lo AND hi"
	loop_of count_all "$am" "$rep" 1 "$SMALL" 0 "" "$count"
	loop_of range "$am" "$rep" $((n / 100)) 1000 0 "-c enable_indexonlyscan=off" "$count WHERE k BETWEEN lo AND hi"
}

group_tenth()
{
	local am rep

	need_table s_rnd rnd "$SMALL"
	if wants stmt; then
		sql "CREATE TABLE ranked AS SELECT k, ctid AS f, row_number() OVER (ORDER BY k) AS n FROM s_rnd;
			CREATE TABLE bounds AS SELECT *, row_number() OVER (ORDER BY hashint8extended(k, 3)) AS i
				FROM (SELECT k, n, lead(k, 99) OVER w AS hi100, lead(k, 999) OVER w AS hi1000 FROM ranked WINDOW w AS (ORDER BY k)) s
				WHERE hi1000 IS NOT NULL ORDER BY i LIMIT 10000;
			CREATE INDEX ON ranked (n); ANALYZE ranked, bounds" >/dev/null || art_die "no keys"
	fi
	for ((rep = 1; rep <= REPS; rep++)); do
		for am in $(ams_but none); do
			[ "$am" != hash ] || { wants lookup1 && [ "$rep" = 1 ]; } || continue
			[ "$am" != empty ] || wants stmt || continue
			sql "CREATE INDEX s_rnd_i ON s_rnd USING $am (k)" >/dev/null
			[ "$am" = empty ] || ! wants lookup1 || record lookup1 "$am" "$rep" "$(sql "SELECT round(bench_lookup(
				's_rnd_i', $LOOKUPS, $rep)::numeric, 1)")" ns
			[ "$am" = hash ] || ! wants stmt || statements "$am" "$rep"
			sql "DROP INDEX s_rnd_i" >/dev/null
		done
	done
	sql "DROP TABLE IF EXISTS bounds, ranked" >/dev/null 2>&1
}

# ---- pages by key: a comparison of rows --------------------------------------------
# group_page: nanoseconds a statement, in a PL/pgSQL loop with a cached plan
group_page()
{
	local am rep

	sql "CREATE TABLE paged AS SELECT (i % 100)::int AS a, i AS b FROM generate_series(1, $SMALL::bigint) i" >/dev/null
	sql "VACUUM (FREEZE, ANALYZE) paged" >/dev/null
	for ((rep = 1; rep <= REPS; rep++)); do
		for am in $(ams_but none hash empty); do
			sql "CREATE INDEX paged_i ON paged USING $am (a, b)" >/dev/null
			record page "$am" "$rep" "$(PGOPTIONS="-c enable_seqscan=off -c plan_cache_mode=force_generic_plan" sql "
				CREATE OR REPLACE FUNCTION pages() RETURNS numeric LANGUAGE plpgsql AS \$\$
				DECLARE r bigint; t timestamptz := clock_timestamp(); took numeric; n int := $((SMALL / 50));
				BEGIN
					FOR i IN 1..n LOOP
						SELECT count(*) INTO r FROM (SELECT a, b FROM paged
							WHERE (a, b) > (i % 99, $SMALL - $SMALL / 10) ORDER BY a, b LIMIT 20) s;
						IF r <> 20 THEN RAISE '% rows, not 20', r; END IF;
					END LOOP;
					took := extract(epoch FROM clock_timestamp() - t);
					IF pg_stat_get_xact_numscans('paged_i'::regclass) <> n THEN RAISE 'not by the index'; END IF;
					RETURN round(took * 1e9 / n, 1);
				END \$\$;
				SELECT pages()")" ns
			sql "DROP INDEX paged_i" >/dev/null
		done
	done
	sql "DROP TABLE paged" >/dev/null
}

# ---- aggregates of an index's columns ----------------------------------------------
# group_aggregates: milliseconds a statement of a table that is visible to all, whose
# entries lie far apart in it
group_aggregates()
{
	local am rep m ms
	local -A statements=(
		[agg_count]="SELECT count(*) FROM agg WHERE a BETWEEN 10 AND 60"
		[agg_sum]="SELECT count(*), sum(b), avg(a), max(b) FROM agg WHERE a BETWEEN 10 AND 60"
		[agg_group]="SELECT a, count(*), min(b), max(b) FROM agg GROUP BY a")

	sql "CREATE TABLE agg AS SELECT (hashint8extended(i, 7) & 1023)::int % 100 AS a, i AS b FROM generate_series(1, $SMALL::bigint) i" >/dev/null
	sql "VACUUM (FREEZE, ANALYZE) agg" >/dev/null
	for ((rep = 1; rep <= REPS; rep++)); do
		for am in $(ams_but none hash empty); do
			sql "CREATE INDEX agg_i ON agg USING $am (a, b)" >/dev/null
			for m in agg_count agg_sum agg_group; do
				ms=$(SETTINGS="-c enable_seqscan=off -c enable_bitmapscan=off" BEFORE=${statements[$m]} timed "${statements[$m]}") ||
					art_die "$m"
				record "$m" "$am" "$rep" "$ms" ms
			done
			sql "DROP INDEX agg_i" >/dev/null
		done
	done
	sql "DROP TABLE agg" >/dev/null
}

# ---- one row of each group ----------------------------------------------------------
# group_distinct: milliseconds of statements over 100 groups of a tenth of the rows, by the best plan
# that is there
group_distinct()
{
	local am rep i ms query
	local names=(distinct distinct_last distinct_minmax distinct_count distinct_all distinct_match)
	local queries=("SELECT DISTINCT a FROM grouped"
		"SELECT DISTINCT ON (a) a, b, c FROM grouped ORDER BY a, b DESC"
		"SELECT a, min(b), max(b) FROM grouped GROUP BY a"
		"SELECT a, count(DISTINCT b) FROM grouped WHERE a < 10 GROUP BY a"
		"SELECT count(DISTINCT a) FROM grouped"
		"SELECT n FROM generate_series(1, 10000) n WHERE n IN (SELECT a FROM grouped)")

	sql "CREATE TABLE grouped AS SELECT (i % 100)::int AS a, i / 1000 AS b, i AS c FROM generate_series(1, $SMALL::bigint) i" >/dev/null
	sql "CREATE STATISTICS grouped_ab (ndistinct) ON a, b FROM grouped" >/dev/null
	for ((rep = 1; rep <= REPS; rep++)); do
		for am in $(ams_but none hash empty); do
			sql "CREATE INDEX grouped_i ON grouped USING $am (a, b)" >/dev/null
			sql "VACUUM (FREEZE, ANALYZE) grouped" >/dev/null
			for i in "${!names[@]}"; do
				query="SELECT max(s::text) FROM (${queries[i]}) s"
				# a session's first statement reads the catalogs, which takes longer than a loose scan
				ms=$(BEFORE=$query timed "$query") || art_die "${names[i]}"
				record "${names[i]}" "$am" "$rep" "$ms" ms
			done
			sql "DROP INDEX grouped_i" >/dev/null
		done
	done
	sql "DROP TABLE grouped" >/dev/null
}

# ---- conditions on a later column ------------------------------------------------
# group_skip: nanoseconds a statement, in a PL/pgSQL loop with a cached plan
group_skip()
{
	local am rep kind cond

	sql "CREATE TABLE skipped AS SELECT (i % 100)::int AS a, i AS b FROM generate_series(1, $SMALL::bigint) i" >/dev/null
	sql "VACUUM (FREEZE, ANALYZE) skipped" >/dev/null
	for ((rep = 1; rep <= REPS; rep++)); do
		for am in $(ams_but none hash empty); do
			sql "CREATE INDEX skipped_i ON skipped USING $am (a, b)" >/dev/null
			for kind in skip skip_range; do
				[ "$kind" = skip ] && cond="b = n" || cond="a > 80 AND b BETWEEN n AND n + 99"
				record "$kind" "$am" "$rep" "$(PGOPTIONS="-c enable_seqscan=off -c plan_cache_mode=force_generic_plan" sql "
					CREATE OR REPLACE FUNCTION skips() RETURNS numeric LANGUAGE plpgsql AS \$\$
					DECLARE r bigint; n bigint; t timestamptz := clock_timestamp(); loops int := 30; took numeric;
					BEGIN
						FOR i IN 1..loops LOOP
							n := i * ($SMALL / 32) / 100 * 100;
							SELECT count(*) INTO r FROM skipped WHERE $cond;
							IF r NOT IN (1, 19) THEN RAISE '% rows', r; END IF;
						END LOOP;
						took := extract(epoch FROM clock_timestamp() - t);
						IF pg_stat_get_xact_numscans('skipped_i'::regclass) < loops THEN RAISE 'not by the index'; END IF;
						RETURN round(took * 1e9 / loops, 1);
					END \$\$;
					SELECT skips()")" ns
			done
			sql "DROP INDEX skipped_i" >/dev/null
		done
	done
	sql "DROP TABLE skipped" >/dev/null
}

# ---- index_insert alone --------------------------------------------------------
group_insert()
{
	local am rep col kind

	for col in seq rnd uuid; do
		need_table "s_$col" "$col" "$SMALL"
		kind=random
		[ "$col" = seq ] && kind=seq
		for am in $(ams_but none); do
			for ((rep = 1; rep <= REPS; rep++)); do
				sql "CREATE INDEX s_i ON s_$col USING $am (k)" >/dev/null
				record "insert_$col" "$am" "$rep" "$(sql "SELECT
					round(bench_insert('s_i', $SMALL, '$kind', 1000 + $rep)::numeric,
					1)")" ns
				sql "DROP INDEX s_i" >/dev/null
			done
		done
	done
}

# ---- index_insert of one sequence by several backends ----------------------------
# tail_backends MEASURE AM REP INDEX BASE N BACKENDS CACHE: nanoseconds of a
# backend, an entry; MEASURE.max: of the slowest backend, an entry of its own
tail_backends()
{
	local counter i out pids=() rc=0

	counter=$(sql "SELECT bench_tail_open($5, $6)")
	for ((i = 0; i < $7; i++)); do
		sql "SELECT entries, ms FROM bench_tail('$4', $counter, $7, $8)" \
			>"$WORK/tail.$i" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || rc=1
	done
	[ $rc -eq 0 ] || art_die "inserts by $7 backends"
	sql "SELECT bench_tail_close($counter)" >/dev/null
	# "entries|ms" of each
	out=$(awk -F'|' -v n="$6" -v backends="$7" '
		{ done += $1; ms += $2; share = $1 / n; if (NR == 1 || share < least) least = share }
		END { if (done != n || NR != backends) exit 1
			printf "%.1f %.3f", ms * 1e6 / n, least * backends }' "$WORK"/tail.*) ||
		art_die "not all of $6 entries were inserted"
	rm -f "$WORK"/tail.*
	record "$1" "$2" "$3" "${out% *}" ns
	record "$1.least" "$2" "$3" "${out#* }" share
}

group_tail()
{
	local am rep base c

	need_table s_seq seq "$SMALL"
	base=$((SMALL + 1))
	for ((rep = 1; rep <= REPS; rep++)); do
		for am in $(ams_but hash empty); do
			for c in 1 32; do
				if [ "$am" = none ]; then
					tail_backends "tail2_$c" none "$rep" - "$base" "$SMALL" 2 $c
					continue
				fi
				sql "CREATE INDEX s_i ON s_seq USING $am (k)" >/dev/null
				tail_backends "tail2_$c" "$am" "$rep" s_i "$base" "$SMALL" 2 $c
				if [ "$am" = art ]; then
					[ "$(sql "SELECT entries FROM artidx_indexes WHERE indexrelname = 's_i'")" = \
						$((2 * SMALL)) ] || art_die "entries are missing"
					echo "# $(sql "SELECT 'tail_mode ' || tail_mode || ', buffered ' || tail_inserts || ', beside ' || tail_bypassed
						FROM artidx_contention_details WHERE indexrelname = 's_i'")" >&2
				fi
				sql "DROP INDEX s_i" >/dev/null
			done
			if [ "$am" = art ]; then
				sql "CREATE INDEX s_i ON s_seq USING art (k) WITH (tail_buffer = off)" >/dev/null
				tail_backends tail2_off art "$rep" s_i "$base" "$SMALL" 2 1
				sql "DROP INDEX s_i" >/dev/null
			fi
		done
	done
}

# ---- INSERT ... SELECT -----------------------------------------------------------
# make_dst AM COLUMN...: an empty dst with an index on each
make_dst()
{
	local c

	sql "CREATE TABLE dst (a bigint, b bigint, c bigint, d bigint)" >/dev/null
	for c in "${@:2}"; do
		[ "$1" = none ] || sql "CREATE INDEX ON dst USING $1 ($c)" >/dev/null || art_die "no index"
	done
}

group_insel()
{
	local am rep ms n=$((ROWS / 2)) c

	sql "CREATE TABLE src (a bigint, b bigint, c bigint, d bigint);
		INSERT INTO src SELECT hashint8extended(i, 1), hashint8extended(i, 2),
			hashint8extended(i, 3), hashint8extended(i, 4)
			FROM generate_series(1, $n::bigint) i" >/dev/null
	sql "VACUUM (FREEZE, ANALYZE) src" >/dev/null
	for ((rep = 1; rep <= REPS; rep++)); do
		for am in $(ams_but); do
			for c in 1 4; do
				[ "$am" = hash ] && [ $c = 4 ] && continue
				[ "$am" = none ] && [ $c = 4 ] && continue
				# shellcheck disable=SC2046
				make_dst "$am" a $([ $c = 1 ] || echo b c d)
				ms=$(timed "INSERT INTO dst SELECT * FROM src") ||
					art_die "INSERT ... SELECT"
				record "insel_$c" "$am" "$rep" "$(calc "$ms * 1e6 / $n")" ns
				sql "DROP TABLE dst" >/dev/null
				sql "CHECKPOINT" >/dev/null
			done
		done
	done
	sql "DROP TABLE src" >/dev/null
}

# ---- the same by 16 clients ------------------------------------------------------
# clients_of AM REP ROWS STATEMENTS: of each client, so many rows a statement
clients_of()
{
	local lsn out n=$((16 * $4 * $3))

	as_user tee "$WORK/tmp/insert.sql" >/dev/null <<-END
		\\set i random(1, 1000000000000000000)
		INSERT INTO dst SELECT hashint8extended(:i::bigint + g, 1), hashint8extended(:i::bigint + g, 2), hashint8extended(:i::bigint + g, 3), hashint8extended(:i::bigint + g, 4) FROM generate_series(1::bigint, $3) g;
	END
	sql "CHECKPOINT" >/dev/null
	lsn=$(sql "SELECT pg_current_wal_insert_lsn()")
	as_user "$BIN/pgbench" -n -M prepared -c 16 -j 2 -t "$4" -l --log-prefix="$WORK/tmp/log" \
		-f "$WORK/tmp/insert.sql" >"$WORK/pgbench.out" 2>&1 || { cat "$WORK/pgbench.out" >&2; art_die "pgbench"; }
	# statements a second, and percentiles
	read -ra out < <(cat "$WORK"/tmp/log.* | perl "$TREE/test/bench/contention.pl" cell)
	rm -f "$WORK"/tmp/log.*
	record "clients_$3" "$1" "$2" "$(calc "1e9 / ${out[0]} / $3")" ns
	record "clients_$3.p99" "$1" "$2" "${out[2]}" us
	record "clients_$3.wal" "$1" "$2" "$(calc "$(lsn_diff "$lsn") / $n")" bytes
}

group_clients()
{
	local am rep

	for ((rep = 1; rep <= REPS; rep++)); do
		for am in $(ams_but hash); do
			make_dst "$am" a b c d
			sql "INSERT INTO dst SELECT hashint8extended(i, 1), hashint8extended(i, 2), hashint8extended(i, 3),
				hashint8extended(i, 4) FROM generate_series(1, $SMALL::bigint) i" >/dev/null
			clients_of "$am" "$rep" 100 $((ROWS / 16000 + 1))
			clients_of "$am" "$rep" 1 $((ROWS / 800 + 1))
			# what was measured is an index
			[ "$am" != art ] || sql "SELECT artidx_check(indexrelid, true) FROM pg_index
				WHERE indrelid = 'dst'::regclass" >/dev/null || art_die "an index of dst is not what it should be"
			sql "DROP TABLE dst" >/dev/null
		done
	done
}

# ---- WAL a row after a checkpoint -------------------------------------------------
group_wal()
{
	local am rep lsn

	need_table w_rnd rnd "$ROWS"
	for am in $(ams_but empty); do
		[ "$am" = none ] ||
			sql "CREATE INDEX w_i ON w_rnd USING $am (k)" >/dev/null
		for ((rep = 1; rep <= REPS; rep++)); do
			sql "CHECKPOINT" >/dev/null
			lsn=$(sql "SELECT pg_current_wal_insert_lsn()")
			sql "INSERT INTO w_rnd SELECT hashint8extended(i, 5000 + $rep)
				FROM generate_series(1, 10000::bigint) i" >/dev/null
			record wal "$am" "$rep" "$(calc "$(lsn_diff "$lsn") / 10000" 1)" bytes
		done
		[ "$am" = none ] || sql "DROP INDEX w_i" >/dev/null
	done
	sql "DROP TABLE w_rnd" >/dev/null
}

# ---- bytes a key after inserts -------------------------------------------------------
group_bytes()
{
	local am col

	for col in seq rnd uuid text; do
		need_table "b_$col" "$col" "$ROWS"
		for am in $(ams_but none hash empty); do
			sql "CREATE TABLE dst (LIKE b_$col);
				CREATE INDEX dst_i ON dst USING $am (k)" >/dev/null
			sql "INSERT INTO dst SELECT k FROM b_$col" >/dev/null ||
				art_die "INSERT"
			record "bytes_$col" "$am" 1 \
				"$(calc "$(index_size "$am" dst_i) / $ROWS" 2)" bytes
			sql "DROP TABLE dst" >/dev/null
			sql "CHECKPOINT" >/dev/null
		done
	done
}

# record_freed MEASURE AM: bytes a key of what dst's index holds, and of one made anew.
record_freed()
{
	local n=

	n=$(sql "SELECT count(*) FROM dst")
	record "freed_$1" "$2" 1 "$(calc "$(index_size "$2" dst_i) / $n" 2)" bytes
	sql "CREATE INDEX dst_f ON dst USING $2 (k)" >/dev/null
	record "fresh_$1" "$2" 1 "$(calc "$(index_size "$2" dst_f) / $n" 2)" bytes
	sql "DROP INDEX dst_f" >/dev/null
}

# After nine keys of ten were deleted at random, and after as many were deleted and
# inserted as there are, a tenth at a time; each by VACUUM.
group_freed()
{
	local am i

	for am in $(ams_but none hash empty); do
		sql "CREATE TABLE dst (k uuid, r int);
			INSERT INTO dst SELECT gen_random_uuid(), random() * 1000
				FROM generate_series(1, $ROWS::bigint);
			CREATE INDEX dst_i ON dst USING $am (k)" >/dev/null
		for i in 0 1 2 3 4 5 6 7 8 9; do
			sql "DELETE FROM dst WHERE r % 10 = $i" >/dev/null
			sql "VACUUM dst" >/dev/null
			sql "INSERT INTO dst SELECT gen_random_uuid(), 1000 + $i
					FROM generate_series(1, $ROWS::bigint - (SELECT count(*) FROM dst))" >/dev/null
		done
		sql "VACUUM dst" >/dev/null
		record_freed equal "$am"
		sql "DELETE FROM dst WHERE uuid_hash(k) % 10 <> 0" >/dev/null
		sql "VACUUM dst" >/dev/null
		record_freed most "$am"
		sql "DROP TABLE dst" >/dev/null
		sql "CHECKPOINT" >/dev/null
	done
}

group_dups()
{
	local am

	sql "CREATE TABLE dups (k bigint);
		INSERT INTO dups SELECT (hashint8extended(i, 9) & 2147483647) % 1000
			FROM generate_series(1, $ROWS::bigint) i" >/dev/null
	for am in $(ams_but none hash empty); do
		sql "CREATE INDEX dups_i ON dups USING $am (k)" >/dev/null
		record dups_build "$am" 1 \
			"$(calc "$(index_size "$am" dups_i) / $ROWS" 2)" bytes
		sql "DROP INDEX dups_i" >/dev/null
		sql "CREATE TABLE dst (LIKE dups);
			CREATE INDEX dst_i ON dst USING $am (k)" >/dev/null
		sql "INSERT INTO dst SELECT k FROM dups" >/dev/null
		record dups_insert "$am" 1 \
			"$(calc "$(index_size "$am" dst_i) / $ROWS" 2)" bytes
		sql "DROP TABLE dst" >/dev/null
	done
	sql "DROP TABLE dups" >/dev/null
}

# ---- rows that reference others --------------------------------------------------------------
# No child, and no row of the parent is locked.
fk_fresh()
{
	sql "TRUNCATE fk_c" >/dev/null
	sql "VACUUM (FREEZE) s_rnd" >/dev/null
	sql "CHECKPOINT" >/dev/null
}

group_fk()
{
	local am rep ms file=$WORK/tmp/fk.copy

	need_table s_rnd rnd "$SMALL"
	sql "CREATE TABLE fk_src AS SELECT k FROM s_rnd ORDER BY hashint8extended(k, 11);
		COPY fk_src TO '$file'" >/dev/null || art_die "rows that reference"
	for am in $(ams_but none hash empty); do
		# before 18 a foreign key references keys of btree only
		[ "$am" = art ] && [ "$(sql "SHOW server_version_num")" -lt 180000 ] && continue
		sql "CREATE UNIQUE INDEX s_rnd_i ON s_rnd USING $am (k);
			CREATE TABLE fk_c (k bigint REFERENCES s_rnd (k))" >/dev/null || art_die "a foreign key"
		# core plans its query a few times before it keeps the plan
		for ((rep = 0; rep <= REPS; rep++)); do
			fk_fresh
			ms=$(timed "INSERT INTO fk_c SELECT k FROM fk_src") || art_die "INSERT"
			[ "$rep" -eq 0 ] || record fk_insert "$am" "$rep" "$(calc "$ms * 1e6 / $SMALL")" ns
			fk_fresh
			ms=$(timed "COPY fk_c FROM '$file'") || art_die "COPY"
			[ "$rep" -eq 0 ] || record fk_copy "$am" "$rep" "$(calc "$ms * 1e6 / $SMALL")" ns
		done
		sql "DROP TABLE fk_c; DROP INDEX s_rnd_i" >/dev/null
	done
	sql "DROP TABLE fk_src" >/dev/null
	rm -f "$file"
}

# ---- a thousand tiny indexes ------------------------------------------------------------
group_small()
{
	local am before after

	sql "CREATE TABLE tiny (k bigint);
		INSERT INTO tiny SELECT i FROM generate_series(1, 10) i" >/dev/null
	for am in $(ams_but none hash empty); do
		[ "$am" = art ] && before=$(sql "SELECT used_bytes FROM artidx_memory")
		sql "DO \$\$ BEGIN FOR i IN 1..1000 LOOP
				EXECUTE format('CREATE INDEX tiny_%s ON tiny USING $am (k)', i);
			END LOOP; END \$\$" >/dev/null || art_die "1,000 indexes"
		if [ "$am" = art ]; then
			after=$(sql "SELECT used_bytes FROM artidx_memory")
			record small art 1 "$(calc "($after - $before) / 1000 / 1024" 1)" KB
		else
			record small "$am" 1 "$(calc "$(sql "SELECT
				sum(pg_relation_size(indexrelid)) FROM pg_index
				WHERE indrelid = 'tiny'::regclass") / 1000 / 1024" 1)" KB
		fi
		sql "DROP TABLE tiny;
			CREATE TABLE tiny (k bigint);
			INSERT INTO tiny SELECT i FROM generate_series(1, 10) i" >/dev/null
	done
	sql "DROP TABLE tiny" >/dev/null
}

# ---- restart: load, rebuild, first answer ------------------------------------------------
now()
{
	date +%s.%N
}

bench_start()
{
	as_user "$BIN/pg_ctl" -D "$DATA" -l "$DATA.log" -w -t 120 start >/dev/null ||
		{ tail -30 "$DATA.log" >&2; art_die "the cluster did not start"; }
}

# set_and_reload SETTING VALUE
set_and_reload()
{
	sql "ALTER SYSTEM SET $1 = '$2'" >/dev/null
	sql "SELECT pg_reload_conf()" >/dev/null
	until [ "$(sql "SELECT current_setting('$1')")" = "$2" ]; do sleep 0.1; done
}

# Seconds that the last build of the index took, when there is one from SOURCE.
build_seconds()
{
	local i

	for ((i = 0; i < 3000; i++)); do
		if [ "$(sql "SELECT state FROM artidx_indexes
			WHERE indexrelname = '$1'")" = ready ]; then
			sql "SELECT round((last_build_ms / 1000)::numeric, 3)
				FROM artidx_indexes WHERE indexrelname = '$1'
				AND last_build_source = '$2'"
			return
		fi
		sleep 0.1
	done
}

group_restart()
{
	local am rep workers begin k

	need_table b_rnd rnd "$ROWS"
	k=$(sql "SELECT k FROM b_rnd OFFSET $((ROWS / 2)) LIMIT 1")
	sql "CREATE TABLE b_thousand AS SELECT i AS k FROM generate_series(1, 1000) i" >/dev/null
	for am in $(ams_but none hash empty); do
		sql "CREATE INDEX b_rnd_i ON b_rnd USING $am (k)" >/dev/null
		sql "CREATE UNIQUE INDEX b_thousand_i ON b_thousand USING $am (k)" >/dev/null
		for ((rep = 1; rep <= REPS; rep++)); do
			sql "CHECKPOINT" >/dev/null
			art_cluster_stop immediate
			begin=$(now)
			bench_start
			[ "$(sql "SELECT count(*) FROM b_thousand WHERE k = 500")" = 1 ] ||
				art_die "wrong answer after a crash"
			record first_answer "$am" "$rep" "$(calc "$(now) - $begin" 3)" s
			[ "$(sql "SELECT count(*) FROM b_rnd WHERE k = $k")" = 1 ] ||
				art_die "wrong answer after a crash"
			record first_big "$am" "$rep" "$(calc "$(now) - $begin" 3)" s
		done
		if [ "$am" = art ]; then
			for workers in 1 2; do
				set_and_reload artidx.build_workers "$workers"
				for ((rep = 1; rep <= REPS; rep++)); do
					art_cluster_stop immediate
					bench_start
					record "rebuild_$workers" art "$rep" \
						"$(build_seconds b_rnd_i rebuild)" s
				done
			done
			for ((rep = 1; rep <= REPS; rep++)); do
				set_and_reload artidx.save_at_shutdown on
				begin=$(now)
				art_cluster_stop fast
				record stop art "$rep" "$(calc "$(now) - $begin" 3)" s
				bench_start
				record load art "$rep" "$(build_seconds b_rnd_i load)" s
				set_and_reload artidx.save_at_shutdown off
				begin=$(now)
				art_cluster_stop fast
				record stop none "$rep" "$(calc "$(now) - $begin" 3)" s
				bench_start
				[ -n "$(build_seconds b_rnd_i rebuild)" ] || art_die "rebuild"
			done
			set_and_reload artidx.save_at_shutdown on
		fi
		sql "DROP INDEX b_rnd_i, b_thousand_i" >/dev/null
	done
	sql "DROP TABLE b_thousand" >/dev/null
}

# ---- btree of 18, which skips ---------------------------------------------------------------
# newer_programs: sets NEWER to the programs of a PostgreSQL 18 that the servers' user can run; else
# fails, and NEWER says why
newer_programs()
{
	NEWER=${SKIP_BIN:-/usr/lib/postgresql/18/bin}
	[ ! -x "$NEWER/initdb" ] || return 0
	[ -z "${SKIP_BIN:-}" ] || art_die "no initdb in $SKIP_BIN"
	. "$TREE/test/roots.sh"
	NEWER="there is no PostgreSQL 18 and no npm here"
	[ -f "$ARTIDX_CACHE/first-18/version" ] || command -v npm >/dev/null 2>&1 || return 1
	art_first_server 18 || { NEWER=$ART_ROOT_WHY; return 1; }
	as_user mkdir "$WORK/first" && tar -C "$ART_FIRST" -cf - . | as_user tar -C "$WORK/first" -xf - ||
		art_die "could not copy $ART_FIRST"
	NEWER=$WORK/first/bin
}

# group_newer: on a server of its own; psql is this one's, for npm has none
group_newer()
{
	local old=$BIN

	if ! newer_programs; then
		art_say "without btree of 18: $NEWER"
		return
	fi
	art_cluster_stop
	BIN=$WORK/programs
	as_user mkdir "$BIN"
	as_user ln -s "$old/psql" "$NEWER"/{initdb,pg_ctl,postgres} "$BIN"
	art_cluster newer "${CONF[@]}"
	RELEASE=$(($(sql "SHOW server_version_num") / 10000))
	[ "$RELEASE" = 18 ] || art_die "$NEWER is of PostgreSQL $RELEASE"
	AMS=btree
	wants distinct && group_distinct
	wants skip && group_skip
}

# ---- the end -----------------------------------------------------------------------------------

# what was measured is printed even when the run breaks off
report()
{
	local rc=$? name=bench

	perl "$FIGURES_PL" table "$TSV" | tee "$RESULTS/table.txt"
	echo
	sed -n 's/^# //p' "$TSV"
	echo "total time: $(($(date +%s) - started)) s; every measurement: $TSV"
	if [ $rc -eq 0 ]; then
		# a run of everything replaces what runs of parts left
		if [ "$ONLY" != all ]; then
			name+=-${ONLY//,/-}
			[ "$ROWS" = 10000000 ] || name+=-$ROWS
			[ "$HUGE_PAGES" = try ] || name+=-huge-$HUGE_PAGES
		elif [ "${FIGURES:-0}" = 1 ]; then
			rm -f "$TREE"/doc/figures/bench-*.tsv
		fi
		art_figures "$TSV" "$name" || rc=1
	fi
	(exit $rc)
	art_cleanup
}
trap report EXIT

wants lookup join count build vacuum && group_big b_rnd rnd
wants count build && group_big b_seq seq
if wants build; then
	group_big b_uuid uuid
	group_big b_text text
fi
wants lookup1 stmt && group_tenth
wants page && group_page
wants aggregates && group_aggregates
wants distinct && group_distinct
wants skip && group_skip
wants insert && group_insert
wants tail && group_tail
wants bytes && group_bytes
sql "DROP TABLE IF EXISTS b_rnd, b_seq, b_uuid, b_text, probe" >/dev/null 2>&1
wants freed && group_freed
wants dups && group_dups
wants insel && group_insel
wants clients && group_clients
wants wal && group_wal
wants fk && group_fk
wants small && group_small
wants restart && group_restart
wants skip distinct && [ "$(sql "SHOW server_version_num")" -lt 180000 ] && group_newer
exit 0
