-- REINDEX CONCURRENTLY of many unique indexes fails at the last one: nobody makes the
-- invalid ones any more, so none of them is needed by an insert.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS artidx;
CREATE TABLE rm (k int);
INSERT INTO rm SELECT generate_series(1, 10);
DO $$ BEGIN FOR i IN 1 .. 70 LOOP EXECUTE format('CREATE UNIQUE INDEX rm_k%s ON rm USING art (k)', i); END LOOP; END $$;
CREATE FUNCTION rm_fails(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$ BEGIN
	IF current_setting('rm.fails', true) = 'yes' THEN RAISE 'it fails'; END IF;
	RETURN k;
END $$;
CREATE INDEX rm_last ON rm USING art (rm_fails(k));
SET rm.fails = yes;
\set VERBOSITY terse
REINDEX TABLE CONCURRENTLY rm;
\set VERBOSITY default
RESET rm.fails;
SELECT count(*) FROM pg_index WHERE indrelid = 'rm'::regclass AND NOT indisvalid AND indisready;
SELECT count(artidx_unload(indexrelid)) FROM pg_index WHERE indrelid = 'rm'::regclass AND NOT indisvalid;
INSERT INTO rm VALUES (11);
SELECT state, count(*) FROM artidx_indexes WHERE indexrelname ~ '^rm_.*_ccnew$' GROUP BY 1;
SELECT count(*) FROM artidx_indexes WHERE indexrelname ~ '^rm_k[0-9]*$' AND state = 'ready';
DROP TABLE rm;
DROP FUNCTION rm_fails;
