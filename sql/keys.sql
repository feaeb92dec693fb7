--
-- Every type that has an encoding, in every direction, with every operator of
-- its family: the rows and their order as from btree.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA keys;
SET search_path = keys, public;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
-- a plan in spite of enable_* = off costs enough to be compiled
SET jit = off;
SET timezone = 'UTC';

-- values that like to break orders: extremes, neighbours, prefixes of one
-- another, terminators and escapes inside, infinities; each twice, and NULL
CREATE TABLE art_v (id serial, i2 int2, i4 int4, i8 int8, o oid, b bool,
	d date, ts timestamp, tz timestamptz, u uuid, x bytea, t text COLLATE "C",
	n name, vc varchar(3000) COLLATE "C", tp text);
INSERT INTO art_v (i2, i4, i8, o, b)
	SELECT CASE WHEN v BETWEEN -32768 AND 32767 THEN v::int2 END,
		CASE WHEN v BETWEEN -2147483648 AND 2147483647 THEN v::int4 END,
		v::int8, CASE WHEN v BETWEEN 0 AND 4294967295 THEN v::int8::oid END,
		CASE WHEN v BETWEEN -5 AND 5 THEN v > 0 END
	FROM unnest(ARRAY[-9223372036854775808, -2147483649, -2147483648, -32769, -32768, -257, -256,
		-128, -1, 0, 1, 127, 128, 255, 256, 32767, 32768, 65536, 2147483647, 2147483648,
		4294967295, 4294967296, 9223372036854775807, NULL]::numeric[]) v;
INSERT INTO art_v (ts, tz, d)
	SELECT v, v AT TIME ZONE 'UTC', v::date
	FROM unnest(ARRAY['-infinity', 'infinity', '4714-11-24 BC', '294276-12-31', '2000-01-01',
		'1999-12-31 23:59:59.999999', '2000-01-01 00:00:00.000001', '1969-12-31 12:00',
		'2024-03-10 02:30', '2024-03-10 07:00', '2024-11-03 01:30', '2024-11-03 05:59', '2024-11-03 06:30',
		NULL]::timestamp[]) v;
INSERT INTO art_v (d) VALUES ('5874897-12-31'), ('294277-01-01');
INSERT INTO art_v (u) SELECT md5(i::text)::uuid FROM generate_series(1, 6) i;
INSERT INTO art_v (u) VALUES ('00000000-0000-0000-0000-000000000000'),
	('ffffffff-ffff-ffff-ffff-ffffffffffff'), ('80000000-0000-0000-0000-000000000000');
INSERT INTO art_v (x) SELECT unnest(ARRAY['\x', '\x00', '\x0000', '\x00ff', '\x00ff00', '\x0001', '\x01',
	'\x0100', '\xff', '\xff00', '\xffff', '\x6100', '\x61']::bytea[]);
INSERT INTO art_v (x) VALUES (decode(repeat('00', 900), 'hex'));
INSERT INTO art_v (t, n, vc, tp)
	SELECT v, v, v, v FROM unnest(ARRAY['', ' ', 'a', 'a ', 'aa', 'ab', 'b', 'B', 'é', 'ez', E'\x01',
		E'a\x01', E'\x7f', '😀', repeat('a', 62), repeat('a', 63)]) v;
INSERT INTO art_v (t, vc, tp) VALUES (repeat('a', 64), repeat('a', 64), repeat('a', 64)),
	(repeat('q', 2000), repeat('q', 2000), repeat('q', 2000));
INSERT INTO art_v SELECT id + 1000, i2, i4, i8, o, b, d, ts, tz, u, x, t, n, vc, tp FROM art_v;
CREATE TABLE bt_v AS SELECT * FROM art_v;

-- runs one query on either side and returns its number of rows; complains if they
-- differ or, when asked to look, if art is not read by its index
CREATE TABLE tally (col text, opts text, queries int DEFAULT 0, result_rows int DEFAULT 0);
CREATE FUNCTION compare(q text, look boolean) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	b text[];
	a text[];
	scan text;
BEGIN
	EXECUTE 'SELECT array_agg(x::text) FROM (' || replace(q, '{}', 'bt') || ') x' INTO b;
	EXECUTE 'SELECT array_agg(x::text) FROM (' || replace(q, '{}', 'art') || ') x' INTO a;
	IF a IS DISTINCT FROM b THEN
		RAISE WARNING E'% differs\nbtree: %\nart: %', left(q, 300), left(b::text, 300), left(a::text, 300);
	END IF;
	IF look THEN
		SELECT string_agg(l, ' ') INTO scan FROM unnest(twin.plan('art', q)) l;
		IF scan !~ 'Index (Only )?Scan' THEN
			RAISE WARNING '%: %', left(q, 300), scan;
		END IF;
	END IF;
	RETURN coalesce(cardinality(a), 0);
END $$;

-- all operators of the column's family with constants of all their types, and
-- the whole order both ways; pool: the columns that constants come from
CREATE PROCEDURE probe(col text, class text, opts text, pool text[]) LANGUAGE plpgsql AS $$
DECLARE
	side text;
	p text;
	op record;
	c text;
	nq int := 0;
	nr int := 0;
	q text;
	look boolean;
BEGIN
	FOREACH side IN ARRAY ARRAY['bt', 'art'] LOOP
		EXECUTE format('CREATE INDEX %s_v_i ON %s_v USING %s (%I %s %s)', side, side,
			CASE side WHEN 'bt' THEN 'btree' ELSE 'art' END, col, class, opts);
	END LOOP;
	FOR op IN SELECT o.amopopr::regoperator::oid AS oid, opr.oprname, a.attname, format_type(a.atttypid, a.atttypmod) AS type
		FROM pg_opclass k JOIN pg_am m ON m.oid = k.opcmethod AND m.amname = 'art'
			JOIN pg_amop o ON o.amopfamily = k.opcfamily AND o.amoplefttype = k.opcintype
			JOIN pg_operator opr ON opr.oid = o.amopopr
			JOIN pg_attribute a ON a.attrelid = 'art_v'::regclass AND a.attname = ANY (pool)
				AND a.atttypid = o.amoprighttype
		WHERE k.oid = (SELECT indclass[0] FROM pg_index WHERE indexrelid = 'art_v_i'::regclass)
		ORDER BY a.attname, o.amopstrategy
	LOOP
		look := true;
		FOR c IN EXECUTE format('SELECT DISTINCT %I::text COLLATE "C" FROM art_v WHERE %I IS NOT NULL AND id %% 2 < %s ORDER BY 1',
			op.attname, op.attname, CASE opts WHEN '' THEN 2 ELSE 1 END)
		LOOP
			q := format('SELECT id, %I FROM {}_v WHERE %I OPERATOR(pg_catalog.%s) %L::%s',
				col, col, op.oprname, c, op.type);
			nr := nr + compare(q, look);
			nq := nq + 1;
			look := false;
		END LOOP;
	END LOOP;
	FOREACH q IN ARRAY ARRAY['IS NULL', 'IS NOT NULL'] LOOP
		nr := nr + compare(format('SELECT id, %I FROM {}_v WHERE %I %s', col, col, q), true);
		nq := nq + 1;
	END LOOP;
	IF class = '' THEN
		FOREACH q IN ARRAY ARRAY['ASC', 'DESC'] LOOP
			-- the index's own NULLS order, one way and the other
			p := CASE WHEN (opts ~ 'FIRST' OR (opts ~ 'DESC' AND opts !~ 'LAST')) = ((opts ~ 'DESC') = (q = 'DESC'))
				THEN 'FIRST' ELSE 'LAST' END;
			-- equal keys: backwards nbtree has no order of its own, but for
			-- the ascending one within a posting list
			nr := nr + compare(format(CASE WHEN (opts ~ 'DESC') = (q = 'DESC') THEN 'SELECT id, %I' ELSE 'SELECT %I' END ||
				' FROM {}_v ORDER BY %I %s NULLS %s', col, col, q, p), true);
			nr := nr + compare(format('SELECT %I FROM {}_v ORDER BY %I %s NULLS %s', col, col, q, p), true);
			nq := nq + 2;
		END LOOP;
	END IF;
	INSERT INTO tally VALUES (col, opts, nq, nr);
	DROP INDEX bt_v_i, art_v_i;
END $$;
CREATE PROCEDURE probe_all(col text, class text, pool text[]) LANGUAGE plpgsql AS $$
BEGIN
	CALL probe(col, class, '', pool);
	CALL probe(col, class, 'DESC', pool);
	CALL probe(col, class, 'NULLS FIRST', pool);
	CALL probe(col, class, 'DESC NULLS LAST', pool);
END $$;

CALL probe_all('i2', '', '{i2,i4,i8}');
CALL probe_all('i4', '', '{i2,i4,i8}');
CALL probe_all('i8', '', '{i2,i4,i8}');
CALL probe_all('o', '', '{o}');
CALL probe_all('b', '', '{b}');
CALL probe_all('d', '', '{d,ts}');
CALL probe_all('ts', '', '{d,ts}');
CALL probe_all('tz', '', '{tz}');
CALL probe_all('u', '', '{u}');
CALL probe_all('x', '', '{x}');
CALL probe_all('t', '', '{t,n}');
CALL probe_all('n', '', '{t,n}');
CALL probe_all('vc', '', '{t}');
CALL probe_all('tp', 'text_pattern_ops', '{t}');
CALL probe_all('vc', 'varchar_pattern_ops', '{t}');
SELECT * FROM tally ORDER BY col, opts, queries;

-- with a session's time zone between the types.  A seq scan is the judge: where
-- clocks are turned back, the order of local times is not that of the instants,
-- and nbtree may stop too early.
CREATE FUNCTION judged(q text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	a int[];
	s int[];
BEGIN
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_indexscan = on;
	EXECUTE 'SELECT array_agg(id ORDER BY id) FROM (' || q || ') x' INTO a;
	SET LOCAL enable_seqscan = on;
	SET LOCAL enable_indexscan = off;
	EXECUTE 'SELECT array_agg(id ORDER BY id) FROM (' || q || ') x' INTO s;
	IF a IS DISTINCT FROM s THEN
		RAISE WARNING '%: index % table %', q, a, s;
	END IF;
	RETURN coalesce(cardinality(a), 0);
END $$;
CREATE TABLE art_z AS
	SELECT row_number() OVER ()::int AS id, v AS ts, v AT TIME ZONE 'UTC' AS tz, v::date AS d
	FROM (SELECT s.t + g * interval '30 min' FROM generate_series(-12, 12) g,
		unnest(ARRAY['2024-03-10 02:00', '2024-11-03 02:00', '2024-07-01 00:00']::timestamp[]) s(t)
		UNION ALL SELECT unnest(ARRAY['infinity', '-infinity', '294276-12-31 23:00', '4714-11-24 BC', NULL]::timestamp[])) t (v);
CREATE INDEX art_z_d ON art_z USING art (d);
CREATE INDEX art_z_ts ON art_z USING art (ts DESC);
CREATE INDEX art_z_tz ON art_z USING art (tz);
SET timezone = 'America/New_York';
SELECT c.col, k.type, count(*) AS queries,
		sum(judged(format('SELECT id FROM art_z WHERE %I %s %L::%s', c.col, o.op, v.v, k.type))) AS result_rows
	FROM (VALUES ('d'), ('ts'), ('tz')) c (col), (VALUES ('date'), ('timestamp'), ('timestamptz')) k (type),
		unnest(ARRAY['<', '<=', '=', '>=', '>']) o (op),
		unnest(ARRAY['2024-03-10 00:00', '2024-03-10 02:30', '2024-03-10 03:00', '2024-11-03 00:00',
			'2024-11-03 01:30', '2024-11-03 02:00', '2024-07-01 00:00', '2024-07-01 04:30', 'infinity', '-infinity',
			'294276-12-31']) v (v)
	GROUP BY 1, 2 ORDER BY 1, 2;
RESET timezone;

-- several columns of different kinds
CREATE TABLE art_m (a int, t text COLLATE "C", x bytea, ts timestamp, id serial);
INSERT INTO art_m (a, t, x, ts) SELECT nullif(i % 5, 4), nullif(repeat('k', i % 4), 'kk'),
	decode(repeat('00', i % 3), 'hex'), timestamp '2024-01-01' + (i % 13) * interval '1 hour'
	FROM generate_series(1, 800) i;
CREATE TABLE bt_m AS SELECT * FROM art_m;
CREATE INDEX bt_m_i ON bt_m USING btree (a, t DESC, x NULLS FIRST, ts DESC NULLS LAST);
CREATE INDEX art_m_i ON art_m USING art (a, t DESC, x NULLS FIRST, ts DESC NULLS LAST);
SELECT same('SELECT * FROM {}_m ORDER BY a, t DESC, x NULLS FIRST, ts DESC NULLS LAST');
SELECT same('SELECT * FROM {}_m ORDER BY a DESC, t, x DESC NULLS LAST, ts NULLS FIRST');
SELECT same('SELECT a, t, x, ts FROM {}_m WHERE a = 2 AND t > '''' AND t <= ''kkk'' ORDER BY t DESC');
SELECT same('SELECT a, t, x, ts FROM {}_m WHERE a = 2 AND t IS NULL AND x >= ''\x00''');
SELECT same('SELECT a, t, x, ts FROM {}_m WHERE a IS NULL AND t = ''k'' AND x = ''\x0000'' AND ts < ''2024-01-01 05:00''');
SELECT same('SELECT a, t, x, ts FROM {}_m WHERE a IN (0) AND t = ''k'' AND x = ''\x00'' AND ts = ''2024-01-01 05:00''');
SELECT same('SELECT id FROM {}_m WHERE a > 1 AND t = ''k'' AND x > ''\x00'' AND ts = ''2024-01-01 05:00''');
SELECT same('SELECT id FROM {}_m WHERE t = ''kkk'' AND ts = date ''2024-01-01''');
SELECT same('SELECT id FROM {}_m WHERE t = ''kkk'' AND t < ''kk''');
SELECT same('SELECT id FROM {}_m WHERE a < 3 AND a > 3');
SELECT same('SELECT id FROM {}_m WHERE a >= 3 AND a <= 3 AND t = ''k''');
SELECT same('SELECT id FROM {}_m WHERE a = 2.0::int AND t = ''k''::name');

-- keys longer than nbtree takes, and too long
CREATE TABLE art_l (id int, t text COLLATE "C");
ALTER TABLE art_l ALTER t SET STORAGE EXTERNAL;
CREATE INDEX art_l_t ON art_l USING art (t);
INSERT INTO art_l SELECT i, repeat(chr(97 + i % 3), 100000) || i FROM generate_series(1, 12) i;
INSERT INTO art_l VALUES (13, 'b'), (14, NULL);
SELECT id, length(t) FROM art_l WHERE t > 'b' ORDER BY t;
SELECT id, length(t) FROM art_l ORDER BY t DESC LIMIT 3;
SELECT id FROM art_l WHERE t = repeat('a', 100000) || 3;
SELECT id FROM art_l WHERE t > repeat('b', 5000000) ORDER BY t;
SELECT id FROM art_l WHERE t = repeat('b', 5000000);
INSERT INTO art_l VALUES (15, repeat('z', 5000000));
SELECT clean('art_l_t');

DROP TABLE art_v, bt_v, art_z, art_m, bt_m, art_l;
