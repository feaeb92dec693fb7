--
-- Storage parameters: what is taken, and what a wrong one gets.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA opts;
SET search_path = opts, public;

CREATE TABLE art_t AS SELECT i AS k FROM generate_series(1, 1000) i;

-- every parameter, with each of its values
CREATE INDEX art_a ON art_t USING art (k) WITH (structure = art, sync = olc,
	fillfactor = 70, deduplicate_items = off, max_memory = '32MB');
CREATE INDEX art_b ON art_t USING art (k) WITH (sync = auto, fillfactor = 10, deduplicate_items);
CREATE INDEX art_c ON art_t USING art (k) WITH (fillfactor = 100, max_memory = '1.5 GB');
SELECT relname, reloptions FROM pg_class WHERE relname LIKE 'art\__' AND relkind = 'i' ORDER BY 1;
SELECT indexrelname, structure, sync, max_memory FROM artidx_indexes
	WHERE schemaname = 'opts' ORDER BY 1;
SELECT clean('art_a'), clean('art_b'), clean('art_c');

-- changed later
ALTER INDEX art_a SET (fillfactor = 50, max_memory = '64MB');
ALTER INDEX art_b RESET (fillfactor, sync, deduplicate_items);
ALTER INDEX art_c SET (max_memory = '20TB');
SELECT relname, reloptions FROM pg_class WHERE relname LIKE 'art\__' AND relkind = 'i' ORDER BY 1;
REINDEX INDEX art_a;
INSERT INTO art_t SELECT generate_series(1001, 2000);
SELECT clean('art_a'), clean('art_b'), clean('art_c');

-- wrong values, wrong names
SELECT o, refused('CREATE INDEX ON {}_t USING art (k) WITH (' || o || ')') FROM unnest(ARRAY[
	'structure = hydra', 'structure = ''''', 'structure = ART2',
	'sync = rowex', 'sync = on',
	'fillfactor = 9', 'fillfactor = 101', 'fillfactor = many',
	'deduplicate_items = perhaps',
	'max_memory = 64', 'max_memory = ''64 megabytes''', 'max_memory = ''1kB''', 'max_memory = ''-1GB''',
	'max_memory = ''17TB''', 'max_memory = ''''', 'max_memory = ''MB''', 'max_memory',
	'tail_buffer = on', 'elision = off', 'page_size = 4096', 'fastupdate = on', 'structures = art',
	'toast.fillfactor = 50']) o;
ALTER INDEX art_a SET (sync = none);
ALTER INDEX art_a SET (autosummarize = on);
SELECT relname, reloptions FROM pg_class WHERE relname = 'art_a';

-- the cap of one index is an error that names it, and loses nothing: a unique
-- index checks every row, so it has to refuse the ones it cannot take
CREATE TABLE art_m (k int, v text);
CREATE UNIQUE INDEX art_m_k ON art_m USING art (k) WITH (max_memory = '64kB');
INSERT INTO art_m SELECT i, md5(i::text) FROM generate_series(1, 100) i;
SELECT split_part(refused('INSERT INTO {}_m SELECT i, md5(i::text) FROM generate_series(1000, 101000) i'), E'\n', 1);
SELECT split_part(refused('CREATE INDEX ON {}_m USING art (k) WITH (max_memory = ''64kB''); INSERT INTO {}_m SELECT i * 7919 FROM generate_series(1, 100000) i'), E'\n', 1);
SELECT count(*), bool_and(k BETWEEN 1 AND 100) FROM art_m;
SELECT clean('art_m_k');
SELECT refused('INSERT INTO {}_m VALUES (7)');
DELETE FROM art_m WHERE k % 2 = 0;
VACUUM art_m;
INSERT INTO art_m VALUES (8);
SELECT count(*) FROM art_m;
SELECT clean('art_m_k');

SET client_min_messages = warning;
DROP SCHEMA opts CASCADE;
