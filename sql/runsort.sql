-- The sort of a build's keys, by what is hard for it.  The index must give
-- the rows in the order of key and place, each once.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS artidx;
RESET client_min_messages;
SET max_parallel_maintenance_workers = 0;

CREATE FUNCTION rs_case(name text, keys text) RETURNS TABLE(shape text, ordered bool, entries bigint)
LANGUAGE plpgsql AS $$
BEGIN
	CREATE TABLE rs (no int, k text COLLATE "C") WITH (autovacuum_enabled = off);
	EXECUTE 'INSERT INTO rs SELECT i, ' || keys;
	CREATE INDEX rs_k ON rs USING art (k);
	shape := name;
	SELECT c.entries INTO entries FROM artidx_check('rs_k', true) c;
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_bitmapscan = off;
	SET LOCAL enable_sort = off;
	SELECT coalesce(array_agg(no), '{}') =
		ARRAY(SELECT no FROM rs ORDER BY k || '', ctid) INTO ordered
		FROM (SELECT no FROM rs ORDER BY k) s;
	DROP TABLE rs;
	RETURN NEXT;
END $$;

SELECT r.* FROM (VALUES
	(1, 'empty', '''a'' FROM generate_series(1, 0) i'),
	(2, 'one', '''a'' FROM generate_series(1, 1) i'),
	(3, 'sorted', 'lpad(i::text, 9, ''0'') FROM generate_series(1, 20000) i'),
	(4, 'reversed', 'lpad((50000 - i)::text, 9, ''0'') FROM generate_series(1, 20000) i'),
	(5, 'equal', '''same'' FROM generate_series(1, 20000) i'),
	(6, 'few', '(i % 3)::text FROM generate_series(1, 20000) i'),
	(7, 'random', 'md5(i::text) FROM generate_series(1, 20000) i'),
	-- less is common from a late key on, twice
	(8, 'late', 'CASE WHEN i < 15000 THEN ''a long beginning '' WHEN i < 19000 THEN ''a long '' ELSE ''b'' END
		|| md5(i::text) FROM generate_series(1, 20000) i'),
	-- told apart far behind what the sort has at hand, in groups of all sizes
	(9, 'far', 'lpad((i % 90)::text, 4, ''0'') || repeat(''x'', 300) || md5(i::text)
		FROM generate_series(1, 20000) i'),
	(10, 'nested', 'repeat(''a'', i % 250) || ''b'' FROM generate_series(1, 5000) i'),
	(11, 'lengths', 'substr(md5(i::text), 1, i % 7) FROM generate_series(1, 20000) i')
) AS v(n, name, keys), rs_case(name, keys) r ORDER BY n;

-- in several runs
SET maintenance_work_mem = '1MB';
SELECT r.* FROM (VALUES
	(1, 'late', 'CASE WHEN i < 30000 THEN ''a long beginning '' ELSE ''b'' END || md5(i::text)
		FROM generate_series(1, 40000) i'),
	(2, 'equal', 'repeat(''same'', 9) FROM generate_series(1, 40000) i')
) AS v(n, name, keys), rs_case(name, keys) r ORDER BY n;

-- versions of one row come under one root, with the same key: one entry
RESET maintenance_work_mem;
CREATE TABLE rs (no int, a text COLLATE "C", u uuid, v int) WITH (fillfactor = 40, autovacuum_enabled = off);
INSERT INTO rs SELECT i, md5(i::text), md5(i::text)::uuid, 0 FROM generate_series(1, 5000) i;
BEGIN;
UPDATE rs SET v = v + 1;
CREATE INDEX rs_a ON rs USING art (a);
CREATE INDEX rs_u ON rs USING art (u);
SELECT (SELECT entries FROM artidx_check('rs_a', true)), (SELECT entries FROM artidx_check('rs_u', true));
COMMIT;
DROP TABLE rs;
DROP FUNCTION rs_case;
