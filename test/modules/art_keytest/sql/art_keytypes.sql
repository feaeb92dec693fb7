--
-- The types whose encodings are more than the bytes of a number or a string,
-- and the payload.  Uses what art_keytest.sql leaves: try() and summary.
--
SET client_min_messages = warning;
SET timezone = 'UTC';
TRUNCATE summary;

--
-- Bytes, spelled out once: columns, then payload.
--
CREATE TABLE b3 (f4 float4, f8 float8, n numeric, m money, c "char", bp char(4), t time, tz timetz,
	iv interval, i4 inet, i6 inet, ci cidr, ma macaddr, m8 macaddr8, bi bit(10), vb varbit, ls pg_lsn,
	ti tid, x8 xid8);
INSERT INTO b3 VALUES (1.5, '-0', -12345.670, '-0.01', 'x', 'ab', '00:00:01', '12:00:00+02', '1 mon 02:00',
	'10.1.2.3/8', '::1', '10.0.0.0/8', '01:02:03:04:05:06', '01:02:03:04:05:06:07:08', '1010101011',
	'', '1/2', '(7,2)', '9'::xid8);
DO $$
DECLARE
	c text;
	s text;
BEGIN
	FOR c IN SELECT attname FROM pg_attribute WHERE attrelid = 'b3'::regclass AND attnum > 0 ORDER BY attnum LOOP
		EXECUTE format('CREATE INDEX b3_i ON b3 (%I); CREATE INDEX b3_d ON b3 (%I DESC)', c, c);
		EXECUTE $q$SELECT format('%s %s', encode(art_keytest_encode('b3_i'), 'hex'),
			encode(art_keytest_encode('b3_d'), 'hex'))$q$ INTO s;
		RAISE WARNING '%: %', c, s;
		DROP INDEX b3_i, b3_d;
	END LOOP;
END $$;
CREATE INDEX b3_inc ON b3 (c, n) INCLUDE (bp, m, f4);
SELECT encode(art_keytest_encode('b3_inc'), 'hex');
UPDATE b3 SET c = NULL, n = NULL, bp = NULL;
SELECT encode(art_keytest_encode('b3_inc'), 'hex');

--
-- Values that like to break orders.  NaNs of other bits, denormals, neighbours.
--
CREATE TABLE floats AS SELECT v::float8 AS f8,
		CASE WHEN v::numeric IN ('NaN', 'Infinity', '-Infinity', 0) OR
			abs(v::numeric) BETWEEN 1e-44 AND 3.4e38 THEN v::float4 END AS f4
	FROM unnest(ARRAY['-Infinity', '-1.7976931348623157e308', '-3.4028235e38', '-1e38', '-16777217', '-1.0000001',
		'-1', '-0.99999994', '-1e-44', '-1e-45', '-4.9e-324', '0', '4.9e-324', '2.2250738585072014e-308', '1e-45', '1e-44',
		'1.1754944e-38', '0.1', '0.10000000149011612', '0.3', '1', '1.0000000000000002', '1.0000001', '1.00000011920929', '2',
		'16777216', '16777217', '1e38', '3.4028234e38', '3.4028235e38', '3.4028236e38', '1.7976931348623157e308', 'Infinity',
		'NaN', NULL]) v;
INSERT INTO floats VALUES ('-0', '-0'), (-'NaN'::float8, -'NaN'::float4),
	('Infinity'::float8 + '-Infinity', 'Infinity'::float4 + '-Infinity'), (-'0'::float8, '0'::float4 * -1);
INSERT INTO floats SELECT (random() - 0.5) * 10 ^ (g % 40 - 20), (random() - 0.5) * 10 ^ (g % 30 - 15) FROM generate_series(1, 60) g;

CREATE TABLE nums AS SELECT v::numeric AS n, (v || '.0')::numeric AS nx, v AS w FROM unnest(ARRAY['0', '1', '-1', '9999', '10000', '10001',
		'99999999', '100000000', '-9999', '-10000', '-10001', '256', '255', '65536', '2560000', '25500', '-256', '-2560000']) v;
INSERT INTO nums (n) SELECT v::numeric FROM unnest(ARRAY['0.0', '0.000', '1.0', '1.00', '1.000000000', '-1.0', '0.1', '0.10', '0.0001', '0.00001', '-0.0001',
		'-0.00010', '1.0001', '1.00010001', '1.00010000', '1.9999', '1.99999999', '-1.0001', '-1.00010001', 'NaN', 'Infinity', '-Infinity',
		'1e70', '-1e70', '1e80', '1e81', '1e320', '1e324', '1e328', '-1e324', '1e2000', '1e131071', '9e131071', '-9e131071', '1e-70', '-1e-70', '1e-80', '1e-84', '1e-88',
		'1e-2000', '-1e-2000', '1e-16383', '-1e-16383', '2e-16383', '12345678901234567890.123456789', '12345678901234567890.1234567890',
		'-12345678901234567890.123456789', '0.000000000000000000000000000000000000000000000000000000000000000000',
		'5.0000000000000000000000000000000000000000000000000000000000000000', NULL]) v;
INSERT INTO nums (n) SELECT ((random() - 0.5) * 10 ^ (g % 17 - 8))::numeric FROM generate_series(1, 40) g;
INSERT INTO nums (n) SELECT round(n, g) FROM nums, generate_series(0, 3) g WHERE abs(n) BETWEEN 0.01 AND 1e6;
-- with zero digits at the ends, as arithmetic might leave them
INSERT INTO nums (n) SELECT n * 10000 / 10000 FROM nums WHERE abs(n) < 1e300;

CREATE TABLE clocks AS SELECT t::time AS t, (t || z)::timetz AS tz, NULL::interval AS iv
	FROM unnest(ARRAY['00:00', '00:00:00.000001', '12:00', '11:00', '13:00', '23:59:59.999999', '24:00']) t,
		unnest(ARRAY['+00', '-01', '+01', '+15:59:59', '-15:59:59', '+01:30']) z;
INSERT INTO clocks (iv) SELECT v::interval FROM unnest(ARRAY['0', '1 mon', '30 days', '720:00', '1 mon -30 days', '-1 mon', '-30 days',
		'-1 mon 30 days', '1 day', '24:00', '24:00:00.000001', '23:59:59.999999', '-1 day', '-24:00', '-23:59', '-00:00:00.000001',
		'00:00:00.000001', '1 day -00:00:00.000001', '1 day 00:00:00.000001', '-1 day -00:00:00.000001', '1 year', '360 days', '365 days', '178956970 years 7 mons',
		'-178956970 years -8 mons', '2147483647 days', '-2147483648 days', '178956970 years 7 mons 2147483647 days 2562047788:00:54.775807',
		'-178956970 years -8 mons -2147483648 days -2562047788:00:54.775807', '2562047788:00:54.775807', '-2562047788:00:54.775807', '106751991 days 04:00:54.775807',
		'178956970 years 7 mons 30 days', '1 mon 1 day 01:00', '1 mon -1 day', '-1 mon 1 day -01:00', NULL]) v;

CREATE TABLE nets AS SELECT v::inet AS i, CASE WHEN network(v::inet) = v::inet THEN v::cidr END AS c
	FROM unnest(ARRAY['0.0.0.0/0', '0.0.0.0', '0.0.0.0/1', '0.0.0.1/0', '1.2.3.4/0', '128.0.0.0/1', '127.255.255.255', '10.0.0.0/8', '10.0.0.0/9', '10.0.0.0/16',
		'10.0.0.1/8', '10.1.2.3/8', '10.1.0.0/16', '10.0.0.0/32', '10.0.0.1', '10.0.0.255', '10.0.0.255/31', '10.0.0.254/31', '9.255.255.255/8', '11.0.0.0/7', '255.255.255.255',
		'255.255.255.255/0', '192.168.1.0/24', '192.168.1.5/24', '192.168.1.5/25', '192.168.1.128/25', '192.168.1.5/26', '192.168.1.255/24', '0.0.0.0/32',
		'::', '::/0', '::1', '::1/0', '::ffff:1.2.3.4', 'ffff::/16', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2001:db8::/32', '2001:db8::1/32', '2001:db8::/33',
		'2001:db8:8000::/33', '2001:db8::1/127', '2001:db8::1/128', '2001:db8::/127', NULL]) v;
ALTER TABLE nets ADD m macaddr, ADD m8 macaddr8, ADD u "char", ADD l pg_lsn, ADD t tid, ADD x xid8, ADD mo money;
INSERT INTO nets (m, m8) SELECT trunc(v::macaddr), v::macaddr8 FROM unnest(ARRAY['00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff', '7f:ff:ff:00:00:00',
	'80:00:00:00:00:00', '00:00:01:00:00:00', '00:01:00:ff:00:00']) v;
INSERT INTO nets (m) SELECT v::macaddr FROM unnest(ARRAY['00:00:00:00:00:01', '00:00:00:80:00:00', '00:00:00:7f:ff:ff', '01:02:03:04:05:06']) v;
INSERT INTO nets (m8) SELECT v::macaddr8 FROM unnest(ARRAY['00:00:00:00:00:00:00:01', 'ff:ff:ff:ff:ff:ff:ff:ff', '00:00:00:00:80:00:00:00', '80:00:00:00:00:00:00:00']) v;
INSERT INTO nets (u) SELECT v::"char" FROM unnest(ARRAY[0, 1, 65, 97, 127, -1, -128, -127]) v;
INSERT INTO nets (l) SELECT v::pg_lsn FROM unnest(ARRAY['0/0', '0/1', '0/FFFFFFFF', '1/0', '7FFFFFFF/FFFFFFFF', '80000000/0', 'FFFFFFFF/FFFFFFFF']) v;
INSERT INTO nets (t) SELECT v::tid FROM unnest(ARRAY['(0,0)', '(0,1)', '(0,65535)', '(1,0)', '(255,1)', '(256,0)', '(2147483648,1)', '(4294967295,65535)']) v;
INSERT INTO nets (x) SELECT v::xid8 FROM unnest(ARRAY['0', '1', '4294967295', '4294967296', '9223372036854775807', '9223372036854775808', '18446744073709551615']) v;
INSERT INTO nets (mo) SELECT v::money FROM unnest(ARRAY['0', '0.01', '-0.01', '92233720368547758.07', '-92233720368547758.08', '2.55', '2.56']) v;

CREATE TABLE bits AS SELECT v::varbit AS vb, CASE WHEN length(v) = 9 THEN v::bit(9) END AS b
	FROM unnest(ARRAY['', '0', '1', '00', '01', '10', '11', '0000000', '00000000', '000000000', '0000000000000000', '00000000000000000', '11111111', '111111110', '111111111',
		'0000000011111111', '00000000111111110', '000000001', '00000001', '000000010', '10000000', '100000000', '100000001', '1111111100000000', '0101', '01010', NULL]) v;

CREATE TABLE chars AS SELECT v::bpchar COLLATE "C" AS bp, left(v, 5)::char(5) COLLATE "C" AS c5
	FROM unnest(ARRAY['', ' ', '   ', 'a', 'a ', 'a     ', 'ab', 'a b', 'a b ', E'a\t', E'a\x01', E'a \x01', 'é', 'é  ', 'b', 'B', E'\x01', E' \x01', '  a', NULL]) v;
INSERT INTO chars SELECT repeat('x', 100 + g) || repeat(' ', g * 100) FROM generate_series(0, 5) g;
INSERT INTO chars (bp) VALUES ('q' || repeat(' ', 50000));

DO $$
DECLARE
	c record;
	o text;
BEGIN
	FOR c IN SELECT * FROM (VALUES ('floats', 'f4'), ('floats', 'f8'), ('nums', 'n'), ('clocks', 't'), ('clocks', 'tz'), ('clocks', 'iv'),
			('nets', 'i'), ('nets', 'c'), ('nets', 'm'), ('nets', 'm8'), ('nets', 'u'), ('nets', 'l'), ('nets', 't'), ('nets', 'x'),
			('nets', 'mo'), ('bits', 'vb'), ('bits', 'b'), ('chars', 'bp'), ('chars', 'c5'), ('chars', 'bp bpchar_pattern_ops')) v (tab, col)
	LOOP
		FOREACH o IN ARRAY ARRAY['ASC', 'DESC', 'ASC NULLS FIRST', 'DESC NULLS LAST'] LOOP
			CALL try(c.tab, c.col || ' ' || o, 1000);
		END LOOP;
	END LOOP;
	CALL try('floats', 'f4 DESC, f8', 3000);
	CALL try('floats', '(f8 > 0), f8 DESC NULLS LAST, f4 NULLS FIRST', 3000);
	CALL try('nums', 'nx, n DESC, (n % 7)', 3000);
	CALL try('nums', '(sign(n)) DESC, n', 3000);
	CALL try('clocks', '(extract(hour FROM tz)) DESC, tz DESC, t, iv', 3000);
	CALL try('nets', '(family(i)), i DESC, c', 3000);
	CALL try('nets', '(host(c)) COLLATE "C", m DESC, m8, u DESC, l, t DESC, x DESC, mo DESC', 3000);
	CALL try('bits', 'b DESC, vb', 3000);
	CALL try('chars', '(length(bp)), bp DESC, c5 bpchar_pattern_ops', 3000);
	-- beside a column that is compared
	CALL try('chars', '(bp::text) COLLATE "und-x-icu", bp DESC, c5', 2000);
END $$;
SELECT cols, pairs, plans, impossible, points, residual, operator_tests, matches
	FROM summary WHERE pairs = 0 OR impossible = 0 OR matches = 0 OR operator_tests > 0;
SELECT count(*), sum(plans) AS plans, sum(residual) > 5000 AS residual FROM summary;
-- what has a payload is no point
SELECT cols, points > 0 AS points FROM summary WHERE cols ~ ' ASC$' ORDER BY cols COLLATE "C";

--
-- INCLUDE: columns of any type, none of which counts for order or equality.
--
CREATE TABLE inc (k int, n numeric, t text, j json, p point, a int[], bp bpchar, x xid, o oidvector, cs text);
INSERT INTO inc SELECT CASE WHEN g % 7 > 0 THEN g % 5 END, CASE WHEN g % 3 > 0 THEN g % 4 + 0.00 END,
		CASE WHEN g % 5 > 0 THEN repeat(md5(g::text), g % 9) END, CASE WHEN g % 4 > 0 THEN json_build_object('a', g) END,
		CASE WHEN g % 6 > 0 THEN point(g, -g) END, CASE WHEN g % 2 > 0 THEN ARRAY[g, NULL] END,
		repeat(' ', g % 3), g::text::xid, '1 2 3', repeat('z', g * 100)
	FROM generate_series(1, 60) g;
CREATE INDEX inc_1 ON inc (k) INCLUDE (t, j, p, a);
CREATE INDEX inc_2 ON inc (k, n DESC) INCLUDE (bp, x, o, k, cs);
CREATE INDEX inc_3 ON inc (n, t COLLATE "und-x-icu") INCLUDE (j, p, n, a);
SELECT art_keytest_order('inc_1'), art_keytest_order('inc_2'), art_keytest_order('inc_3');
SELECT plans, impossible > 0 AS impossible, points, matches > 0 AS matches FROM art_keytest_scan('inc_1', 'inc', 1000, 1);
SELECT plans, impossible > 0 AS impossible, points, matches > 0 AS matches FROM art_keytest_scan('inc_2', 'inc', 1000, 2);
SELECT plans, impossible > 0 AS impossible, points, matches > 0 AS matches FROM art_keytest_scan('inc_3', 'inc', 1000, 3);
-- the limit is of all of it
CREATE INDEX inc_4 ON inc (k) INCLUDE (cs) WHERE length(cs) < 10;
DROP INDEX inc_2;
INSERT INTO inc (k, cs) VALUES (1, repeat('z', 5 * 1024 * 1024));
SELECT art_keytest_order('inc_4');
