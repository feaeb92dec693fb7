--
-- Every type beside a btree twin: 5,000 random and awkward values, in order
-- both ways, ranges, equality, and what an index-only scan gives back, to the
-- letter.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA ty;
SET search_path = ty, public;
SET timezone = 'UTC';
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;

CREATE TYPE mood AS ENUM ('low', 'middle', 'high');
ALTER TYPE mood ADD VALUE 'lower' BEFORE 'low';
CREATE DOMAIN price AS numeric(12, 3) CHECK (VALUE IS NULL OR VALUE > -1e9);
CREATE DOMAIN padded AS char(9);
CREATE TYPE pair AS (a numeric, b char(3));

-- a number that looks random
CREATE FUNCTION h(i int, seed int) RETURNS bigint IMMUTABLE LANGUAGE sql AS
	'SELECT hashint8extended(i, seed)';

-- columns of the type, the values that are awkward, and how others are made
CREATE TABLE kinds (kind text PRIMARY KEY, type text, awkward text[], made text);
INSERT INTO kinds VALUES
	('float4', 'float4', '{-0,0,NaN,Infinity,-Infinity,1e-45,-1e-45,3.4028235e38,16777216,0.1}', '(h(i, 1) / 1e12)::float4'),
	('float8', 'float8', '{-0,0,NaN,Infinity,-Infinity,4.9e-324,-4.9e-324,1.7976931348623157e308,0.1,0.30000000000000004}', 'h(i, 1) / 1e15'),
	('numeric', 'numeric', '{0,0.0,0.000,1,1.0,1.00,-1,-1.0,NaN,Infinity,-Infinity,1e200,-1e200,1e-200,10000,9999.9999,0.0001,1e131071,1e-16383,123456789012345678901234567890.5}',
		'round((h(i, 1)::numeric / 10::numeric ^ (i % 30)), i % 7)'),
	('money', 'money', '{0,-0.01,0.01,92233720368547758.07,-92233720368547758.08}', '(h(i, 1) / 1000000 / 100.0)::numeric(14, 2)::money'),
	('char', '"char"', '{"",a,Z}', '(h(i, 1) % 128)::int::"char"'),
	('name', 'name', '{"",a}', 'md5(h(i, 1)::text)::name'),
	('bpchar', 'bpchar', '{""," ","  ",a,"a ","a  ","a b","a b "}', 'left(md5(h(i, 1)::text), 2) || repeat('' '', i % 4)'),
	('char_n', 'char(6)', '{"",a," b"}', 'left(md5(h(i, 1)::text), i % 6)'),
	('time', 'time', '{00:00,24:00,12:00:00.000001}', '''00:00''::time + (h(i, 1) % 86400000) * interval ''1 ms'''),
	('timetz', 'timetz', '{00:00+00,01:00+01,23:00-01,24:00+00,12:00+15:59:59}', '((''00:00''::time + (h(i, 1) % 200) * interval ''1 min'')::text || to_char(i % 12 - 6, ''SG00''))::timetz'),
	('interval', 'interval', '{0,1 mon,30 days,720:00,1 mon -30 days,-1 day,-24:00,178956970 years 7 mons,-178956970 years,2147483647 days,2562047788:00:54.775807}',
		'make_interval(months => (h(i, 1) % 3)::int, days => (h(i, 2) % 60)::int, hours => (h(i, 3) % 100)::int)'),
	('inet', 'inet', '{0.0.0.0/0,10.0.0.0/8,10.0.0.1/8,10.0.0.0/32,255.255.255.255,::,::/0,::1,::ffff:1.2.3.4,2001:db8::/32}',
		'set_masklen(''0.0.0.0''::inet + abs(h(i, 1)) % 4294967296, (abs(h(i, 2)) % 33)::int)'),
	('cidr', 'cidr', '{0.0.0.0/0,10.0.0.0/8,10.0.0.0/32,::/0,2001:db8::/32}', 'network(set_masklen(''2001:db8::''::inet + abs(h(i, 1)) % 4096, (abs(h(i, 2)) % 129)::int))'),
	('macaddr', 'macaddr', '{00:00:00:00:00:00,ff:ff:ff:ff:ff:ff}', 'left(md5(h(i, 1)::text), 12)::macaddr'),
	('macaddr8', 'macaddr8', '{00:00:00:00:00:00:00:00,ff:ff:ff:ff:ff:ff:ff:ff}', 'left(md5(h(i, 1)::text), 16)::macaddr8'),
	('bit', 'bit(12)', '{000000000000,111111111111}', '(h(i, 1) % 4096)::int::bit(12)'),
	('varbit', 'varbit', '{"",0,00,1,00000000,000000000,0000000000000000,1111111100000000}', 'substring(h(i, 1)::bit(64), 1, i % 40)'),
	('pg_lsn', 'pg_lsn', '{0/0,FFFFFFFF/FFFFFFFF,1/0}', '''0/0''::pg_lsn + abs(h(i, 1))::numeric'),
	('xid8', 'xid8', '{0,18446744073709551615,9223372036854775808}', 'abs(h(i, 1))::text::xid8'),
	('tid', 'tid', '{"(0,0)","(4294967295,65535)","(0,65535)"}', 'format(''(%s,%s)'', abs(h(i, 1)) % 100000, i % 300)::tid'),
	('domain', 'price', '{0,1,1.5,-0.001}', 'h(i, 1) % 1000000 / 100.0'),
	('domain_char', 'padded', '{"",a,"a b"}', 'left(md5(h(i, 1)::text), i % 8)'),
	-- whose order is no bytes': compared
	('enum', 'mood', '{low,high}', '((enum_range(NULL::mood))[1 + abs(h(i, 1)) % 4])'),
	('array', 'numeric[]', '{"{}","{1}","{1.0}","{NULL}"}', 'ARRAY[h(i, 1) % 50, NULL, (i % 7) / 2.0]'),
	('range', 'numrange', '{empty,"(,)","[1,2)","[1.0,2.0)"}', 'numrange(h(i, 1) % 50, 50 + i % 9, ''[]'')'),
	('record', 'pair', '{"(1,a)","(1.0,a)","(,)"}', 'ROW(h(i, 1) % 50, left(md5(i::text), 1))::pair'),
	('jsonb', 'jsonb', '{"{}","[]","1","1.0","null"}', 'to_jsonb(h(i, 1) % 5000)'),
	('oidvector', 'oidvector', '{"","0","1 2 3"}', 'format(''%s %s'', i % 30, i % 7)::oidvector'),
	('icu', 'text COLLATE "und-x-icu"', '{"",a,A,á}', 'md5((h(i, 1) % 5000)::text)'),
	('bpchar_icu', 'bpchar COLLATE "und-x-icu"', '{"",a,"a  ",A}', 'left(md5(h(i, 1)::text), 2) || repeat('' '', i % 3)');
-- oid8 is of 19; before, its place is taken by another of 64 bits
INSERT INTO kinds SELECT 'oid8', t, '{0,18446744073709551615,9223372036854775808}', 'abs(h(i, 1))::text::' || t
	FROM coalesce(to_regtype('oid8')::text, 'xid8') t;

-- the rows of a query of either side, as one text
CREATE FUNCTION rows_of(side text, q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r text;
BEGIN
	EXECUTE replace('SELECT string_agg(x::text, E''\n'') FROM (' || q || ') x', '{}', side) INTO r;
	RETURN r;
END $$;

CREATE FUNCTION try(kind text, type text, awkward text[], made text)
RETURNS TABLE (structure text, unlike text) LANGUAGE plpgsql AS $$
DECLARE
	side text;
	q text;
	a text;
	b text;
	n int := 0;
	plan text;
BEGIN
	unlike := '';
	EXECUTE format('CREATE TABLE bt_t (id int, v %s)', type);
	-- by the column's own assignment, so that char(n) is padded
	EXECUTE format('INSERT INTO bt_t SELECT i, CASE WHEN i %% 40 = 0 THEN NULL
		WHEN i %% 5 = 0 THEN (%L::text[])[1 + (i / 5) %% %s]::%s ELSE %s END
		FROM generate_series(1, 5000) i', awkward, cardinality(awkward), split_part(type, ' COLLATE', 1), made);
	CREATE TABLE art_t (LIKE bt_t);
	INSERT INTO art_t SELECT * FROM bt_t;
	CREATE TABLE probe AS SELECT id AS i, v FROM bt_t WHERE id % 97 = 0 OR id <= 110 AND id % 5 = 0;
	-- btree's bpchar_ops says that equal values are of equal bytes, which 'a'
	-- and 'a ' are not, and a server with assertions stops when it splits a
	-- page between them; of an index with INCLUDE, btree assumes no such thing
	CREATE INDEX bt_v ON bt_t USING btree (v) INCLUDE (v);
	CREATE INDEX art_v ON art_t USING art (v);
	CREATE UNIQUE INDEX bt_vi ON bt_t USING btree (v DESC NULLS LAST, id) INCLUDE (v);
	CREATE UNIQUE INDEX art_vi ON art_t USING art (v DESC NULLS LAST, id);
	EXECUTE 'ANALYZE bt_t; ANALYZE art_t';
	SELECT string_agg(DISTINCT i.structure, ' ') INTO structure FROM artidx_indexes i WHERE schemaname = 'ty';

	FOREACH q IN ARRAY ARRAY[
		'SELECT v, id FROM {}_t ORDER BY v DESC NULLS LAST, id',
		'SELECT v, id FROM {}_t ORDER BY v NULLS FIRST, id DESC',
		-- equal ones in any order: what is given back, and that it rises
		'SELECT v::text COLLATE "C" AS t FROM (SELECT v FROM {}_t ORDER BY v OFFSET 0) s ORDER BY 1',
		'SELECT count(*) FROM (SELECT v, lag(v) OVER () AS p FROM (SELECT v FROM {}_t ORDER BY v OFFSET 0) s) s WHERE p > v',
		'SELECT count(*) FROM (SELECT v, lag(v) OVER () AS p FROM (SELECT v FROM {}_t ORDER BY v DESC OFFSET 0) s) s WHERE p < v',
		'SELECT p.i, l.* FROM probe p, LATERAL (SELECT count(*), string_agg(v::text, '','' ORDER BY v::text COLLATE "C") FROM {}_t t WHERE t.v = p.v) l ORDER BY p.i',
		'SELECT p.i, l.* FROM probe p, LATERAL (SELECT id, v FROM {}_t t WHERE t.v < p.v ORDER BY v DESC NULLS LAST, id LIMIT 3) l ORDER BY p.i, l.v DESC NULLS LAST, l.id',
		'SELECT p.i, l.* FROM probe p, LATERAL (SELECT id, v FROM {}_t t WHERE t.v >= p.v ORDER BY v NULLS FIRST, id DESC LIMIT 3) l ORDER BY p.i, l.v, l.id',
		'SELECT count(*) FROM probe p, probe r, {}_t t WHERE p.i % 5 = 0 AND r.i % 7 = 0 AND t.v > p.v AND t.v <= r.v AND t.id < 2000',
		'SELECT p.i, l.* FROM probe p, LATERAL (SELECT count(*) FROM {}_t t WHERE t.v = p.v AND t.id > 500) l ORDER BY p.i',
		'SELECT count(*) FROM {}_t WHERE v IS NULL']
	LOOP
		n := n + 1;
		a := ty.rows_of('art', q);
		b := ty.rows_of('bt', q);
		IF a IS DISTINCT FROM b THEN
			unlike := unlike || format('[%s]', n);
		END IF;
	END LOOP;
	-- all that of art by the index alone
	FOREACH q IN ARRAY ARRAY['SELECT v FROM art_t ORDER BY v OFFSET 0', 'SELECT v, id FROM art_t ORDER BY v DESC NULLS LAST, id'] LOOP
		EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || q INTO plan;
		IF plan !~ 'Index Only Scan' OR plan ~ '"Sort"' THEN
			unlike := unlike || plan;
		END IF;
	END LOOP;
	IF clean('art_v') <> 'clean' OR clean('art_vi') <> 'clean' THEN
		unlike := unlike || 'check';
	END IF;
	DROP TABLE bt_t, art_t, probe;
	RETURN NEXT;
END $$;

SELECT kind, structure, unlike FROM kinds, LATERAL try(kind, type, awkward, made) ORDER BY kind COLLATE "C";

--
-- Equal values that are stored differently are duplicates all the same.
--
CREATE TABLE art_d (n numeric, f float8, b bpchar, i interval);
CREATE UNIQUE INDEX art_d_n ON art_d USING art (n);
CREATE UNIQUE INDEX art_d_f ON art_d USING art (f);
CREATE UNIQUE INDEX art_d_b ON art_d USING art (b);
CREATE UNIQUE INDEX art_d_i ON art_d USING art (i);
INSERT INTO art_d VALUES (1.00, 'NaN', 'a  ', '30 days'), (NULL, '-0', NULL, NULL);
INSERT INTO art_d VALUES (1.0);
INSERT INTO art_d (f) VALUES ('0');
INSERT INTO art_d (f) VALUES (-'NaN'::float8);
INSERT INTO art_d (b) VALUES ('a');
INSERT INTO art_d (i) VALUES ('1 mon');
SELECT n, f, b || '|' AS b, i FROM art_d ORDER BY n;
INSERT INTO art_d (n) SELECT i / 7.0 FROM generate_series(1, 6) i;
-- versions of one key, whose scales differ: more than a batch of them
DO $$
BEGIN
	FOR g IN 1 .. 150 LOOP
		UPDATE art_d SET n = round(1::numeric, g % 20), f = g WHERE n = 1;
	END LOOP;
END $$;
SELECT n FROM art_d WHERE n = 1;
INSERT INTO art_d (n) VALUES (1.000);
INSERT INTO art_d (n) VALUES (1.000) ON CONFLICT (n) DO UPDATE SET n = 1.0000 RETURNING n;
SELECT clean('art_d_n');
DROP INDEX art_d_n;
INSERT INTO art_d (n) VALUES (1.0);
CREATE UNIQUE INDEX art_d_n ON art_d USING art (n);
-- in more than one run, too
INSERT INTO art_d (n) SELECT 1000 + i FROM generate_series(1, 40000) i;
SET maintenance_work_mem = '1MB';
CREATE UNIQUE INDEX art_d_n ON art_d USING art (n);
DELETE FROM art_d WHERE n = 1 AND n::text = '1.0';
CREATE UNIQUE INDEX art_d_n ON art_d USING art (n);
RESET maintenance_work_mem;
SELECT clean('art_d_n');
SELECT n FROM art_d WHERE n < 2 ORDER BY n;

--
-- Domains and expressions; a constant of another type.
--
SELECT twins('CREATE TABLE {}_x (n numeric, r real)');
SELECT twins('INSERT INTO {}_x SELECT i / 8.0, i / 10.0 FROM generate_series(-400, 400) i');
CREATE INDEX bt_x_r ON bt_x (r);
CREATE INDEX art_x_r ON art_x USING art (r);
CREATE INDEX bt_x_n ON bt_x ((n * 2), (abs(n)));
CREATE INDEX art_x_n ON art_x USING art ((n * 2), (abs(n)));
SELECT same('SELECT r FROM {}_x WHERE r < 0.3::float8 AND r > -0.3::float8 ORDER BY r');
SELECT same('SELECT r FROM {}_x WHERE r <= 0.30000001192092896 AND r > -1e300 ORDER BY r DESC');
SELECT same('SELECT r FROM {}_x WHERE r = 0.1::float8');
SELECT same('SELECT r FROM {}_x WHERE r = 0.5::float8');
SELECT same('SELECT n FROM {}_x WHERE n * 2 > 90 AND abs(n) < 49 ORDER BY n * 2, abs(n)');
SELECT same('SELECT n FROM {}_x WHERE n * 2 = 5::int ORDER BY n');
-- what an expression makes of columns that are compressed in the table, and not in the row that is inserted
CREATE TYPE couple AS (a text, b int);
CREATE TYPE nested AS (p couple, c int);
CREATE TABLE art_rows (a text, b int);
CREATE INDEX art_rows_p ON art_rows USING art ((ROW(a, b)::couple));
CREATE INDEX art_rows_n ON art_rows USING art ((ARRAY[ROW(ROW(a, b)::couple, b)::nested]));
INSERT INTO art_rows SELECT repeat('x', 3000 * i), i FROM generate_series(1, 3) i;
INSERT INTO art_rows VALUES (NULL, NULL);
SELECT indexrelname, (artidx_check(indexrelid, true)).entries FROM artidx_indexes WHERE indexrelname ~ '^art_rows' ORDER BY 1;
SET enable_seqscan = off;
SELECT b FROM art_rows WHERE ROW(a, b)::couple = ROW(repeat('x', 6000), 2)::couple;
SELECT b FROM art_rows WHERE ARRAY[ROW(ROW(a, b)::couple, b)::nested] = ARRAY[ROW(ROW(repeat('x', 6000), 2)::couple, 2)::nested];
RESET enable_seqscan;
-- values with another shape, which are equal; and a type that cannot be compared comes behind what decides
ALTER TYPE couple ADD ATTRIBUTE c int;
SELECT indexrelname, (artidx_check(indexrelid, true)).entries FROM artidx_indexes WHERE indexrelname ~ '^art_rows' ORDER BY 1;
CREATE TYPE shape AS (a int, b int);
SELECT twins('CREATE TABLE {}_s (c shape)');
CREATE INDEX bt_s_c ON bt_s (c);
CREATE INDEX art_s_c ON art_s USING art (c);
SELECT twins('INSERT INTO {}_s SELECT ROW(i, 1)::shape FROM generate_series(1, 100) i');
ALTER TYPE shape ADD ATTRIBUTE j json;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT same('SELECT (c).a FROM {}_s WHERE c > ROW(0, 0, NULL)::shape ORDER BY (c).a');
SELECT twins('DELETE FROM {}_s WHERE (c).a < 50');
VACUUM bt_s, art_s;
SELECT same('SELECT (c).a FROM {}_s WHERE c > ROW(0, 0, NULL)::shape ORDER BY (c).a');
RESET enable_seqscan;
RESET enable_bitmapscan;
-- what two equal values are called when a unique index is made of them
CREATE FUNCTION duplicate(type text, value text, am text, direction text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	EXECUTE format('CREATE TABLE twice (k %s)', type);
	EXECUTE format('INSERT INTO twice VALUES (%1$L), (%1$L)', value);
	EXECUTE format('CREATE UNIQUE INDEX ON twice USING %s (k %s)', am, direction);
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN SQLSTATE || ' ' || detail;
END $$;
WITH made AS MATERIALIZED (
	SELECT t, x, d, duplicate(t, x, 'btree', d) AS by_btree, duplicate(t, x, 'art', d) AS by_art
	FROM (VALUES ('"char"', 'x'), ('bit varying', '10110'), ('bit(3)', '101'), ('bool', 't'), ('bpchar', 'ab '), ('bpchar(5)', 'ab'),
		('bytea', '\x00ff00'), ('cidr', '10.0.0.0/8'), ('date', 'infinity'), ('float4', '-0'), ('float4', '1.5'), ('float4', 'NaN'),
		('float8', '-123.456'), ('float8', '1e-300'), ('inet', '10.0.0.1/8'), ('int2', '-3'), ('int4range', '[1,5)'), ('int[]', '{1,2,NULL}'),
		('interval', '1 mon 3 days 02:00'), ('interval', '-1 year 2 days'), ('interval', '30 days'), ('interval', '178000000 years'),
		('jsonb', '{"a":1}'), ('macaddr', '08:00:2b:01:02:03'), ('money', '12.34'), ('name', 'abc'), ('numeric', '-1e20'), ('numeric', '0'),
		('numeric', '12.50'), ('numeric', 'Infinity'), ('numeric', 'NaN'), ('oid', '4000000000'), ('oidvector', '1 2 3'), ('pg_lsn', '1/2'),
		('text', 'z'), ('tid', '(1,2)'), ('timestamptz', '2000-01-01'), ('timetz', '12:00+02'), ('tsvector', 'a b'),
		('uuid', '00000000-0000-0000-0000-000000000001'), ('xid8', '77')) v (t, x), (VALUES ('ASC'), ('DESC')) w (d))
SELECT count(*) FILTER (WHERE by_art LIKE '23505 Key (k)=(%) is duplicated.') AS refused,
	string_agg(format('%s %s: %s, not %s', t, x, by_art, by_btree), '; ') FILTER (WHERE by_art <> by_btree) AS otherwise
FROM made;
DROP SCHEMA ty CASCADE;
