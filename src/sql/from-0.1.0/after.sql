-- The privileges of what was dropped, as the install script gives them.
DO $$
BEGIN
	IF EXISTS (SELECT FROM pg_catalog.pg_class c
			   WHERE c.oid = 'artidx_aborts'::pg_catalog.regclass::pg_catalog.oid AND c.relacl IS NULL)
	THEN
		REVOKE ALL ON artidx_aborts FROM PUBLIC;
		GRANT SELECT ON artidx_aborts TO pg_monitor;
	END IF;
END
$$;

REVOKE ALL ON FUNCTION artidx_index_stats(pg_catalog.oid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION artidx_index_stats(pg_catalog.oid) TO pg_monitor;
