--
-- The extension in a schema of its own, and moved to another.
--
SET client_min_messages = warning;
DROP EXTENSION IF EXISTS artidx CASCADE;
RESET client_min_messages;
-- a session is told once that the settings want what is not there
SET artidx.replace_btree = 'all';
CREATE TABLE bare (a int);
CREATE INDEX ON bare USING btree (a);
CREATE INDEX bare_a ON bare (a);
CREATE INDEX ON bare (a);
RESET artidx.replace_btree;
DROP TABLE bare;
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

-- who may not use the schema gets btree where the class would have to be named, and
-- whatever a superuser made, he can copy, make a partition of, and give another type
CREATE VIEW made AS
	SELECT c.relname, a.amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam
		JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = 'theirs' AND c.relkind IN ('i', 'I') ORDER BY 1;
CREATE ROLE reloc_user;
CREATE SCHEMA theirs AUTHORIZATION reloc_user;
SET artidx.replace_btree = 'all';
SET ROLE reloc_user;
SET search_path = theirs;
CREATE TABLE plain (k int PRIMARY KEY, s text, v varchar(20));
CREATE INDEX plain_s ON plain (s text_pattern_ops);
CREATE INDEX plain_v ON plain (v varchar_pattern_ops, k);
ALTER TABLE plain ADD CONSTRAINT plain_x EXCLUDE (s text_pattern_ops WITH =);
CREATE TABLE excluded (s text, EXCLUDE (s text_pattern_ops WITH =));
CREATE TABLE parted (k int, s text) PARTITION BY RANGE (k);
RESET ROLE;
CREATE INDEX plain_super ON plain (s text_pattern_ops, k);
CREATE INDEX parted_super ON parted (s text_pattern_ops);
CREATE INDEX parted_k ON parted (k);
SET ROLE reloc_user;
CREATE TABLE copied (LIKE plain INCLUDING ALL);
CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (10);
ALTER TABLE parted ALTER s TYPE varchar;
ALTER TABLE plain ALTER s TYPE varchar, ALTER k TYPE bigint;
RESET ROLE;
SELECT * FROM public.made;
SET client_min_messages = warning;
DROP OWNED BY reloc_user;
RESET client_min_messages;
-- with that right it is all art
GRANT USAGE ON SCHEMA reloc TO PUBLIC;
CREATE SCHEMA theirs AUTHORIZATION reloc_user;
SET ROLE reloc_user;
CREATE TABLE plain (k int PRIMARY KEY, s text, v varchar(20));
CREATE INDEX plain_s ON plain (s text_pattern_ops);
CREATE INDEX plain_v ON plain (v varchar_pattern_ops, k);
ALTER TABLE plain ADD CONSTRAINT plain_x EXCLUDE (s text_pattern_ops WITH =);
CREATE TABLE excluded (s text, EXCLUDE (s text_pattern_ops WITH =));
CREATE TABLE parted (k int, s text) PARTITION BY RANGE (k);
CREATE INDEX parted_s ON parted (s text_pattern_ops);
CREATE TABLE copied (LIKE plain INCLUDING ALL);
CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (10);
ALTER TABLE parted ALTER s TYPE varchar;
ALTER TABLE plain ALTER s TYPE varchar;
RESET ROLE;
RESET search_path;
SELECT * FROM made;
REVOKE USAGE ON SCHEMA reloc FROM PUBLIC;
DROP VIEW made;
SET client_min_messages = warning;
DROP OWNED BY reloc_user;
RESET client_min_messages;
DROP ROLE reloc_user;
RESET artidx.replace_btree;

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
