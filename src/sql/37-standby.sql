-- The followers that keep art indexes on a standby.

CREATE FUNCTION artidx_standby_stats(
	OUT database name, OUT follower_pid int, OUT follower_lsn pg_lsn,
	OUT replay_lsn pg_lsn, OUT lag_bytes bigint, OUT lag_ms float8,
	OUT entries_added bigint, OUT dead_waiting bigint, OUT sweeps bigint,
	OUT entries_swept bigint, OUT sweep_ms float8, OUT waits bigint,
	OUT wait_ms float8, OUT given_up bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'artidx_standby_stats'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE ROWS 4;

CREATE VIEW artidx_standby AS
	SELECT * FROM artidx_standby_stats();

COMMENT ON VIEW artidx_standby IS
	'the processes that keep art indexes in memory on this standby, one a database';

REVOKE ALL ON artidx_standby FROM PUBLIC;
GRANT SELECT ON artidx_standby TO pg_monitor;
REVOKE ALL ON FUNCTION artidx_standby_stats() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION artidx_standby_stats() TO pg_monitor;
