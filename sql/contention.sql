--
-- artidx_contention and artidx_contention_details: one row an index, absent ones too; reset; who may look.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA cont;
SET search_path = cont, public;
CREATE EXTENSION artidx_debug SCHEMA public;

SELECT string_agg(attname || ' ' || format_type(atttypid, NULL), ', ' ORDER BY attnum)
FROM pg_attribute WHERE attrelid = 'artidx_contention'::regclass AND attnum > 0;
SELECT string_agg(attname || ' ' || format_type(atttypid, NULL), ', ' ORDER BY attnum)
FROM pg_attribute WHERE attrelid = 'artidx_contention_details'::regclass AND attnum > 0;

CREATE TABLE art_t AS SELECT i AS k FROM generate_series(1, 1000) i;
CREATE UNIQUE INDEX art_k ON art_t USING art (k);
CREATE INDEX art_b ON art_t USING art (k) WITH (structure = btree);
CREATE VIEW seen AS
	SELECT indexrelname, restarts >= 0 AND pessimistic >= 0 AND latch_waits >= 0 AND parks >= 0
		AND handovers >= 0 AND abandoned >= 0 AND opportunistic_reads >= 0
		AND opportunistic_failed >= 0 AND expansions >= 0 AS counted,
		tail_mode, tail_inserts, tail_bypassed, tail_flushes, tail_flushed, tail_flush_ms,
		stats_reset IS NOT NULL AS reset
	FROM artidx_contention_details WHERE schemaname = 'cont' AND relname = 'art_t'
		AND relid = 'art_t'::regclass AND indexrelid = indexrelname::regclass;
SELECT * FROM seen ORDER BY 1;
SELECT artidx_reset_stats('art_k');
SELECT * FROM seen ORDER BY 1;
-- rebuilt, altered or absent: the statistics stay
SELECT artidx_unload('art_k');
SELECT * FROM seen ORDER BY 1;
SELECT artidx_build('art_k');
REINDEX INDEX art_k;
ALTER INDEX art_k SET (sync = rowex);
REINDEX TABLE art_t;
SELECT * FROM seen ORDER BY 1;
SELECT artidx_reset_stats();
SELECT * FROM seen ORDER BY 1;
-- also for who looks while it is being rewritten
BEGIN;
REINDEX INDEX art_k;
SELECT indexrelname, reset FROM seen ORDER BY 1;
ROLLBACK;
SELECT indexrelname, reset FROM seen ORDER BY 1;
SELECT count(DISTINCT stats_reset) FROM artidx_contention WHERE schemaname = 'cont';
SELECT artidx_reset_stats(NULL);

-- what is no index of ours
SELECT artidx_reset_stats('art_t');
SELECT artidx_reset_stats('pg_class_oid_index');

-- pg_monitor may look, nobody else, and nobody else may reset
CREATE ROLE regress_artidx_user;
CREATE ROLE regress_artidx_monitor IN ROLE pg_monitor;
GRANT USAGE ON SCHEMA cont TO regress_artidx_user, regress_artidx_monitor;
SET ROLE regress_artidx_user;
SELECT count(*) FROM artidx_contention;
SELECT count(*) FROM artidx_contention_details;
SELECT count(*) FROM artidx_memory_classes;
SELECT count(*) FROM artidx_epochs;
SELECT artidx_reset_stats();
SET ROLE regress_artidx_monitor;
SELECT count(*) FROM artidx_contention WHERE schemaname = 'cont';
SELECT count(*) FROM artidx_contention_details WHERE schemaname = 'cont';
SELECT count(*) > 0 FROM artidx_memory_classes;
SELECT count(*) > 0 FROM artidx_epochs;
SELECT artidx_reset_stats('art_k');
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA cont CASCADE;
DROP EXTENSION artidx_debug;
DROP ROLE regress_artidx_user, regress_artidx_monitor;
