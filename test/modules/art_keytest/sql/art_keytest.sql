CREATE EXTENSION art_keytest;
SET client_min_messages = warning;
SET extra_float_digits = 0;
SET timezone = 'UTC';

--
-- Bytes of the encodings, spelled out once.
--
CREATE TABLE b1 (i2 int2, i4 int4, i8 int8, o oid, b bool, d date,
	ts timestamp, tz timestamptz, u uuid, x bytea, t text COLLATE "C", n name);
INSERT INTO b1 VALUES (-2, 1, 258, 5, true, '2000-01-02', '2000-01-01 00:00:00.000001',
	'1999-12-31 23:59:59.999999', '00112233-4455-6677-8899-aabbccddeeff',
	'\x610062', 'ab', 'cd');
DO $$
DECLARE
	c text;
	s text;
BEGIN
	FOREACH c IN ARRAY ARRAY['i2', 'i4', 'i8', 'o', 'b', 'd', 'ts', 'tz', 'u', 'x', 't', 'n'] LOOP
		EXECUTE format('CREATE INDEX b1_i ON b1 (%I); CREATE INDEX b1_d ON b1 (%I DESC)', c, c);
		EXECUTE $q$SELECT format('%s %s', encode(art_keytest_encode('b1_i'), 'hex'),
			encode(art_keytest_encode('b1_d'), 'hex'))$q$ INTO s;
		RAISE WARNING '%: %', c, s;
		DROP INDEX b1_i, b1_d;
	END LOOP;
END $$;
CREATE TABLE b2 (a int4, b text COLLATE "C", c int4);
INSERT INTO b2 VALUES (NULL, 'x', NULL);
CREATE INDEX b2_i ON b2 (a NULLS FIRST, b, c NULLS LAST);
SELECT encode(art_keytest_encode('b2_i'), 'hex');

--
-- Values that like to break orders: extremes, neighbours, prefixes of one
-- another, terminators and escapes inside, infinities, clock changes.
--
CREATE TABLE ints AS
	SELECT v::int8 AS i8,
		CASE WHEN v BETWEEN -2147483648 AND 2147483647 THEN v::int4 END AS i4,
		CASE WHEN v BETWEEN -32768 AND 32767 THEN v::int2 END AS i2,
		CASE WHEN v BETWEEN 0 AND 4294967295 THEN v::int8::oid END AS o,
		CASE WHEN v BETWEEN -10 AND 10 THEN v > 0 END AS b
	FROM (SELECT unnest(ARRAY[-9223372036854775808, -9223372036854775807, -2147483649,
			-2147483648, -2147483647, -65536, -32769, -32768, -32767, -257, -256, -255,
			-129, -128, -127, -2, -1, 0, 1, 2, 127, 128, 129, 255, 256, 257, 32766, 32767,
			32768, 65535, 65536, 16777215, 16777216, 2147483646, 2147483647, 2147483648,
			4294967295, 4294967296, 9223372036854775806, 9223372036854775807, NULL])::numeric AS v
		UNION ALL SELECT (g * 3 - 20)::numeric FROM generate_series(0, 15) g) s;
CREATE TABLE times AS
	SELECT v::timestamp AS ts, v::timestamp AT TIME ZONE 'UTC' AS tz,
		CASE WHEN v <> '294276-12-31 23:59:59.999999' THEN v::date ELSE '5874897-12-31' END AS d
	FROM unnest(ARRAY['-infinity', 'infinity', '4714-11-24 00:00:00 BC', '4714-11-24 00:00:00.000001 BC',
		'4714-11-25 12:00:00 BC', '294276-12-31 23:59:59.999999', '294276-12-31 00:00:00',
		'294276-12-20 00:00:00', '2000-01-01 00:00:00', '1999-12-31 23:59:59.999999',
		'2000-01-01 00:00:00.000001', '1999-12-31 00:00:00', '1970-01-01 00:00:00',
		'0001-01-01 00:00:00', '0001-12-31 12:00:00 BC', '2011-12-29 10:00:00',
		'2011-12-30 10:00:00', '2011-12-31 10:00:00', NULL]) v
	UNION ALL
	-- around the clock changes of 2024 in New York and Dublin
	SELECT s.t + g * interval '29 min 59.5 s',
		(s.t + g * interval '30 min') AT TIME ZONE 'UTC', (s.t + g * interval '7 hour')::date
	FROM generate_series(-16, 16) g,
		unnest(ARRAY['2024-03-10 02:00', '2024-11-03 02:00', '2024-03-31 01:00',
			'2024-10-27 01:00']::timestamp[]) s(t)
	UNION ALL SELECT NULL, NULL, v FROM unnest(ARRAY['294277-01-01', '5874897-12-31', '294276-12-30',
		'2023-12-31', '2024-01-01']::date[]) v;
CREATE TABLE strings AS
	SELECT v AS x, CASE WHEN position('\x00' IN v) = 0 AND v <> '\xff' AND v NOT IN ('\xfe', '\x61ff', '\xff01', '\xffff')
			THEN convert_from(v, 'UTF8') END COLLATE "C" AS t,
		CASE WHEN position('\x00' IN v) = 0 AND v NOT IN ('\xff', '\xfe', '\x61ff', '\xff01', '\xffff')
			THEN convert_from(v, 'UTF8')::name END AS n
	FROM (SELECT unnest(ARRAY['\x', '\x00', '\x0000', '\x000000', '\x00ff', '\x00ff00', '\x0001', '\x01',
			'\x0100', '\x010001', '\x61', '\x6100', '\x610000', '\x6101', '\x61ff', '\x6161', '\x616100',
			'\x62', '\x7f', '\x20', '\x2020', '\x6120', '\xc3a9', '\xc3a900', '\xf09f9880', '\xfe', '\xff', '\xff01', '\xffff', NULL]::bytea[]) AS v
		UNION ALL SELECT convert_to(repeat('a', g), 'UTF8') FROM generate_series(60, 67) g
		UNION ALL SELECT convert_to(repeat('x', 5000) || g, 'UTF8') FROM generate_series(1, 3) g
		UNION ALL SELECT convert_to(substr(md5(g::text), 1, 1 + g % 5), 'UTF8') FROM generate_series(1, 20) g) s;
ALTER TABLE strings ADD u uuid, ADD tp text, ADD vc varchar(6000) COLLATE "C";
UPDATE strings SET u = md5(x::text)::uuid, tp = t, vc = t;
INSERT INTO strings (u) VALUES ('00000000-0000-0000-0000-000000000000'),
	('ffffffff-ffff-ffff-ffff-ffffffffffff'), ('00000000-0000-0000-0000-000000000001'),
	('7fffffff-ffff-ffff-ffff-ffffffffffff'), ('80000000-0000-0000-0000-000000000000');

--
-- Every type, every direction; then several columns.
--
CREATE TABLE summary (cols text, pairs bigint, plans bigint, impossible bigint,
	points bigint, residual bigint, operator_tests bigint, matches bigint);
CREATE PROCEDURE try(tab text, cols text, rounds int) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE INDEX try_i ON %I (%s)', tab, cols);
	INSERT INTO summary SELECT cols, art_keytest_order('try_i'), s.*
		FROM art_keytest_scan('try_i', tab::regclass, rounds, length(cols)) s;
	PERFORM art_keytest_scan('try_i', tab::regclass, rounds / 2, length(cols), true);
	DROP INDEX try_i;
EXCEPTION WHEN OTHERS THEN
	RAISE EXCEPTION '% (%): %', tab, cols, SQLERRM;
END $$;
DO $$
DECLARE
	c record;
	o text;
BEGIN
	FOR c IN SELECT * FROM (VALUES ('ints', 'i2'), ('ints', 'i4'), ('ints', 'i8'), ('ints', 'o'), ('ints', 'b'),
			('times', 'd'), ('times', 'ts'), ('times', 'tz'), ('strings', 'x'), ('strings', 't'),
			('strings', 'n'), ('strings', 'u'), ('strings', 'vc'), ('strings', 'tp text_pattern_ops'),
			('strings', 'vc varchar_pattern_ops')) v (tab, col)
	LOOP
		FOREACH o IN ARRAY ARRAY['ASC', 'DESC', 'ASC NULLS FIRST', 'DESC NULLS LAST'] LOOP
			CALL try(c.tab, c.col || ' ' || o, 1500);
		END LOOP;
	END LOOP;
	CALL try('ints', 'i4, i8', 4000);
	CALL try('ints', 'i2 DESC, i4 NULLS FIRST, i8 DESC NULLS LAST', 4000);
	CALL try('ints', 'b, o DESC, i2', 4000);
	CALL try('ints', 'b NULLS FIRST, i2, (i8 % 3), (~ i4) DESC', 4000);
	CALL try('times', 'd DESC, ts', 4000);
	CALL try('times', 'ts NULLS FIRST, tz DESC, d', 4000);
	CALL try('strings', 't, x DESC', 4000);
	CALL try('strings', 'x DESC NULLS LAST, t DESC, n', 4000);
	CALL try('strings', '(length(x)), tp text_pattern_ops DESC, n DESC, u', 4000);
END $$;

-- the conversions between times follow the session's zone
DO $$
DECLARE
	z text;
BEGIN
	FOREACH z IN ARRAY ARRAY['America/New_York', 'Europe/Dublin', 'Asia/Kolkata', 'Pacific/Apia',
		'FOO+100BAR-100,M3.2.0,M11.1.0', 'FOO-167', 'FOO+167'] LOOP
		PERFORM set_config('timezone', z, true);
		CALL try('times', 'd', 2000);
		CALL try('times', 'ts DESC', 2000);
		CALL try('times', 'tz', 2000);
		CALL try('times', 'tz, ts DESC, d NULLS FIRST', 3000);
	END LOOP;
END $$;

-- in each of them something was found, and something was found impossible
SELECT cols, pairs, plans, impossible, points, residual, operator_tests, matches
	FROM summary WHERE pairs = 0 OR impossible = 0 OR matches = 0;
SELECT count(*), sum(plans) AS plans, sum(points) > 10000 AS points,
	sum(residual) > 10000 AS residual, sum(operator_tests) > 100 AS operator_tests
	FROM summary;
-- same zone on both sides of a day without clock changes: bounds are exact
CREATE TABLE plain AS SELECT '2024-01-15'::timestamp + g * interval '1 hour' AS ts,
	('2024-01-15'::timestamp + g * interval '1 hour') AT TIME ZONE 'America/New_York' AS tz
	FROM generate_series(0, 47) g;
CREATE INDEX plain_i ON plain (ts);
SET timezone = 'America/New_York';
SELECT operator_tests, matches > 0 AS matches FROM art_keytest_scan('plain_i', 'plain', 2000, 7);
SET timezone = 'UTC';

-- a type that somebody added to the family: only its operators know
CREATE FUNCTION in_lt(int4, numeric) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT $1::numeric < $2';
CREATE FUNCTION in_le(int4, numeric) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT $1::numeric <= $2';
CREATE FUNCTION in_eq(int4, numeric) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT $1::numeric = $2';
CREATE FUNCTION in_ge(int4, numeric) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT $1::numeric >= $2';
CREATE FUNCTION in_gt(int4, numeric) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT $1::numeric > $2';
CREATE OPERATOR <<? (LEFTARG = int4, RIGHTARG = numeric, FUNCTION = in_lt);
CREATE OPERATOR <=? (LEFTARG = int4, RIGHTARG = numeric, FUNCTION = in_le);
CREATE OPERATOR ==? (LEFTARG = int4, RIGHTARG = numeric, FUNCTION = in_eq);
CREATE OPERATOR >=? (LEFTARG = int4, RIGHTARG = numeric, FUNCTION = in_ge);
CREATE OPERATOR >>? (LEFTARG = int4, RIGHTARG = numeric, FUNCTION = in_gt);
ALTER OPERATOR FAMILY integer_ops USING btree ADD OPERATOR 1 <<? (int4, numeric), OPERATOR 2 <=? (int4, numeric),
	OPERATOR 3 ==? (int4, numeric), OPERATOR 4 >=? (int4, numeric), OPERATOR 5 >>? (int4, numeric);
CREATE TABLE numerics AS SELECT g AS i4, g / 2.0 AS n FROM generate_series(-20, 20) g UNION ALL SELECT NULL, 0;
CREATE INDEX numerics_i ON numerics (i4 NULLS FIRST, (-i4) DESC);
SELECT operator_tests > 1000 AS operator_tests, matches > 0 AS matches
	FROM art_keytest_scan('numerics_i', 'numerics', 3000, 11);
SELECT operator_tests > 1000 AS operator_tests, matches > 0 AS matches
	FROM art_keytest_scan('numerics_i', 'numerics', 3000, 11, true);
ALTER OPERATOR FAMILY integer_ops USING btree DROP OPERATOR 1 (int4, numeric), OPERATOR 2 (int4, numeric),
	OPERATOR 3 (int4, numeric), OPERATOR 4 (int4, numeric), OPERATOR 5 (int4, numeric);

-- a constant longer than any key
CREATE TABLE longs (t text COLLATE "C", x bytea);
INSERT INTO longs VALUES ('zz', '\x00'), ('a', '\x01'), (repeat('z', 1000), '\x'), ('', '\x0000');
CREATE TABLE longpool (t text COLLATE "C", x bytea);
INSERT INTO longpool SELECT repeat('z', 5 * 1024 * 1024), decode(repeat('00', 3 * 1024 * 1024), 'hex');
INSERT INTO longpool SELECT * FROM longs;
CREATE INDEX longs_i ON longs (t, x DESC);
SELECT plans, matches > 0 AS matches FROM art_keytest_scan('longs_i', 'longpool', 300, 3);
SELECT plans, matches > 0 AS matches FROM art_keytest_scan('longs_i', 'longpool', 60, 3, true);
DROP INDEX longs_i;
CREATE INDEX longs_i ON longs (md5(t), t) WHERE length(t) < 10;
INSERT INTO longs VALUES (repeat('q', 5 * 1024 * 1024), NULL);
SELECT art_keytest_order('longs_i');

-- order that is not the bytes': compared
CREATE COLLATION nondet (provider = icu, locale = 'und', deterministic = false);
CREATE TABLE coll (t text COLLATE "und-x-icu", v varchar COLLATE nondet, c text COLLATE ucs_basic, n numeric);
INSERT INTO coll VALUES ('a', 'a', 'a', 1), ('b', 'B', 'b', 1.00), ('B', 'b', 'B', -10), ('A', NULL, 'A', 9);
CREATE INDEX coll_c ON coll (c);
SELECT art_keytest_order('coll_c');
CREATE INDEX coll_t ON coll (t);
SELECT art_keytest_order('coll_t');
CREATE INDEX coll_v ON coll (v);
SELECT art_keytest_order('coll_v');
CREATE INDEX coll_tp ON coll (t text_pattern_ops);
SELECT art_keytest_order('coll_tp');
CREATE INDEX coll_n ON coll (n);
SELECT art_keytest_order('coll_n');
