-- Every btree index of the database that art can be, made art.
SET search_path = art_here, public;
DO $$
DECLARE
	i record;
BEGIN
	FOR i IN SELECT c.oid::regclass AS name FROM pg_class c JOIN pg_am a ON a.oid = c.relam
		WHERE amname = 'btree' AND relkind = 'i' AND c.oid >= 16384 AND relnamespace <> 'pg_toast'::regnamespace
		ORDER BY c.oid
	LOOP
		BEGIN
			CALL artidx_from_btree(i.name, false);
		EXCEPTION WHEN OTHERS THEN
			RAISE WARNING '%: % (%)', i.name, SQLERRM, SQLSTATE;
		END;
	END LOOP;
END $$;
ANALYZE;
