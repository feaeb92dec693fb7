--
-- The tail buffer: which keys get one and of what kind (artidx_contention_details), by
-- tail_buffer = auto, which is the same in every structure, so in two of them;
-- and the same answers as core's btree while it is full, in all (test/engines).
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set engines `cat "$PG_ABS_SRCDIR/test/engines"`
\set ECHO all

CREATE SCHEMA tail;
SET search_path = tail, public;
CREATE EXTENSION artidx_debug;

\set ECHO none
SELECT row_number() OVER () AS n, split_part(l, '-', 1) AS structure, split_part(l, '-', 2) AS sync
INTO engines
FROM regexp_split_to_table(:'engines', E'\n') l WHERE l ~ '^[^#]';
\set ECHO all

-- a number without rhyme or reason, below m
CREATE FUNCTION noise(i bigint, m bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
	SELECT ((hashint8extended(i, 7) % m) + m) % m
$$;

-- Kinds of keys, rows from .. upto of each: whole numbers one by one; with
-- gaps; every thousandth; as four sessions take them from a sequence with CACHE 20;
-- slightly out of order; times that differ, and that are often the same; UUIDs
-- of version 7; text; behind another column, which is the same; and what does
-- not rise: at random, UUIDs of version 4, falling.
CREATE FUNCTION keys(start int, upto int, OUT seq bigint, OUT i4 int, OUT o oid, OUT gap bigint,
	OUT stride bigint, OUT cached bigint, OUT order8 bigint, OUT ts timestamptz, OUT dup timestamp,
	OUT u7 uuid, OUT tx text, OUT tenant int, OUT rnd bigint, OUT u4 uuid, OUT down bigint)
RETURNS SETOF record LANGUAGE sql AS $$
	SELECT i, i, i::oid, i * 5 + noise(i, 5), i::bigint * 1000,
		i / 80 * 80 + i % 80 % 4 * 20 + i % 80 / 4,
		i / 8 * 8 + (i + 3) % 8 ,
		timestamptz '2024-01-01 00:00 UTC' + (i * 3000 + noise(i, 3000)) * interval '1 microsecond',
		timestamp '2024-01-01' + i / 25 * interval '1 second',
		(lpad(to_hex(1700000000000 + i / 4), 12, '0') || '7' || substr(md5(i::text), 1, 19))::uuid,
		'event ' || lpad(i::text, 9, '0'), 7, noise(i, 1000000000000), md5(i::text)::uuid, -i
	FROM generate_series(start, upto) i
$$;

-- of tables to come
SET check_function_bodies = off;

-- the mode of each index, and whether its buffer took the inserts
CREATE FUNCTION modes() RETURNS TABLE (key text, tail_mode text, taken text) LANGUAGE sql AS $$
	SELECT substr(c.indexrelname, 5), c.tail_mode,
		CASE WHEN c.tail_inserts > 0.1 * x.entries AND c.tail_bypassed < 0.5 * c.tail_inserts THEN 'taken'
			WHEN c.tail_inserts > 0.02 * x.entries THEN 'some' ELSE 'next to none' END
	FROM artidx_contention_details c JOIN artidx_indexes x USING (indexrelid)
	WHERE c.relid = 'art_t'::regclass
	ORDER BY c.indexrelid
$$;

-- what is asked, with how many rows the answer has
CREATE FUNCTION asked(start int, upto int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	q text;
	r text;
	all_of text := '';
	f int;
BEGIN
	SET LOCAL enable_seqscan = off;
	FOREACH q IN ARRAY ARRAY[
		'SELECT seq FROM {}_t WHERE seq = %1$s',
		'SELECT seq FROM {}_t WHERE seq > %1$s ORDER BY seq',
		'SELECT seq FROM {}_t WHERE seq > %1$s ORDER BY seq DESC',
		'SELECT seq, tx FROM {}_t WHERE seq BETWEEN %1$s - 40 AND %1$s + 40 ORDER BY seq DESC',
		'SELECT seq FROM {}_t WHERE seq = ANY (ARRAY[%1$s, 3, %2$s, %1$s + 1, -5, %2$s + 1]) ORDER BY seq',
		'SELECT max(seq), min(seq), max(i4), min(gap), max(gap), max(stride), max(order8), max(cached) FROM {}_t',
		'SELECT i4 FROM {}_t WHERE i4 >= %2$s - 5',
		'SELECT o FROM {}_t WHERE o > %1$s AND o < %2$s ORDER BY o LIMIT 100',
		'SELECT gap FROM {}_t ORDER BY gap DESC LIMIT 50',
		'SELECT stride FROM {}_t WHERE stride IN (%1$s * 1000, %2$s * 1000, %2$s)',
		'SELECT cached FROM {}_t WHERE cached BETWEEN %1$s AND %2$s ORDER BY cached',
		'SELECT order8 FROM {}_t WHERE order8 < %1$s ORDER BY order8 DESC LIMIT 30',
		'SELECT ts FROM {}_t ORDER BY ts DESC LIMIT 30',
		'SELECT ts FROM {}_t WHERE ts > ''2024-01-01 00:00 UTC''::timestamptz + %1$s * interval ''3 milliseconds'' ORDER BY ts',
		'SELECT dup, count(*) FROM {}_t WHERE dup >= timestamp ''2024-01-01'' + %1$s / 25 * interval ''1 second'' GROUP BY dup ORDER BY dup',
		'SELECT count(*) FROM {}_t WHERE dup = timestamp ''2024-01-01'' + %2$s / 25 * interval ''1 second''',
		'SELECT u7 FROM {}_t ORDER BY u7 DESC LIMIT 40',
		'SELECT u7 FROM {}_t WHERE u7 > (SELECT u7 FROM {}_t WHERE seq = %1$s) ORDER BY u7',
		'SELECT tx FROM {}_t WHERE tx LIKE ''event 00001%%'' ORDER BY tx',
		'SELECT tx FROM {}_t WHERE tx > ''event '' || lpad(''%1$s'', 9, ''0'') ORDER BY tx DESC',
		'SELECT tenant, seq FROM {}_t WHERE tenant = 7 AND seq > %1$s ORDER BY tenant, seq',
		'SELECT tenant, seq FROM {}_t ORDER BY tenant DESC, seq DESC LIMIT 100',
		'SELECT count(*), sum(rnd) FROM {}_t WHERE rnd < 100000000000',
		'SELECT u4 FROM {}_t ORDER BY u4 LIMIT 20',
		'SELECT down FROM {}_t WHERE down < -%1$s ORDER BY down']
	LOOP
		r := same(format(q, start, upto));
		all_of := all_of || CASE WHEN r ~ '^DIFFERENT|Seq Scan' THEN E'\n' || q || r ELSE split_part(r, ' ', 1) || ' ' END;
	END LOOP;
	RETURN all_of;
END $$;

CREATE FUNCTION all_clean() RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(indexrelname || ' ' || clean(indexrelid), ', ' ORDER BY indexrelname)
			FILTER (WHERE clean(indexrelid) <> 'clean'), 'all clean')
	FROM artidx_indexes WHERE relid = 'art_t'::regclass
$$;

-- on both sides: art's as $W, btree's without
CREATE FUNCTION made(side text, what text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	c text;
BEGIN
	FOREACH c IN ARRAY ARRAY['seq', 'i4', 'o', 'gap', 'stride', 'cached', 'order8', 'ts', 'dup', 'u7', 'tx',
		'tenant, seq', 'rnd', 'u4', 'down']
	LOOP
		EXECUTE format('CREATE %s INDEX %s_%s ON %s_t %s', CASE c WHEN 'seq' THEN 'UNIQUE' END,
			side, split_part(c, ',', 1), side, replace(what, '$C', c));
	END LOOP;
END $$;

CREATE TABLE steps (n int, cmd text);
INSERT INTO steps (cmd, n) SELECT s, n FROM unnest(ARRAY[
	'DROP TABLE IF EXISTS bt_t, art_t',
	$$SELECT twins('CREATE TABLE {}_t AS SELECT * FROM keys(1, 1000)')$$,
	$$SELECT made('bt', '($C)'), made('art', 'USING art ($C) WITH (structure = $S, sync = $Y)')$$,
	'VACUUM ANALYZE bt_t, art_t',
	$$SELECT twins('INSERT INTO {}_t SELECT * FROM keys(1001, 12000)')$$,
	'SELECT * FROM modes()',
	'SELECT asked(11900, 12000), asked(700, 1200)',
	'SELECT all_clean()',
	-- unique in the buffer, too
	$$SELECT twins('INSERT INTO {}_t (seq) VALUES (12000)')$$,
	$$SELECT twins('INSERT INTO {}_t (seq) VALUES (12001), (12002), (12001)')$$,
	$$SELECT twins('INSERT INTO {}_t (seq, gap) VALUES (11999, -1), (12003, -2) ON CONFLICT (seq) DO UPDATE SET gap = EXCLUDED.gap')$$,
	$$SELECT twins('INSERT INTO {}_t SELECT * FROM keys(11990, 12010) ON CONFLICT DO NOTHING')$$,
	-- an insert and a delete, rolled back, killed, vacuumed
	$$SELECT twins('DELETE FROM {}_t WHERE seq > 11950 AND seq % 3 = 0')$$,
	$$SELECT twins('INSERT INTO {}_t SELECT * FROM keys(12011, 12100)')$$,
	$$SELECT twins('UPDATE {}_t SET seq = seq + 1000, ts = ts + interval ''1 hour'' WHERE seq > 12050')$$,
	'SELECT asked(11900, 12000), asked(12090, 13100)',
	'VACUUM (INDEX_CLEANUP ON) bt_t, art_t',
	'SELECT asked(11900, 12000), asked(12090, 13100), all_clean()',
	$$SELECT bool_and(entries = (SELECT count(*) FROM art_t)) AS exact FROM artidx_indexes WHERE relid = 'art_t'::regclass$$,
	$$SELECT count(DISTINCT c.entries) AS counted FROM artidx_indexes i, artidx_check(indexrelid) c WHERE relid = 'art_t'::regclass$$,
	-- the pattern ends: no buffer is left (nor is there a new one: what never rose does
	-- not jump, either)
	$$SELECT twins('INSERT INTO {}_t (seq, i4, o, gap, stride, cached, order8, ts, dup, u7, tx, tenant, rnd, u4, down)
		SELECT 100000 + noise(i, 1000000000000), noise(i, 2000000000), noise(i, 4000000000)::oid, noise(i + 1, 10000000000000),
			noise(i + 2, 10000000000000), noise(i + 3, 10000000000000), noise(i + 4, 10000000000000),
			''2000-01-01''::timestamptz + noise(i, 1000000000) * interval ''1 second'',
			''2000-01-01''::timestamp + noise(i, 1000000000) * interval ''1 second'',
			md5(i::text)::uuid, md5(i::text), noise(i, 1000), noise(i + 5, 1000000000000), md5(i::text)::uuid, noise(i, 12000) - 12000
		FROM generate_series(1, 15000) i')$$,
	'SELECT tail_mode, count(*) FROM modes() GROUP BY 1 ORDER BY 1',
	'SELECT asked(12090, 13100), all_clean()',
	-- on from the first insert, also of an empty table; and off again
	'DELETE FROM art_t',
	'DELETE FROM bt_t',
	'VACUUM (INDEX_CLEANUP ON) bt_t, art_t',
	'DROP INDEX art_seq, art_i4, art_o, art_gap, art_stride, art_cached, art_order8, art_ts, art_dup, art_u7, art_tx, art_tenant, art_rnd, art_u4, art_down',
	$$SELECT made('art', 'USING art ($C) WITH (structure = $S, sync = $Y, tail_buffer = on)')$$,
	$$SELECT twins('INSERT INTO {}_t SELECT * FROM keys(1, 3)')$$,
	'SELECT asked(1, 3)',
	$$SELECT twins('INSERT INTO {}_t SELECT * FROM keys(4, 3000)')$$,
	'SELECT * FROM modes() WHERE key IN (''seq'', ''i4'', ''o'', ''tx'', ''u7'')',
	'SELECT asked(100, 2900), all_clean()',
	'ALTER INDEX art_seq SET (tail_buffer = off)',
	'ALTER INDEX art_tx SET (tail_buffer = off)',
	$$SELECT twins('INSERT INTO {}_t SELECT * FROM keys(3001, 3050)')$$,
	'SELECT * FROM modes() WHERE key IN (''seq'', ''tx'')',
	'SELECT asked(3000, 3040), all_clean()'
	]) WITH ORDINALITY s (s, n);

SET client_min_messages = warning;
\t on
SELECT replace(replace(cmd, '$S', structure), '$Y', sync)
FROM engines e, steps s
WHERE s.n <= 3 OR s.n > (SELECT min(n) FROM steps WHERE cmd LIKE 'DELETE%') - 1 OR structure || sync IN ('artolc', 'btreeoptiql')
ORDER BY e.n, s.n \gexec
\t off

-- a small index, or a quiet one, has no buffer; nor has one that was only built
CREATE TABLE art_s (k int);
CREATE INDEX art_k ON art_s USING art (k);
INSERT INTO art_s SELECT generate_series(1, 60);
CREATE INDEX art_k2 ON art_s USING art (k);
SELECT indexrelname, tail_mode, tail_inserts FROM artidx_contention WHERE relname = 'art_s' ORDER BY 1;

DROP EXTENSION artidx_debug;
DROP SCHEMA tail CASCADE;
