--
-- What is refused, and in which words.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA errs;
SET search_path = errs, public;

CREATE TABLE art_t (k int, txt text, vc varchar(10), num numeric[], j jsonb, f oidvector, r int4range);
INSERT INTO art_t SELECT i, i::text, i::text FROM generate_series(1, 10) i;

-- a pattern class wants bytes that a collation does not give
CREATE COLLATION nondet (provider = icu, locale = 'und', deterministic = false);
SELECT refused('CREATE INDEX ON {}_t USING art (txt COLLATE nondet text_pattern_ops)');
-- the bytewise order of a pattern class needs no collation
CREATE INDEX art_t_pattern ON art_t USING art (txt COLLATE "und-x-icu" text_pattern_ops);
CREATE INDEX art_t_posix ON art_t USING art (txt COLLATE "POSIX");
-- nor is the index there after an error
SELECT relname FROM pg_class WHERE relnamespace = 'errs'::regnamespace AND relkind = 'i' ORDER BY 1;

-- tables
SET allow_system_table_mods = on;
SELECT refused('CREATE INDEX ON pg_attrdef USING art (adrelid)');
RESET allow_system_table_mods;
CREATE ACCESS METHOD heap_like TYPE TABLE HANDLER heap_tableam_handler;
SELECT refused('CREATE TABLE {}_am (k int) USING heap_like; CREATE INDEX ON {}_am USING art (k)');
DROP ACCESS METHOD heap_like;
SELECT refused('CREATE VIEW {}_v AS SELECT 1 AS k; CREATE INDEX ON {}_v USING art (k)');

-- what a later version will bring
SELECT refused('CREATE TABLE {}_p (k int) PARTITION BY RANGE (k); CREATE UNIQUE INDEX ON {}_p USING art (k)');
SELECT refused('CREATE UNIQUE INDEX {}_t_u ON {}_t USING art (k); ALTER TABLE {}_t ADD PRIMARY KEY USING INDEX {}_t_u');
SELECT refused('CREATE UNIQUE INDEX {}_t_u ON {}_t USING art (k); CREATE TABLE {}_fk (k int REFERENCES {}_t (k))');
SELECT refused('ALTER TABLE {}_t ADD EXCLUDE USING art (k WITH <>)');
SELECT refused('CREATE INDEX ON {}_t USING art (k) WITH (page_size = 512)');

-- access method and functions
SELECT refused('CREATE OPERATOR CLASS odd FOR TYPE int4 USING art AS OPERATOR 6 =');
SELECT refused('CREATE OPERATOR CLASS odd FOR TYPE int4 USING art AS OPERATOR 3 =, FUNCTION 7 btint4cmp(int4, int4)');
CREATE INDEX bt_t_k ON art_t USING btree (k);
SELECT refused('SELECT * FROM artidx_check(''bt_t_k'')');
SELECT refused('SELECT * FROM artidx_check(''{}_t'')');
SELECT refused('SELECT artidx_index_size(''bt_t_k'')');
SELECT split_part(refused('SELECT arthandler(1)'), E'\n', 1);
SELECT refused('DROP ACCESS METHOD art');
CREATE INDEX art_t_k ON art_t USING art (k);
SELECT refused('DROP EXTENSION artidx');

-- an error of the expression while the index is built, and while rows come
SELECT refused('CREATE INDEX ON {}_t USING art ((1 / (k - 5)))');
CREATE INDEX art_t_expr ON art_t USING art ((1 / (k - 50)));
SELECT refused('INSERT INTO {}_t VALUES (50)');
INSERT INTO art_t VALUES (51);
SELECT clean('art_t_expr'), clean('art_t_k');

-- a row that cannot be indexed is not accepted
CREATE INDEX art_t_vc ON art_t USING art (vc);
SELECT refused('INSERT INTO {}_t (vc) VALUES (''far too long for it'')');
SELECT count(*) FROM art_t;
SELECT clean('art_t_vc');

-- estimates of what could be no index
SELECT refused('SELECT artidx_estimate(''{}_t'', array_fill(''k''::text, ARRAY[33]))');
SELECT refused('SELECT artidx_estimate(''{}_t'', ARRAY[''(point(k, k))''])');
-- one that cannot be estimated does not keep the others from it
CREATE FUNCTION changed(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE INDEX bt_t_changed ON art_t USING btree (changed(k));
CREATE OR REPLACE FUNCTION changed(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 / 0';
SELECT indexrelid, art_bytes > 0 AS estimated FROM artidx_estimate_database()
	WHERE indrelid = 'art_t'::regclass ORDER BY indexrelid::text;

-- an index that is not valid, and one whose expression looks into it
CREATE TABLE art_dup (k int);
INSERT INTO art_dup VALUES (1), (1);
CREATE UNIQUE INDEX CONCURRENTLY art_dup_k ON art_dup USING art (k);
SELECT refused('SELECT * FROM artidx_check(''{}_dup_k'')');
CREATE TABLE art_self (k int);
CREATE FUNCTION self(int) RETURNS int LANGUAGE plpgsql IMMUTABLE SET search_path = errs, public
	AS 'BEGIN PERFORM * FROM artidx_check(''art_self_k''); RETURN $1; END';
CREATE INDEX art_self_k ON art_self USING art (self(k));
INSERT INTO art_self VALUES (1);
SELECT refused('REINDEX INDEX {}_self_k');
SELECT entries FROM artidx_check('art_self_k');

-- no schema for an operator class
SET search_path = '';
SELECT public.artidx_mirror_opclass('pg_catalog.int4_ops');

SET client_min_messages = warning;
DROP SCHEMA errs CASCADE;
