-- Included by regress "aggregates" and by a TAP test: random aggregates, each answered from an
-- index alone and by a sequential scan of the same snapshot.  aggs.run(n, seed) says how many,
-- and shows those whose answers differ.
SET datestyle = ISO;
CREATE SCHEMA aggs;
CREATE TABLE aggs.made (id int, a int, b bigint, c smallint, d bool, t text COLLATE "C", g date, n numeric, pad text);
SELECT setseed(0.42) \g /dev/null
INSERT INTO aggs.made SELECT i,
	nullif((random() * 9)::int, 9), nullif((random() * 4e18)::bigint - 2e18::bigint, 19), nullif((random() * 600)::int - 300, 5),
	nullif(random() < 0.7, random() < 0.1), nullif(chr(96 + (random() * 4)::int) || repeat('x', (random() * 2)::int), '`'),
	nullif('2024-03-30'::date + (random() * 40)::int, '2024-04-03'), nullif((random() * 8)::int, 8) / 2.0,
	repeat('p', (random() * 60)::int)
	FROM generate_series(1, 4000) i;
-- the index of each table by columns, directions, structure and predicate
CREATE TABLE aggs.kinds (k int PRIMARY KEY, cols text[], dirs text[], options text);
INSERT INTO aggs.kinds VALUES
	(1, '{a,b,c}', '{"","",""}', ''),
	(2, '{a,c,b}', '{DESC,DESC,DESC}', 'WITH (structure = btree)'),
	(3, '{a,d,b}', '{"NULLS FIRST",DESC,"NULLS FIRST"}', 'WITH (structure = hydra)'),
	(4, '{c,a}', '{"DESC NULLS LAST",""}', ''),
	(5, '{d,t,g}', '{"","",DESC}', ''),
	(6, '{t,c,a}', '{"","",""}', 'WITH (structure = btree)'),
	(7, '{t,g,b}', '{DESC,"DESC NULLS LAST",DESC}', ''),
	(8, '{n,a,b}', '{"",DESC,""}', ''),
	(9, '{g,d}', '{"",""}', 'WITH (tail_buffer = on)'),
	(10, '{b}', '{DESC}', 'WITH (structure = hydra)'),
	(11, '{a,t,n}', '{"","",""}', ''),
	(12, '{a,g,c,d}', '{"","","",""}', 'WHERE pad < ''pppppppppppppppppppp'''),
	(13, '{c}', '{""}', 'WITH (structure = btree, page_size = 256)');
-- a column's values
CREATE TABLE aggs.types (col text PRIMARY KEY, type text, vals text[]);
INSERT INTO aggs.types VALUES
	('a', 'int', '{0,1,2,3,4,5,6,7,8,-1,9}'),
	('b', 'bigint', '{-2000000000000000000,-1000000000000000000,-3,0,700000000000000000,1900000000000000000}'),
	('c', 'smallint', '{-300,-250,-100,-3,0,4,120,280}'),
	('d', 'bool', '{t,f}'),
	('t', 'text', '{a,ax,b,bx,bxx,c,cx,d,dxx,"",zz}'),
	('g', 'date', '{2024-03-30,2024-03-31,2024-04-05,2024-04-20,2024-05-01,infinity,-infinity}'),
	('n', 'numeric', '{0,0.5,1.0,1.5,2,3,3.25,NaN}');
SELECT format('CREATE TABLE aggs.t%s AS SELECT * FROM aggs.made', k) FROM aggs.kinds ORDER BY k \gexec
SELECT format('CREATE INDEX t%s_i ON aggs.t%s USING art (%s) %s', k, k,
	(SELECT string_agg(c || ' ' || d, ', ' ORDER BY o) FROM unnest(cols, dirs) WITH ORDINALITY u (c, d, o)), options)
	FROM aggs.kinds ORDER BY k \gexec
SELECT format('VACUUM ANALYZE aggs.t%s', k) FROM aggs.kinds ORDER BY k \gexec

-- one of them
CREATE FUNCTION aggs.one(these anyarray) RETURNS anyelement LANGUAGE sql
	AS 'SELECT these[1 + floor(random() * cardinality(these))::int]';

-- a value for a column: NULL at times, known to the planner or not
CREATE FUNCTION aggs.val(c text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r text;
BEGIN
	SELECT CASE WHEN random() < 0.02 THEN 'NULL' ELSE quote_literal(aggs.one(vals)) END || '::' || type
		INTO r FROM aggs.types WHERE col = c;
	RETURN CASE WHEN random() < 0.2 THEN '(SELECT ' || r || ')' ELSE r END;
END $$;

-- a condition on some columns of the index
CREATE FUNCTION aggs.cond(cols text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	conds text[] := '{}';
	c text;
BEGIN
	FOREACH c IN ARRAY cols LOOP
		CONTINUE WHEN random() < 0.55;
		conds := conds || CASE (random() * 7)::int
			WHEN 0 THEN format('%s = %s', c, aggs.val(c))
			WHEN 1 THEN format('%s > %s', c, aggs.val(c))
			WHEN 2 THEN format('%s <= %s', c, aggs.val(c))
			WHEN 3 THEN format('%s >= %s AND %s < %s', c, aggs.val(c), c, aggs.val(c))
			WHEN 4 THEN (SELECT format('%s = ANY (ARRAY[%L, %L, %L]::%s[])', c, aggs.one(vals), aggs.one(vals), aggs.one(vals), type)
				FROM aggs.types WHERE col = c)
			WHEN 5 THEN c || ' IS NULL'
			ELSE c || ' IS NOT NULL' END;
	END LOOP;
	IF cardinality(cols) > 1 AND random() < 0.1 THEN
		conds := conds || format('(%s, %s) %s (%s, %s)', cols[1], cols[2], aggs.one('{>,>=,<,<=}'::text[]), aggs.val(cols[1]), aggs.val(cols[2]));
	END IF;
	RETURN array_to_string(conds, ' AND ');
END $$;

-- an aggregate of a column of the index
CREATE FUNCTION aggs.agg(cols text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c text := aggs.one(cols);
BEGIN
	RETURN CASE WHEN random() < 0.3 THEN 'count(*)'
		WHEN random() < 0.25 THEN format('count(%s)', c)
		WHEN c IN ('a', 'b', 'c') THEN format('%s(%s)', aggs.one('{sum,avg,min,max}'::text[]), c)
		WHEN c = 'd' THEN format('%s(d)', aggs.one('{bool_and,bool_or,every}'::text[]))
		WHEN c = 'n' THEN 'count(n)'
		ELSE format('%s(%s)', aggs.one('{min,max}'::text[]), c) END;
END $$;

-- a query of the table whose index has these columns
CREATE FUNCTION aggs.query(k aggs.kinds) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	upto int := CASE WHEN random() < 0.5 THEN 0 ELSE 1 + floor(random() * cardinality(k.cols))::int END;
	grouped text[] := ARRAY(SELECT c FROM unnest(k.cols[1:upto]) c ORDER BY random());
	conds text[] := '{}';
	outs text[];
BEGIN
	IF upto > 1 AND random() < 0.2 THEN		-- a column that is one value is not grouped by
		conds := conds || format('%s = %s', grouped[1], aggs.val(grouped[1]));
		grouped := grouped[2:];
	END IF;
	outs := grouped || ARRAY['count(*)'];
	FOR i IN 1 .. (random() * 3)::int LOOP
		outs := outs || aggs.agg(k.cols);
	END LOOP;
	IF k.options ~ '^WHERE' THEN
		conds := conds || substr(k.options, 7);
	END IF;
	conds := conds || nullif(aggs.cond(k.cols), '');
	conds := array_remove(conds, NULL);
	RETURN format('SELECT %s FROM aggs.t%s', array_to_string(outs, ', '), k.k) ||
		CASE WHEN cardinality(conds) > 0 THEN ' WHERE ' || array_to_string(conds, ' AND ') ELSE '' END ||
		CASE WHEN cardinality(grouped) > 0 THEN ' GROUP BY ' || array_to_string(grouped, ', ') ELSE '' END ||
		CASE WHEN random() < 0.2 THEN format(' HAVING count(*) %s %s', aggs.one('{>,<,=}'::text[]), (random() * 40)::int) ELSE '' END ||
		CASE WHEN cardinality(grouped) > 0 AND random() < 0.3 THEN format(' ORDER BY %s %s', grouped[1], aggs.one('{"",DESC}'::text[])) ELSE '' END;
END $$;

-- n random aggregates: how many, by how many plans of each kind, and what differed
CREATE FUNCTION aggs.run(n int, seed float8, OUT queries int, OUT taken int, OUT answers bigint, OUT different int)
	LANGUAGE plpgsql AS $$
DECLARE
	k aggs.kinds;
	q text;
	plan text;
	line text;
	x text[];
	y text[];
BEGIN
	PERFORM setseed(seed);
	queries := 0; taken := 0; answers := 0; different := 0;
	FOR i IN 1 .. n LOOP
		SELECT * INTO k FROM aggs.kinds ORDER BY random() LIMIT 1;
		q := aggs.query(k);
		plan := '';
		SET LOCAL enable_indexonlyscan = on;
		FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP
			plan := plan || line || E'\n';
		END LOOP;
		EXECUTE 'SELECT array_agg(r::text ORDER BY r::text) FROM (' || q || ') r' INTO x;
		SET LOCAL enable_indexonlyscan = off;
		SET LOCAL enable_indexscan = off;
		SET LOCAL enable_bitmapscan = off;
		EXECUTE 'SELECT array_agg(r::text ORDER BY r::text) FROM (' || q || ') r' INTO y;
		SET LOCAL enable_indexscan = on;
		SET LOCAL enable_bitmapscan = on;
		queries := queries + 1;
		taken := taken + (plan ~ 'Index Aggregate')::int;
		answers := answers + coalesce(cardinality(y), 0);
		IF x IS DISTINCT FROM y THEN
			different := different + 1;
			RAISE WARNING E'different: %\n%\nby the index, without:\n%\n%', q, x::text, y::text, plan;
		END IF;
	END LOOP;
END $$;
