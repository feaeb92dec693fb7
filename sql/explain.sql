--
-- Twelve queries, without any planner setting: the plan with art indexes is
-- the plan with btree indexes, and it uses the index.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA expl;
SET search_path = expl, public;

-- both plans, line by line; only the names of tables and indexes differ
CREATE FUNCTION plans(q text) RETURNS TABLE (same bool, art_plan text, btree_plan text)
LANGUAGE plpgsql AS $$
DECLARE
	b text[] := twin.plan('bt', q);
	a text[] := twin.plan('art', q);
BEGIN
	RETURN QUERY SELECT x.a IS NOT DISTINCT FROM x.b, x.a, CASE WHEN x.a IS DISTINCT FROM x.b THEN x.b END
		FROM unnest(a, b) x (a, b);
END $$;

-- few enough rows that ANALYZE reads them all
SELECT twins('CREATE TABLE {}_t (id int, grp int, val int, txt text COLLATE "C", opt int)');
SELECT twins('INSERT INTO {}_t SELECT i, i % 1000, (i::bigint * 7919) % 100003, md5(i::text),
	CASE WHEN i % 500 = 0 THEN NULL ELSE i END FROM generate_series(1, 25000) i');
SELECT twins('CREATE TABLE {}_s (id int, ref int)');
SELECT twins('INSERT INTO {}_s SELECT i, (i * 2371) % 25000 + 1 FROM generate_series(1, 20) i');
CREATE UNIQUE INDEX bt_t_id ON bt_t USING btree (id);
CREATE UNIQUE INDEX art_t_id ON art_t USING art (id);
CREATE INDEX bt_t_grp_val ON bt_t USING btree (grp, val);
CREATE INDEX art_t_grp_val ON art_t USING art (grp, val);
CREATE INDEX bt_t_val ON bt_t USING btree (val);
CREATE INDEX art_t_val ON art_t USING art (val);
CREATE INDEX bt_t_txt ON bt_t USING btree (txt);
CREATE INDEX art_t_txt ON art_t USING art (txt);
CREATE INDEX bt_t_opt ON bt_t USING btree (opt);
CREATE INDEX art_t_opt ON art_t USING art (opt);
VACUUM ANALYZE bt_t, art_t, bt_s, art_s;

-- 1. equality on a unique key
SELECT * FROM plans('SELECT * FROM {}_t WHERE id = 4711');
-- 2. a range
SELECT * FROM plans('SELECT * FROM {}_t WHERE id BETWEEN 100 AND 200');
-- 3. the first rows in order, forward
SELECT * FROM plans('SELECT * FROM {}_t ORDER BY val LIMIT 10');
-- 4. and backward
SELECT * FROM plans('SELECT * FROM {}_t ORDER BY val DESC LIMIT 10');
-- 5. minimum and maximum
SELECT * FROM plans('SELECT min(val), max(val) FROM {}_t');
-- 6. the inner side of a nested loop
SELECT * FROM plans('SELECT s.id, t.txt FROM {}_s s JOIN {}_t t ON t.id = s.ref');
-- 7. index-only
SELECT * FROM plans('SELECT val FROM {}_t WHERE val < 2000');
-- 8. a bitmap OR
SELECT * FROM plans('SELECT * FROM {}_t WHERE grp = 7 OR val BETWEEN 500 AND 600');
-- 9. a prefix of two columns with a range behind it, in order
SELECT * FROM plans('SELECT grp, val FROM {}_t WHERE grp = 17 AND val > 5000 ORDER BY val');
-- 10. IS NULL
SELECT * FROM plans('SELECT count(*) FROM {}_t WHERE opt IS NULL');
-- 11. a prefix of a text in the C collation
SELECT * FROM plans('SELECT * FROM {}_t WHERE txt LIKE ''abc%''');
-- 12. the order of a merge join, and of DISTINCT ON
SELECT * FROM plans('SELECT a.id, b.id FROM {}_t a JOIN {}_t b ON a.id = b.id ORDER BY a.id LIMIT 20');
SELECT * FROM plans('SELECT DISTINCT ON (grp) grp, val FROM {}_t ORDER BY grp, val');

-- the same answers
SELECT same('SELECT * FROM {}_t WHERE id = 4711');
SELECT same('SELECT * FROM {}_t WHERE id BETWEEN 100 AND 200 ORDER BY id');
SELECT same('SELECT val, id FROM {}_t ORDER BY val LIMIT 10');
SELECT same('SELECT val, id FROM {}_t ORDER BY val DESC LIMIT 10');
SELECT same('SELECT min(val), max(val) FROM {}_t');
SELECT same('SELECT s.id, t.txt FROM {}_s s JOIN {}_t t ON t.id = s.ref ORDER BY s.id');
SELECT same('SELECT val FROM {}_t WHERE val < 2000 ORDER BY val');
SELECT same('SELECT id FROM {}_t WHERE grp = 7 OR val BETWEEN 500 AND 600 ORDER BY id');
SELECT same('SELECT grp, val FROM {}_t WHERE grp = 17 AND val > 5000 ORDER BY val');
SELECT same('SELECT count(*) FROM {}_t WHERE opt IS NULL');
SELECT same('SELECT txt FROM {}_t WHERE txt LIKE ''abc%'' ORDER BY txt');
SELECT same('SELECT a.id, b.id FROM {}_t a JOIN {}_t b ON a.id = b.id ORDER BY a.id LIMIT 20');
SELECT same('SELECT DISTINCT ON (grp) grp, val FROM {}_t ORDER BY grp, val');

-- a partial index has the size of what is in it
CREATE INDEX bt_t_part ON bt_t USING btree (val) WHERE grp = 3;
CREATE INDEX art_t_part ON art_t USING art (val) WHERE grp = 3;
VACUUM ANALYZE bt_t, art_t;
SELECT * FROM plans('SELECT * FROM {}_t WHERE grp = 3 AND val < 3000');
-- a boolean column, and LIKE through a pattern class
SELECT twins('CREATE TABLE {}_f (flag bool, t text)');
SELECT twins('INSERT INTO {}_f SELECT i % 1000 = 0, md5(i::text) FROM generate_series(1, 20000) i');
CREATE INDEX bt_f_flag ON bt_f USING btree (flag);
CREATE INDEX art_f_flag ON art_f USING art (flag);
CREATE INDEX bt_f_t ON bt_f USING btree (t text_pattern_ops);
CREATE INDEX art_f_t ON art_f USING art (t text_pattern_ops);
VACUUM ANALYZE bt_f, art_f;
SELECT * FROM plans('SELECT * FROM {}_f WHERE flag');
SELECT * FROM plans('SELECT * FROM {}_f WHERE t LIKE ''abc%''');

SET client_min_messages = warning;
DROP SCHEMA expl CASCADE;
