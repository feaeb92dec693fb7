-- Views and functions for who looks for the cause of something in a structure, in its
-- memory, or in the processor's transactions.  The extension artidx has all that an
-- operator needs.

CREATE FUNCTION artidx_contention_detail_stats(
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

CREATE VIEW artidx_contention_details AS
	SELECT i.indrelid AS relid, i.indexrelid, n.nspname AS schemaname,
		   t.relname, c.relname AS indexrelname, s.*
	FROM pg_catalog.pg_index i
		JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
		JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
		JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
		JOIN pg_catalog.pg_am a ON a.oid = c.relam AND a.amname = 'art',
		LATERAL artidx_contention_detail_stats(i.indexrelid) s
	WHERE c.relkind = 'i' AND s.restarts IS NOT NULL;

COMMENT ON VIEW artidx_contention_details IS
	'what processes met of one another in every art index of this database';

CREATE FUNCTION artidx_abort_stats(
	index regclass DEFAULT NULL,
	OUT site text, OUT mode text, OUT sections bigint, OUT attempts bigint,
	OUT commits bigint, OUT conflict bigint, OUT capacity bigint,
	OUT explicit bigint, OUT lock_busy bigint, OUT nested bigint,
	OUT zero bigint, OUT other bigint, OUT retry_hint bigint,
	OUT fallbacks bigint, OUT switch_offs bigint, OUT switch_ons bigint,
	OUT stats_reset timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'artidx_abort_stats'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL SAFE ROWS 8;

COMMENT ON FUNCTION artidx_abort_stats(regclass) IS
	'how elided sections of an art index fared, or of all of this database together';

CREATE VIEW artidx_aborts AS
	SELECT i.indrelid AS relid, i.indexrelid, n.nspname AS schemaname,
		   t.relname, c.relname AS indexrelname, s.*
	FROM pg_catalog.pg_index i
		JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
		JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
		JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
		JOIN pg_catalog.pg_am a ON a.oid = c.relam AND a.amname = 'art',
		LATERAL artidx_abort_stats(i.indexrelid::pg_catalog.regclass) s
	WHERE c.relkind = 'i';

COMMENT ON VIEW artidx_aborts IS
	'how the elided sections of every art index of this database fared, by site';

CREATE FUNCTION artidx_hardware(
	OUT rtm_cpuid boolean, OUT rtm_always_abort boolean,
	OUT rtm_usable boolean, OUT probe_attempts int, OUT probe_commits int,
	OUT elision text, OUT reason text, OUT cpus int, OUT simd text,
	OUT huge_pages text)
RETURNS record
AS 'MODULE_PATHNAME', 'artidx_hardware'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION artidx_hardware() IS
	'what art indexes have to work with on this machine, and why nothing is elided';

CREATE FUNCTION artidx_memory_class_stats(
	OUT size_class int, OUT spans bigint, OUT bytes bigint, OUT live bigint,
	OUT free bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'artidx_memory_class_stats'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW artidx_memory_classes AS
	SELECT * FROM artidx_memory_class_stats();

COMMENT ON VIEW artidx_memory_classes IS
	'the memory of artidx_memory by size of object';

CREATE FUNCTION artidx_epoch_stats(
	OUT slot int, OUT pid int, OUT pinned_epoch bigint, OUT lag bigint,
	OUT global_epoch bigint, OUT retired_objects bigint,
	OUT retired_bytes bigint, OUT adopted_bytes bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'artidx_epoch_stats'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW artidx_epochs AS
	SELECT e.slot, e.pid, a.backend_type, e.pinned_epoch, e.lag,
		   e.global_epoch, e.retired_objects, e.retired_bytes, e.adopted_bytes
	FROM artidx_epoch_stats() e
		LEFT JOIN pg_catalog.pg_stat_get_activity(NULL) a ON a.pid = e.pid;

COMMENT ON VIEW artidx_epochs IS
	'every process that is attached to the memory of the art indexes';

REVOKE ALL ON artidx_contention_details, artidx_aborts, artidx_memory_classes,
	artidx_epochs FROM PUBLIC;
GRANT SELECT ON artidx_contention_details, artidx_aborts, artidx_memory_classes,
	artidx_epochs TO pg_monitor;

REVOKE ALL ON FUNCTION artidx_contention_detail_stats(oid), artidx_abort_stats(regclass),
	artidx_memory_class_stats(), artidx_epoch_stats() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION artidx_contention_detail_stats(oid), artidx_abort_stats(regclass),
	artidx_memory_class_stats(), artidx_epoch_stats() TO pg_monitor;
