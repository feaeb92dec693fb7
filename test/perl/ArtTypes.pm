# Every type with an operator class for btree, and values that are likely to
# trip an index: one type a line.
package ArtTypes;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(@TYPES type_literal type_operators type_setup type_table);

# What the lines below are made of.  Everything random comes from random(), so
# setseed() repeats it.
our $FUNCTIONS = q{
	CREATE SCHEMA gen;
	-- a whole number below 2^bits, either sign, small ones as often as large
	CREATE FUNCTION gen.whole(bits int) RETURNS numeric LANGUAGE sql AS
		$$ SELECT CASE WHEN random() < 0.5 THEN -1 ELSE 1 END * floor(power(2::numeric, (random() * bits)::numeric)) $$;
	CREATE FUNCTION gen.upto(n int) RETURNS int LANGUAGE sql AS
		$$ SELECT (random() * n)::int $$;
	-- mostly short, of few letters, many of which some collation ignores or joins
	CREATE FUNCTION gen.word(n int, letters text DEFAULT U&'aAbBaAbBcChz\00E9\0301\00DF 0-_.') RETURNS text LANGUAGE sql AS
		$$ SELECT coalesce(string_agg(substr(letters, 1 + floor(random() * length(letters))::int, 1), ''), '')
			FROM generate_series(1, gen.upto((n * random() * random())::int)) $$;
	CREATE FUNCTION gen.bytes(n int) RETURNS bytea LANGUAGE sql AS
		$$ SELECT substr(decode(replace(replace(md5(random()::text), '3', '0'), '7', 'f'), 'hex'), 1, n) $$;
	CREATE FUNCTION gen.bits(n int) RETURNS text LANGUAGE sql AS
		$$ SELECT coalesce(string_agg(gen.upto(1)::text, ''), '') FROM generate_series(1, n) $$;
	CREATE FUNCTION gen.num() RETURNS numeric LANGUAGE sql AS
		$$ SELECT round(gen.whole(40) / power(10::numeric, gen.upto(12)), gen.upto(9)) $$;
	CREATE FUNCTION gen.ip() RETURNS text LANGUAGE sql AS
		$$ SELECT CASE WHEN random() < 0.7 THEN concat_ws('.', 10, gen.upto(3), gen.upto(255), gen.upto(2))
			ELSE '2001:db8::' || to_hex(gen.upto(65535)) || ':' || gen.upto(3) END $$;
	CREATE FUNCTION gen.span(lo text, hi text) RETURNS text LANGUAGE sql AS
		$$ SELECT CASE WHEN random() < 0.5 THEN '[' ELSE '(' END || lo || ',' || hi
			|| CASE WHEN random() < 0.5 THEN ']' ELSE ')' END $$;
	CREATE FUNCTION gen.vector() RETURNS text LANGUAGE sql AS
		$$ SELECT string_agg(substr('abcd', 1 + gen.upto(3), 1 + gen.upto(2)) || ':' || 1 + gen.upto(30), ' ')
			FROM generate_series(0, gen.upto(4)) $$;
	CREATE TYPE gen.mood AS ENUM ('sad', 'ok', 'happy');
	CREATE TYPE gen.pair AS (a int, b text);
	CREATE TYPE gen.inner AS (x numeric, p gen.pair);
	CREATE TYPE gen.textrange AS RANGE (subtype = text, collation = "C");
	CREATE DOMAIN gen.positive AS int CHECK (VALUE > 0);
	CREATE DOMAIN gen.amount AS numeric(12, 2);
	CREATE DOMAIN gen.words AS text[] CHECK (cardinality(VALUE) < 100);
};

# What some lines need, and a server need not have; those are skipped then.
our %NEEDS = (
	icu => q{
	CREATE COLLATION gen.nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	CREATE COLLATION gen.noaccent (provider = icu, locale = 'und-u-ks-level1-kc-true', deterministic = false);
	CREATE COLLATION gen.natural (provider = icu, locale = 'en-u-kn-true-kf-upper');
	CREATE COLLATION gen.shifted (provider = icu, locale = 'en-u-ka-shifted', deterministic = false)},
	libc => q{
	DO $$ DECLARE l text; BEGIN
		SELECT collcollate INTO STRICT l FROM pg_collation WHERE collprovider = 'c' AND collencoding = 6
			ORDER BY collcollate ILIKE 'C%', collcollate LIMIT 1;
		EXECUTE format('CREATE COLLATION gen.libc (provider = libc, locale = %L)', l);
	END $$},
	map({ ($_ => "CREATE EXTENSION $_ SCHEMA gen") } qw(citext hstore isn ltree cube seg),
		# of Debian's packages (make applications)
		qw(asn1oid ip4r jsquery orafce pgmp pg_rational postgis prefix semver unit)),);

my $long = 'x' x 900;
my @text = (
	'', ' ', 'a', 'A', 'a ', ' a', 'ab', 'aB', 'Ab', 'a b', 'a-b', 'a%b', 'a_b', 'a\\b', "a\nb", "a\tb",
	"\x01", "\x7f", 'ch', 'cz', 'd', "\xc3\xa9", "e\xcc\x81", "\xc3\x89", 'E', 'e', "\xc3\x9f", 'ss',
	"\xc5\x93", "\xe2\x82\xac", "\xef\xbf\xbd", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbd", 'z', 'Z', '0', '00', '10', '9',
	'a10', 'a9', $long, "${long}a", "${long}b", 'a' x 255, 'a' x 256, 'a' x 257);
my @inet = qw(0.0.0.0 0.0.0.0/0 255.255.255.255 10.0.0.0/8 10.0.0.0/9 10.0.0.0 10.0.0.1 10.0.0.1/8 10.0.0.1/31
  ::/0 :: ::1 ::ffff:10.0.0.1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2001:db8::/32 2001:db8::/33 2001:db8::1/32);
my @cidr = grep { !m{10\.0\.0\.1/|::1/} } @inet;
my @days = qw(infinity -infinity 2000-01-01 1999-12-31 0001-01-01BC 4713-11-24BC 1970-01-01 2024-02-29);

# name, type, operator class, SQL for a random value, [special ones]; then
# perhaps what it needs, or what changes the type between two passes.
our @TYPES = (
	[ 'bool', 'boolean', '', 'random() < 0.5', [qw(true false)] ],
	[ 'char1', '"char"', '', q{chr(1 + gen.upto(126))::"char"}, [ '', 'a', 'A', '\\001', '\\177', '\\200', '\\377', ' ' ] ],
	[ 'int2', 'smallint', '', 'gen.whole(15)', [qw(-32768 32767 0 1 -1 255 256 -256)] ],
	[ 'int4', 'integer', '', 'gen.whole(31)', [qw(-2147483648 2147483647 0 1 -1 32767 32768 -32769 65536)] ],
	[ 'int8', 'bigint', '', 'gen.whole(62)', [qw(-9223372036854775808 9223372036854775807 0 1 -1 2147483647 2147483648 -2147483648 -2147483649 32768 -32769)] ],
	[ 'oid', 'oid', '', 'abs(gen.whole(32))::bigint', [qw(0 1 4294967295 2147483647 2147483648)] ],
	[ 'float4', 'real', '', 'gen.num()::real', [qw(NaN Infinity -Infinity 0 -0 1e-45 -1e-45 3.4e38 -3.4e38 1 0.1 16777216 1.17549435e-38)] ],
	[ 'float8', 'double precision', '', 'gen.num()::float8 * power(10, gen.upto(20) - 10)', [qw(NaN Infinity -Infinity 0 -0 5e-324 -5e-324 1.7e308 -1.7e308 1 0.1 0.30000000000000004 9007199254740993 2.2250738585072014e-308)], ],
	[ 'numeric', 'numeric', '', 'gen.num()', [qw(NaN Infinity -Infinity 0 0.0 0.000 -0.0 1 1.0 1.00 -1 -1.000 10000 9999 9999.9999 10000.0000 0.0001 0.00010 0.00001 1e-100 -1e-100 1e100 1.0000e100 -1e100 1e131000 1e-16000 123456789012345678901234567890.12345678901234567890)] ],
	[ 'numeric2', 'numeric(10,2)', '', 'gen.whole(32) / 100', [qw(NaN 0 -0 1 1.0 -1 99999999.99 -99999999.99 0.01 -0.01)] ],
	[ 'money', 'money', '', '(gen.whole(50) / 100)::money', [qw(0 -0.01 0.01 92233720368547758.07 -92233720368547758.08 1)] ],
	[ 'text', 'text COLLATE "C"', '', 'gen.word(12)', \@text ],
	[ 'textd', 'text', '', 'gen.word(12)', \@text ],
	[ 'textpat', 'text', 'text_pattern_ops', 'gen.word(12)', \@text ],
	[ 'varchar', 'varchar(2000)', 'varchar_ops', 'gen.word(12)', \@text ],
	[ 'varcharpat', 'varchar', 'varchar_pattern_ops', 'gen.word(12)', \@text ],
	[ 'bpchar', 'char(9)', '', 'gen.word(12)::char(9)', [ map { substr($_, 0, 2) } @text[ 0 .. 20 ] ] ],
	[ 'bpcharany', 'bpchar', '', q{gen.word(8) || repeat(' ', gen.upto(3))}, [ @text, 'a   ', 'ab  ', '   ' ] ],
	[ 'bpcharpat', 'bpchar', 'bpchar_pattern_ops', q{gen.word(8) || repeat(' ', gen.upto(3))}, [ @text, 'a   ', 'ab  ', '   ' ] ],
	[ 'name', 'name', '', 'gen.word(12)::name', [ @text[ 0 .. 24 ], 'x' x 63 ] ],
	[ 'icu', 'text COLLATE "en-x-icu"', '', 'gen.word(12)', \@text, 'icu' ],
	[ 'icude', 'varchar COLLATE "de-x-icu"', '', 'gen.word(12)', \@text, 'icu' ],
	[ 'icunat', 'text COLLATE gen.natural', '', 'gen.word(12)', \@text, 'icu' ],
	[ 'icucase', 'text COLLATE gen.nocase', '', 'gen.word(12)', \@text, 'icu' ],
	[ 'icubp', 'bpchar COLLATE gen.nocase', '', q{gen.word(8) || repeat(' ', gen.upto(3))}, [ @text, 'a   ', 'A ' ], 'icu' ],
	[ 'icuaccent', 'text COLLATE gen.noaccent', '', 'gen.word(12)', \@text, 'icu' ],
	[ 'icushift', 'text COLLATE gen.shifted', '', 'gen.word(12)', \@text, 'icu' ],
	[ 'icupat', 'text COLLATE "en-x-icu"', 'text_pattern_ops', 'gen.word(12)', \@text, 'icu' ],
	[ 'libc', 'text COLLATE gen.libc', '', 'gen.word(12)', \@text, 'libc' ],
	[ 'bytea', 'bytea', '', 'gen.bytes(gen.upto(9))', [qw(\x \x00 \x0000 \x000000 \x01 \x0001 \xff \xff00 \xffff \xff01 \x80), '\\x' . '00' x 300, '\\x' . 'ff' x 700, '\\x' . '00' x 300 . '01'] ],
	[ 'uuid', 'uuid', '', 'gen_random_uuid()', [qw(00000000-0000-0000-0000-000000000000 ffffffff-ffff-ffff-ffff-ffffffffffff 00000000-0000-0000-0000-000000000001 80000000-0000-0000-0000-000000000000)] ],
	[ 'bit', 'bit(11)', '', 'gen.bits(11)::bit(11)', [qw(00000000000 11111111111 00000000001 10000000000)] ],
	[ 'varbit', 'varbit', '', 'gen.bits(gen.upto(20))::varbit', [ '', qw(0 00 1 10 100 00000000 000000000 11111111 111111110 111111111) ] ],
	[ 'date', 'date', '', q{date '2000-01-01' + gen.whole(16)::int}, [ @days, '5874897-12-31' ] ],
	[ 'time', 'time', '', q{time '00:00' + make_interval(secs => random() * 86399)}, [qw(00:00 24:00 23:59:59.999999 12:00 12:00:00.000001)] ],
	[ 'timetz', 'timetz', '', q{make_time(gen.upto(23), gen.upto(1), 0) AT TIME ZONE make_interval(hours => gen.upto(6) - 3)}, [qw(00:00+15:59 24:00-15:59 00:00+00 24:00+00 12:00+00 13:00+01 11:00-01 11:59:59.999999-01)] ],
	[ 'timestamp', 'timestamp', '', q{timestamp '2000-01-01' + make_interval(secs => gen.whole(34)::float8 + random())}, [ @days, '294276-12-31 23:59:59.999999', '2000-01-01 00:00:00.000001' ] ],
	[ 'timestamptz', 'timestamptz', '', q{timestamptz '2000-01-01' + make_interval(secs => gen.whole(34)::float8 + random())}, [ @days, '294276-12-31 23:59:59.999999+00', '2000-01-01 00:00:00.000001+00' ] ],
	[ 'interval', 'interval', '', 'make_interval(months => gen.upto(4) - 2, days => gen.upto(90) - 45, hours => gen.upto(4) * 12 - 24)', [ '0', '1 mon', '30 days', '720:00:00', '29 days 24:00:00', '-1 mon', '-30 days', '1 mon -30 days', '1 year', '12 mons', '360 days', '178000000 years', '-178000000 years', '1 microsecond', '-1 microsecond' ] ],
	[ 'inet', 'inet', '', q{(gen.ip() || CASE WHEN random() < 0.5 THEN '/' || gen.upto(32) ELSE '' END)::inet}, \@inet ],
	[ 'inetcidr', 'inet', 'cidr_ops', q{gen.ip()::inet}, \@inet ],
	[ 'cidr', 'cidr', '', q{network((gen.ip() || '/' || gen.upto(32))::inet)}, \@cidr ],
	[ 'macaddr', 'macaddr', '', q{encode(gen.bytes(6), 'hex')::macaddr}, [qw(00:00:00:00:00:00 ff:ff:ff:ff:ff:ff 00:00:00:00:00:01 80:00:00:00:00:00)] ],
	[ 'macaddr8', 'macaddr8', '', q{encode(gen.bytes(8), 'hex')::macaddr8}, [qw(00:00:00:00:00:00:00:00 ff:ff:ff:ff:ff:ff:ff:ff 00:00:00:01:00:00:00:00 80:00:00:00:00:00:00:00)] ],
	[ 'pg_lsn', 'pg_lsn', '', q{'0/0'::pg_lsn + abs(gen.whole(63))}, [qw(0/0 FFFFFFFF/FFFFFFFF 0/FFFFFFFF 1/0)] ],
	[ 'tid', 'tid', '', q{format('(%s,%s)', abs(gen.whole(31)), gen.upto(9))::tid}, [ '(0,0)', '(0,1)', '(4294967295,65535)', '(4294967295,0)', '(2147483648,1)', '(1,65535)' ] ],
	[ 'xid8', 'xid8', '', 'abs(gen.whole(63))::text::xid8', [qw(0 1 3 18446744073709551615 9223372036854775808 4294967296)] ],
	[ 'oidvector', 'oidvector', '', q{concat_ws(' ', gen.upto(3), gen.upto(2))::oidvector}, [ '', '0', '0 0', '4294967295', '1 2 3', '1', '2' ] ],
	[ 'enum', 'gen.mood', '', q{(enum_range(NULL::gen.mood))[1 + floor(random() * cardinality(enum_range(NULL::gen.mood)))::int]}, [qw(sad ok happy)], '', q{ALTER TYPE gen.mood ADD VALUE 'glum' BEFORE 'ok'; ALTER TYPE gen.mood ADD VALUE 'worst' BEFORE 'sad'; ALTER TYPE gen.mood ADD VALUE 'elated' AFTER 'happy'} ],
	[ 'dint', 'gen.positive', '', 'abs(gen.whole(30)) + 1', [qw(1 2 2147483647)] ],
	[ 'dnum', 'gen.amount', '', 'gen.whole(30) / 100', [qw(0 1.0 NaN -0.01)] ],
	[ 'dwords', 'gen.words', '', 'ARRAY[gen.word(3), gen.word(3)]', [ '{}', '{NULL}', '{a,b}', '{""}' ] ],
	[ 'int4a', 'int[]', '', 'ARRAY[gen.upto(3), NULLIF(gen.upto(5), 5), gen.upto(1)]', [ '{}', '{NULL}', '{0}', '{0,0}', '{{0,0}}', '{{0},{0}}', '[0:1]={0,0}', '{NULL,NULL}', '{2147483647}', '{-2147483648}' ] ],
	[ 'texta', 'text[]', '', 'string_to_array(gen.word(9), \'a\')', [ '{}', '{NULL}', '{""}', '{a}', '{A}', '{a,b}', '{"a,b"}', '{{a},{b}}' ] ],
	[ 'numerica', 'numeric[]', '', 'ARRAY[gen.num(), gen.upto(2)]', [ '{1.0}', '{1.00}', '{1}', '{NaN}', '{NaN,1}', '{0.0,-0}' ] ],
	[ 'int4r', 'int4range', '', q{int4range(gen.upto(50), 50 + gen.upto(50))}, [ 'empty', '(,)', '[1,1]', '[1,2)', '(,5]', '[5,)', '(1,2)', '[-2147483648,2147483647)' ] ],
	[ 'numr', 'numrange', '', q{numrange(gen.upto(5), gen.upto(9) + 5 + 0.10, (ARRAY['[]','[)','(]','()'])[1 + gen.upto(3)])}, [ 'empty', '(,)', '[1,1.0]', '[1.0,1.00]', '[1,2)', '[1.0,2.00)', '(1,2)', '(,2)', '(,2]', '[NaN,NaN]' ] ],
	[ 'tsr', 'tsrange', '', q{tsrange(timestamp '2000-01-01' + make_interval(days => gen.upto(20)), timestamp '2000-01-20' + make_interval(days => 1 + gen.upto(20)))}, [ 'empty', '(,)', '[-infinity,infinity]', '[2000-01-01,infinity)', '[2000-01-01,)' ] ],
	[ 'textr', 'gen.textrange', '', q{gen.textrange('a' || gen.word(2), 'b' || gen.word(2))}, [ 'empty', '(,)', '["a","b")', '["a","b"]', '[A,a]' ] ],
	[ 'int4mr', 'int4multirange', '', q{int4multirange(int4range(gen.upto(9), 10), int4range(12, 13 + gen.upto(9)))}, [ '{}', '{(,)}', '{[1,2)}', '{[1,2),[3,4)}', '{(,1),[3,)}' ] ],
	[ 'nummr', 'nummultirange', '', q{nummultirange(numrange(gen.upto(9), 10), numrange(12.0, 13 + gen.upto(9)))}, [ '{}', '{(,)}', '{[1,2)}', '{[1.0,2.00)}' ] ],
	[ 'record', 'gen.pair', '', 'ROW(NULLIF(gen.upto(30), 30), NULLIF(gen.word(3), \'a\'))::gen.pair', [ '(,)', '(1,)', '(,a)', '(1,a)', '(1,A)', '(1,"")' ] ],
	[ 'nested', 'gen.inner', '', 'ROW(gen.upto(9) / 2.0, ROW(gen.upto(3), gen.word(2))::gen.pair)::gen.inner', [ '(,)', '(1.0,)', '(1.00,)', '(1,"(1,a)")', '(1.0,"(1,a)")', '(NaN,"(,)")' ] ],
	[ 'image', 'gen.inner', 'record_image_ops', 'ROW(gen.upto(9) / 2.0, ROW(gen.upto(3), gen.word(2))::gen.pair)::gen.inner', [ '(,)', '(1.0,)', '(1.00,)', '(1,"(1,a)")', '(1.0,"(1,a)")', '(NaN,"(,)")' ] ],
	[ 'jsonb', 'jsonb', '', q{CASE gen.upto(4) WHEN 0 THEN to_jsonb(gen.num()) WHEN 1 THEN to_jsonb(gen.word(5)) WHEN 2 THEN jsonb_build_array(gen.upto(3), gen.word(2)) WHEN 3 THEN jsonb_build_object(gen.word(2), gen.upto(3), 'a', gen.word(2)) ELSE to_jsonb(random() < 0.5) END}, [ 'null', 'true', 'false', '0', '-0', '1', '1.0', '1.00', '""', '"a"', '[]', '{}', '[[]]', '[null]', '{"a":1}', '{"a":1.0}', '{"a":null}', '[1]', '[1.0]' ] ],
	[ 'tsvector', 'tsvector', '', 'gen.vector()::tsvector', [ '', 'a', 'a:1', 'a:1A', 'a:1B', 'b', 'a b' ] ],
	[ 'tsquery', 'tsquery', '', q{(substr('abcd', 1 + gen.upto(3), 1) || (ARRAY['&','|','<->','&!'])[1 + gen.upto(3)] || substr('abcd', 1 + gen.upto(3), 2) || ':*')::tsquery}, [ 'a', 'a & b', 'a | b', '!a', 'a:A', 'a:*' ] ],
	[ 'citext', 'gen.citext', '', 'gen.word(12)::gen.citext', \@text, 'citext' ],
	[ 'hstore', 'gen.hstore', '', q{gen.hstore(gen.word(3), gen.word(3))}, [ '', 'a=>1', 'a=>NULL', 'A=>1', 'a=>1,b=>2' ], 'hstore' ],
	[ 'ltree', 'gen.ltree', '', q{concat_ws('.', 'a' || gen.upto(9), 'b' || gen.upto(9), NULLIF('c' || gen.upto(3), 'c3'))::gen.ltree}, [ '', 'a', 'A', 'a.b', 'a.b.c', 'b', 'ab' ], 'ltree' ],
	[ 'cube', 'gen.cube', '', q{gen.cube(ARRAY[gen.upto(9), random()])}, [ '0', '(0,0)', '(1,2),(3,4)', '(1)', '(-1)' ], 'cube' ],
	map({
		[ $_->[0], "gen.$_->[0]", '', "($_->[1] || '?')::gen.$_->[0]", $_->[2], 'isn' ]
	}
		[ 'ean13', q{lpad(gen.upto(999)::text, 12, '1')}, [qw(1234567890128 123-456789012-8 9780393040029 0000000000000)] ],
		[ 'isbn13', q{'978' || lpad(gen.upto(999)::text, 9, '0')}, [qw(9780393040029 978-0-393-04002-9 9780000000002)] ],
		[ 'isbn', q{lpad(gen.upto(999)::text, 9, '0')}, [qw(039304002X 0-393-04002-X 080442957X 0000000000)] ],
		[ 'ismn13', q{'9790' || lpad(gen.upto(999)::text, 8, '0')}, [qw(9790060115615 979-0-060-11561-5)] ],
		[ 'ismn', q{'M' || lpad(gen.upto(999)::text, 8, '0')}, [qw(M060115615 M-060-11561-5)] ],
		[ 'issn13', q{'977' || lpad(gen.upto(999)::text, 7, '0') || '00'}, [qw(9771436452008 977-1436-452-00-8)] ],
		[ 'issn', q{lpad(gen.upto(999)::text, 7, '0')}, [qw(1436-4522 14364522)] ],
		[ 'upc', q{lpad(gen.upto(999)::text, 11, '0')}, [qw(220356483481 000000000000)] ]),
	[ 'seg', 'gen.seg', '', q{(gen.upto(9) || ' .. ' || 10 + gen.upto(9))::gen.seg}, [ '1', '1.0', '~1', '<1', '1..2', '1.0..2.0' ], 'seg' ],

	# extensions that Debian 12 has
	[ 'asn1oid', 'gen.asn1oid', '', q{concat_ws('.', gen.upto(2), gen.upto(39), abs(gen.whole(20)), NULLIF(gen.upto(3), 3))::gen.asn1oid}, [qw(0.0 1.3 1.3.6 1.3.6.1 1.3.6.1.4.1 1.3.10 1.3.9 2.39.4294967295)], 'asn1oid' ],
	map({
		[ $_->[0], "gen.$_->[0]", '', "($_->[1])::gen.$_->[0]", $_->[2], 'ip4r' ]
	}
		[ 'ip4', q{concat_ws('.', gen.upto(255), gen.upto(3), gen.upto(255), gen.upto(2))}, [qw(0.0.0.0 255.255.255.255 10.0.0.1 127.255.255.255 128.0.0.0)] ],
		[ 'ip4r', q{concat('10.0.', gen.upto(3), '.', gen.upto(9), '-10.', gen.upto(2) + 1, '.0.', gen.upto(9))}, [qw(0.0.0.0/0 10.0.0.0/8 10.0.0.0/24 10.0.0.0 10.0.0.0-10.0.0.7 10.0.0.0-10.0.0.8 255.255.255.255 128.0.0.0/1)] ],
		[ 'ip6', q{concat('2001:db8::', to_hex(gen.upto(65535)), ':', gen.upto(3))}, [qw(:: ::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 7fff:: 8000:: ::ffff:10.0.0.1)] ],
		[ 'ip6r', q{concat('2001:db8::', gen.upto(9), '-2001:db8::', gen.upto(9) + 1, ':', gen.upto(9))}, [qw(::/0 ::/1 8000::/1 ::1 2001:db8::/32 2001:db8::/33 ::-::7 ::-::8)] ],
		[ 'ipaddress', q{CASE WHEN random() < 0.5 THEN concat_ws('.', 10, 0, gen.upto(9), gen.upto(9)) ELSE '2001:db8::' || gen.upto(99) END}, [qw(0.0.0.0 255.255.255.255 :: ::1 ::ffff:10.0.0.1 10.0.0.1)] ],
		[ 'iprange', q{CASE WHEN random() < 0.5 THEN concat('10.0.0.', gen.upto(9), '-10.0.', gen.upto(3), '.', gen.upto(9) + 9) ELSE concat('2001:db8::', to_hex(gen.upto(9) * 8), '/', 126 + gen.upto(2)) END}, [qw(- 0.0.0.0/0 ::/0 10.0.0.0/8 10.0.0.1 ::1 ::-::8 10.0.0.0-10.0.0.8)] ]),
	[ 'jsquery', 'gen.jsquery', '', q{format('%s = %s', chr(97 + gen.upto(5)), gen.upto(40))::gen.jsquery}, [ 'a = 1', 'a = 2', 'a > 1', 'a = "x"', 'a = 1 AND b = 2', 'NOT a = 1', 'a.b = 1', '*.a = 1', '$ = 1' ], 'jsquery' ],
	[ 'varchar2', 'oracle.varchar2(2000)', '', 'gen.word(12)::oracle.varchar2(2000)', \@text, 'orafce' ],
	[ 'nvarchar2', 'oracle.nvarchar2(2000)', '', 'gen.word(12)::oracle.nvarchar2(2000)', \@text, 'orafce' ],
	[ 'mpz', 'gen.mpz', '', 'gen.whole(200)::text::gen.mpz', [qw(0 1 -1 18446744073709551616 -18446744073709551616 0x10 16)], 'pgmp' ],
	[ 'mpq', 'gen.mpq', '', q{(gen.whole(40) || '/' || 1 + gen.upto(30))::gen.mpq}, [qw(0 1 -1 1/2 2/4 -1/3 18446744073709551616/3 1/18446744073709551616)], 'pgmp' ],
	[ 'rational', 'gen.rational', '', q{(gen.upto(40) - 20 || '/' || 1 + gen.upto(30))::gen.rational}, [qw(0/1 0/7 1/2 2/4 -1/2 -2/4 2147483647/2147483646 1/2147483647)], 'pg_rational' ],
	[ 'geometry', 'gen.geometry', '', q{gen.ST_MakePoint(gen.upto(9), gen.upto(9))}, [ 'POINT(0 0)', 'POINT(-0 0)', 'POINT EMPTY', 'LINESTRING(0 0,1 1)', 'POLYGON((0 0,1 0,1 1,0 0))', 'SRID=4326;POINT(0 0)', 'POINT Z (0 0 1)', 'MULTIPOINT(0 0,1 1)' ], 'postgis' ],
	[ 'geography', 'gen.geography', '', q{gen.ST_MakePoint(gen.upto(9), gen.upto(9))::gen.geography}, [ 'POINT(0 0)', 'POINT(-0 0)', 'POINT EMPTY', 'LINESTRING(0 0,1 1)', 'POINT(179 89)', 'MULTIPOINT(0 0,1 1)' ], 'postgis' ],
	[ 'prefix', 'gen.prefix_range', '', q{(gen.upto(300))::text::gen.prefix_range}, [ '', '0', '1', '12', '123', '01', '9' ], 'prefix' ],
	[ 'semver', 'gen.semver', '', q{concat(gen.upto(3), '.', gen.upto(9), '.', gen.upto(9), (ARRAY['', '-a', '-a.1', '-10', '+x'])[1 + gen.upto(4)])::gen.semver}, [qw(0.0.0 1.0.0 1.0.0-a 1.0.0-a.1 1.0.0-a.10 1.0.0-a.9 1.0.0+b 1.0.0+c 2147483647.0.0)], 'semver' ],
	[ 'unit', 'gen.unit', '', q{(gen.num()::text || (ARRAY[' m', ' cm', ' km', ' ft'])[1 + gen.upto(3)])::gen.unit}, [ '0 m', '-0 m', '1 m', '100 cm', '1 km', '-1 m', '1 ft', '12 in', 'Infinity m', '-Infinity m' ], 'unit' ],
);

# Values by which a class shows that it is no order: none of <, = and > holds, or two, or a <= b <= c
# and not a <= c.  Not for an index: btree loses rows of them.
our %UNORDERED = (
	cube => [ '(0)', '(0,0)', '(0,1)', '(1)', '(1,0)', '(1,1,1)', '(NaN)' ],
	jsquery => [ 'a = 1.0' ],
	prefix => [ '1', '[1-3]', '11', '1[1-3]' ],
	unit => [ '1 m', 'NaN m', '2 m' ],);

sub type_literal
{
	my ($t, $value) = @_;

	# COLLATE belongs to the column, not to the cast
	my $cast = $t->[1] =~ s/ COLLATE .*//r;
	return "'" . ($value =~ s/'/''/gr) . "'::$cast";
}

# The operators of a line's class, by btree's names.
sub type_operators
{
	my ($t) = @_;
	my %op = map { $_ => $_ } qw(< <= = >= >);

	$op{$_} = "~$_~" for $t->[2] =~ /pattern/ ? qw(< <= >= >) : ();
	$op{$_} = "*$_" for $t->[2] =~ /image/ ? keys %op : ();
	$op{$_} = "#$_#" for $t->[0] eq 'hstore' ? qw(< <= >= >) : ();
	return %op;
}

# Lines that are another one's type once more.
my $AGAIN = qr/^(numeric2|textd|varcharpat|icu\w+|libc|d(int|num|words)|bpchar|record|inetcidr|textr)$/;
# and of the types that the tests make, what they are
my %KIND = (enum => 'anyenum', record => 'record', nested => 'record', image => 'record');

# What doc/keys.md says of the types of these lines, as this server has them: the rows of its table, as
# arrays of cells.  Dies where an art index gives other values than the table, or is unique otherwise than btree's.
sub type_table
{
	my ($node, $db, $types) = @_;
	my @rows;

	for my $t (grep { $_->[0] !~ $AGAIN } @$types)
	{
		my ($name, $type, $class) = @$t;
		my $cast = $type =~ s/ COLLATE .*//r;
		my %op = type_operators($t);
		my $all = sub { join(', ', map { '(' . type_literal($t, $_) . ')' } @_) };
		my $values = q{SELECT md5(string_agg(k::text, chr(1) ORDER BY k::text COLLATE "C")) FROM};
		my $scan = "(SELECT k FROM k ORDER BY k USING $op{'<'} OFFSET 0) s";
		my $shown = sub { join(" || '`, `' || ", map { "quote_literal($_.k::text)" } @_) };
		# (Not every "=" that says HASHES has a hash function.)
		my @parts = (
			"SET client_min_messages = warning; SET search_path = gen, public; SET enable_hashjoin = off;
			CREATE TABLE k (i serial, k $type);
			INSERT INTO k (k) VALUES " . $all->(@{ $t->[4] }) . ";
			INSERT INTO k (k) SELECT ($t->[3])::$cast FROM generate_series(1, 300);
			CREATE INDEX k_k ON k USING art (k $class);
			CREATE TABLE b (LIKE k); CREATE UNIQUE INDEX ON b USING btree (k $class);
			CREATE TABLE u (LIKE k); CREATE UNIQUE INDEX ON u USING art (k $class);
			INSERT INTO b SELECT * FROM k ORDER BY i ON CONFLICT DO NOTHING;
			INSERT INTO u SELECT * FROM k ORDER BY i ON CONFLICT DO NOTHING;
			SELECT count(*) FROM b FULL JOIN u USING (i) WHERE b.* IS NULL OR u.* IS NULL;
			VACUUM ANALYZE k",
			"$values k",
			"SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; $values $scan",
			"EXPLAIN $values $scan; RESET enable_seqscan; RESET enable_bitmapscan; RESET enable_sort",
			# the class and its type, and who brought that; an array's and a row's are of any
			q{SELECT coalesce((SELECT e.extname || ' ' || e.extversion FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
				WHERE d.classid = 'pg_type'::regclass AND d.objid = a.atttypid AND d.refclassid = 'pg_extension'::regclass), 'PostgreSQL'),
				CASE (SELECT structure FROM artidx_indexes WHERE indexrelid = i.indexrelid) WHEN 'art' THEN 'bytes' ELSE 'compared' END,
				CASE WHEN o.opcintype <> a.atttypid AND t.typtype <> 'p' THEN format_type(o.opcintype, NULL) END
			FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND attname = 'k'
				JOIN pg_opclass o ON o.oid = i.indclass[0] JOIN pg_type t ON t.oid = o.opcintype
			WHERE indexrelid = 'k_k'::regclass},
			'TRUNCATE k; DROP INDEX k_k; INSERT INTO k (k) VALUES ' . $all->(@{ $t->[4] }, @{ $UNORDERED{$name} // [] })
			. '; SELECT ' . $shown->('a', 'b') . " FROM k a, k b WHERE a.k $op{'='} b.k AND a.k::text <> b.k::text ORDER BY a.i, b.i LIMIT 1",
			'SELECT shown FROM (SELECT 1, a.i, b.i, 0, ' . $shown->('a', 'b') . " FROM k a, k b
				WHERE (a.k $op{'<'} b.k)::int + (a.k $op{'='} b.k)::int + (a.k $op{'>'} b.k)::int <> 1
			UNION ALL SELECT 2, a.i, b.i, c.i, " . $shown->('a', 'b', 'c') . " FROM k a, k b, k c
				WHERE a.k $op{'<='} b.k AND b.k $op{'<='} c.k AND NOT a.k $op{'<='} c.k
			ORDER BY 1, 2, 3, 4 LIMIT 1) v (sort, a, b, c, shown); DROP TABLE k, b, u");
		my ($rc, $out, $err) = $node->psql($db, join('', map { "$_;\n\\echo =====\n" } @parts), on_error_stop => 1);
		die "$name: $err" if $rc != 0;
		my ($unlike, $read, $scanned, $plan, $facts, $alike, $unordered) = map { s/^\n|\n$//gr } split /=====/, $out;

		die "$name: a unique index takes other values than btree's" if $unlike ne '0';
		die "$name: no index-only scan: $plan" unless $plan =~ /Index Only Scan using k_k/;
		my ($of, $keys, $coerced) = split /\|/, $facts;
		s/\|/\\|/g for $alike, $unordered;
		push @rows, [
			'`' . join(' ', grep { $_ ne '' } $KIND{$name} // ($type =~ s/^(gen|oracle)\.|\(\d+\)//gr), $class) . '`',
			$of, $keys, $read eq $scanned ? 'exact' : '**not exact**', $alike eq '' ? '' : "`$alike`",
			join('; ', $coerced ? "the class of `$coerced`" : (), $unordered eq '' ? () : "no order: `$unordered`") ];
	}
	return @rows;
}

# In the database of the caller: what the lines need.  Returns those of them
# that this server has, and the names of those that it has not.
sub type_setup
{
	my ($node, $db) = @_;
	my (%can, @out);

	$node->safe_psql($db, $FUNCTIONS);
	for my $need (sort keys %NEEDS)
	{
		my ($rc, $stdout, $stderr) = $node->psql($db, $NEEDS{$need}, on_error_stop => 1);

		$can{$need} = $rc == 0;
	}
	@out = map { $_->[0] } grep { $_->[5] && !$can{ $_->[5] } } @TYPES;
	return ([ grep { !$_->[5] || $can{ $_->[5] } } @TYPES ], \@out);
}

1;
