-- The demo in small: what btree answers, art answers.  Any difference is an error.
CREATE SCHEMA artidx;
CREATE EXTENSION artidx SCHEMA artidx;
CREATE EXTENSION artidx_debug SCHEMA artidx;
SET search_path = public, artidx;

CREATE TABLE b (id uuid, n int, t text COLLATE "C");
CREATE TABLE a (LIKE b);
CREATE UNIQUE INDEX b_id ON b (id);
CREATE INDEX b_nt ON b (n, t);
CREATE UNIQUE INDEX a_id ON a USING art (id);
CREATE INDEX a_nt ON a USING art (n, t);

\timing on
\echo INSERT of 20000 rows: btree, art
INSERT INTO b SELECT md5(i::text)::uuid, i % 997, 'row ' || i FROM generate_series(1, 20000) i;
INSERT INTO a SELECT md5(i::text)::uuid, i % 997, 'row ' || i FROM generate_series(1, 20000) i;
UPDATE b SET n = n + 1 WHERE n < 100;
UPDATE a SET n = n + 1 WHERE n < 100;
DELETE FROM b WHERE n BETWEEN 500 AND 599;
DELETE FROM a WHERE n BETWEEN 500 AND 599;
VACUUM ANALYZE a, b;

SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
CREATE TABLE answers (am text, question text, answer text);
\echo look-ups in a join, ranges, an order with a limit: btree, art
INSERT INTO answers
	SELECT 'btree', 'join', count(*)::text FROM generate_series(1, 20000) i JOIN b ON id = md5(i::text)::uuid
	UNION ALL SELECT 'btree', 'range', md5(string_agg(t, ',' ORDER BY t)) FROM b WHERE n BETWEEN 90 AND 110
	UNION ALL SELECT 'btree', 'first', string_agg(t, ',') FROM (SELECT t FROM b WHERE n = 7 ORDER BY t LIMIT 5) x;
INSERT INTO answers
	SELECT 'art', 'join', count(*)::text FROM generate_series(1, 20000) i JOIN a ON id = md5(i::text)::uuid
	UNION ALL SELECT 'art', 'range', md5(string_agg(t, ',' ORDER BY t)) FROM a WHERE n BETWEEN 90 AND 110
	UNION ALL SELECT 'art', 'first', string_agg(t, ',') FROM (SELECT t FROM a WHERE n = 7 ORDER BY t LIMIT 5) x;
\timing off

TABLE answers;
SELECT cpus, simd, huge_pages FROM artidx_hardware();
DO $$
DECLARE
	used text;
	line text;
	same int;
BEGIN
	SELECT count(*) INTO same FROM answers x JOIN answers y USING (question)
		WHERE x.am = 'btree' AND y.am = 'art' AND x.answer = y.answer;
	IF same <> 3 THEN
		RAISE EXCEPTION 'art and btree agree on % of 3 answers', same;
	END IF;
	used := '';
	FOR line IN EXPLAIN SELECT t FROM a WHERE n = 7 ORDER BY t LIMIT 5 LOOP
		used := used || line;
	END LOOP;
	IF used !~ 'a_nt' THEN
		RAISE EXCEPTION 'the art index is not used: %', used;
	END IF;
	-- an error unless the index has what the table has
	PERFORM artidx_check('a_id', true), artidx_check('a_nt', true);
	BEGIN
		INSERT INTO a SELECT * FROM a LIMIT 1;
		RAISE EXCEPTION 'the unique index took a duplicate';
	EXCEPTION WHEN unique_violation THEN
	END;
END $$;
SELECT indexrelname, state, entries FROM artidx_indexes ORDER BY 1;
