-- The privileges of what was dropped, as the install script gives them.
REVOKE ALL ON artidx_contention FROM PUBLIC;
GRANT SELECT ON artidx_contention TO pg_monitor;

REVOKE ALL ON FUNCTION artidx_index_stats(pg_catalog.oid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION artidx_index_stats(pg_catalog.oid) TO pg_monitor;

-- And of what is new.
REVOKE ALL ON artidx_progress, artidx_crash_checks FROM PUBLIC;
GRANT SELECT ON artidx_progress, artidx_crash_checks TO pg_monitor;
REVOKE ALL ON FUNCTION artidx_progress_stats(), artidx_crash_check_stats() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION artidx_progress_stats(), artidx_crash_check_stats() TO pg_monitor;
