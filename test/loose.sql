-- Included by regress "loose" and by t/loose, behind rows.sql, whose tables it asks: random
-- statements that want one row of each group, each answered by a loose scan where there is one,
-- and by a sequential scan of the same snapshot.  loose.run(n, seed) says how many, and shows
-- those whose answers differ.
CREATE SCHEMA loose;

-- partitioned tables, beside those of rows.sql, and rows that others are looked for with
CREATE TABLE rows.t20 (LIKE rows.made) PARTITION BY HASH (id);
CREATE TABLE rows.t20a PARTITION OF rows.t20 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE rows.t20b (LIKE rows.made);
ALTER TABLE rows.t20b DROP COLUMN v;
ALTER TABLE rows.t20b ADD COLUMN v varchar(20)[];
ALTER TABLE rows.t20 ATTACH PARTITION rows.t20b FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE rows.t21 (LIKE rows.made) PARTITION BY RANGE (a);
CREATE TABLE rows.t21a PARTITION OF rows.t21 FOR VALUES FROM (0) TO (3);
CREATE TABLE rows.t21b PARTITION OF rows.t21 DEFAULT PARTITION BY LIST (c);
CREATE TABLE rows.t21c PARTITION OF rows.t21b FOR VALUES IN (1, 2, NULL);
CREATE TABLE rows.t21d PARTITION OF rows.t21b DEFAULT;
INSERT INTO rows.t20 SELECT * FROM rows.made;
INSERT INTO rows.t21 SELECT * FROM rows.made;
CREATE INDEX ON rows.t20 USING art (a, b, c);
CREATE INDEX ON rows.t21 USING art (a, c DESC, t NULLS FIRST);
INSERT INTO rows.kinds VALUES (20, '{a,b,c}', '{"","",""}', ''), (21, '{a,c,t}', '{"",DESC,"NULLS FIRST"}', '');
CREATE TABLE rows.some AS SELECT * FROM rows.made WHERE id <= 300;
VACUUM ANALYZE rows.t20, rows.t21, rows.some;

-- columns in the order of an index, from either end
CREATE FUNCTION loose.sorted(cols text[], dirs text[], back bool) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(c || ' ' || CASE WHEN NOT back THEN d ELSE
			CASE d WHEN '' THEN 'DESC' WHEN 'DESC' THEN '' WHEN 'NULLS FIRST' THEN 'DESC NULLS LAST' ELSE 'NULLS FIRST' END
		END, ', ' ORDER BY o)
	FROM unnest(cols, dirs) WITH ORDINALITY u (c, d, o)
$$;

-- a condition on rows of a table with these columns in its index, or none
CREATE FUNCTION loose.cond(cols text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c text := rows.one(cols);
BEGIN
	RETURN CASE floor(random() * 10)::int
		WHEN 0 THEN format('WHERE %s %s %s', c, rows.one('{>,>=,<,<=,=}'::text[]), rows.val(c))
		WHEN 1 THEN format('WHERE %s IS %s NULL', c, rows.one('{"",NOT}'::text[]))
		WHEN 2 THEN (SELECT format('WHERE %s = ANY (ARRAY[%L, %L, %L]::%s[])', col, rows.one(vals), rows.one(vals), rows.one(vals), types[1])
			FROM rows.types WHERE col = c AND col <> 'v')
		WHEN 3 THEN 'WHERE id % 5 = 2'
		WHEN 4 THEN format('WHERE id > %s', (random() * 3000)::int)
		WHEN 5 THEN format('WHERE %s >= %s AND id %% 3 = 1', cols[1], rows.val(cols[1]))
		WHEN 6 THEN format('WHERE (%s, %s) %s (%s, %s)', cols[1], cols[2], rows.one('{>,<=}'::text[]), rows.val(cols[1]), rows.val(cols[2]))
		END;
END $$;

-- rows that have a match, or none, by an index's first n columns
CREATE FUNCTION loose.match(k rows.kinds, n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	src text := format('FROM rows.t%s %s', k.k, coalesce(loose.cond(k.cols), ''));
	c text := k.cols[n];
BEGIN
	RETURN 'SELECT id FROM rows.some o WHERE ' || CASE floor(random() * 5)::int
		WHEN 0 THEN format('%s IN (SELECT %1$s %s)', c, src)
		WHEN 1 THEN format('(%s) IN (SELECT %1$s %s)', array_to_string(k.cols[1:n], ', '), src)
		ELSE format('%s EXISTS (SELECT FROM (SELECT * %s%s) i WHERE %s)', rows.one('{"",NOT}'::text[]), src,
			CASE WHEN random() < 0.05 THEN ' OFFSET 0' ELSE '' END,
			(SELECT string_agg(format(CASE WHEN random() < 0.1 THEN 'i.%s > o.%1$s' WHEN random() < 0.1 THEN 'i.%s::text = o.%1$s::text' ELSE 'i.%s = o.%1$s' END, m), ' AND ')
				FROM unnest(k.cols[1:n]) m)) END ||
		CASE WHEN random() < 0.2 THEN ' AND id > 100' ELSE '' END;
END $$;

-- a statement of an index's first n columns; *ordered: so are its rows
CREATE FUNCTION loose.statement(k rows.kinds, n int, OUT q text, OUT ordered bool) LANGUAGE plpgsql AS $$
DECLARE
	prefix text := array_to_string(k.cols[1:n], ', ');
	next text := k.cols[n + 1];
	src text := format('FROM rows.t%s %s', k.k, coalesce(loose.cond(k.cols), ''));
	back bool := random() < 0.5;
	sort text := ' ORDER BY ' || loose.sorted(k.cols[1:n], k.dirs[1:n], back);
	kind int := floor(random() * CASE WHEN next IS NULL THEN 3 ELSE 7 END)::int;
BEGIN
	IF random() < 0.25 THEN
		q := format('SELECT array_agg(ROW(s.*)::text ORDER BY ROW(s.*)::text) FROM (%s) s', loose.match(k, n));
		RETURN;
	END IF;
	ordered := kind IN (4, 5) OR kind <> 2 AND random() < 0.6;
	q := CASE kind
		WHEN 0 THEN format('SELECT DISTINCT %s %s', prefix, src)
		WHEN 1 THEN format('SELECT %s %s GROUP BY %1$s', prefix, src)
		WHEN 2 THEN CASE WHEN n = 1 THEN format('SELECT count(DISTINCT %s) %s', prefix, src)
			ELSE format('SELECT %s, count(DISTINCT %s) %s GROUP BY %1$s', array_to_string(k.cols[1:n - 1], ', '), k.cols[n], src) END
		WHEN 3 THEN format('SELECT %s, %s %s GROUP BY %1$s HAVING %4$s IS NOT NULL OR count(DISTINCT %4$s) = 0', prefix,
			(ARRAY['min(' || next || ')', 'max(' || next || ')', 'min(' || next || '), max(' || next || ')'])[1 + floor(random() * 3)::int],
			src, k.cols[1])
		WHEN 6 THEN format('SELECT %s, %s %s GROUP BY %1$s', prefix,
			(ARRAY['min(' || next || ')', 'max(' || next || ')', 'min(' || next || '), max(' || next || ')', 'min(' || next || '), count(' || next || ')'])[1 + floor(random() * 4)::int], src)
		ELSE format('SELECT DISTINCT ON (%s) %1$s, %s %s', prefix, next, src) END;
	IF kind IN (4, 5) THEN
		sort := sort || ', ' || loose.sorted(k.cols[n + 1:n + 1], k.dirs[n + 1:n + 1], back = (kind = 4));
	END IF;
	q := format('SELECT array_agg(ROW(s.*)::text%s) FROM (%s%s%s) s', CASE WHEN ordered THEN '' ELSE ' ORDER BY ROW(s.*)::text' END, q,
		CASE WHEN ordered THEN sort ELSE '' END,
		CASE WHEN ordered AND random() < 0.2 THEN ' LIMIT ' || (random() * 20)::int ELSE '' END);
END $$;

-- n of them: how many, how many by loose scans, and what differed
CREATE FUNCTION loose.run(n int, seed float8, OUT queries int, OUT by_loose int, OUT answers bigint, OUT different int)
	LANGUAGE plpgsql SET timezone = 'Europe/Berlin' AS $$
DECLARE
	k rows.kinds;
	s record;
	plan text;
	line text;
	x text[];
	y text[];
BEGIN
	PERFORM setseed(seed);
	queries := 0; by_loose := 0; answers := 0; different := 0;
	FOR i IN 1 .. n LOOP
		SELECT * INTO k FROM rows.kinds ORDER BY random() LIMIT 1;
		s := loose.statement(k, 1 + floor(random() * least(cardinality(k.cols), 2.3))::int);
		PERFORM rows.scans(rows.one('{index,only}'::text[]));
		SET LOCAL enable_hashagg = off;
		PERFORM set_config('enable_nestloop', rows.one('{on,off}'::text[]), true);
		plan := '';
		FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || s.q LOOP
			plan := plan || line || E'\n';
		END LOOP;
		EXECUTE s.q INTO x;
		PERFORM rows.scans('seq');
		SET LOCAL enable_hashagg = on;
		SET LOCAL enable_nestloop = on;
		EXECUTE s.q INTO y;
		queries := queries + 1;
		by_loose := by_loose + (plan ~ 'Loose Scan')::int;
		answers := answers + coalesce(cardinality(y), 0);
		IF x IS DISTINCT FROM y THEN
			different := different + 1;
			RAISE WARNING E'different: %\n% rows by the index, % without\n%', s.q, cardinality(x), cardinality(y), plan;
		END IF;
	END LOOP;
END $$;
