-- CREATE INDEX and REINDEX by several processes.  Workers are forced upon small
-- tables by parallel_workers; that they come is seen in test/t/parallel_create.pl.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS artidx;
RESET client_min_messages;
SET max_parallel_maintenance_workers = 2;
SET maintenance_work_mem = '4MB';

CREATE TABLE pb (id int, r bigint, n int, d int, t text COLLATE "C", l text COLLATE "C")
	WITH (parallel_workers = 2, autovacuum_enabled = off);	-- its ANALYZE estimates reltuples
INSERT INTO pb
	SELECT i, hashint8extended(i, 7), CASE WHEN i % 3 = 0 THEN i % 50 END, i % 7,
		md5(i::text), CASE WHEN i % 500 = 0 THEN repeat(md5(i::text), 40) ELSE i::text END
	FROM generate_series(1, 60000) i;
-- versions that are dead, and chains
DELETE FROM pb WHERE id % 11 = 0;
UPDATE pb SET d = d + 1 WHERE id % 13 = 0;

CREATE INDEX pb_r ON pb USING art (r);
CREATE INDEX pb_id ON pb USING art (id);
CREATE INDEX pb_n ON pb USING art (n);
CREATE INDEX pb_n1 ON pb USING art (n NULLS FIRST);
CREATE INDEX pb_d ON pb USING art (d, t);
CREATE INDEX pb_t ON pb USING art (t);
CREATE INDEX pb_l ON pb USING art (l DESC);
CREATE INDEX pb_x ON pb USING art ((r % 1000), id) WHERE d < 5;
CREATE INDEX pb_bt ON pb USING art (t, d) WITH (structure = btree);
CREATE INDEX pb_rowex ON pb USING art (r) WITH (sync = rowex);
CREATE INDEX pb_optiql ON pb USING art (l) WITH (sync = optiql);
CREATE INDEX pb_coarse ON pb USING art (id) WITH (sync = coarse);
CREATE UNIQUE INDEX pb_u ON pb USING art (t, id);
CREATE UNIQUE INDEX pb_un ON pb USING art ((CASE WHEN id % 2 = 0 THEN id END));
CREATE INDEX CONCURRENTLY pb_c ON pb USING art (r, id);
SELECT c.relname, a.entries >= c.reltuples AS all_there
	FROM pg_class c, artidx_check(c.oid, true) a
	WHERE c.relname LIKE 'pb\_%' AND c.relkind = 'i' ORDER BY 1;

-- the same rows in the same order as a twin's
CREATE TABLE pb_twin AS SELECT * FROM pb;
CREATE INDEX pbt_r ON pb_twin (r);
CREATE INDEX pbt_d ON pb_twin (d, t);
CREATE INDEX pbt_l ON pb_twin (l DESC);
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_bitmapscan = off;
SELECT (SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM pb ORDER BY r) s) =
	(SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM pb_twin ORDER BY r) s) AS r,
	(SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM pb ORDER BY d, t) s) =
	(SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM pb_twin ORDER BY d, t) s) AS d,
	(SELECT md5(string_agg(l, ',')) FROM (SELECT l FROM pb ORDER BY l DESC) s) =
	(SELECT md5(string_agg(l, ',')) FROM (SELECT l FROM pb_twin ORDER BY l DESC) s) AS l;
RESET enable_seqscan;
RESET enable_sort;
RESET enable_bitmapscan;

-- by several runs each: the memory is too small for one
SET maintenance_work_mem = '1MB';
REINDEX TABLE pb;
SELECT count(*) FROM pg_class c, artidx_check(c.oid, true) a
	WHERE c.relname LIKE 'pb\_%' AND c.relkind = 'i';
REINDEX INDEX CONCURRENTLY pb_l;
SELECT entries > 0 AS ok FROM artidx_check('pb_l', true);

-- duplicates, of whichever participant
\set VERBOSITY terse
CREATE UNIQUE INDEX pb_dup ON pb USING art (d);
CREATE UNIQUE INDEX pb_dup ON pb USING art (n) NULLS NOT DISTINCT;
DROP INDEX pb_u, pb_un;
INSERT INTO pb SELECT * FROM pb WHERE id = 30001;
CREATE UNIQUE INDEX pb_dup ON pb USING art (id);
CREATE UNIQUE INDEX pb_dup ON pb USING art (id) WITH (structure = btree);
DELETE FROM pb WHERE id = 30001;
-- what is dead is no duplicate
CREATE UNIQUE INDEX pb_dup ON pb USING art (id);
SELECT entries > 0 AS ok FROM artidx_check('pb_dup', true);

-- its own cap: no error, no structure
CREATE UNIQUE INDEX pb_cap ON pb USING art (t) WITH (max_memory = '256kB');
SELECT state, reason FROM artidx_indexes WHERE indexrelid = 'pb_cap'::regclass;
CREATE UNIQUE INDEX pb_cap2 ON pb USING art (d) WITH (max_memory = '64kB');
\set VERBOSITY default

-- where there is to be no worker
CREATE FUNCTION pb_unsafe(int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE
	AS 'BEGIN RETURN $1; END';
CREATE INDEX pb_f ON pb USING art (pb_unsafe(id));
TRUNCATE pb;
BEGIN;
CREATE TABLE pb_new (id int) WITH (parallel_workers = 2);
CREATE INDEX pb_new_id ON pb_new USING art (id);
TRUNCATE pb_new;
INSERT INTO pb_new SELECT generate_series(1, 100);
REINDEX INDEX pb_new_id;
COMMIT;
SELECT entries FROM artidx_check('pb_new_id', true);
DROP TABLE pb, pb_twin, pb_new;
DROP FUNCTION pb_unsafe(int);
