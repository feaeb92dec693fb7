--
-- The extension in a schema of its own, and moved to another.
--
SET client_min_messages = warning;
DROP EXTENSION IF EXISTS artidx CASCADE;
RESET client_min_messages;
CREATE SCHEMA reloc;
CREATE SCHEMA elsewhere;
CREATE EXTENSION artidx SCHEMA reloc;

-- the access method and its operator classes are found all the same
CREATE TABLE t (k int, s text COLLATE "C");
INSERT INTO t SELECT i, 'text ' || i FROM generate_series(1, 1000) i;
CREATE UNIQUE INDEX t_k ON t USING art (k);
-- an operator class that is not the default is not found without the schema
CREATE INDEX t_s ON t USING art (s text_pattern_ops);
CREATE INDEX t_s ON t USING art (s reloc.text_pattern_ops);
SET artidx.replace_btree = 'all';
CREATE TABLE v (k int PRIMARY KEY, s varchar UNIQUE);
RESET artidx.replace_btree;
SELECT indexrelid::regclass AS index, state FROM reloc.artidx_indexes ORDER BY 1;

-- views and functions only with the schema, or with it in the search path
SELECT count(*) FROM artidx_indexes;
SET search_path = public, reloc;
SELECT entries FROM artidx_check('t_k', true);
SELECT reloc.artidx_mirror_opclass('pg_catalog.int4_ops') IS NOT NULL;

ALTER EXTENSION artidx SET SCHEMA elsewhere;
SELECT count(*) FROM artidx_indexes;
SET search_path = public, elsewhere;
SELECT count(*) FROM artidx_indexes;
SELECT artidx_index_size('t_k') > 0 AS size, artidx_estimate('t', '{s}') > 0 AS estimate;
SELECT entries FROM artidx_check('t_s', true);
CREATE INDEX t_both ON t USING art (k, s);
INSERT INTO v VALUES (1, 'one') ON CONFLICT (k) DO NOTHING;
INSERT INTO v VALUES (1, 'two') ON CONFLICT (k) DO NOTHING;
CALL artidx_to_btree('t_s');
SELECT count(*) FROM artidx_contention;
SELECT count(*) > 0 FROM artidx_aborts;
SELECT artidx_reset_stats();
SELECT artidx_unload('t_k');
SELECT artidx_build('t_k');
RESET search_path;

\set VERBOSITY terse
SET client_min_messages = warning;
DROP TABLE t, v;
DROP EXTENSION artidx CASCADE;
DROP SCHEMA reloc CASCADE;
DROP SCHEMA elsewhere CASCADE;
CREATE EXTENSION artidx;
