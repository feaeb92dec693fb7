--
-- Every structure with every way of synchronizing it (test/engines): the same
-- answers as core's btree, made by CREATE INDEX and by ALTER INDEX.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set engines `cat "$PG_ABS_SRCDIR/test/engines"`
\set ECHO all

CREATE SCHEMA eng;
SET search_path = eng, public;

\set ECHO none
SELECT row_number() OVER () AS n, split_part(l, '-', 1) AS structure, split_part(l, '-', 2) AS sync
INTO engines
FROM regexp_split_to_table(:'engines', E'\n') l WHERE l ~ '^[^#]';
\set ECHO all
SELECT * FROM engines ORDER BY n;

-- what is asked, with how many rows the answer has
CREATE FUNCTION asked() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	q text;
	r text;
	all_of text := '';
BEGIN
	SET LOCAL enable_seqscan = off;
	FOREACH q IN ARRAY ARRAY[
		'SELECT id FROM {}_t ORDER BY id',
		'SELECT id FROM {}_t ORDER BY id DESC',
		'SELECT k, id FROM {}_t WHERE k BETWEEN 100 AND 300000 ORDER BY k, id',
		'SELECT k FROM {}_t WHERE k < 500000 ORDER BY k DESC LIMIT 300',
		'SELECT id FROM {}_t WHERE k = 200300 ORDER BY id',
		'SELECT u FROM {}_t WHERE u > md5(''5'')::uuid ORDER BY u LIMIT 100',
		'SELECT id FROM {}_t WHERE u = md5(''77'')::uuid',
		'SELECT w FROM {}_t ORDER BY w COLLATE "C"',
		'SELECT w FROM {}_t WHERE w COLLATE "C" < ''k3'' ORDER BY w COLLATE "C" DESC',
		'SELECT count(*) FROM {}_t WHERE w IS NULL',
		'SELECT d, k FROM {}_t ORDER BY d DESC NULLS LAST, k',
		'SELECT count(*), sum(k) FROM {}_t WHERE d IN (''2000-03-01'', ''2000-06-01'') AND k > 300000']
	LOOP
		r := same(q);
		all_of := all_of || CASE WHEN r ~ '^DIFFERENT|Seq Scan' THEN r ELSE split_part(r, ' ', 1) || ' ' END;
	END LOOP;
	RETURN all_of;
END $$;

CREATE FUNCTION all_clean() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT string_agg(clean(indexrelid), ' ' ORDER BY indexrelname)
		FROM artidx_indexes WHERE relid = 'art_t'::regclass);
END $$;

CREATE TABLE steps (n int, cmd text);
INSERT INTO steps (cmd, n) SELECT s, n FROM unnest(ARRAY[
	'DROP TABLE IF EXISTS bt_t, art_t',
	$$SELECT twins('CREATE TABLE {}_t (id int, k bigint, u uuid, w text, d date)')$$,
	$$SELECT twins($q$INSERT INTO {}_t
		SELECT i, i::bigint * 7919 % 503 * 2003, md5(i::text)::uuid,
			CASE WHEN i % 50 = 0 THEN NULL WHEN i % 7 = 0 THEN repeat('x', i % 900) || i ELSE 'k' || md5((i * 3)::text) END,
			date '2000-01-01' + i % 300
		FROM generate_series(1, 4000) i$q$)$$,
	'CREATE UNIQUE INDEX bt_id ON bt_t (id)',
	'CREATE INDEX bt_k ON bt_t (k)',
	'CREATE INDEX bt_u ON bt_t (u)',
	'CREATE INDEX bt_w ON bt_t (w COLLATE "C")',
	'CREATE INDEX bt_dk ON bt_t (d DESC NULLS LAST, k)',
	'CREATE UNIQUE INDEX art_id ON art_t USING art (id) WITH (structure = $S, sync = $Y)',
	'CREATE INDEX art_k ON art_t USING art (k) WITH (structure = $S, sync = $Y)',
	'CREATE INDEX art_u ON art_t USING art (u) WITH (structure = $S, sync = $Y)',
	'CREATE INDEX art_w ON art_t USING art (w COLLATE "C") WITH (structure = $S, sync = $Y)',
	-- an empty one of the other kind, and then altered
	'CREATE INDEX art_dk ON art_t USING art (d DESC NULLS LAST, k) WITH (structure = $O)',
	'ALTER INDEX art_dk SET (structure = $S, sync = $Y)',
	$$SELECT artidx_build('art_dk')$$,
	'VACUUM ANALYZE bt_t, art_t',
	$$SELECT structure, sync, count(*), sum(entries) AS entries FROM artidx_indexes WHERE relid = 'art_t'::regclass GROUP BY 1, 2$$,
	'SELECT asked()',
	$$SELECT twins('INSERT INTO {}_t (id) VALUES (17)')$$,
	$$SELECT twins('INSERT INTO {}_t (id, k) VALUES (17, 1), (30000, 2) ON CONFLICT (id) DO UPDATE SET k = -1')$$,
	$$SELECT twins('INSERT INTO {}_t SELECT i, i % 10, md5(i::text)::uuid, ''k'' || i, NULL FROM generate_series(100000, 104000) i')$$,
	'SELECT asked(), all_clean()',
	$$SELECT twins('DELETE FROM {}_t WHERE id % 10 <> 3')$$,
	$$SELECT twins('UPDATE {}_t SET k = -k, w = w || ''!'' WHERE id % 20 = 3')$$,
	'VACUUM bt_t, art_t',
	'SELECT asked(), all_clean()',
	'DELETE FROM art_t',
	'DELETE FROM bt_t',
	-- twice: a worker may begin in between
	'SELECT alone()',
	'VACUUM bt_t, art_t',
	'SELECT alone()',
	'VACUUM (INDEX_CLEANUP ON) art_t',
	'SELECT asked(), all_clean()',
	'SELECT sum(entries) AS entries FROM artidx_indexes WHERE relid = ''art_t''::regclass'
	]) WITH ORDINALITY s (s, n);

SET client_min_messages = warning;
\t on
SELECT replace(replace(replace(cmd, '$S', structure), '$Y', sync), '$O',
			   CASE structure WHEN 'art' THEN 'btree' ELSE 'art' END)
FROM engines e, steps s ORDER BY e.n, s.n \gexec
\t off

-- VACUUM goes through an index in batches, with little memory in several, and asks of each
-- batch in the order of the table
CREATE TABLE many (k bigint, w text COLLATE "C");
INSERT INTO many SELECT hashint8extended(i, 1), md5(i::text) FROM generate_series(1, 70000) i;
CREATE INDEX many_k ON many USING art (k);
CREATE INDEX many_w ON many USING art (w) WITH (structure = btree);
SET maintenance_work_mem = '1MB';
DELETE FROM many WHERE k % 3 = 0;
VACUUM (INDEX_CLEANUP ON, PARALLEL 0) many;
SELECT indexrelname, entries = (SELECT count(*) FROM many) AS right, clean(indexrelid)
FROM artidx_indexes WHERE relid = 'many'::regclass ORDER BY 1;
RESET maintenance_work_mem;
DELETE FROM many WHERE k % 5 = 0;
VACUUM (INDEX_CLEANUP ON, PARALLEL 0) many;
SELECT indexrelname, entries = (SELECT count(*) FROM many) AS right, clean(indexrelid)
FROM artidx_indexes WHERE relid = 'many'::regclass ORDER BY 1;

DROP SCHEMA eng CASCADE;
