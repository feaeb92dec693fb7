--
-- Keys that are compared by their operator class: the same answers as core's
-- btree, for collations, types and operator classes without an encoding.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA oc;
SET search_path = oc, public;
-- so that the choice between indexes that do equally well does not depend on their memory
SET artidx.plan_costs = btree;

CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);

SELECT twins($$CREATE TABLE {}_t (id int, w text, vc varchar(2000), n numeric, f float8, r real,
	i inet, a int[], iv interval, b bit(9), m macaddr, c char(8), k int)$$);
SELECT twins($$INSERT INTO {}_t
	SELECT i,
		   CASE WHEN i % 50 = 0 THEN NULL
				WHEN i % 97 = 0 THEN repeat('Äx', i % 700) || i
				WHEN i % 3 = 0 THEN upper(md5((i / 2)::text))
				WHEN i % 7 = 0 THEN chr(192 + i % 60) || i % 300
				ELSE initcap(md5((i / 2)::text)) END,
		   CASE WHEN i % 33 <> 0 THEN repeat(chr(97 + i % 26), i % 5) || '-' || i % 400 END,
		   CASE WHEN i % 41 <> 0 THEN ((i::bigint * 7919 % 4001) / 8.0)::numeric(20, 4)::text::numeric END,
		   CASE i % 500 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-Infinity' WHEN 3 THEN '-0' ELSE sin(i) END,
		   cos(i % 1000),
		   ('10.' || i % 7 || '.' || i % 251 || '.' || i / 251 || '/' || 20 + i % 13)::inet,
		   CASE WHEN i % 29 <> 0 THEN ARRAY[i % 11, NULL, i % 13] END,
		   (i % 40) * interval '1 day' + (i % 13) * interval '30 days' + (i % 3) * interval '1 month',
		   (i % 512)::bit(9), ('08:00:2b:01:02:' || to_hex(i % 240 + 16))::macaddr,
		   repeat('q', i % 4) || i % 100, i % 20
	FROM generate_series(1, 8000) i$$);

CREATE INDEX bt_w ON bt_t USING btree (w COLLATE "en-x-icu");
CREATE INDEX art_w ON art_t USING art (w COLLATE "en-x-icu");
CREATE INDEX bt_wd ON bt_t USING btree (w COLLATE "de-x-icu" DESC NULLS LAST, k);
CREATE INDEX art_wd ON art_t USING art (w COLLATE "de-x-icu" DESC NULLS LAST, k) WITH (structure = btree, page_size = 256);
CREATE INDEX bt_nc ON bt_t USING btree (w COLLATE nocase);
CREATE INDEX art_nc ON art_t USING art (w COLLATE nocase) WITH (structure = btree, page_size = 8192);
CREATE INDEX bt_kv ON bt_t USING btree (k DESC, vc COLLATE "und-x-icu" NULLS FIRST);
CREATE INDEX art_kv ON art_t USING art (k DESC, vc COLLATE "und-x-icu" NULLS FIRST) WITH (fillfactor = 50);
CREATE INDEX bt_n ON bt_t USING btree (n DESC);
CREATE INDEX art_n ON art_t USING art (n DESC);
CREATE INDEX bt_f ON bt_t USING btree (f, r);
CREATE INDEX art_f ON art_t USING art (f, r);
CREATE INDEX bt_r ON bt_t USING btree (r DESC);
CREATE INDEX art_r ON art_t USING art (r DESC);
CREATE INDEX bt_i ON bt_t USING btree (i);
CREATE INDEX art_i ON art_t USING art (i);
CREATE INDEX bt_a ON bt_t USING btree (a);
CREATE INDEX art_a ON art_t USING art (a);
CREATE INDEX bt_iv ON bt_t USING btree (iv, b, m);
CREATE INDEX art_iv ON art_t USING art (iv, b, m);
CREATE INDEX bt_c ON bt_t USING btree (c);
CREATE INDEX art_c ON art_t USING art (c);
CREATE UNIQUE INDEX bt_u ON bt_t USING btree (w COLLATE nocase, id);
CREATE UNIQUE INDEX art_u ON art_t USING art (w COLLATE nocase, id);
VACUUM ANALYZE bt_t, art_t;

SELECT indexrelname, structure, state, entries, nodes -> 'page_size' AS page_size,
	   height BETWEEN 2 AND 8 AS height, inner_nodes > 0 AS inner_nodes, leaf_nodes > 10 AS leaves
FROM artidx_indexes WHERE schemaname = 'oc' ORDER BY 1;

-- the rows that a query returns, in its order, on both sides; and that art's were had by an index
CREATE FUNCTION same(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	a text[];
	b text[];
	line text;
	how text := 'no index';
BEGIN
	SET LOCAL enable_seqscan = off;
	EXECUTE replace('SELECT array_agg(x::text) FROM (' || q || ') x', '{}', 'bt') INTO b;
	EXECUTE replace('SELECT array_agg(x::text) FROM (' || q || ') x', '{}', 'art') INTO a;
	FOR line IN EXECUTE replace('EXPLAIN (COSTS OFF) ' || q, '{}', 'art') LOOP
		how := coalesce(substring(line FROM '(?:Index Only Scan|Index Scan|Bitmap Index Scan)[ a-zA-Z]* (?:using|on) art_[a-z]*'), how);
	END LOOP;
	IF a IS NOT DISTINCT FROM b THEN
		RETURN coalesce(cardinality(a), 0) || ' rows, ' || how;
	END IF;
	RETURN format('DIFFERENT: %s rows of btree, %s of art, %s', cardinality(b), cardinality(a), how);
END $$;

CREATE FUNCTION all_of_it() RETURNS TABLE (what text, outcome text) LANGUAGE plpgsql AS $$
DECLARE
	q text;
BEGIN
	FOREACH q IN ARRAY ARRAY[
		'SELECT w FROM {}_t ORDER BY w COLLATE "en-x-icu"',
		'SELECT w FROM {}_t ORDER BY w COLLATE "en-x-icu" DESC',
		'SELECT w FROM {}_t WHERE w COLLATE "en-x-icu" BETWEEN ''B'' AND ''d2'' ORDER BY w COLLATE "en-x-icu"',
		'SELECT w FROM {}_t WHERE w COLLATE "en-x-icu" > ''e'' AND w COLLATE "en-x-icu" <= ''ä'' ORDER BY w COLLATE "en-x-icu" DESC',
		'SELECT count(*) FROM {}_t WHERE w COLLATE "en-x-icu" = (SELECT w FROM bt_t WHERE id = 1234)',
		'SELECT w FROM {}_t WHERE w COLLATE "en-x-icu" IS NULL ORDER BY w COLLATE "en-x-icu"',
		'SELECT w FROM {}_t WHERE w COLLATE "en-x-icu" IS NOT NULL ORDER BY w COLLATE "en-x-icu" LIMIT 20',
		'SELECT min(w COLLATE "en-x-icu"), max(w COLLATE "en-x-icu") FROM {}_t',
		'SELECT w, k FROM {}_t ORDER BY w COLLATE "de-x-icu" DESC NULLS LAST, k',
		'SELECT w, k FROM {}_t ORDER BY w COLLATE "de-x-icu" NULLS FIRST, k DESC',
		'SELECT w, k FROM {}_t WHERE w COLLATE "de-x-icu" < ''c'' AND k + 0 < 8 ORDER BY w COLLATE "de-x-icu" DESC, k',
		'SELECT lower(w) FROM {}_t ORDER BY w COLLATE nocase',
		'SELECT count(*) FROM {}_t WHERE w COLLATE nocase = (SELECT upper(w) FROM bt_t WHERE id = 1235)',
		'SELECT id FROM {}_t WHERE w COLLATE nocase IN (SELECT lower(w) FROM bt_t WHERE id BETWEEN 100 AND 110) ORDER BY id',
		'SELECT id, lower(w) FROM {}_t WHERE w COLLATE nocase >= ''F'' ORDER BY w COLLATE nocase, id',
		'SELECT k, vc FROM {}_t ORDER BY k DESC, vc COLLATE "und-x-icu" NULLS FIRST',
		'SELECT k, vc FROM {}_t WHERE k = 3 AND vc COLLATE "und-x-icu" > ''c'' ORDER BY vc COLLATE "und-x-icu" DESC',
		'SELECT k, vc FROM {}_t WHERE k IN (3, 5) AND vc COLLATE "und-x-icu" = ''dd-3'' ORDER BY k',
		'SELECT k, vc FROM {}_t WHERE k < 5 AND vc IS NULL ORDER BY k DESC',
		'SELECT n FROM {}_t ORDER BY n DESC',
		'SELECT n FROM {}_t WHERE n BETWEEN 17 AND 190.5 ORDER BY n',
		'SELECT id FROM {}_t WHERE n = 250 ORDER BY id',
		'SELECT f, r FROM {}_t ORDER BY f, r',
		'SELECT f, r FROM {}_t WHERE f > 0.25 AND r < 0.5::float8 ORDER BY f DESC, r DESC',
		'SELECT f, r FROM {}_t WHERE f = ''NaN'' ORDER BY f, r',
		'SELECT f, r FROM {}_t WHERE f = 0 OR f <= ''-Infinity'' ORDER BY f, r',
		'SELECT r FROM {}_t WHERE r <= 0.1 AND r > -0.1 ORDER BY r DESC',
		'SELECT r FROM {}_t WHERE r < 0.30000001192092896 AND r >= 0.25 ORDER BY r DESC',
		'SELECT r FROM {}_t WHERE r > 1e300 OR r < -1e300 OR r = 0.1',
		'SELECT r FROM {}_t WHERE r < 1e300 AND r > 0.999 ORDER BY r DESC',
		'SELECT r FROM {}_t WHERE r <= ''NaN''::float8 AND r >= -1e-300 ORDER BY r DESC',
		'SELECT count(r) FROM {}_t WHERE r = (SELECT r FROM bt_t WHERE id = 5)::float8',
		'SELECT count(f) FROM {}_t WHERE f >= 0.5::real AND f < 0.75::real',
		'SELECT i FROM {}_t ORDER BY i',
		'SELECT i FROM {}_t WHERE i >= ''10.3.0.0/16'' AND i < ''10.4.7.1'' ORDER BY i DESC',
		'SELECT a FROM {}_t ORDER BY a',
		'SELECT a FROM {}_t WHERE a > ''{5,NULL,3}'' AND a < ''{9}'' ORDER BY a DESC',
		'SELECT id FROM {}_t WHERE a = ''{3,NULL,4}'' ORDER BY id',
		'SELECT iv, b, m FROM {}_t ORDER BY iv, b, m',
		'SELECT b, m FROM {}_t WHERE iv = ''60 days'' AND b > B''000100000'' ORDER BY b, m',
		'SELECT c FROM {}_t ORDER BY c',
		'SELECT id, c FROM {}_t WHERE c = ''qq17'' ORDER BY id']
	LOOP
		what := q;
		outcome := same(q);
		RETURN NEXT;
	END LOOP;
END $$;

SELECT outcome, what FROM all_of_it();

-- what changes it, and what is left
SELECT twins('DELETE FROM {}_t WHERE id % 4 = 1');
SELECT twins($$UPDATE {}_t SET w = upper(w), n = n * 2, a = a || id WHERE id % 5 = 2$$);
SELECT twins($$INSERT INTO {}_t (id, w, k, n, f) SELECT i, md5((i * 3)::text), i % 9, i, -i FROM generate_series(8001, 11000) i$$);
VACUUM bt_t, art_t;
SELECT DISTINCT split_part(outcome, ' ', 1) = 'DIFFERENT:' AS different FROM all_of_it();
SELECT indexrelname, c.entries = c.heap_tuples AS complete FROM artidx_indexes,
	artidx_check(indexrelid, true) c WHERE schemaname = 'oc' ORDER BY 1;
SELECT twins('DELETE FROM {}_t WHERE id > 60');
VACUUM bt_t, art_t;
SELECT outcome, what FROM all_of_it() WHERE what ~ 'ORDER BY (w|n|a)';
SELECT indexrelname, c.entries, c.nodes < 100 AS given_back FROM artidx_indexes,
	artidx_check(indexrelid, true) c WHERE schemaname = 'oc' ORDER BY 1;

-- what is kept is what was stored, where equal is not the same
SELECT twins('CREATE TABLE {}_e (w text COLLATE nocase, n numeric, f float8)');
SELECT twins($$INSERT INTO {}_e VALUES ('Abc', 1.0, '-0'), ('aBC', 1.000, '0'), ('ABC', 1, '-0'), ('abd', 2, 1)$$);
CREATE INDEX art_ew ON art_e USING art (w, n, f);
CREATE INDEX bt_ew ON bt_e USING btree (w, n, f);
VACUUM ANALYZE bt_e, art_e;
SELECT same('SELECT w COLLATE "C", n, f FROM {}_e WHERE w = ''ABC'' AND n = 1.00');
SELECT w COLLATE "C" AS w, n, f FROM art_e WHERE w = 'abC' ORDER BY w COLLATE "C";

-- uniqueness is the collation's
SELECT twins('CREATE TABLE {}_q (w text COLLATE nocase, k int)');
CREATE UNIQUE INDEX art_qw ON art_q USING art (w, k);
CREATE UNIQUE INDEX bt_qw ON bt_q USING btree (w, k);
INSERT INTO art_q VALUES ('One', 1), ('one', 2), (NULL, 1), (NULL, 1);
INSERT INTO art_q VALUES ('oNE', 1);
INSERT INTO art_q VALUES ('Two', 1), ('tWO', 1);
INSERT INTO art_q VALUES ('ONE', 2) ON CONFLICT DO NOTHING;
INSERT INTO art_q VALUES ('ONE', 2) ON CONFLICT (w, k) DO UPDATE SET w = 'oNe';
SELECT w COLLATE "C" AS w, k FROM art_q ORDER BY 1, 2;
BEGIN;
DELETE FROM art_q WHERE w = 'ONE';
INSERT INTO art_q VALUES ('oNE', 1);
COMMIT;
SELECT w COLLATE "C" AS w, k FROM art_q WHERE w = 'one';
DROP INDEX art_qw;
INSERT INTO art_q VALUES ('ONE', 1);
CREATE UNIQUE INDEX art_qw ON art_q USING art (w, k);
DELETE FROM art_q WHERE w = 'one';
CREATE UNIQUE INDEX art_qw ON art_q USING art (w, k);
CREATE UNIQUE INDEX CONCURRENTLY art_qc ON art_q USING art (k, w COLLATE "en-x-icu");
INSERT INTO art_q VALUES ('Two', 1);
SELECT a.entries, b.entries FROM artidx_check('art_qw', true) a, artidx_check('art_qc', true) b;

-- a scan that loses its structure goes on in the table, in the same order, spilled or not
SELECT twins($$INSERT INTO {}_t (id, w, n, vc) SELECT i, md5(i::text), i % 777, i FROM generate_series(20001, 30000) i$$);
CREATE FUNCTION private(q text, ind text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	b text[];
	a text[] := '{}';
	c refcursor := 'c';
	x text;
BEGIN
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_sort = off;
	SET LOCAL enable_bitmapscan = off;
	EXECUTE replace('SELECT array_agg(x::text) FROM (' || q || ') x', '{}', 'bt') INTO b;
	OPEN c FOR EXECUTE replace('SELECT x::text FROM (' || q || ') x', '{}', 'art');
	FETCH c INTO x;
	a := a || x;
	PERFORM artidx_unload(ind::regclass);
	LOOP
		FETCH c INTO x;
		EXIT WHEN NOT FOUND;
		a := a || x;
	END LOOP;
	CLOSE c;
	RETURN format('%s rows, %s, %s', cardinality(a), (SELECT state FROM artidx_indexes WHERE indexrelname = ind),
				  CASE WHEN a = b THEN 'the same' ELSE 'DIFFERENT' END);
END $$;
SET work_mem = '64kB';
SELECT private('SELECT w FROM {}_t ORDER BY w COLLATE "en-x-icu"', 'art_w');
SELECT private('SELECT lower(w) FROM {}_t WHERE w COLLATE nocase > ''8'' ORDER BY w COLLATE nocase DESC', 'art_nc');
SET temp_file_limit = '10MB';
SELECT private('SELECT n + 0.0000 FROM {}_t WHERE n > 5 ORDER BY n DESC', 'art_n');
RESET temp_file_limit;
RESET work_mem;
SELECT private('SELECT k, vc FROM {}_t WHERE k IS NULL ORDER BY k DESC, vc COLLATE "und-x-icu" NULLS FIRST', 'art_kv');
SELECT artidx_build('art_w'), artidx_build('art_nc'), artidx_build('art_n');
SELECT indexrelname, state, c.entries = c.heap_tuples AS complete FROM artidx_indexes,
	artidx_check(indexrelid, true) c WHERE indexrelname IN ('art_w', 'art_nc', 'art_n') ORDER BY 1;

-- a radix tree cannot be had
CREATE INDEX art_no ON art_t USING art (w COLLATE "en-x-icu") WITH (structure = art);
DROP INDEX art_no;
CREATE INDEX art_no ON art_t USING art (w COLLATE nocase text_pattern_ops);

-- memory for none, and unique all the same
CREATE TABLE art_big (w text COLLATE nocase);
INSERT INTO art_big SELECT md5(i::text) || repeat('x', 100) FROM generate_series(1, 20000) i;
SET client_min_messages = error;
CREATE UNIQUE INDEX art_bigw ON art_big USING art (w) WITH (max_memory = '256kB');
SELECT state, reason FROM artidx_indexes WHERE indexrelname = 'art_bigw';
DROP INDEX art_bigw;
INSERT INTO art_big SELECT upper(w) FROM art_big LIMIT 1;
SET maintenance_work_mem = '1MB';
CREATE UNIQUE INDEX art_bigw ON art_big USING art (w) WITH (max_memory = '256kB');
RESET maintenance_work_mem;
RESET client_min_messages;
DROP TABLE art_big;

-- somebody's operator class, whose comparison raises, and is not even in C
CREATE FUNCTION odd_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
	IF current_setting('oc.raise', true) = 'on' THEN
		RAISE EXCEPTION 'no comparison today';
	END IF;
	/* odd numbers first */
	RETURN CASE WHEN a % 2 <> b % 2 THEN b % 2 - a % 2 ELSE btint4cmp(a, b) END;
END $$;
CREATE FUNCTION odd_lt(int, int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT oc.odd_cmp($1, $2) < 0';
CREATE FUNCTION odd_le(int, int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT oc.odd_cmp($1, $2) <= 0';
CREATE FUNCTION odd_ge(int, int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT oc.odd_cmp($1, $2) >= 0';
CREATE FUNCTION odd_gt(int, int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT oc.odd_cmp($1, $2) > 0';
CREATE OPERATOR <<< (FUNCTION = odd_lt, LEFTARG = int, RIGHTARG = int, COMMUTATOR = >>>);
CREATE OPERATOR <<= (FUNCTION = odd_le, LEFTARG = int, RIGHTARG = int, COMMUTATOR = >>=);
CREATE OPERATOR >>= (FUNCTION = odd_ge, LEFTARG = int, RIGHTARG = int, COMMUTATOR = <<=);
CREATE OPERATOR >>> (FUNCTION = odd_gt, LEFTARG = int, RIGHTARG = int, COMMUTATOR = <<<);
CREATE OPERATOR CLASS odd_ops FOR TYPE int USING btree AS
	OPERATOR 1 <<<, OPERATOR 2 <<=, OPERATOR 3 =, OPERATOR 4 >>=, OPERATOR 5 >>>,
	FUNCTION 1 odd_cmp(int, int);
SELECT artidx_mirror_opclass('oc.odd_ops') AS odd_ops \gset
SELECT opcname, opcdefault, amvalidate(oid) FROM pg_opclass WHERE oid = :odd_ops;
SELECT artidx_mirror_opclass('odd_ops');
SELECT artidx_mirror_opclass('no_such_ops');

SELECT twins('CREATE TABLE {}_o (v int, id int)');
SELECT twins('INSERT INTO {}_o SELECT i * 7 % 2003, i FROM generate_series(1, 3000) i');
CREATE INDEX bt_ov ON bt_o USING btree (v odd_ops, id);
CREATE INDEX art_ov ON art_o USING art (v odd_ops, id) WITH (structure = btree, page_size = 256);
CREATE UNIQUE INDEX art_ou ON art_o USING art (v odd_ops, id);
VACUUM ANALYZE bt_o, art_o;
SELECT same('SELECT v FROM {}_o WHERE v >>= 1001 AND v <<< 500');
SELECT same('SELECT v, id FROM {}_o WHERE v = 77 ORDER BY id');
SELECT same('SELECT v FROM {}_o ORDER BY v USING >>>');

-- an error in the middle of a descent: of a scan, an insert, a unique check, a build.
-- The scan of a whole index, and VACUUM, compare nothing.
SET oc.raise = on;
SELECT count(*) FROM (SELECT v FROM art_o ORDER BY v USING <<<) x;
SET enable_seqscan = off;
SELECT count(*) FROM art_o WHERE v <<< 9;
INSERT INTO art_o VALUES (4, -4);
INSERT INTO art_o VALUES (5, -5);
CREATE INDEX art_bad ON art_o USING art (id odd_ops);
REINDEX INDEX art_ou;
RESET oc.raise;
DELETE FROM art_o WHERE id % 3 = 0;
DELETE FROM bt_o WHERE id % 3 = 0;
SET oc.raise = on;
VACUUM art_o;
RESET oc.raise;
-- nothing is left held, and all goes on
CREATE EXTENSION artidx_debug;
SELECT count(*) AS inside FROM artidx_epochs WHERE pinned_epoch IS NOT NULL;
DROP EXTENSION artidx_debug;
INSERT INTO art_o VALUES (5, 3001);
INSERT INTO bt_o VALUES (5, 3001);
INSERT INTO art_o VALUES (5, 3001);
VACUUM art_o;
SELECT same('SELECT v, id FROM {}_o WHERE v <<< 60');
SELECT indexrelname, c.entries, c.heap_tuples FROM artidx_indexes,
	artidx_check(indexrelid, true) c WHERE indexrelname IN ('art_ov', 'art_ou') ORDER BY 1;

-- a comparison may say INT_MIN, also where a proof of uniqueness merges runs on disk
CREATE FUNCTION min_cmp(text, text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$BEGIN RETURN CASE WHEN $1 < $2 THEN (-2147483648)::int ELSE ($1 > $2)::int END; END$$;
CREATE OPERATOR CLASS min_ops FOR TYPE text USING art AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 min_cmp(text, text);
CREATE TABLE m (v text);
INSERT INTO m SELECT md5(i::text) || repeat('x', 400) FROM generate_series(1, 12000) i;
\set VERBOSITY terse
SET maintenance_work_mem = '1MB';
CREATE UNIQUE INDEX m_v ON m USING art (v COLLATE "C" min_ops) WITH (max_memory = '256kB');
DROP INDEX m_v;
INSERT INTO m SELECT md5('7000') || repeat('x', 400);
CREATE UNIQUE INDEX m_v ON m USING art (v COLLATE "C" min_ops) WITH (max_memory = '256kB');
RESET maintenance_work_mem;
\set VERBOSITY default

-- nothing is kept for each entry that an operator looks at, nor for each scan of a statement
CREATE FUNCTION contexts(named text) RETURNS int LANGUAGE sql AS
$$SELECT count(*)::int FROM pg_backend_memory_contexts WHERE name LIKE named$$;
CREATE FUNCTION below(text, int) RETURNS bool IMMUTABLE STRICT LANGUAGE sql SET work_mem = '4MB' AS
$$SELECT $1 < $2::text COLLATE "C"$$;
CREATE OPERATOR <# (procedure = below, leftarg = text, rightarg = int);
ALTER OPERATOR FAMILY min_ops USING art ADD OPERATOR 1 <# (text, int);
CREATE INDEX m_v ON m USING art (v COLLATE "C" min_ops);
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT v FROM m WHERE v COLLATE "C" <# 2;
SELECT count(n) > 1 AS looked, max(n) - min(n) < 50 AS flat
	FROM (SELECT CASE WHEN left(v, 3) IN ('010', '190') THEN contexts('%') END AS n FROM m WHERE v COLLATE "C" <# 2) x;
RESET enable_bitmapscan;
CREATE TABLE often (k int[], contexts int, EXCLUDE USING art (k WITH =));
CREATE UNIQUE INDEX often_k ON often USING art (k);
INSERT INTO often SELECT ARRAY[i], CASE WHEN i IN (10, 1000) THEN contexts('art comparison') END
	FROM generate_series(1, 1000) i ON CONFLICT DO NOTHING;
SELECT count(DISTINCT contexts) FROM often;

-- estimates: of rows without dead versions, which the background takes out of an index in its own time
VACUUM art_t;
REINDEX INDEX art_w;
SELECT estimate BETWEEN 0.8 * bytes AND 1.25 * bytes AS near, indexrelname
FROM (SELECT artidx_estimate('art_t', ARRAY['(w COLLATE "en-x-icu")']) AS estimate, bytes, indexrelname
	  FROM artidx_indexes WHERE indexrelname = 'art_w') x;

SET client_min_messages = warning;
DROP SCHEMA oc CASCADE;
