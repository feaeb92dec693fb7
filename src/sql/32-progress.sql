-- What is being built, loaded and checked in the whole server.

CREATE FUNCTION artidx_progress_stats(
	OUT pid int, OUT datid oid, OUT relid oid, OUT index_relid oid,
	OUT command text, OUT phase text, OUT helpers int,
	OUT blocks_total bigint, OUT blocks_done bigint,
	OUT tuples_total bigint, OUT tuples_done bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'artidx_progress_stats'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE ROWS 4;

CREATE VIEW artidx_progress AS
	SELECT s.pid, s.datid, d.datname, s.relid, s.index_relid, s.command,
		   COALESCE(NULLIF(pg_catalog.replace(p.phase, 'building index: ', ''), 'building index'),
					s.phase) AS phase,
		   s.helpers, s.blocks_total,
		   GREATEST(s.blocks_done, p.blocks_done) AS blocks_done,
		   s.tuples_total,
		   GREATEST(s.tuples_done, p.tuples_done) AS tuples_done
	FROM artidx_progress_stats() s
		LEFT JOIN pg_catalog.pg_database d ON d.oid = s.datid
		LEFT JOIN pg_catalog.pg_stat_progress_create_index p
			ON p.pid = s.pid AND p.datid = s.datid AND p.relid = s.relid
				AND (p.index_relid = s.index_relid OR p.index_relid = 0::pg_catalog.oid);

COMMENT ON VIEW artidx_progress IS
	'each art index of any database that is being built or loaded now, and how far that is';

CREATE FUNCTION artidx_crash_check_stats(
	OUT waiting int, OUT sound bigint, OUT different bigint)
RETURNS record
AS 'MODULE_PATHNAME', 'artidx_crash_check_stats'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW artidx_crash_checks AS
	SELECT * FROM artidx_crash_check_stats();

COMMENT ON VIEW artidx_crash_checks IS
	'what the checks of art indexes that outlived a crash have found, in all databases';

REVOKE ALL ON artidx_progress, artidx_crash_checks FROM PUBLIC;
GRANT SELECT ON artidx_progress, artidx_crash_checks TO pg_monitor;
REVOKE ALL ON FUNCTION artidx_progress_stats(), artidx_crash_check_stats() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION artidx_progress_stats(), artidx_crash_check_stats() TO pg_monitor;
