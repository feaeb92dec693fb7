--
-- artidx_advise(): verdicts, what forbids art, and that artidx_from_btree() says the same.
--
\set outer :DBNAME
CREATE DATABASE art_advise;
\c art_advise
CREATE SCHEMA ext;
CREATE EXTENSION artidx SCHEMA ext;
SET client_min_messages = warning;

-- where other extensions are not there, nothing is missing but their columns
SELECT count(*) FROM ext.artidx_advise();

-- indexes that are used, too large, and hardly used; all kinds of keys
CREATE TABLE used (id bigint PRIMARY KEY, u uuid, c int[], b text COLLATE "C", low int);
CREATE INDEX used_u ON used (u);
CREATE INDEX used_c ON used (c);
CREATE INDEX used_b ON used (b, low DESC) INCLUDE (id);
CREATE INDEX used_part ON used (low) WHERE id % 100 = 0;
CREATE INDEX used_expr ON used ((id + low), lower(b));
INSERT INTO used SELECT i, md5(i::text)::uuid, ARRAY[i], 'b' || i, i % 10 FROM generate_series(1, 20000) i;
VACUUM ANALYZE used;
CREATE TABLE unused (id bigint PRIMARY KEY);
SELECT pg_stat_force_next_flush();
SELECT indexrelid, verdict, reason, command, keys, kept, entries, scans, written, hot, page_images
	FROM ext.artidx_advise() ORDER BY indexrelid::text;
-- the best come first
SELECT bool_and(score <= before) AS falling FROM (
	SELECT score, lag(score) OVER (PARTITION BY verdict ORDER BY n) AS before
	FROM ext.artidx_advise() WITH ORDINALITY a (indrelid, indexrelid, verdict, score, share, reason, command, keys, kept, entries,
		index_bytes, table_bytes, of_buffers, art_bytes, of_memory, scans, tuples, written, hot, page_images, lookup_ms, join_ms,
		range_ms, insert_ms, wal_bytes, rebuild_ms, n)) a;
-- and looked up, with which nothing but the scans changes
SET enable_seqscan = off;
SET enable_bitmapscan = off;
DO $$
DECLARE
	n int;
BEGIN
	FOR i IN 1..2000 LOOP
		SELECT count(low) INTO n FROM used WHERE id = i;
	END LOOP;
END $$;
SELECT pg_stat_force_next_flush();
SELECT indexrelid, scans, tuples, lookup_ms > 1 AS lookups, join_ms, range_ms, score > lookup_ms AS more
	FROM ext.artidx_advise() WHERE indexrelid = 'used_pkey'::regclass;
RESET enable_seqscan;
RESET enable_bitmapscan;
-- the arithmetic is near to what the sample says
SELECT a.indexrelid, a.art_bytes BETWEEN e.art_bytes * 0.5 AND e.art_bytes * 2 AS near
	FROM ext.artidx_advise() a JOIN ext.artidx_estimate_database() e USING (indexrelid)
	WHERE a.entries > 1000 ORDER BY 1;
-- updates
UPDATE used SET low = low WHERE id <= 5000;
SELECT pg_stat_force_next_flush();
SELECT hot >= 0 AND hot <= 1 AS share, insert_ms > 0 AS inserts, wal_bytes > 0 AS wal, rebuild_ms > 0 AS rebuild
	FROM ext.artidx_advise() WHERE indexrelid = 'used_u'::regclass;

-- what cannot be, on which versions
CREATE TABLE ref (id int PRIMARY KEY, d int UNIQUE DEFERRABLE, EXCLUDE USING btree (d WITH =));
CREATE TABLE refs (id int REFERENCES ref);
CREATE MATERIALIZED VIEW mat AS SELECT id FROM ref;
CREATE UNIQUE INDEX mat_id ON mat (id);
CREATE TABLE parts (a int PRIMARY KEY, b int) PARTITION BY RANGE (a);
CREATE TABLE part1 PARTITION OF parts FOR VALUES FROM (0) TO (10000);
CREATE TABLE part2 PARTITION OF parts FOR VALUES FROM (10000) TO (20000) PARTITION BY RANGE (a);
CREATE TABLE part21 PARTITION OF part2 FOR VALUES FROM (10000) TO (20000);
CREATE INDEX parts_b ON parts (b);
CREATE UNIQUE INDEX part1_own ON part1 (b);
INSERT INTO parts SELECT i, i FROM generate_series(0, 19999) i;
CREATE TEMP TABLE temporary (a int PRIMARY KEY);
CREATE UNLOGGED TABLE unlogged (a int PRIMARY KEY);
CREATE TABLE bad (a int);
INSERT INTO bad VALUES (1), (1);
CREATE UNIQUE INDEX CONCURRENTLY bad_a ON bad (a);
TRUNCATE bad;
CREATE TABLE others USING heap AS SELECT 1 AS a;
CREATE INDEX others_hash ON others USING hash (a);
CREATE INDEX others_art ON others USING art (a);
-- an operator class whose name art has for something else
CREATE FUNCTION back_cmp(int, int) RETURNS int IMMUTABLE STRICT LANGUAGE sql AS 'SELECT pg_catalog.btint4cmp($2, $1)';
CREATE OPERATOR CLASS back_ops FOR TYPE int USING btree AS
	OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 back_cmp(int, int);
CREATE OPERATOR CLASS back_ops FOR TYPE int USING art AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int, int);
CREATE TABLE back (a int, b int);
CREATE INDEX back_a ON back (a back_ops);
-- one that art does not have yet, and has when it is asked
CREATE OPERATOR CLASS forth_ops FOR TYPE int USING btree AS
	OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 back_cmp(int, int);
CREATE INDEX back_b ON back (b forth_ops);
SELECT pg_stat_force_next_flush();
VACUUM ANALYZE parts;
SELECT indexrelid, verdict, keys, kept, entries FROM ext.artidx_advise()
	WHERE reason IS NULL AND indrelid::text IN ('unlogged', 'back', 'others') ORDER BY indexrelid::text;
-- until 18
SELECT indexrelid, verdict, reason, entries FROM ext.artidx_advise()
	WHERE current_setting('server_version_num')::int < 180000 AND indexrelid::text IN ('ref_pkey', 'parts_pkey', 'mat_id', 'part1_own')
	UNION ALL VALUES
		('ref_pkey'::regclass, 'not possible', 'A foreign key references it, which until PostgreSQL 18 takes btree.', 0),
		('parts_pkey', 'not possible', 'It is a unique index of a partitioned table, which until PostgreSQL 18 is of btree.', 20000),
		('mat_id', 'little used', 'REFRESH MATERIALIZED VIEW CONCURRENTLY wants a unique index of btree.', 0),
		('part1_own', 'convert', 'INSERT with ON CONFLICT into the partitioned table does not reach this partition then.', 10000)
	EXCEPT SELECT NULL, NULL, NULL, NULL ORDER BY 1;
SELECT indexrelid, verdict, reason FROM ext.artidx_advise()
	WHERE indexrelid::text IN ('back_a', 'bad_a', 'ref_d_key', 'ref_d_excl', 'temporary_pkey', 'parts_b') ORDER BY indexrelid::text;

-- artidx_from_btree() refuses what has no command, for the same reason, and nothing else
CREATE FUNCTION said(command text, index regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	why text;
BEGIN
	BEGIN
		EXECUTE coalesce(command, format('CALL ext.artidx_from_btree(%L)', index));
		RAISE 'done' USING ERRCODE = 'AR001';
	EXCEPTION
		WHEN SQLSTATE 'AR001' THEN RETURN 'done';
		WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS why = PG_EXCEPTION_DETAIL;
			RETURN CASE WHEN why <> '' THEN why ELSE SQLERRM END;
	END;
END $$;
SELECT count(*) > 15 AS many, count(*) FILTER (WHERE command IS NULL) > 0 AS some
	FROM ext.artidx_advise();
SELECT indexrelid, reason, said FROM ext.artidx_advise() a, LATERAL said(command, indexrelid) said
	WHERE (said = 'done') <> (command IS NOT NULL)
		OR (command IS NULL AND said <> reason AND said !~ 'has an operator class that access method "art" does not have');

-- it takes no lock that a reader of catalogs has not, and keeps none of the tables
BEGIN;
SELECT count(*) > 0 AS told FROM ext.artidx_advise();
SELECT DISTINCT mode FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation';
SELECT relation::regclass FROM pg_locks WHERE pid = pg_backend_pid() AND relation >= 16384 AND relation::regclass::text !~ 'artidx|pg_';
COMMIT;

-- who sees what
CREATE ROLE advise_plain;
CREATE ROLE advise_monitor IN ROLE pg_monitor;
GRANT USAGE ON SCHEMA ext TO advise_plain, advise_monitor;
GRANT SELECT (id) ON unused TO advise_plain;
SET ROLE advise_plain;
SELECT indexrelid, verdict FROM ext.artidx_advise();
-- what ANALYZE found in others' tables is not told
SELECT keys, key_values, correlation FROM ext.artidx_advise_stats((SELECT oid FROM pg_class WHERE relname = 'used_pkey'));
SET ROLE advise_monitor;
SELECT keys, key_values, correlation FROM ext.artidx_advise_stats((SELECT oid FROM pg_class WHERE relname = 'used_pkey'));
SELECT count(*) > 15 AS all FROM ext.artidx_advise();
RESET ROLE;
REVOKE ALL ON SCHEMA ext FROM advise_plain, advise_monitor;
REVOKE ALL (id) ON unused FROM advise_plain;
DROP ROLE advise_plain, advise_monitor;

-- an index that does not fit
UPDATE pg_class SET reltuples = 1e9, relpages = 2 WHERE oid = 'used_u'::regclass;
SELECT indexrelid, verdict, reason, command FROM ext.artidx_advise() WHERE indexrelid = 'used_u'::regclass;

\c :outer
DROP DATABASE art_advise;
