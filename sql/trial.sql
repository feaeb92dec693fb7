--
-- CALL artidx_trial: what it refuses, and that nothing is left.  t/trial measures.
--
\set outer :DBNAME
CREATE DATABASE art_trial;
\c art_trial
CREATE SCHEMA ext;
CREATE EXTENSION artidx SCHEMA ext;
SET search_path = public, ext;
CREATE TABLE t (id int PRIMARY KEY, v int, w text COLLATE "C");
INSERT INTO t SELECT i, i % 10, 'w' || i FROM generate_series(1, 2000) i;
CREATE INDEX t_v ON t (v);
CREATE INDEX t_art ON t USING art (v);
CREATE INDEX t_hash ON t USING hash (v);
CREATE TABLE parts (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE part1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
CREATE INDEX parts_b ON parts (b);
CREATE TEMP TABLE temporary (a int PRIMARY KEY);
CREATE TABLE forced (a int PRIMARY KEY);
ALTER TABLE forced ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE TABLE bad (a int);
INSERT INTO bad VALUES (1), (1);
CREATE UNIQUE INDEX CONCURRENTLY bad_a ON bad (a);

-- wrong arguments
CALL artidx_trial(NULL);
CALL artidx_trial('t_v', NULL);
CALL artidx_trial('t_v', 0.5);
CALL artidx_trial('t_v', 'NaN');
CALL artidx_trial('t_v', 1e9);
CALL artidx_trial('nothing');
CALL artidx_trial(0);
-- what is no btree index with entries
CALL artidx_trial('t', 1);
CALL artidx_trial('t_art', 1);
CALL artidx_trial('t_hash', 1);
CALL artidx_trial('parts_b', 1);
CALL artidx_trial('bad_a', 1);
CALL artidx_trial('temporary_pkey', 1);
CALL artidx_trial('forced_pkey', 1);
CALL artidx_trial('pg_class_oid_index', 1);
-- where it could not commit
BEGIN;
CALL artidx_trial('t_v', 1);
ROLLBACK;
DO $$ BEGIN CALL artidx_trial('t_v', 1); END $$;
SET default_transaction_read_only = on;
CALL artidx_trial('t_v', 1);
RESET default_transaction_read_only;
-- another's
CREATE ROLE trial_plain;
GRANT USAGE ON SCHEMA ext TO trial_plain;
GRANT SELECT ON t TO trial_plain;
SET ROLE trial_plain;
CALL artidx_trial('t_v', 1);
SELECT count(*) FROM artidx_trials;
INSERT INTO artidx_trials (line) VALUES (1);
RESET ROLE;

-- one, and what is left: nothing but rows
CALL artidx_trial('t_v', 1);
SELECT line > 0 AS line, table_name, index_name, measure, unit, btree > 0 AS btree, art > 0 AS art
	FROM artidx_trials WHERE measure NOT IN ('swap', 'swap by hand', 'back') ORDER BY line;
SELECT remark FROM artidx_trials WHERE measure = 'answers';
SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname ~ '^(t_|pg_temp)' ORDER BY 1;
SELECT locktype, mode FROM pg_locks WHERE pid = pg_backend_pid() AND locktype NOT IN ('virtualxid', 'relation');
SELECT setting, source FROM pg_settings WHERE name IN ('track_counts', 'enable_seqscan', 'synchronous_commit') AND source = 'session';

DROP TABLE temporary;
REVOKE ALL ON SCHEMA ext FROM trial_plain;
REVOKE ALL ON t FROM trial_plain;
DROP ROLE trial_plain;
\c :outer
DROP DATABASE art_trial;
