--
-- UPDATEs that are not HOT and change no column of an index: entries of dead
-- versions go before VACUUM comes.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS artidx;
RESET client_min_messages;
CREATE SCHEMA churn;
SET search_path = churn, public;

-- v is indexed, so no UPDATE of it is HOT; the rest does not change, and no scan
-- of an art index finds the row
CREATE TABLE t (id int, k int, name text COLLATE "C", n numeric, few int, u int, v int)
	WITH (autovacuum_enabled = off);
CREATE INDEX t_k ON t USING art (k);
CREATE INDEX t_name ON t USING art (name DESC, k);
CREATE INDEX t_n ON t USING art (n) WITH (structure = btree);
CREATE INDEX t_few ON t USING art (few);
CREATE UNIQUE INDEX t_u ON t USING art (u);
CREATE INDEX t_v ON t USING btree (v);
CREATE INDEX t_id ON t USING btree (id);
INSERT INTO t SELECT i, i, 'name ' || i, i / 7.0, i % 3, CASE WHEN i % 2 = 0 THEN i END, 0
	FROM generate_series(1, 300) i;

CREATE PROCEDURE churn(n int, keys int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		UPDATE t SET v = v + 1 WHERE id = 1 + i % keys;
		COMMIT;
	END LOOP;
END $$;

CREATE VIEW kept AS
	SELECT i.indexrelid::regclass AS index, i.entries - 300 AS more
	FROM artidx_indexes i WHERE i.indexrelid::regclass::text LIKE 't\_%';

-- one row, and one that has a NULL in the unique index
SET synchronous_commit = off;
SET enable_seqscan = off;
CALL churn(10000, 2);
SELECT index, more < 400 AS bounded FROM kept ORDER BY 1;

-- all of them
CALL churn(6000, 300);
SELECT index, more < 2500 AS bounded FROM kept ORDER BY 1;

-- what is there is right
SELECT sum(v), count(*) FROM t WHERE k > 0;
SELECT sum(v), count(*) FROM t WHERE name > '';
SELECT sum(v), count(*) FROM t WHERE n > 0;
SELECT sum(v), count(*) FROM t WHERE few >= 0;
SELECT sum(v), count(*) FROM t WHERE u IS NULL;
SELECT i, entries > 299 AS entries, heap_tuples
FROM unnest(ARRAY['t_k', 't_name', 't_n', 't_few', 't_u']) i, artidx_check(i, true) c;

-- versions of one transaction are dead to nobody before it ends
BEGIN;
DO $$ BEGIN FOR i IN 1 .. 200 LOOP UPDATE t SET v = v + 1 WHERE id = 7; END LOOP; END $$;
SELECT v >= 200 AS v FROM t WHERE k = 7;
SAVEPOINT s;
DO $$ BEGIN FOR i IN 1 .. 200 LOOP UPDATE t SET v = v + 1 WHERE id = 7; END LOOP; END $$;
ROLLBACK TO s;
UPDATE t SET v = v + 1 WHERE id = 7;
SELECT count(*) FROM t WHERE k = 7;
SELECT v >= 201 AS v FROM t WHERE k = 7;
ROLLBACK;
SELECT v < 200 AS v FROM t WHERE k = 7;
SELECT count(*) FROM t WHERE k = 7;

-- aborted versions go, too
DO $$
BEGIN
	FOR i IN 1 .. 300 LOOP
		BEGIN
			UPDATE t SET v = -1 WHERE id = 8;
			RAISE EXCEPTION 'no';
		EXCEPTION WHEN raise_exception THEN NULL;
		END;
	END LOOP;
END $$;
SELECT v >= 0 AS v FROM t WHERE k = 8;
VACUUM t;
SELECT * FROM kept ORDER BY 1;

DROP SCHEMA churn CASCADE;
