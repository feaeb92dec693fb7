-- Included by regress "rows" and by a soak: random comparisons of rows, each answered by an
-- index and by a sequential scan of the same snapshot.  rows.run(n, seed) says how many, and
-- shows those whose answers differ.
SET datestyle = ISO;
CREATE SCHEMA rows;
CREATE TABLE rows.made (id int, a int, b bigint, c smallint, d date, z timestamptz, f float4,
	t text COLLATE "C", u text COLLATE "POSIX", n numeric, e name, v varchar(20)[], w timestamp);
SELECT setseed(0.42) \g /dev/null
INSERT INTO rows.made SELECT i,
	nullif((random() * 9)::int, 9), nullif((random() * 19)::bigint, 19), nullif((random() * 5)::int, 5),
	nullif('2024-03-30'::date + (random() * 4)::int, '2024-04-03'),
	nullif('2024-03-30 22:00+00'::timestamptz + (random() * 8)::int * interval '6 hours', '2024-04-01 22:00+00'),
	nullif((random() * 6)::int, 6) / 4.0,
	nullif(chr(96 + (random() * 4)::int) || repeat('x', (random() * 2)::int), '`'),
	nullif(repeat('y', (random() * 4)::int), 'yyyy'), nullif((random() * 8)::int, 8) / 2.0,
	nullif(chr(97 + (random() * 3)::int), 'd')::name, ARRAY[nullif(chr(97 + (random() * 3)::int), 'd')],
	nullif('2024-03-30 18:00'::timestamp + (random() * 8)::int * interval '6 hours', '2024-04-01 18:00')
	FROM generate_series(1, 3000) i;
-- the index of each table by columns, directions and structure
CREATE TABLE rows.kinds (k int PRIMARY KEY, cols text[], dirs text[], options text);
INSERT INTO rows.kinds VALUES
	(1, '{a,b,c}', '{"","",""}', ''),
	(2, '{a,b,c}', '{DESC,DESC,DESC}', ''),
	(3, '{a,b,c}', '{"NULLS FIRST","NULLS FIRST","NULLS FIRST"}', 'WITH (structure = btree)'),
	(4, '{a,b,c}', '{"",DESC,"NULLS FIRST"}', 'WITH (structure = hydra)'),
	(5, '{c,a,b}', '{"DESC NULLS LAST","DESC NULLS LAST",""}', 'WITH (structure = hydra)'),
	(6, '{d,b,z}', '{"","",""}', ''),
	(7, '{z,d,a}', '{DESC,DESC,DESC}', ''),
	(8, '{t,f,n}', '{"","",""}', ''),
	(9, '{f,t,c}', '{DESC,DESC,"DESC NULLS LAST"}', 'WITH (structure = btree)'),
	(10, '{u,v,a}', '{"","",""}', ''),
	(11, '{v,u,c}', '{DESC,DESC,DESC}', ''),
	(12, '{a,v,b}', '{"","NULLS FIRST",""}', ''),
	(13, '{e,n,t}', '{"","",""}', ''),
	(14, '{a,c,b,n}', '{"","","",""}', ''),
	(15, '{w,a,d}', '{"","",DESC}', ''),
	(16, '{n,e,w}', '{DESC,"",""}', ''),
	(17, '{c,d}', '{"",""}', ''),
	(18, '{c,d,b}', '{DESC,DESC,""}', 'WITH (structure = hydra)'),
	(19, '{c,d}', '{"",DESC}', 'WITH (structure = btree)');
-- what may be compared with a column
CREATE TABLE rows.types (col text PRIMARY KEY, types text[], vals text[]);
INSERT INTO rows.types VALUES
	('a', '{int,int,bigint,smallint}', '{0,1,2,3,4,5,6,7,8,-1,9}'),
	('b', '{bigint,int,smallint}', '{0,1,2,3,5,8,11,14,17,18,19,-3}'),
	('c', '{smallint,int,bigint}', '{0,1,2,3,4,5}'),
	('d', '{date,date,timestamp,timestamptz}', '{2024-03-30,2024-03-31,2024-04-01,2024-04-02,2024-03-31 02:30,2024-04-01 12:00,2024-03-31 18:00,infinity,-infinity}'),
	('z', '{timestamptz,timestamptz,timestamp,date}', '{2024-03-30,2024-03-31,2024-04-01,2024-03-31 02:30,2024-03-31 04:00+00,2024-03-30 22:00+00,infinity}'),
	('w', '{timestamp,timestamp,timestamptz,date}', '{2024-03-30,2024-03-31,2024-04-01,2024-03-31 02:30,2024-03-31 06:00,2024-03-30 18:00,infinity}'),
	('f', '{float4,float8}', '{0,0.25,0.5,0.75,1,1.25,0.3,-1,NaN}'),
	('t', '{text,text,name}', '{a,ax,b,bx,bxx,c,cx,d,dxx,"",zz}'),
	('u', '{text}', '{"",y,yy,yyy,z}'),
	('n', '{numeric}', '{0,0.5,1.0,1.5,2,3,3.25,NaN}'),
	('e', '{name,text}', '{a,b,c,bb}'),
	('v', '{varchar[]}', '{"{a}","{b}","{c}","{a,b}","{NULL}"}');
SELECT format('CREATE TABLE rows.t%s AS SELECT * FROM rows.made', k) FROM rows.kinds ORDER BY k \gexec
SELECT format('CREATE INDEX t%s_i ON rows.t%s USING art (%s) %s', k, k,
	(SELECT string_agg(c || ' ' || d, ', ' ORDER BY o) FROM unnest(cols, dirs) WITH ORDINALITY u (c, d, o)), options)
	FROM rows.kinds ORDER BY k \gexec
SELECT format('VACUUM ANALYZE rows.t%s', k) FROM rows.kinds ORDER BY k \gexec

-- one of them
CREATE FUNCTION rows.one(these anyarray) RETURNS anyelement LANGUAGE sql
	AS 'SELECT these[1 + floor(random() * cardinality(these))::int]';

-- a value for a column: NULL at times, of any type that compares, known to the planner or not
CREATE FUNCTION rows.val(c text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	t rows.types;
	r text;
BEGIN
	SELECT * INTO t FROM rows.types WHERE col = c;
	r := CASE WHEN random() < 0.05 THEN 'NULL' ELSE quote_literal(rows.one(t.vals)) END ||
		'::' || rows.one(t.types);
	RETURN CASE WHEN random() < 0.2 THEN '(SELECT ' || r || ')' ELSE r END;
END $$;

-- a condition that compares rows, of an index with these columns
CREATE FUNCTION rows.cond(cols text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	from_col int := 1;
	members text[] := '{}';
	cond text := '';
	op text;
BEGIN
	IF random() < 0.25 THEN
		from_col := 2;
		cond := CASE (random() * 3)::int
			WHEN 0 THEN cols[1] || ' IS NULL'
			WHEN 1 THEN (SELECT format('%s = ANY (ARRAY[%L, %L]::%s[])', col, rows.one(vals), rows.one(vals), types[1])
				FROM rows.types WHERE col = cols[1] AND col <> 'v')
			END || ' AND ';
		cond := coalesce(cond, format('%s = %s AND ', cols[1], rows.val(cols[1])));
	END IF;
	IF random() < 0.15 THEN
		from_col := 1;
	END IF;
	FOR i IN from_col .. least(from_col + 1 + (random() * 2)::int, cardinality(cols)) LOOP
		members := members || cols[i];
	END LOOP;
	IF random() < 0.1 THEN		-- one left out, or the order is another
		members := ARRAY(SELECT m FROM unnest(cols) m ORDER BY random() LIMIT 2);
	END IF;
	IF cardinality(members) = 1 THEN
		members := members || cols[1];
	END IF;
	op := rows.one('{>,>=,<,<=}'::text[]);
	cond := cond || format('(%s) %s (%s)', array_to_string(members, ', '), op,
		(SELECT string_agg(rows.val(m), ', ' ORDER BY o) FROM unnest(members) WITH ORDINALITY u (m, o)));
	IF random() < 0.25 THEN		-- a second one, mostly the other end
		cond := cond || format(' AND (%s) %s (%s)', array_to_string(members[1:2], ', '),
			CASE WHEN random() < 0.8 THEN translate(op, '<>', '><') ELSE op END,
			(SELECT string_agg(rows.val(m), ', ' ORDER BY o) FROM unnest(members[1:2]) WITH ORDINALITY u (m, o)));
	END IF;
	IF random() < 0.15 THEN
		cond := cond || format(' AND %s %s %s', m, rows.one('{>,<=,=,>=}'::text[]), rows.val(m))
			FROM (SELECT rows.one(cols) m) x;
	ELSIF random() < 0.1 THEN
		cond := cond || coalesce((SELECT format(' AND %s = ANY (ARRAY[%L, %L, %L]::%s[])', col, rows.one(vals), rows.one(vals), rows.one(vals), types[1])
			FROM rows.types WHERE col = cols[2] AND col <> 'v'), '');
	ELSIF random() < 0.05 THEN
		cond := cond || ' AND ' || rows.one(cols) || rows.one('{" IS NULL"," IS NOT NULL"}'::text[]);
	END IF;
	RETURN cond;
END $$;

CREATE FUNCTION rows.scans(how text) RETURNS void LANGUAGE sql AS $$
	SELECT set_config('enable_seqscan', CASE WHEN how = 'seq' THEN 'on' ELSE 'off' END, true),
		set_config('enable_indexscan', CASE WHEN how = 'index' THEN 'on' ELSE 'off' END, true),
		set_config('enable_indexonlyscan', CASE WHEN how IN ('only', 'index') THEN 'on' ELSE 'off' END, true),
		set_config('enable_bitmapscan', CASE WHEN how = 'bitmap' THEN 'on' ELSE 'off' END, true),
		set_config('enable_sort', CASE WHEN how = 'seq' THEN 'on' ELSE 'off' END, true)
$$;

-- n random conditions: how many, how many plans were of the kind, and what differed
CREATE FUNCTION rows.run(n int, seed float8, kind text DEFAULT 'Index Cond: .*ROW\(', OUT queries int, OUT by_rows int, OUT answers bigint, OUT different int)
	LANGUAGE plpgsql SET timezone = 'Europe/Berlin' AS $$
DECLARE
	k rows.kinds;
	q text;
	how text;
	plan text;
	line text;
	cond text;
	cols text;
	ord text;
	x text[];
	y text[];
BEGIN
	PERFORM setseed(seed);
	queries := 0; by_rows := 0; answers := 0; different := 0;
	FOR i IN 1 .. n LOOP
		SELECT * INTO k FROM rows.kinds ORDER BY random() LIMIT 1;
		cond := rows.cond(k.cols);
		how := rows.one('{index,only,bitmap}'::text[]);
		cols := array_to_string(k.cols, ', ');
		IF how = 'bitmap' OR random() < 0.3 THEN
			q := format('SELECT array_agg(id ORDER BY id) FROM rows.t%s WHERE %s', k.k, cond);
			IF how = 'only' THEN
				q := format('SELECT array_agg(ROW(%s)::text ORDER BY %s) FROM rows.t%s WHERE %s', cols, cols, k.k, cond);
			END IF;
		ELSE					-- in the index's order, from either end
			ord := (SELECT string_agg(c || ' ' || CASE WHEN back THEN
					CASE d WHEN '' THEN 'DESC' WHEN 'DESC' THEN '' WHEN 'NULLS FIRST' THEN 'DESC NULLS LAST' ELSE 'NULLS FIRST' END
				ELSE d END, ', ' ORDER BY o)
				FROM unnest(k.cols, k.dirs) WITH ORDINALITY u (c, d, o), (SELECT random() < 0.5 AS back OFFSET 0) b);
			q := format('SELECT array_agg(r ORDER BY o) FROM (SELECT ROW(%s)::text r, row_number() OVER () o FROM (SELECT %s%s FROM rows.t%s WHERE %s ORDER BY %s LIMIT %s) s) s2',
				cols, cols, CASE WHEN how = 'index' THEN ', id' ELSE '' END, k.k, cond, ord,
				CASE WHEN random() < 0.7 THEN (random() * 30)::int::text ELSE 'ALL' END);
		END IF;
		PERFORM rows.scans(how);
		plan := '';
		FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP
			plan := plan || line || E'\n';
		END LOOP;
		EXECUTE q INTO x;
		PERFORM rows.scans('seq');
		EXECUTE q INTO y;
		queries := queries + 1;
		by_rows := by_rows + (plan ~ kind)::int;
		answers := answers + coalesce(cardinality(y), 0);
		IF x IS DISTINCT FROM y THEN
			different := different + 1;
			RAISE WARNING E'different: %\n% rows by the index, % without\n%', q, cardinality(x), cardinality(y), plan;
		END IF;
	END LOOP;
END $$;

-- a scan that loses its structure after n rows: does it go on with the right ones?
CREATE FUNCTION rows.private(q text, ind text, n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	b text[];
	a text[] := '{}';
	c refcursor := 'c';
	x text;
BEGIN
	PERFORM rows.scans('seq');
	EXECUTE 'SELECT array_agg(x::text) FROM (' || q || ') x' INTO b;
	PERFORM rows.scans('index');
	OPEN c FOR EXECUTE 'SELECT x::text FROM (' || q || ') x';
	FOR i IN 1 .. n LOOP
		FETCH c INTO x;
		a := a || x;
	END LOOP;
	PERFORM artidx_unload(ind::regclass);
	LOOP
		FETCH c INTO x;
		EXIT WHEN NOT FOUND;
		a := a || x;
	END LOOP;
	CLOSE c;
	RETURN format('%s rows, %s, %s', cardinality(a), (SELECT state FROM artidx_indexes WHERE indexrelname = ind),
				  CASE WHEN a = b THEN 'the same' ELSE 'DIFFERENT' END);
END $$;
