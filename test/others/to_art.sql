-- Every btree index of the database that art can be, made art.
DO $$
DECLARE
	i record;
BEGIN
	FOR i IN SELECT x.indexrelid::regclass AS name FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid
		JOIN pg_am a ON a.oid = c.relam
		WHERE amname = 'btree' AND c.relkind = 'i' AND c.relnamespace >= 16384 OR c.relnamespace = 'public'::regnamespace
			AND amname = 'btree' AND c.relkind = 'i'
		ORDER BY 1
	LOOP
		BEGIN
			CALL artidx_from_btree(i.name, false);
		EXCEPTION WHEN OTHERS THEN
			RAISE WARNING '%: % (%)', i.name, SQLERRM, SQLSTATE;
		END;
	END LOOP;
END $$;
ANALYZE;
