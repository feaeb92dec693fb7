--
-- Entries of a statement's rows are queued, and are there for whoever looks.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS artidx;
RESET client_min_messages;
CREATE SCHEMA queue;
SET search_path = queue, public;
SET enable_seqscan = off;
SET enable_sort = off;

CREATE TABLE t (k int, v int, name text) WITH (autovacuum_enabled = off);
CREATE INDEX t_k ON t USING art (k);
CREATE INDEX t_v ON t USING art (v) WITH (structure = btree);
CREATE INDEX t_name ON t USING art (name COLLATE "C", k);

-- entries that lead to no row that we see; art_check fails if a row has none
CREATE FUNCTION dead() RETURNS TABLE (index text, entries bigint) LANGUAGE sql AS $$
	SELECT i, c.entries - c.heap_tuples
	FROM unnest(ARRAY['t_k', 't_v', 't_name']) i, artidx_check(i::regclass, true) c ORDER BY 1
$$;

-- they wait: a statement that fails at its 20th row has put in the first three only
INSERT INTO t SELECT i, 1 / (20 - i), 'x' FROM generate_series(1, 20) i;
SELECT * FROM dead();
-- those of short ones do not
INSERT INTO t SELECT i, 1 / (3 - i), 'x' FROM generate_series(1, 3) i;
SELECT * FROM dead();
TRUNCATE t;
-- a query puts in what waits of the index that it reads, and of no other
CREATE FUNCTION look_up(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF i = 10 THEN
		PERFORM FROM t WHERE k = 1;
	END IF;
	RETURN i;
END $$;
INSERT INTO t SELECT look_up(i), 1 / (20 - i), 'x' FROM generate_series(1, 20) i;
SELECT * FROM dead();
TRUNCATE t;

-- a query in the middle of the statement sees all rows so far, however it scans
CREATE FUNCTION look(i int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	n int[];
	m int;
BEGIN
	IF i % 10 <> 0 THEN
		RETURN i;
	END IF;
	IF i = 100 THEN
		PERFORM artidx_check('t_k', true);
	END IF;
	SET LOCAL enable_bitmapscan = off;
	SELECT count(*) INTO m FROM t WHERE k <= i;
	n := n || m;
	SELECT count(v) INTO m FROM t WHERE v >= 0;
	n := n || m;
	SELECT count(*) INTO m FROM (SELECT name FROM t ORDER BY name COLLATE "C", k) x;
	n := n || m;
	SELECT count(*) INTO m FROM generate_series(1, i) g, LATERAL (SELECT FROM t WHERE k = g LIMIT 1) x;
	n := n || m;
	SELECT count(*) INTO m FROM t WHERE k = ANY (ARRAY[1, i - 3, i - 2, i - 1]);
	n := n || (m + i - 1 - 4);
	SET LOCAL enable_bitmapscan = on;
	SET LOCAL enable_indexscan = off;
	SET LOCAL enable_indexonlyscan = off;
	SELECT count(*) INTO m FROM t WHERE k <= i;
	n := n || m;
	SET LOCAL enable_indexscan = on;
	SET LOCAL enable_indexonlyscan = on;
	IF n <> array_fill(i - 1, ARRAY[6]) THEN
		RAISE WARNING 'row %: %', i, n;
	END IF;
	RETURN i;
END $$;
INSERT INTO t SELECT i, look(i), 'name ' || i FROM generate_series(1, 300) i;
SELECT * FROM dead();
-- nothing else hides what is missing there: the check counts each row
SELECT count(*) FROM t WHERE k > 0;

-- a cursor that was opened before sees them where it has not been yet
CREATE TABLE a (k int);
CREATE INDEX a_k ON a USING art (k);
CREATE FUNCTION fetched(i int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	c refcursor := 'c';
	n int := 0;
	k int;
BEGIN
	IF i = 20 THEN
		OPEN c FOR SELECT a.k FROM a WHERE a.k > 0 ORDER BY a.k;
		FETCH c INTO k;
	ELSIF i = 400 THEN
		LOOP
			FETCH c INTO k;
			EXIT WHEN NOT FOUND;
			n := n + 1;
		END LOOP;
		CLOSE c;
		RAISE NOTICE '% rows more', n;
	END IF;
	RETURN i;
END $$;
INSERT INTO a SELECT fetched(i) FROM generate_series(1, 500) i;

-- the workers of a parallel query see the rows of its transaction, and no queue
TRUNCATE t;
CREATE FUNCTION look_parallel(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF i % 50 = 0 THEN
		-- the kind of expression that plpgsql evaluates in parallel
		IF (SELECT regr_count(k, k) FROM t WHERE k > 0) <> 3000 + i - 1 THEN
			RAISE WARNING 'row %: workers see other rows', i;
		END IF;
	END IF;
	RETURN i;
END $$;
SET min_parallel_index_scan_size = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET parallel_leader_participation = off;
SET max_parallel_workers_per_gather = 2;
SET enable_bitmapscan = off;
SET plan_cache_mode = force_generic_plan;
INSERT INTO t SELECT i, i, 'x' FROM generate_series(1, 3000) i;
ALTER TABLE t SET (parallel_workers = 2);
VACUUM ANALYZE t;
-- (by t_k or t_name, which cost nearly the same)
CREATE FUNCTION plan(q text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP
		RETURN NEXT regexp_replace(line, 't_k|t_name', 'one of two');
	END LOOP;
END $$;
SELECT plan('SELECT regr_count(k, k) FROM t WHERE k > 0');
INSERT INTO t SELECT i, look_parallel(i), 'x' FROM generate_series(1, 200) i;
-- nor does a worker of a build, whose expression asks the table; the leader waits for workers
CREATE TABLE b (k int, pad char(800)) WITH (fillfactor = 10, parallel_workers = 1);
INSERT INTO b SELECT generate_series(1, 64);
SELECT set_config('queue.leader', pg_backend_pid()::text, false) <> '' AS set;
CREATE FUNCTION rows_so_far(k int) RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
	IF pg_backend_pid() = current_setting('queue.leader')::int THEN
		PERFORM pg_sleep(0.002);
		RETURN NULL;
	END IF;
	RETURN (SELECT count(*) FROM queue.t WHERE t.k > 0);
END $$;
CREATE FUNCTION builds(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF i = 50 THEN
		CREATE INDEX ON b USING btree (rows_so_far(k));
		RAISE NOTICE 'a worker saw fewer rows % times', (SELECT count(*) FROM b WHERE rows_so_far(k) < 3249);
	END IF;
	RETURN i;
END $$;
INSERT INTO t SELECT i, builds(i), 'x' FROM generate_series(1, 60) i;
RESET parallel_leader_participation;
RESET max_parallel_workers_per_gather;
RESET enable_bitmapscan;
RESET plan_cache_mode;
RESET min_parallel_index_scan_size;
RESET min_parallel_table_scan_size;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
-- a batched join sees them, too
CREATE TABLE o AS SELECT generate_series(1, 4000) AS k;
ANALYZE o;
SET artidx.batched_joins = on;
SET enable_seqscan = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
EXPLAIN (COSTS OFF) SELECT count(t.v) FROM o JOIN t ON t.k = o.k;
CREATE FUNCTION look_batched(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF i % 50 = 0 AND (SELECT count(t.v) FROM o JOIN t ON t.k = o.k) <> 3259 + i THEN
		RAISE WARNING 'row %: the join gives % rows', i, (SELECT count(t.v) FROM o JOIN t ON t.k = o.k);
	END IF;
	RETURN i;
END $$;
INSERT INTO t SELECT i, look_batched(i), 'x' FROM generate_series(1, 200) i;
RESET artidx.batched_joins;
SET enable_seqscan = off;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_memoize;

-- a subtransaction that is aborted takes its own entries with it, not those around it
TRUNCATE t;
CREATE FUNCTION sub(i int, depth int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF i % 10 <> 0 THEN
		RETURN i;
	END IF;
	BEGIN
		IF depth > 0 THEN
			INSERT INTO t SELECT sub(g * 10, depth - 1), -g, 'inner' FROM generate_series(1, 3) g;
		END IF;
		INSERT INTO t SELECT 1 / (20 - g), g, 'aborted' FROM generate_series(1, 20) g;
	EXCEPTION WHEN division_by_zero THEN NULL;
	END;
	BEGIN
		INSERT INTO t SELECT i * 1000 + g, g, 'committed' FROM generate_series(1, 20) g;
	EXCEPTION WHEN division_by_zero THEN NULL;
	END;
	RETURN i;
END $$;
INSERT INTO t SELECT sub(i, 0), i, 'outer' FROM generate_series(1, 50) i;
SELECT name, count(*) FROM t GROUP BY 1 ORDER BY 1;
-- of each the first three
SELECT * FROM dead();
TRUNCATE t;
INSERT INTO t SELECT sub(i, 2), i, 'outer' FROM generate_series(1, 50) i;
SELECT name, count(*) FROM t GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM dead();
-- of all indexes, where nothing else waits
TRUNCATE t;
DO $$
BEGIN
	INSERT INTO t SELECT i, 1 / (20 - i), 'aborted' FROM generate_series(1, 20) i;
EXCEPTION WHEN division_by_zero THEN
	INSERT INTO t SELECT i, i, 'committed' FROM generate_series(1, 20) i;
END $$;
SELECT * FROM dead();
TRUNCATE t;
BEGIN;
SAVEPOINT s;
INSERT INTO t SELECT i, i, 's' FROM generate_series(1, 100) i;
ROLLBACK TO s;
INSERT INTO t SELECT i, i, 'after' FROM generate_series(1, 100) i;
COMMIT;
SELECT count(*) FROM t WHERE name = 'after';
SELECT count(*) FROM dead();
VACUUM t;
SELECT * FROM dead();

-- ON CONFLICT takes rows back, and nothing tells: its entries do not wait, within one that may
CREATE TABLE u (k int, v int) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX u_k ON u USING art (k);
CREATE INDEX u_v ON u USING art (v);
INSERT INTO u SELECT i, 1 / (20 - i) FROM generate_series(1, 20) i ON CONFLICT DO NOTHING;
SELECT entries FROM artidx_check('u_v');
CREATE FUNCTION conflict(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO u SELECT i + g, 1 / (20 - g) FROM generate_series(1, 20) g ON CONFLICT (k) DO UPDATE SET v = u.v + 1;
	RETURN i;
EXCEPTION WHEN division_by_zero THEN
	RETURN i;
END $$;
SELECT entries AS before FROM artidx_check('u_v') \gset
INSERT INTO t SELECT i, conflict(i), 'c' FROM generate_series(1, 5) i;
SELECT entries - :before AS entries FROM artidx_check('u_v');
-- nor in a WITH that nobody reads, which runs at the end
CREATE FUNCTION conflict_late(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	WITH w AS (INSERT INTO u SELECT i + g, 1 / (20 - g) FROM generate_series(1, 20) g ON CONFLICT DO NOTHING)
		SELECT 1 INTO i;
	RETURN i;
EXCEPTION WHEN division_by_zero THEN
	RETURN i;
END $$;
SELECT entries AS before FROM artidx_check('u_v') \gset
INSERT INTO t SELECT i, conflict_late(i), 'c' FROM generate_series(1, 5) i;
SELECT entries - :before AS entries FROM artidx_check('u_v');
-- nor after a statement within it that let some wait
CREATE FUNCTION plain(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO t SELECT i, g, 'plain' FROM generate_series(1, 5) g;
	RETURN i;
END $$;
SELECT entries AS before FROM artidx_check('u_v') \gset
INSERT INTO u SELECT i, 1 / (20 - CASE WHEN i = 4 THEN plain(i) ELSE i END) FROM generate_series(1, 20) i ON CONFLICT DO NOTHING;
SELECT entries - :before AS entries FROM artidx_check('u_v');
-- nor after some that failed
CREATE FUNCTION failed(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		INSERT INTO t SELECT i, 1 / (20 - g), 'failed' FROM generate_series(1, 20) g;
	EXCEPTION WHEN division_by_zero THEN NULL;
	END;
	BEGIN
		COPY t FROM PROGRAM 'echo x,0,c' (FORMAT csv);
	EXCEPTION WHEN invalid_text_representation THEN NULL;
	END;
	RETURN i;
END $$;
SELECT entries AS before FROM artidx_check('u_v') \gset
INSERT INTO u SELECT i, 1 / (20 - CASE WHEN i = 4 THEN failed(i) ELSE i END) FROM generate_series(1, 20) i ON CONFLICT DO NOTHING;
SELECT entries - :before AS entries FROM artidx_check('u_v');
-- nor in a WITH of a statement that could let entries wait
SELECT entries AS before FROM artidx_check('u_v') \gset
WITH w AS (INSERT INTO u SELECT i, 1 / (20 - i) FROM generate_series(1, 20) i ON CONFLICT DO NOTHING RETURNING k)
	INSERT INTO t SELECT k, k, 'with' FROM w;
SELECT entries - :before AS entries FROM artidx_check('u_v');
VACUUM u, t;
SELECT entries - heap_tuples AS dead FROM artidx_check('u_v', true);
SELECT * FROM dead();

-- COPY, and a trigger that looks
TRUNCATE t;
CREATE FUNCTION seen() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.v := (SELECT count(*) FROM t WHERE k > 0);
	RETURN NEW;
END $$;
-- (it stores 1,000 rows before it inserts their entries)
COPY t FROM PROGRAM 'seq -f %g,0,c 1001; echo x,0,c' (FORMAT csv);
SELECT * FROM dead();
TRUNCATE t;
BEGIN;
COPY t FROM PROGRAM 'seq -f %g,0,c 10' (FORMAT csv);
SELECT sum(entries) FROM artidx_indexes WHERE relname = 't';
SELECT count(*) FROM t WHERE k > 0;
COMMIT;
SELECT * FROM dead();
CREATE TRIGGER seen BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION seen();
INSERT INTO t SELECT i, 0, 'trigger' FROM generate_series(1, 40) i;
SELECT count(*), min(v), max(v), count(DISTINCT v) FROM t WHERE name = 'trigger';
DROP TRIGGER seen ON t;
CREATE FUNCTION seen_after() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE '%', (SELECT count(*) FROM t WHERE k > 0);
	RETURN NULL;
END $$;
CREATE TRIGGER seen AFTER INSERT ON t EXECUTE FUNCTION seen_after();
INSERT INTO t SELECT i, 0, 'trigger' FROM generate_series(1, 40) i;
DROP TRIGGER seen ON t;

-- UPDATE, MERGE, WITH, RETURNING by a cursor, EXPLAIN ANALYZE
UPDATE t SET k = k + 1000 WHERE k > 0;
MERGE INTO t USING generate_series(2001, 2100) s ON k = s WHEN NOT MATCHED THEN INSERT VALUES (s, s, 'merged');
WITH w AS (INSERT INTO t SELECT i, i, 'with' FROM generate_series(3001, 3100) i) SELECT 1;
DO $$
DECLARE
	r record;
	n int := 0;
BEGIN
	FOR r IN INSERT INTO t SELECT i, i, 'returned' FROM generate_series(4001, 4200) i RETURNING k LOOP
		n := n + (SELECT count(*) FROM t WHERE k = 8201 - r.k);
	END LOOP;
	RAISE NOTICE '%', n;
END $$;
DO $$ BEGIN EXECUTE 'EXPLAIN ANALYZE INSERT INTO t SELECT i, i, $1 FROM generate_series(5001, 5100) i' USING 'x'; END $$;
SELECT k / 1000 AS thousand, count(*) FROM t WHERE k > 0 GROUP BY 1 ORDER BY 1;
VACUUM t;
SELECT * FROM dead();

-- keys of all lengths, and more indexes than can wait
CREATE TABLE l (name text, k int);
CREATE INDEX l_name ON l USING art (name COLLATE "C");
CREATE INDEX l_k ON l USING art (k);
INSERT INTO l SELECT repeat(chr(97 + i % 26), i), i FROM generate_series(1, 1500) i;
SELECT entries, heap_tuples FROM artidx_check('l_name', true);
SELECT entries, heap_tuples FROM artidx_check('l_k', true);
CREATE TABLE p (k int, v int) PARTITION BY LIST (v);
SELECT format('CREATE TABLE p%s PARTITION OF p FOR VALUES IN (%1$s)', i) FROM generate_series(0, 24) i \gexec
CREATE INDEX p_k ON p USING art (k);
INSERT INTO p SELECT i, i % 25 FROM generate_series(1, 5000) i;
COPY p FROM PROGRAM 'for i in 1 2 3 4 5 6 7 8 9 10; do echo "$i,$i"; done' (FORMAT csv);
SELECT count(*) FROM p WHERE k > 0;
SELECT sum(entries), sum(heap_tuples) FROM pg_partition_tree('p_k') i, artidx_check(i.relid, true) WHERE isleaf;

-- memory that is full when they go in is no error
CREATE TABLE f (k bigint, v int);
CREATE INDEX f_k ON f USING art (k) WITH (max_memory = '256kB');
SET client_min_messages = error;
INSERT INTO f SELECT i * 7919 % 1000003, i FROM generate_series(1, 50000) i;
RESET client_min_messages;
SELECT state, reason FROM artidx_indexes WHERE indexrelname = 'f_k';
SELECT count(*) FROM f WHERE k > 0;
-- nor is it to one that does not wait
CREATE TABLE g (k bigint);
CREATE INDEX g_k ON g USING art (k) WITH (max_memory = '64kB');
SET client_min_messages = error;
DO $$ BEGIN FOR i IN 1 .. 10000 LOOP INSERT INTO g VALUES (i * 7919::bigint % 1000003); END LOOP; END $$;
RESET client_min_messages;
SELECT state, reason FROM artidx_indexes WHERE indexrelname = 'g_k';
SELECT count(*) FROM g WHERE k > 0;

-- tables that are new in the transaction, or temporary
BEGIN;
CREATE TABLE new (k int);
CREATE INDEX new_k ON new USING art (k);
INSERT INTO new SELECT generate_series(1, 100);
TRUNCATE new;
INSERT INTO new SELECT generate_series(1, 50);
SELECT count(*) FROM new WHERE k > 0;
COMMIT;
SELECT entries, heap_tuples FROM artidx_check('new_k', true);
CREATE TEMP TABLE tmp (k int) ON COMMIT DELETE ROWS;
CREATE INDEX tmp_k ON tmp USING art (k);
BEGIN;
INSERT INTO tmp SELECT generate_series(1, 100);
SELECT count(*) FROM tmp WHERE k > 0;
COMMIT;
SELECT entries FROM artidx_check('tmp_k');

-- SERIALIZABLE tells readers as the entries go in, so they do not wait; nor do an exclusion's
TRUNCATE t;
BEGIN ISOLATION LEVEL SERIALIZABLE;
INSERT INTO t SELECT i, 1 / (20 - i), 'x' FROM generate_series(1, 20) i;
ROLLBACK;
SELECT * FROM dead();
CREATE TABLE e (k int, v int, EXCLUDE USING art (k WITH =)) WITH (autovacuum_enabled = off);
INSERT INTO e SELECT i, 1 / (20 - i) FROM generate_series(1, 20) i;
SELECT entries FROM artidx_check('e_k_excl');
INSERT INTO e SELECT i % 10, i FROM generate_series(1, 20) i;

-- nor compared keys, long ones, and those of an index that is not valid
CREATE TABLE w (k int, v int, name text, a int[]) WITH (autovacuum_enabled = off);
CREATE INDEX w_k ON w USING art (k);
CREATE INDEX w_v ON w USING art (v);
CREATE INDEX w_name ON w USING art (name COLLATE "C");
CREATE INDEX w_a ON w USING art (a);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'w_v'::regclass;
INSERT INTO w SELECT i, i, repeat('x', 600), ARRAY[1 / (20 - i)] FROM generate_series(1, 20) i;
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'w_v'::regclass;
SELECT indexrelname, entries FROM artidx_indexes WHERE relname = 'w' ORDER BY 1;
-- nor those of columns that an UPDATE does not change
TRUNCATE w;
INSERT INTO w SELECT i, i, 'x', ARRAY[i] FROM generate_series(1, 20) i;
UPDATE w SET k = k + 20 / (20 - v);
SELECT indexrelname, entries FROM artidx_indexes WHERE relname = 'w' ORDER BY 1;

SET client_min_messages = warning;
DROP SCHEMA queue CASCADE;
