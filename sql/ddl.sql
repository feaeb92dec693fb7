--
-- An index through the life of its table: what makes it, remakes it, drops it.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA ddl;
SET search_path = ddl, public;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

SELECT twins('CREATE TABLE {}_t (k int, v text)');
SELECT twins('INSERT INTO {}_t SELECT (i * 37) % 1009, ''v'' || i FROM generate_series(1, 1000) i');
CREATE INDEX bt_t_k ON bt_t USING btree (k);
CREATE INDEX art_t_k ON art_t USING art (k);
SELECT indexrelname, state, entries, builds, last_build_source FROM artidx_indexes WHERE schemaname = 'ddl';

-- REINDEX
REINDEX INDEX art_t_k;
SELECT same('SELECT k, v FROM {}_t ORDER BY k');
REINDEX TABLE art_t;
SELECT same('SELECT k, v FROM {}_t ORDER BY k');
BEGIN;
REINDEX INDEX bt_t_k;
REINDEX INDEX art_t_k;
SELECT twins('INSERT INTO {}_t VALUES (-1, ''gone'')');
SELECT same('SELECT k, v FROM {}_t WHERE k < 10 ORDER BY k');
ROLLBACK;
SELECT same('SELECT k, v FROM {}_t WHERE k < 10 ORDER BY k');
REINDEX INDEX CONCURRENTLY art_t_k;
SELECT same('SELECT k, v FROM {}_t ORDER BY k');
REINDEX TABLE CONCURRENTLY art_t;
SELECT same('SELECT k, v FROM {}_t ORDER BY k');
SELECT count(*) FROM artidx_indexes WHERE schemaname = 'ddl';

-- TRUNCATE, with and without a way back
BEGIN;
TRUNCATE bt_t, art_t;
SELECT same('SELECT k, v FROM {}_t WHERE k > 0');
SELECT twins('INSERT INTO {}_t VALUES (1, ''new'')');
SELECT same('SELECT k, v FROM {}_t WHERE k > 0');
ROLLBACK;
SELECT same('SELECT k, v FROM {}_t ORDER BY k');
BEGIN;
SAVEPOINT a;
TRUNCATE bt_t, art_t;
SELECT twins('INSERT INTO {}_t VALUES (1, ''new'')');
SAVEPOINT b;
TRUNCATE bt_t, art_t;
SELECT twins('INSERT INTO {}_t VALUES (2, ''newer'')');
SELECT same('SELECT k, v FROM {}_t WHERE k > 0');
ROLLBACK TO b;
SELECT same('SELECT k, v FROM {}_t WHERE k > 0');
ROLLBACK TO a;
SELECT same('SELECT k, v FROM {}_t WHERE k > 0 ORDER BY k');
COMMIT;
SELECT same('SELECT k, v FROM {}_t ORDER BY k');
SELECT twins('TRUNCATE {}_t');
SELECT same('SELECT k, v FROM {}_t ORDER BY k');
SELECT twins('INSERT INTO {}_t SELECT i % 50, ''w'' || i FROM generate_series(1, 500) i');
SELECT same('SELECT k, v FROM {}_t ORDER BY k');
BEGIN;
SELECT twins('CREATE TABLE {}_new (k int)');
CREATE INDEX bt_new_k ON bt_new USING btree (k);
CREATE INDEX art_new_k ON art_new USING art (k);
SELECT twins('INSERT INTO {}_new SELECT generate_series(1, 100)');
TRUNCATE bt_new, art_new;
SELECT twins('INSERT INTO {}_new VALUES (5), (4)');
SELECT same('SELECT k FROM {}_new ORDER BY k');
COMMIT;
SELECT same('SELECT k FROM {}_new ORDER BY k');
SELECT clean('art_new_k');

-- ROLLBACK of CREATE, of DROP
BEGIN;
CREATE INDEX bt_t_v ON bt_t USING btree (v COLLATE "C");
CREATE INDEX art_t_v ON art_t USING art (v COLLATE "C");
SELECT same('SELECT v FROM {}_t WHERE v COLLATE "C" > ''w4'' ORDER BY v COLLATE "C"');
ROLLBACK;
SELECT count(*) FROM artidx_indexes WHERE schemaname = 'ddl';
BEGIN;
DROP INDEX bt_t_k, art_t_k;
SELECT same('SELECT k, v FROM {}_t WHERE k < 3 ORDER BY k, v COLLATE "C"');
ROLLBACK;
SELECT same('SELECT k, v FROM {}_t WHERE k < 3 ORDER BY k');
BEGIN;
SAVEPOINT a;
CREATE INDEX art_t_v ON art_t USING art (v COLLATE "C");
ROLLBACK TO a;
CREATE INDEX art_t_v ON art_t USING art (v COLLATE "C");
RELEASE a;
COMMIT;
CREATE INDEX bt_t_v ON bt_t USING btree (v COLLATE "C");
SELECT same('SELECT v FROM {}_t WHERE v COLLATE "C" > ''w4'' ORDER BY v COLLATE "C"');
BEGIN;
SELECT twins('INSERT INTO {}_t VALUES (1000, ''aborted'')');
SELECT same('SELECT k FROM {}_t WHERE k > 40 ORDER BY k');
ROLLBACK;
SELECT same('SELECT k FROM {}_t WHERE k > 40 ORDER BY k');
SELECT clean('art_t_k'), clean('art_t_v');
DROP INDEX bt_t_v, art_t_v;

-- CREATE INDEX CONCURRENTLY
CREATE INDEX CONCURRENTLY art_t_c ON art_t USING art (v COLLATE "C", k);
CREATE INDEX bt_t_c ON bt_t USING btree (v COLLATE "C", k);
SELECT same('SELECT v, k FROM {}_t WHERE v COLLATE "C" >= ''w3'' ORDER BY v COLLATE "C", k');
SELECT clean('art_t_c');
DROP INDEX CONCURRENTLY art_t_c;
DROP INDEX bt_t_c;
CREATE TABLE art_u AS SELECT generate_series(1, 100) AS k;
INSERT INTO art_u VALUES (55);
CREATE UNIQUE INDEX CONCURRENTLY art_u_k ON art_u USING art (k);
SELECT relname, indisvalid FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE relname = 'art_u_k';
DROP TABLE art_u;
CREATE UNIQUE INDEX CONCURRENTLY art_t_u ON art_t USING art (v COLLATE "C");
SELECT refused('INSERT INTO {}_t VALUES (0, ''w7'')');
DROP INDEX art_t_u;

-- ALTER TABLE: a rewrite, a new type, new columns, another name and schema
SELECT twins('ALTER TABLE {}_t ADD COLUMN n int DEFAULT 7');
SELECT twins('ALTER TABLE {}_t ADD COLUMN m double precision DEFAULT random()');
SELECT same('SELECT k, v, n FROM {}_t ORDER BY k');
SELECT twins('ALTER TABLE {}_t ALTER COLUMN k TYPE bigint USING k * 10000000000');
SELECT same('SELECT k, v, n FROM {}_t ORDER BY k');
SELECT same('SELECT k, v, n FROM {}_t WHERE k BETWEEN 30000000000 AND 50000000000 ORDER BY k');
SELECT pg_get_indexdef('art_t_k'::regclass);
BEGIN;
SELECT twins('ALTER TABLE {}_t ALTER COLUMN k TYPE int USING (k / 10000000000)::int');
SELECT same('SELECT k, v FROM {}_t WHERE k = 7');
ROLLBACK;
SELECT same('SELECT k, v, n FROM {}_t WHERE k = 70000000000 ORDER BY k');
SELECT twins('ALTER TABLE {}_t DROP COLUMN m');
ALTER INDEX art_t_k RENAME TO art_t_renamed;
ALTER INDEX art_t_renamed RENAME TO art_t_k;
CREATE SCHEMA ddl2;
SELECT twins('ALTER TABLE {}_t SET SCHEMA ddl2');
SELECT twins('INSERT INTO ddl2.{}_t VALUES (1, ''moved'', 1)');
SELECT twins('ALTER TABLE ddl2.{}_t SET SCHEMA ddl');
SELECT same('SELECT k, v, n FROM {}_t WHERE k < 10000000001 ORDER BY k');
VACUUM FULL bt_t, art_t;
SELECT same('SELECT k, v, n FROM {}_t ORDER BY k');
SELECT clean('art_t_k');

-- CLUSTER by another index
CREATE INDEX art_t_bt ON art_t USING btree (v);
CREATE INDEX bt_t_bt ON bt_t USING btree (v);
CLUSTER art_t USING art_t_bt;
CLUSTER bt_t USING bt_t_bt;
SELECT same('SELECT k, v, n FROM {}_t ORDER BY k');
DROP INDEX art_t_bt, bt_t_bt;

-- another tablespace
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE ddl_space LOCATION '';
ALTER INDEX art_t_k SET TABLESPACE ddl_space;
-- a copied file: built again on first use
SELECT clean('art_t_k');
SELECT same('SELECT k, v, n FROM {}_t WHERE k < 20000000001 ORDER BY k');
SELECT twins('INSERT INTO {}_t VALUES (2, ''elsewhere'', 2)');
ALTER TABLE art_t SET TABLESPACE ddl_space;
SELECT same('SELECT k, v, n FROM {}_t WHERE k < 20000000001 ORDER BY k');
ALTER INDEX art_t_k SET TABLESPACE pg_default;
ALTER TABLE art_t SET TABLESPACE pg_default;
SELECT clean('art_t_k');
SELECT same('SELECT k, v, n FROM {}_t ORDER BY k');
SELECT clean('art_t_k');
DROP TABLESPACE ddl_space;

-- LIKE, inheritance, partitions, materialized views
SELECT twins('CREATE TABLE {}_like (LIKE {}_t INCLUDING ALL)');
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'art_like'::regclass;
SELECT twins('INSERT INTO {}_like SELECT * FROM {}_t');
SELECT same('SELECT k, v FROM {}_like WHERE k = 70000000000');
SELECT twins('CREATE TABLE {}_p (p int, k int) PARTITION BY RANGE (p)');
SELECT twins('CREATE TABLE {}_p1 PARTITION OF {}_p FOR VALUES FROM (0) TO (10)');
SELECT twins('INSERT INTO {}_p SELECT i % 10, i FROM generate_series(1, 100) i');
CREATE INDEX bt_p_k ON bt_p USING btree (k);
CREATE INDEX art_p_k ON art_p USING art (k);
SELECT twins('CREATE TABLE {}_p2 PARTITION OF {}_p FOR VALUES FROM (10) TO (20)');
SELECT twins('INSERT INTO {}_p SELECT 10 + i % 10, i FROM generate_series(1, 100) i');
SELECT twins('CREATE TABLE {}_p3 (p int, k int)');
SELECT twins('INSERT INTO {}_p3 SELECT 20 + i % 10, i FROM generate_series(1, 100) i');
SELECT twins('ALTER TABLE {}_p ATTACH PARTITION {}_p3 FOR VALUES FROM (20) TO (30)');
SELECT same('SELECT p, k FROM {}_p WHERE k BETWEEN 20 AND 40 ORDER BY k, p');
SELECT same('SELECT k FROM {}_p ORDER BY k');
SELECT twins('UPDATE {}_p SET p = p + 10 WHERE p < 20 AND k % 7 = 0');
SELECT same('SELECT p, k FROM {}_p WHERE k BETWEEN 20 AND 40 ORDER BY k, p');
SELECT twins('ALTER TABLE {}_p DETACH PARTITION {}_p2');
SELECT same('SELECT p, k FROM {}_p2 WHERE k BETWEEN 20 AND 40 ORDER BY k, p');
CREATE MATERIALIZED VIEW art_m AS SELECT * FROM art_t;
CREATE INDEX art_m_k ON art_m USING art (k);
CREATE MATERIALIZED VIEW bt_m AS SELECT * FROM bt_t;
CREATE INDEX bt_m_k ON bt_m USING btree (k);
SELECT twins('DELETE FROM {}_t WHERE n = 7 AND k > 300000000000');
REFRESH MATERIALIZED VIEW art_m;
REFRESH MATERIALIZED VIEW bt_m;
SELECT same('SELECT k, v FROM {}_m ORDER BY k');

-- a table made by the transaction that indexes it; plans that outlive an index
BEGIN;
SELECT twins('CREATE TABLE {}_x AS SELECT i AS k FROM generate_series(1, 100) i');
CREATE INDEX bt_x_k ON bt_x USING btree (k);
CREATE INDEX art_x_k ON art_x USING art (k);
SELECT same('SELECT k FROM {}_x WHERE k BETWEEN 10 AND 19 ORDER BY k');
COMMIT;
SELECT same('SELECT k FROM {}_x WHERE k BETWEEN 10 AND 19 ORDER BY k');
SET plan_cache_mode = force_generic_plan;
PREPARE p (int) AS SELECT count(*) FROM art_x WHERE k < $1;
EXPLAIN (COSTS OFF) EXECUTE p (10);
EXECUTE p (10);
DROP INDEX art_x_k;
EXECUTE p (10);
CREATE INDEX art_x_k ON art_x USING art (k);
EXPLAIN (COSTS OFF) EXECUTE p (10);
EXECUTE p (10);
DEALLOCATE p;
RESET plan_cache_mode;

-- dropped with its table, its schema; the memory comes back
SELECT indexrelname, state FROM artidx_indexes WHERE schemaname LIKE 'ddl%' ORDER BY 1;
DROP TABLE art_x, art_new, art_like, bt_x, bt_new, bt_like;
SELECT indexrelname, state FROM artidx_indexes WHERE schemaname LIKE 'ddl%' ORDER BY 1;
SET client_min_messages = warning;
DROP SCHEMA ddl, ddl2 CASCADE;
RESET client_min_messages;
SELECT count(*) FROM artidx_indexes WHERE schemaname LIKE 'ddl%';
