-- Included by the regression tests: the extension, and functions that do the
-- same to a table with btree indexes and to its twin with art indexes, and say
-- whether the outcome was the same.  Names carry the side: bt_t and art_t are
-- both written {}_t in the text given.

SET client_min_messages = warning;
-- a scan that is switched off has a cost that would start the compiler
SET jit = off;
CREATE EXTENSION IF NOT EXISTS artidx;
CREATE SCHEMA IF NOT EXISTS twin;

-- the outcome of a statement: its row count, or all there is to say of its
-- error
CREATE OR REPLACE FUNCTION twin.outcome(side text, q text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
	state text;
	msg text;
	det text;
	hint text;
BEGIN
	BEGIN
		EXECUTE replace(q, '{}', side);
		GET DIAGNOSTICS n = ROW_COUNT;
		RETURN n || ' rows';
	EXCEPTION WHEN OTHERS THEN
		GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE,
			msg = MESSAGE_TEXT, det = PG_EXCEPTION_DETAIL,
			hint = PG_EXCEPTION_HINT;
		RETURN concat_ws(E'\n', state || ': ' || replace(msg, side || '_', '{}_'),
			nullif(replace(det, side || '_', '{}_'), ''), nullif(hint, ''));
	END;
END $$;

-- the same statement on both sides
CREATE OR REPLACE FUNCTION twins(q text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	b text := twin.outcome('bt', q);
	a text := twin.outcome('art', q);
BEGIN
	IF a = b THEN
		RETURN a;
	END IF;
	RETURN format(E'DIFFERENT\nbtree: %s\nart:   %s', b, a);
END $$;

-- a statement that only art refuses; undone if it does not
CREATE OR REPLACE FUNCTION refused(q text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	r text;
BEGIN
	BEGIN
		r := twin.outcome('art', q);
		IF r ~ '^[0-9]+ rows$' THEN
			RAISE EXCEPTION USING ERRCODE = 'ZZZZZ';
		END IF;
	EXCEPTION WHEN SQLSTATE 'ZZZZZ' THEN
		r := 'NOT REFUSED: ' || r;
	END;
	RETURN r;
END $$;

-- a plan without what versions number and name in several ways, subplans, and what a
-- Result replaces
CREATE OR REPLACE FUNCTION twin.plan(side text, q text) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
	line text;
	lines text[];
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || replace(q, '{}', side) LOOP
		CONTINUE WHEN line ~ '^ *Replaces: ';
		lines := lines || regexp_replace(replace(line, side || '_', '{}_'),
			'((Init|Sub)Plan) ([a-z]+_)?[0-9]+( \(returns [^)]*\))?', '\1', 'g');
	END LOOP;
	RETURN lines;
END $$;

-- the rows of a query, in its order, and how each table was read
CREATE OR REPLACE FUNCTION twin.answer(side text, q text,
	OUT result text[], OUT scans text)
LANGUAGE plpgsql AS $$
DECLARE
	wrapped text := 'SELECT array_agg(x::text) FROM (' || q || ') x';
BEGIN
	EXECUTE replace(wrapped, '{}', side) INTO result;
	SELECT string_agg(regexp_replace(regexp_replace(l, '^[ >-]*', ''), ' using \S+', ''), ', ' ORDER BY n)
		FROM unnest(twin.plan(side, wrapped)) WITH ORDINALITY p (l, n)
		WHERE l ~ 'Scan' AND l !~ 'Subquery Scan on x' INTO scans;
END $$;

CREATE OR REPLACE FUNCTION same(q text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	b record;
	a record;
BEGIN
	SELECT * INTO b FROM twin.answer('bt', q);
	SELECT * INTO a FROM twin.answer('art', q);
	IF a.result IS DISTINCT FROM b.result THEN
		RETURN format(E'DIFFERENT\nbtree: %s: %s\nart:   %s: %s',
			b.scans, left(b.result::text, 400), a.scans, left(a.result::text, 400));
	END IF;
	RETURN format('%s rows, %s%s', coalesce(cardinality(a.result), 0), a.scans,
		CASE WHEN a.scans <> b.scans THEN ' (btree: ' || b.scans || ')' END);
END $$;

-- the structure agrees with itself and with the table
CREATE OR REPLACE FUNCTION clean(index regclass) RETURNS text
LANGUAGE sql AS $$
	SELECT CASE WHEN entries >= heap_tuples THEN 'clean'
		ELSE format('%s entries, %s heap tuples', entries, heap_tuples) END
	FROM artidx_check(index, true) $$;

-- Looks again and again, for three minutes at most, until the condition is true.
CREATE OR REPLACE FUNCTION twin.soon(condition text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
	yes boolean;
BEGIN
	FOR i IN 1 .. 1800 LOOP
		PERFORM pg_stat_clear_snapshot();
		EXECUTE 'SELECT ' || condition INTO yes;
		IF yes THEN
			RETURN true;
		END IF;
		PERFORM pg_sleep(0.1);
	END LOOP;
	RETURN false;
END $$;

-- Waits until VACUUM may remove all that is dead: a worker that has just built an index
-- reads the catalog with a snapshot before it ends.
CREATE OR REPLACE FUNCTION alone() RETURNS boolean
LANGUAGE sql AS $$
	SELECT twin.soon($q$NOT EXISTS (SELECT FROM pg_stat_activity
		WHERE coalesce(datname, current_database()) = current_database() AND pid <> pg_backend_pid()
			AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL OR backend_type = 'artidx builder'))$q$) $$;

RESET client_min_messages;
