--
-- structure = hydra: what it takes and refuses, the same answers as core's btree under
-- every sync, and the search layer, which comes after (artidx_contention).
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA hyd;
SET search_path = hyd, public;
CREATE EXTENSION artidx_debug;

-- what is not for it
CREATE TABLE art_r (k int, w text);
SELECT o, refused('CREATE INDEX ON {}_r USING art (k) WITH (structure = hydra, ' || o || ')')
FROM unnest(ARRAY['sync = rowex', 'page_size = 512']) o;
CREATE INDEX art_r_w ON art_r USING art (w COLLATE "en-x-icu") WITH (structure = hydra);
SELECT structure, sync FROM artidx_indexes WHERE indexrelname = 'art_r_w';

-- what its options are called
CREATE INDEX art_r_k ON art_r USING art (k) WITH (structure = hydra, tail_buffer = on, elision = on, fillfactor = 60);
SELECT structure, sync, tail_buffer, elision, state, entries, height FROM artidx_indexes WHERE indexrelname = 'art_r_k';
SELECT pg_get_indexdef('art_r_k'::regclass);
SELECT clean('art_r_k');

-- empty, one key, and empty again
SELECT count(*) FROM art_r WHERE k = 1;
INSERT INTO art_r VALUES (0);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT k FROM art_r WHERE k = 0;
SELECT k FROM art_r WHERE k = 0;
SELECT clean('art_r_k');
DELETE FROM art_r;
VACUUM (INDEX_CLEANUP ON) art_r;
SELECT k FROM art_r WHERE k >= 0 ORDER BY k;
SELECT entries, clean('art_r_k') FROM artidx_indexes WHERE indexrelname = 'art_r_k';
RESET enable_seqscan;
DROP TABLE art_r;

-- the same questions, whatever became of the tables
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
		'SELECT id FROM {}_t WHERE id BETWEEN 900 AND 1100 ORDER BY id',
		'SELECT id FROM {}_t WHERE id < 1000 ORDER BY id DESC LIMIT 130',
		'SELECT n FROM {}_t WHERE n = 0',
		'SELECT n FROM {}_t WHERE n > -5 ORDER BY n LIMIT 70',
		'SELECT d, id FROM {}_t WHERE d = 7 ORDER BY d, id',
		'SELECT d, id FROM {}_t WHERE d = 7 ORDER BY d DESC, id DESC',
		'SELECT count(*) FROM {}_t WHERE d IN (1, 3, 5)',
		'SELECT w FROM {}_t ORDER BY w COLLATE "C"',
		'SELECT w FROM {}_t WHERE w COLLATE "C" < ''k3'' ORDER BY w COLLATE "C" DESC',
		'SELECT id FROM {}_t WHERE w = ''a'' || repeat(''x'', 602) || ''6'' COLLATE "C"']
	LOOP
		r := same(q);
		all_of := all_of || CASE WHEN r ~ '^DIFFERENT|Seq Scan' THEN E'\n' || q || r ELSE split_part(r, ' ', 1) || ' ' END;
	END LOOP;
	RETURN all_of;
END $$;

CREATE FUNCTION all_clean() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT string_agg(clean(indexrelid), ' ' ORDER BY indexrelname)
		FROM artidx_indexes WHERE relid = 'art_t'::regclass);
END $$;

-- until nothing is logged that the search layers do not have
CREATE FUNCTION caught_up() RETURNS boolean LANGUAGE sql AS $$
	SELECT twin.soon($q$(SELECT sum(search_lag) = 0 FROM artidx_contention WHERE relid = 'art_t'::regclass)$q$)
$$;

CREATE TABLE steps (n int, cmd text);
INSERT INTO steps (cmd, n) SELECT s, n FROM unnest(ARRAY[
	'DROP TABLE IF EXISTS bt_t, art_t',
	$$SELECT twins('CREATE TABLE {}_t (id int, n bigint, d int, w text)')$$,
	'CREATE UNIQUE INDEX bt_id ON bt_t (id)',
	'CREATE INDEX bt_n ON bt_t (n)',
	'CREATE INDEX bt_d ON bt_t (d, id)',
	'CREATE INDEX bt_w ON bt_t (w COLLATE "C")',
	'CREATE UNIQUE INDEX art_id ON art_t USING art (id) WITH (structure = hydra, sync = $Y)',
	'CREATE INDEX art_n ON art_t USING art (n) WITH (structure = hydra, sync = $Y, tail_buffer = off)',
	'CREATE INDEX art_d ON art_t USING art (d, id) WITH (structure = btree)',
	'CREATE INDEX art_w ON art_t USING art (w COLLATE "C") WITH (structure = hydra, sync = $Y)',
	-- splits everywhere and at the end, keys of all lengths
	$$SELECT twins($q$INSERT INTO {}_t
		SELECT i, (i::bigint * 7919 % 4001 - 2000) * 1000003, i % 11,
			CASE WHEN i % 50 = 0 THEN NULL WHEN i % 7 = 0 THEN 'a' || repeat('x', i % 700) || i % 9 ELSE 'k' || md5((i * 3)::text) END
		FROM generate_series(1, 4000) i$q$)$$,
	'ALTER INDEX art_d SET (structure = hydra, sync = $Y)',
	$$SELECT artidx_build('art_d')$$,
	'VACUUM ANALYZE bt_t, art_t',
	$$SELECT indexrelname, structure, sync, entries FROM artidx_indexes WHERE relid = 'art_t'::regclass ORDER BY 1$$,
	'SELECT asked(), all_clean()',
	$$SELECT twins('INSERT INTO {}_t (id) VALUES (17)')$$,
	$$SELECT twins('INSERT INTO {}_t (id, n) VALUES (17, 1), (30000, 2) ON CONFLICT (id) DO UPDATE SET n = -1')$$,
	'SELECT caught_up()',
	$$SELECT bool_and(search_applied > 0) AS applied,
		bool_and(walk_steps >= walks) AS walked, bool_and(longest_walk <= walk_steps) AS longest
		FROM artidx_contention_details WHERE relid = 'art_t'::regclass AND indexrelname = 'art_n'$$,
	-- merges
	$$SELECT twins('DELETE FROM {}_t WHERE id % 30 <> 3')$$,
	'VACUUM bt_t, art_t',
	'SELECT asked(), all_clean(), caught_up()',
	$$SELECT twins('INSERT INTO {}_t SELECT i, 0, 7, NULL FROM generate_series(5001, 6000) i')$$,
	'REINDEX TABLE art_t',
	'SELECT asked(), all_clean()',
	'ALTER INDEX art_n SET (structure = art, sync = auto)',
	$$SELECT artidx_build('art_n')$$,
	'DELETE FROM art_t',
	'DELETE FROM bt_t',
	-- twice: a worker may begin in between
	'SELECT alone()',
	'VACUUM bt_t, art_t',
	'SELECT alone()',
	'VACUUM (INDEX_CLEANUP ON) art_t',
	'SELECT asked(), all_clean()',
	'SELECT indexrelname, structure, entries FROM artidx_indexes WHERE relid = ''art_t''::regclass ORDER BY 1'
	]) WITH ORDINALITY s (s, n);

SET client_min_messages = warning;
\t on
SELECT replace(cmd, '$Y', sync)
FROM unnest(ARRAY['olc', 'optiql', 'coarse', 'mvrlu']) WITH ORDINALITY y (sync, o), steps s ORDER BY o, s.n \gexec
\t off

DROP EXTENSION artidx_debug;
DROP SCHEMA hyd CASCADE;
