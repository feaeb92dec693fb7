--
-- Row types are altered, and the indexes that hold them answer right.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA comp;
SET search_path = comp, public;
SET client_min_messages = warning;

-- The same statement on both sides; of what is refused only the code is shown, for minor
-- releases have other words.
CREATE FUNCTION side_by_side(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	b text := twin.outcome('bt', replace(q, '<am>', 'btree'));
	a text := twin.outcome('art', replace(q, '<am>', 'art'));
BEGIN
	IF a <> b THEN
		RETURN format(E'DIFFERENT\nbtree: %s\nart:   %s', b, a);
	END IF;
	RETURN CASE WHEN a ~ '^[0-9]+ rows$' THEN 'done' ELSE 'refused: ' || left(a, 5) END;
END $$;

-- Each index of art with the expression of its first column; and its file when last seen.
CREATE TABLE held (name text PRIMARY KEY, tab text, key text, cond text, file oid);

-- The answer of a query by the index alone, or by the table alone.
CREATE FUNCTION answer(q text, by_index bool, OUT rows text[], OUT scan text) LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	PERFORM set_config('enable_seqscan', (NOT by_index)::text, true),
		set_config('enable_sort', (NOT by_index)::text, true),
		set_config('enable_bitmapscan', 'off', true),
		set_config('enable_indexscan', by_index::text, true),
		set_config('enable_indexonlyscan', by_index::text, true);
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP
		IF line ~ 'Scan.* on .*_' AND line !~ 'SubPlan|InitPlan' THEN
			scan := concat_ws(', ', scan, substring(line from '(Index Only|Index|Seq)[^>]* (?=on)'));
		END IF;
	END LOOP;
	EXECUTE 'SELECT array_agg(x::text) FROM (' || q || ') x' INTO rows;
END $$;

-- What is wrong with each index; which have a new file since the last look.
CREATE FUNCTION look() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	h held;
	q text;
	i record;
	s record;
	now oid;
	checked text;
	news text[];
	answers int := 0;
BEGIN
	FOR h IN SELECT * FROM held ORDER BY name LOOP
		SELECT relfilenode INTO now FROM pg_class WHERE oid = to_regclass(h.name);
		IF now IS NULL THEN
			news := news || (h.name || ' (gone)');
			DELETE FROM held WHERE name = h.name;
			CONTINUE;
		END IF;
		IF now <> h.file THEN
			news := news || h.name;
			UPDATE held SET file = now WHERE name = h.name;
		END IF;
		PERFORM artidx_build(h.name::regclass);
		checked := clean(h.name::regclass);
		IF checked <> 'clean' THEN
			RETURN NEXT h.name || ' ' || checked;
		END IF;
		-- nobody can write that expression again when the type has other attributes
		CONTINUE WHEN h.name = 'art_rowexpr';
		FOREACH q IN ARRAY ARRAY[
			CASE h.name WHEN 'art_include' THEN 'SELECT k, o, r FROM %1$s WHERE id > 0%3$s ORDER BY id' END,
			'SELECT id FROM %1$s WHERE %2$s = (SELECT %2$s FROM %1$s WHERE id = 77)%3$s',
			'SELECT id FROM %1$s WHERE %2$s = (SELECT %2$s FROM %1$s WHERE id = 301)%3$s',
			'SELECT id FROM %1$s WHERE %2$s >= (SELECT %2$s FROM %1$s WHERE id = 55) AND %2$s < (SELECT %2$s FROM %1$s WHERE id = 74)%3$s',
			'SELECT %2$s FROM %1$s WHERE %2$s > (SELECT %2$s FROM %1$s WHERE id = 5)%3$s',
			'SELECT %2$s FROM %1$s WHERE true%3$s ORDER BY %2$s'] LOOP
			CONTINUE WHEN q IS NULL;
			q := format(q, h.tab, h.key, ' AND ' || h.cond);
			i := answer(q, true);
			s := answer(q, false);
			IF i.scan !~ 'Index' THEN
				RETURN NEXT format('%s is not used: %s: %s', h.name, i.scan, q);
			ELSIF i.rows IS DISTINCT FROM s.rows AND q !~ 'ORDER BY' AND
				(SELECT array_agg(x ORDER BY x) FROM unnest(i.rows) x) IS DISTINCT FROM
				(SELECT array_agg(x ORDER BY x) FROM unnest(s.rows) x) OR
				i.rows IS DISTINCT FROM s.rows AND q ~ 'ORDER BY' THEN
				RETURN NEXT format('%s: %s: %s rows by index, %s by table', h.name, q,
					cardinality(i.rows), cardinality(s.rows));
			END IF;
			answers := answers + 1;
		END LOOP;
	END LOOP;
	RETURN NEXT format('%s answers; new: %s', answers, coalesce(array_to_string(news, ' '), 'none'));
END $$;

-- ---- what can hold a type ----
SELECT side_by_side('CREATE TYPE {}_pair AS (a int, b text, c int)');
SELECT side_by_side('CREATE DOMAIN {}_dom AS {}_pair');
SELECT side_by_side('CREATE DOMAIN {}_sole AS {}_pair');
SELECT side_by_side('CREATE TYPE {}_outer AS (p {}_pair, n int)');
SELECT side_by_side('CREATE TYPE {}_range AS RANGE (subtype = {}_pair)');
SELECT side_by_side('CREATE FUNCTION {}_make(int) RETURNS {}_pair LANGUAGE sql IMMUTABLE AS $f$ SELECT CASE WHEN $1 < 0 THEN NULL::comp.{}_pair END $f$');
SELECT side_by_side('CREATE TABLE {}_t (id int, k {}_pair, l {}_pair[], d {}_sole, e {}_dom[], o {}_outer, r {}_range, m {}_multirange, x int, y text)');
-- the first attribute alone is the same for many
SELECT side_by_side($$INSERT INTO {}_t SELECT i, k, ARRAY[k, k], k, ARRAY[k::{}_dom], ROW(k, i % 3)::{}_outer,
	{}_range(k, ROW(1000, '', 0)::{}_pair), {}_multirange({}_range(k, ROW(1000, '', 0)::{}_pair)), i % 20, 'y' || i % 31
	FROM generate_series(1, 600) i, LATERAL (SELECT ROW(i % 20, 'x' || i % 31, i)::{}_pair AS k) k$$);
SELECT side_by_side('CREATE INDEX {}_plain ON {}_t USING <am> (k)');
SELECT side_by_side('CREATE INDEX {}_desc ON {}_t USING <am> (k DESC NULLS LAST, id)');
SELECT side_by_side('CREATE INDEX {}_array ON {}_t USING <am> (l)');
SELECT side_by_side('CREATE INDEX {}_domain ON {}_t USING <am> (d)');
SELECT side_by_side('CREATE INDEX {}_domains ON {}_t USING <am> (e)');
SELECT side_by_side('CREATE INDEX {}_nested ON {}_t USING <am> (o)');
SELECT side_by_side('CREATE INDEX {}_ranged ON {}_t USING <am> (r)');
SELECT side_by_side('CREATE INDEX {}_multi ON {}_t USING <am> (m)');
SELECT side_by_side('CREATE UNIQUE INDEX {}_unique ON {}_t USING <am> (k)');
SELECT side_by_side('CREATE INDEX {}_hash ON {}_t USING <am> ((hash_record(k)))');
SELECT side_by_side('CREATE INDEX {}_whole ON {}_t USING <am> ((hash_record({}_t)))');
SELECT side_by_side('CREATE INDEX {}_made ON {}_t USING <am> ((hash_record({}_make(id)) + id))');
SELECT side_by_side('CREATE INDEX {}_partial ON {}_t USING <am> (id) WHERE hash_record(k) > 0');
SELECT side_by_side('CREATE INDEX {}_include ON {}_t USING <am> (id) INCLUDE (k, o, r)');
SELECT side_by_side('CREATE INDEX {}_rowexpr ON {}_t USING <am> ((ROW(x, y, id)::{}_pair))');
SELECT side_by_side('CREATE INDEX {}_other ON {}_t USING <am> (x, y)');
-- columns of a table's row type, typed tables, children
SELECT side_by_side('CREATE TABLE {}_typed OF {}_pair');
SELECT side_by_side('INSERT INTO {}_typed SELECT i % 20, ''x'' || i % 31, i FROM generate_series(1, 400) i');
SELECT side_by_side('CREATE INDEX {}_of ON {}_typed USING <am> ((hash_record({}_typed)), c)');
SELECT side_by_side('CREATE TABLE {}_parent (id int, g int, h text)');
SELECT side_by_side('CREATE TABLE {}_child () INHERITS ({}_parent)');
SELECT side_by_side('CREATE VIEW {}_view AS SELECT id, h FROM {}_parent');
SELECT side_by_side('CREATE TABLE {}_u (id int, p {}_parent, q {}_child, v {}_view, t {}_typed)');
SELECT side_by_side($$INSERT INTO {}_u SELECT i, ROW(i, i % 20, 'h')::{}_parent, ROW(i % 20, i, 'h')::{}_child, ROW(i % 20, 'h' || i % 31)::{}_view,
	ROW(i % 20, 'h' || i % 31, i)::{}_typed FROM generate_series(1, 400) i$$);
SELECT side_by_side('CREATE INDEX {}_row ON {}_u USING <am> (p)');
SELECT side_by_side('CREATE INDEX {}_kid ON {}_u USING <am> (q)');
SELECT side_by_side('CREATE INDEX {}_seen ON {}_u USING <am> ((hash_record(v)))');
SELECT side_by_side('CREATE INDEX {}_typedrow ON {}_u USING <am> (t)');
INSERT INTO held SELECT indexrelid::regclass, indrelid::regclass,
	CASE WHEN indkey[0] = 0 THEN pg_get_indexdef(indexrelid, 1, false)
		ELSE (SELECT attname FROM pg_attribute WHERE attrelid = indrelid AND attnum = indkey[0]) END,
	coalesce(pg_get_expr(indpred, indrelid), 'true'), relfilenode
	FROM pg_index JOIN pg_class c ON c.oid = indexrelid
	WHERE relnamespace = 'comp'::regnamespace AND relname LIKE 'art%' AND relkind = 'i' AND relam = (SELECT oid FROM pg_am WHERE amname = 'art');
-- a table without "id" is asked by another column
UPDATE held SET tab = '(SELECT *, c AS id, hash_record(art_typed) AS h FROM art_typed) z', key = 'h' WHERE name = 'art_of';
SELECT count(*) FROM held;
ANALYZE art_t;
ANALYZE art_u;
SELECT * FROM look();

-- ---- ALTER TYPE ----
SELECT side_by_side('ALTER TYPE {}_pair ALTER ATTRIBUTE b TYPE varchar');
SELECT side_by_side('ALTER TYPE {}_outer ALTER ATTRIBUTE n TYPE bigint');
SELECT side_by_side('ALTER TYPE {}_pair ADD ATTRIBUTE z int');
SELECT side_by_side('ALTER TYPE {}_pair DROP ATTRIBUTE b');
SELECT side_by_side('ALTER TYPE {}_pair DROP ATTRIBUTE nothing');
SELECT side_by_side('DROP TYPE {}_pair');
SELECT side_by_side('ALTER TYPE {}_pair RENAME ATTRIBUTE c TO cc CASCADE');
SELECT side_by_side('ALTER TYPE {}_pair RENAME ATTRIBUTE cc TO c CASCADE');
SELECT side_by_side('ALTER TYPE {}_outer RENAME TO {}_outer2');
SELECT side_by_side('ALTER TYPE {}_outer2 RENAME TO {}_outer');
SELECT side_by_side('ALTER DOMAIN {}_sole ADD CONSTRAINT {}_pos CHECK ((VALUE).a >= 0)');
SELECT side_by_side('ALTER DOMAIN {}_sole ADD CONSTRAINT {}_no CHECK ((VALUE).a > 5)');
SELECT side_by_side('ALTER DOMAIN {}_sole DROP CONSTRAINT {}_pos');
SELECT side_by_side('ALTER DOMAIN {}_sole SET DEFAULT NULL');
SELECT side_by_side('ALTER DOMAIN {}_dom ADD CONSTRAINT {}_no CHECK ((VALUE).a >= 0)');
SELECT * FROM look();
-- new attributes are NULL in old values, and in new ones they are not
SELECT side_by_side('ALTER TYPE {}_pair ADD ATTRIBUTE z int CASCADE');
SELECT side_by_side($$INSERT INTO {}_t (id, k, l, d, e, x) SELECT 1000 + i, k, ARRAY[k], k, ARRAY[k::{}_dom], i
	FROM generate_series(1, 40) i, LATERAL (SELECT ROW(i % 20, 'x' || i % 31, i, i)::{}_pair AS k) k$$);
SELECT * FROM look();
-- the transaction itself, and after a rollback
BEGIN;
SELECT side_by_side('ALTER TYPE {}_pair DROP ATTRIBUTE b CASCADE');
SELECT side_by_side('INSERT INTO {}_t (id, k) SELECT 2000 + i, ROW(i % 20, 2000 + i, i)::{}_pair FROM generate_series(1, 40) i');
SELECT * FROM look();
ROLLBACK;
SELECT * FROM look();
BEGIN;
SAVEPOINT a;
SELECT side_by_side('ALTER TYPE {}_pair DROP ATTRIBUTE b CASCADE');
ROLLBACK TO a;
SELECT side_by_side('UPDATE {}_t SET x = x + 1 WHERE id % 3 = 0');
COMMIT;
SELECT * FROM look();
-- altered twice in a transaction, with a look in between
BEGIN;
SELECT side_by_side('ALTER TYPE {}_outer ADD ATTRIBUTE z int');
SELECT side_by_side('ALTER TYPE {}_outer DROP ATTRIBUTE z');
SELECT * FROM look();
SAVEPOINT a;
SELECT side_by_side('ALTER TYPE {}_outer DROP ATTRIBUTE n');
SELECT * FROM look();
ROLLBACK TO a;
SELECT side_by_side('ALTER TYPE {}_outer ADD ATTRIBUTE y int');
SELECT side_by_side('ALTER TYPE {}_outer DROP ATTRIBUTE y');
COMMIT;
SELECT * FROM look();
DO $$
BEGIN
	BEGIN
		ALTER TYPE art_pair DROP ATTRIBUTE b CASCADE;
		RAISE division_by_zero;
	EXCEPTION WHEN division_by_zero THEN
	END;
END $$;
SELECT * FROM look();
-- a prepared statement goes on
PREPARE pair AS SELECT count(*) FROM art_t WHERE k = (SELECT k FROM art_t WHERE id = $1);
SET plan_cache_mode = force_generic_plan;
EXECUTE pair (77);
SELECT side_by_side('ALTER TYPE {}_pair DROP ATTRIBUTE b CASCADE');
EXECUTE pair (77);
SELECT * FROM look();
-- an open cursor of the same session reads in the old order
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_sort = off;
DECLARE c CURSOR FOR SELECT k FROM art_t ORDER BY k;
FETCH 1 FROM c;
ALTER TYPE art_pair DROP ATTRIBUTE c CASCADE;
ROLLBACK;
SELECT * FROM look();
-- the last attributes that make values of the unique index different: core takes it, and art with it
SELECT side_by_side('ALTER TYPE {}_pair DROP ATTRIBUTE c CASCADE');
UPDATE held SET tab = '(SELECT *, a AS id, hash_record(art_typed) AS h FROM art_typed) z' WHERE name = 'art_of';
SELECT * FROM look();
SELECT side_by_side('INSERT INTO {}_t (id, k) VALUES (3000, ROW(7, NULL)::{}_pair)');
SELECT side_by_side('INSERT INTO {}_t (id, k) VALUES (3000, ROW(1234, NULL)::{}_pair)');
DO $$
BEGIN
	REINDEX INDEX art_unique;
EXCEPTION WHEN unique_violation THEN
	RAISE WARNING '%', SQLERRM;
END $$;
SELECT side_by_side('DROP INDEX {}_unique');
DELETE FROM held WHERE name = 'art_unique';
-- a type that goes takes its attribute along
SELECT side_by_side('CREATE TYPE {}_inner AS (u int)');
SELECT side_by_side('ALTER TYPE {}_pair ADD ATTRIBUTE i {}_inner CASCADE');
SELECT side_by_side('INSERT INTO {}_t (id, k) SELECT 4000 + i, ROW(i % 7, NULL, ROW(-i)::{}_inner)::{}_pair FROM generate_series(1, 40) i');
SELECT * FROM look();
SELECT side_by_side('DROP TYPE {}_inner');
SELECT side_by_side('DROP TYPE {}_inner CASCADE');
SELECT * FROM look();

-- ---- tables whose row type is used ----
SELECT side_by_side('ALTER TABLE {}_parent ALTER COLUMN g TYPE bigint');
SELECT side_by_side('ALTER TABLE {}_parent ADD COLUMN z int DEFAULT 5');
SELECT side_by_side('ALTER TABLE {}_parent ADD COLUMN z int');
SELECT side_by_side('ALTER TABLE {}_parent ALTER COLUMN g SET DEFAULT 3');
SELECT side_by_side('ALTER TABLE {}_parent RENAME COLUMN g TO gg');
SELECT side_by_side('CREATE OR REPLACE VIEW {}_view AS SELECT id, h, gg FROM {}_parent');
SELECT * FROM look();
SELECT side_by_side('ALTER TABLE {}_parent DROP COLUMN id');
SELECT side_by_side('ALTER TABLE {}_parent DROP COLUMN id CASCADE');
SELECT * FROM look();
SELECT side_by_side('ALTER TABLE {}_child ADD COLUMN own int');
SELECT side_by_side('ALTER TABLE {}_u ADD COLUMN more int');
SELECT * FROM look();
SELECT side_by_side('ALTER TABLE {}_t ADD COLUMN more int');
SELECT side_by_side('ALTER TABLE {}_t DROP COLUMN y');
SELECT * FROM look();

-- ---- unlogged, temporary; keys ----
SELECT side_by_side('CREATE TYPE {}_low AS (a int, b int)');
SELECT side_by_side('CREATE UNLOGGED TABLE {}_unl (id int, k {}_low)');
SELECT side_by_side('CREATE TEMP TABLE {}_tmp (id int, k {}_low)');
SELECT side_by_side('CREATE TABLE {}_key (id int, k {}_low, EXCLUDE USING <am> (k WITH =))');
SELECT side_by_side('INSERT INTO {}_unl SELECT i, ROW(i % 20, i)::{}_low FROM generate_series(1, 400) i');
SELECT side_by_side('INSERT INTO {}_tmp SELECT i, ROW(i % 20, i)::{}_low FROM generate_series(1, 400) i');
SELECT side_by_side('INSERT INTO {}_key SELECT i, ROW(i % 20, i)::{}_low FROM generate_series(1, 400) i');
SELECT side_by_side('CREATE INDEX {}_unl_k ON {}_unl USING <am> (k)');
SELECT side_by_side('CREATE INDEX {}_tmp_k ON {}_tmp USING <am> (k)');
DELETE FROM held;
INSERT INTO held SELECT relname, 'art_' || t, 'k', 'true', relfilenode
	FROM (VALUES ('art_unl_k', 'unl'), ('art_tmp_k', 'tmp'), ('art_key_k_excl', 'key')) v (i, t) JOIN pg_class ON relname = i;
SELECT * FROM look();
SELECT side_by_side('ALTER TYPE {}_low DROP ATTRIBUTE a');
SELECT side_by_side('ALTER TYPE {}_low ADD ATTRIBUTE c int');
SELECT * FROM look();
-- btree does not see the row with which it conflicts
INSERT INTO art_key VALUES (1, ROW(7, NULL)::art_low);
SELECT side_by_side('ALTER TYPE {}_low DROP ATTRIBUTE b');
SELECT * FROM look();
SELECT side_by_side('INSERT INTO {}_key VALUES (1, ROW(7)::{}_low), (2, ROW(7)::{}_low)');

-- ---- ranges of values that are compressed in the table, and not yet in the row that is inserted ----
CREATE TYPE wide AS (t text);
CREATE TYPE wides AS RANGE (subtype = wide);
CREATE TABLE art_wide (id int, t text);
CREATE INDEX art_wide_r ON art_wide USING art ((wides(ROW(t)::wide, NULL)), (multirange(wides(ROW(t)::wide, NULL))), (ARRAY[wides(ROW(t)::wide, NULL)]));
INSERT INTO art_wide SELECT i, repeat('x', 3000) || i FROM generate_series(1, 20) i;
SELECT clean('art_wide_r');

-- ---- how a base type is stored ----
CREATE TYPE blob;
CREATE FUNCTION blob_in(cstring) RETURNS blob IMMUTABLE STRICT LANGUAGE internal AS 'textin';
CREATE FUNCTION blob_out(blob) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS 'textout';
CREATE TYPE blob (input = blob_in, output = blob_out, internallength = VARIABLE, storage = plain);
CREATE TABLE art_blob (id int, b blob, v bool);
CREATE INDEX art_blob_b ON art_blob USING art (id) INCLUDE (b);
INSERT INTO art_blob SELECT i, i::text::blob FROM generate_series(1, 200) i;
SELECT clean('art_blob_b');
ALTER TYPE blob SET (storage = extended);
\c -
SET search_path = comp, public;
INSERT INTO art_blob SELECT i, i::text::blob FROM generate_series(201, 300) i;
SELECT artidx_build('art_blob_b');
SELECT clean('art_blob_b');

SET client_min_messages = warning;
DROP SCHEMA comp CASCADE;
