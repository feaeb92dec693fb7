-- Every art index of the database against its table; prints nothing but faults.
SET client_min_messages = warning;
DO $$
DECLARE
	i regclass;
BEGIN
	FOR i IN SELECT c.oid FROM pg_class c JOIN pg_am a ON a.oid = c.relam
		WHERE a.amname = 'art' AND c.relkind = 'i' AND c.relpersistence <> 't'
		ORDER BY c.oid
	LOOP
		BEGIN
			PERFORM artidx_check(i, true);
		EXCEPTION WHEN OTHERS THEN
			RAISE WARNING '%: % (%)', i, SQLERRM, SQLSTATE;
		END;
	END LOOP;
END $$;
