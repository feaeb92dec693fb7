# Indexes whose keys are compared, under load: no statement errs, a unique one
# lets no equal keys in, all agree with the heap afterwards; and they are not
# among what is saved at a shutdown.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

# ICU wants an encoding that it knows
my $node = PostgreSQL::Test::Cluster->new('compared');
$node->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
art_conf($node, autovacuum => 'on', autovacuum_naptime => '1s');
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION artidx');

$node->safe_psql('postgres', q{
	CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	CREATE TABLE t (id int, w text, n numeric, h int);
	CREATE INDEX t_w ON t USING art (w COLLATE "de-x-icu", id);
	CREATE INDEX t_wd ON t USING art (w COLLATE "en-x-icu" DESC NULLS LAST) WITH (structure = btree, page_size = 256);
	CREATE UNIQUE INDEX t_u ON t USING art (w COLLATE nocase);
	CREATE INDEX t_n ON t USING art (n);
	-- a comparison that takes its time: long enough to be overtaken
	CREATE FUNCTION slow_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
	BEGIN
		RETURN btint4cmp(b, a);
	END $$;
	CREATE OPERATOR FAMILY slow_ops USING art;
	CREATE OPERATOR CLASS slow_ops FOR TYPE int USING art FAMILY slow_ops AS
		OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <,
		FUNCTION 1 slow_cmp(int, int);
	CREATE INDEX t_h ON t USING art (h slow_ops);
	-- equal is not the same, and it takes long enough to find out for two to try
	CREATE FUNCTION either_cmp(a text, b text) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
	BEGIN
		RETURN bttextcmp(lower(a) COLLATE "C", lower(b) COLLATE "C");
	END $$;
	CREATE OPERATOR FAMILY either_ops USING art;
	CREATE OPERATOR CLASS either_ops FOR TYPE text USING art FAMILY either_ops AS
		OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
		FUNCTION 1 either_cmp(text, text);
	CREATE TABLE u (id int, w text);
	CREATE UNIQUE INDEX u_w ON u USING art (w either_ops);
	INSERT INTO u SELECT i, 'Some ' || i FROM generate_series(100, 400) i;
	INSERT INTO t SELECT i, 'Word ' || i, i / 7.0, i % 10 FROM generate_series(1, 2000) i;
	CREATE SEQUENCE s START 100000;
	CREATE SEQUENCE four START 100000;
	ANALYZE t;
});

my %script = (
	insert => q{INSERT INTO t SELECT i, CASE WHEN i % 2 = 0 THEN 'WORD ' ELSE 'Ähre ' END || i, i * 0.01, i
	FROM nextval('s') i;
},
	# the same few keys from everywhere, in either case
	upsert => q{\set i random(1, 20)
\set k random(0, 1)
INSERT INTO t (id, w, h) VALUES (:i, CASE WHEN :k = 0 THEN 'word ' ELSE 'WORD ' END || :i, :i)
	ON CONFLICT (w COLLATE nocase) DO UPDATE SET h = t.h + 1, w = EXCLUDED.w;
},
	# four of one key, in either case, one right after the other
	hot => q{INSERT INTO u SELECT i, CASE WHEN i % 2 = 0 THEN 'hot ' ELSE 'HOT ' END || i / 4
	FROM nextval('four') i ON CONFLICT DO NOTHING;
},
	update => q{\set i random(1, 2000)
UPDATE t SET w = CASE WHEN ascii(w) = 87 THEN upper(w) ELSE initcap(w) END, n = n * 1.0 WHERE id = :i;
},
	delete => q{\set i random(100000, 110000)
DELETE FROM t WHERE id = :i;
},
	read => q{\set i random(1, 2000)
SELECT id FROM t WHERE w COLLATE nocase = 'word ' || :i;
SELECT w FROM t WHERE w COLLATE "de-x-icu" >= 'Word ' || :i ORDER BY w COLLATE "de-x-icu", id LIMIT 20;
SELECT w FROM t WHERE w COLLATE "en-x-icu" <= 'Word ' || :i ORDER BY w COLLATE "en-x-icu" DESC NULLS LAST LIMIT 20;
SELECT n FROM t WHERE n > :i ORDER BY n LIMIT 20;
});

my @args;
for my $name (sort keys %script)
{
	my $file = $node->basedir . "/$name.sql";
	append_to_file($file, $script{$name});
	push @args, '-f', $name eq 'hot' ? "$file\@4" : $file;
}

my $seconds = $ENV{CLIENT_SECONDS} // 5;
my ($out, $err) = ('', '');
my $rc = IPC::Run::run(
	[
		'pgbench', '-n', '-c', '16', '-j', '2', '-M', 'prepared',
		'-T', $seconds, @args, '-h', $node->host, '-p', $node->port,
		'postgres'
	],
	'>', \$out, '2>', \$err);
ok($rc, '16 clients ran to the end');
unlike($err, qr/ERROR|FATAL|PANIC/, 'no statement erred');
like($out, qr/number of transactions actually processed: [1-9]/,
	'and they did something');
note $1 if $out =~ /(number of transactions actually processed: \d+)/;
note $node->safe_psql('postgres',
	q{SELECT string_agg(relname || ' ' || restarts, ', ' ORDER BY relname) FROM artidx_contention});

$node->append_conf('postgresql.conf', 'autovacuum = off');
$node->reload;
$node->poll_query_until('postgres',
	"SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type LIKE 'autovacuum%'");

for my $index (qw(t_w t_wd t_u t_n t_h))
{
	check_exact($node, 't', $index);
}
check_exact($node, 'u', 'u_w');
is( $node->safe_psql('postgres',
		'SELECT count(*) FROM (SELECT lower(w) FROM u GROUP BY lower(w) HAVING count(*) > 1) d'),
	'0', 'nor in the one whose comparison is slow');
is( $node->safe_psql('postgres',
		'SELECT count(*) FROM (SELECT lower(w) FROM t GROUP BY lower(w) HAVING count(*) > 1) d'),
	'0', 'no two keys that are equal in the unique index');
same_answer($node,
	q{SELECT md5(string_agg(w, ',')) FROM (SELECT w FROM t ORDER BY w COLLATE "de-x-icu", id) s},
	'in order, by a collation');
same_answer($node,
	q{SELECT count(*), sum(id) FROM t WHERE w COLLATE nocase >= 'WORD 15'}, 'a range');

# a private scan that spills some 640 runs, ten times as many as it merges at once
$node->safe_psql('postgres', q{
	CREATE TABLE big AS SELECT i AS id, repeat(md5(i::text), 20) COLLATE "en-x-icu" AS w FROM generate_series(1, 64000) i;
	CREATE INDEX big_w ON big USING art (w);
	ANALYZE big;
	CREATE FUNCTION spilled(OUT n int, OUT wrong int) LANGUAGE plpgsql AS $$
	DECLARE
		c refcursor;
		w text COLLATE "en-x-icu";
		before text COLLATE "en-x-icu" := '';
	BEGIN
		OPEN c FOR SELECT b.w FROM big b ORDER BY b.w;
		FETCH c INTO w;
		PERFORM artidx_unload('big_w');
		n := 0;
		wrong := 0;
		WHILE FOUND LOOP
			n := n + 1;
			wrong := wrong + (w < before)::int;
			before := w;
			FETCH c INTO w;
		END LOOP;
	END $$;
});
my $temp = q{SELECT temp_bytes FROM pg_stat_database WHERE datname = 'postgres'};
my $temp_before = $node->safe_psql('postgres', $temp);
is( $node->safe_psql('postgres', q{SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off;
		SET work_mem = '64kB'; SELECT * FROM spilled()}),
	'64000|0', 'many runs: all rows, in order');
my $times = ($node->safe_psql('postgres', $temp) - $temp_before) / $node->safe_psql('postgres', 'SELECT sum(length(w)) FROM big');
cmp_ok($times, '>', 1, 'many runs: to disk');
cmp_ok($times, '<', 3, 'many runs: a key is rewritten once');
$node->safe_psql('postgres', 'DROP TABLE big');

# the queries that do without, then those that use it again
$node->restart;
$node->poll_query_until('postgres',
	"SELECT count(*) = 6 FROM artidx_indexes WHERE state = 'ready'")
  or die 'not built again';
is( $node->safe_psql('postgres',
		q{SELECT string_agg(DISTINCT last_build_source, ',') FROM artidx_indexes WHERE indexrelname <> 't_n'}),
	'rebuild', 'built from the table after a restart, not loaded');
is( $node->safe_psql('postgres',
		q{SELECT last_build_source FROM artidx_indexes WHERE indexrelname = 't_n'}),
	'load', 'but for the one whose keys are bytes');
for my $index (qw(t_w t_u t_n))
{
	check_exact($node, 't', $index);
}

# another size of page is another structure, another name of the one engine is not
my $page = q{SELECT state || ' ' || (nodes ->> 'page_size') || ' ' || builds FROM artidx_indexes WHERE indexrelname = 't_wd'};
my ($builds) = $node->safe_psql('postgres', $page) =~ /^ready 256 (\d+)$/;
$node->safe_psql('postgres', 'ALTER INDEX t_wd SET (page_size = 1024)');
ok($node->poll_query_until('postgres', $page, 'ready 1024 ' . ++$builds), 'ALTER INDEX: another page size is built');
$node->safe_psql('postgres', 'ALTER INDEX t_wd RESET (structure, page_size)');
is($node->safe_psql('postgres', $page), "ready 1024 $builds", 'the same by another name stays');

# what it is going to be is known before anything is built
$node->append_conf('postgresql.conf', 'artidx.build_workers = 0');
$node->restart;
$node->poll_query_until('postgres', q{SELECT state = 'ready' FROM artidx_indexes WHERE indexrelname = 't_n'});
is( $node->safe_psql('postgres',
		q{SELECT string_agg(indexrelname || ' ' || structure || ' ' || state, ', ' ORDER BY indexrelname)
		FROM artidx_indexes WHERE indexrelname IN ('t_n', 't_w', 't_wd')}),
	't_n art ready, t_w btree absent, t_wd btree absent', 'of which structure an index will be');
$node->stop;
done_testing();
