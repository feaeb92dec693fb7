-- Views and functions for looking at the indexes and at the memory they share.

CREATE FUNCTION artidx_index_stats(
	index oid,
	OUT structure text, OUT sync text, OUT tail_buffer text, OUT elision text,
	OUT state text, OUT reason text, OUT build_fraction float8,
	OUT entries bigint, OUT bytes bigint, OUT bytes_per_entry float8,
	OUT max_memory bigint, OUT height int, OUT inner_nodes bigint,
	OUT leaf_nodes bigint, OUT nodes jsonb, OUT builds bigint,
	OUT last_build timestamptz, OUT last_build_source text,
	OUT last_build_ms float8, OUT seals bigint, OUT next_try timestamptz)
RETURNS record
AS 'MODULE_PATHNAME', 'artidx_index_stats'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW artidx_indexes AS
	SELECT i.indrelid AS relid, i.indexrelid, n.nspname AS schemaname,
		   t.relname, c.relname AS indexrelname, s.*
	FROM pg_catalog.pg_index i
		JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
		JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
		JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
		JOIN pg_catalog.pg_am a ON a.oid = c.relam AND a.amname = 'art',
		LATERAL artidx_index_stats(i.indexrelid) s
	WHERE c.relkind = 'i' AND s.state IS NOT NULL;

COMMENT ON VIEW artidx_indexes IS
	'every art index of this database, absent ones too';

CREATE FUNCTION artidx_contention_stats(
	index oid,
	OUT restarts bigint, OUT pessimistic bigint, OUT latch_waits bigint,
	OUT parks bigint, OUT handovers bigint, OUT abandoned bigint,
	OUT opportunistic_reads bigint, OUT opportunistic_failed bigint,
	OUT expansions bigint,
	OUT tail_mode text, OUT tail_inserts bigint, OUT tail_bypassed bigint,
	OUT tail_flushes bigint, OUT tail_flushed bigint,
	OUT tail_flush_ms float8,
	OUT search_lag bigint, OUT search_applied bigint,
	OUT walks bigint, OUT walk_steps bigint,
	OUT longest_walk bigint,
	OUT version_commits bigint, OUT versions_passed bigint,
	OUT commits_helped bigint, OUT stats_reset timestamptz)
RETURNS record
AS 'MODULE_PATHNAME', 'artidx_contention_stats'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW artidx_contention AS
	SELECT i.indrelid AS relid, i.indexrelid, n.nspname AS schemaname,
		   t.relname, c.relname AS indexrelname, s.restarts, s.pessimistic,
		   s.latch_waits, s.parks, s.tail_mode, s.tail_inserts, s.search_lag,
		   s.stats_reset
	FROM pg_catalog.pg_index i
		JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
		JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
		JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
		JOIN pg_catalog.pg_am a ON a.oid = c.relam AND a.amname = 'art',
		LATERAL artidx_contention_stats(i.indexrelid) s
	WHERE c.relkind = 'i' AND s.restarts IS NOT NULL;

COMMENT ON VIEW artidx_contention IS
	'how often processes met in every art index of this database';

CREATE FUNCTION artidx_memory_stats(
	OUT area_bytes bigint, OUT used_bytes bigint, OUT free_bytes bigint,
	OUT largest_free_bytes bigint, OUT reserve_bytes bigint,
	OUT retired_bytes bigint, OUT overhead_bytes bigint,
	OUT touched_bytes bigint, OUT indexes int, OUT sealed int)
RETURNS record
AS 'MODULE_PATHNAME', 'artidx_memory_stats'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW artidx_memory AS
	SELECT * FROM artidx_memory_stats();

COMMENT ON VIEW artidx_memory IS
	'the shared memory in which the art indexes of all databases live';

CREATE FUNCTION artidx_usage_stats(
	OUT database name, OUT owner name, OUT kind text, OUT indexes int,
	OUT sealed int, OUT bytes bigint, OUT limited_by text,
	OUT limit_bytes bigint, OUT limit_used_bytes bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'artidx_usage_stats'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW artidx_usage AS
	SELECT * FROM artidx_usage_stats();

COMMENT ON VIEW artidx_usage IS
	'what the art indexes of all databases take, by database, owner and kind';

CREATE FUNCTION artidx_index_size(index regclass)
RETURNS bigint
AS 'MODULE_PATHNAME', 'artidx_index_size'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION artidx_index_size(regclass) IS
	'bytes of shared memory that an art index takes';

CREATE FUNCTION artidx_build(index regclass)
RETURNS void
AS 'MODULE_PATHNAME', 'artidx_build'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION artidx_build(regclass) IS
	'build an absent art index now';

CREATE FUNCTION artidx_wait(timeout interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'artidx_wait'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION artidx_wait(interval) IS
	'wait until every valid art index of this database is in memory; false when some are not, which a NOTICE names';

CREATE FUNCTION artidx_unload(index regclass)
RETURNS void
AS 'MODULE_PATHNAME', 'artidx_unload'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION artidx_unload(regclass) IS
	'free the memory of an art index until artidx_build, a restart or a unique insert';

CREATE FUNCTION artidx_reset_stats(index regclass DEFAULT NULL)
RETURNS void
AS 'MODULE_PATHNAME', 'artidx_reset_stats'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION artidx_reset_stats(regclass) IS
	'set the counters of artidx_contention, and of views of artidx_debug, to zero, of one index or of all of this database';

REVOKE ALL ON artidx_indexes, artidx_contention, artidx_memory, artidx_usage FROM PUBLIC;
GRANT SELECT ON artidx_indexes, artidx_contention, artidx_memory, artidx_usage TO pg_monitor;

REVOKE ALL ON FUNCTION artidx_index_stats(oid), artidx_contention_stats(oid),
	artidx_memory_stats(), artidx_usage_stats() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION artidx_index_stats(oid), artidx_contention_stats(oid),
	artidx_memory_stats(), artidx_usage_stats() TO pg_monitor;
REVOKE ALL ON FUNCTION artidx_build(regclass), artidx_unload(regclass),
	artidx_reset_stats(regclass) FROM PUBLIC;
