# What lies between a key's columns and its TID: INCLUDE columns, a numeric's
# scale, a bpchar's blanks.  Saved and loaded, read from the table when there is
# no structure, compared by nobody, and right under many writers.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $seconds = $ENV{CLIENT_SECONDS} || 5;
my $node = art_node('payload', 'artidx.build_workers' => 0, max_connections => 40);
my $alone = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; ';

$node->safe_psql('postgres', q{
	CREATE TABLE t (id int, n numeric, f float8, b bpchar, i interval, note text, p point, a numeric[]);
	INSERT INTO t SELECT g, round(g / 7.0, g % 9), CASE WHEN g % 50 = 0 THEN '-0' ELSE g / 3.0 END,
			chr(97 + g % 26) || repeat(' ', g % 5),
			(g % 60) * interval '1 day' + (g % 3) * interval '1 month',
			CASE WHEN g % 9 > 0 THEN repeat('n', g % 40) END, point(g, g),
			ARRAY[g % 40, NULL, round(1.5, g % 3)]
		FROM generate_series(1, 20000) g;
	CREATE UNIQUE INDEX t_id ON t USING art (id) INCLUDE (note, p, n);
	CREATE INDEX t_n ON t USING art (n, id);
	CREATE INDEX t_fb ON t USING art (f DESC, b, id) WITH (structure = btree);
	CREATE INDEX t_i ON t USING art (i, id) INCLUDE (i, note) WITH (sync = rowex);
	CREATE INDEX t_a ON t USING art (a, id) INCLUDE (f, note, b);
	VACUUM ANALYZE t;
});
my @queries = (
	'SELECT id, note, p, n FROM t WHERE id > 0 ORDER BY id',
	'SELECT id, note, p FROM t WHERE id BETWEEN 90 AND 300 ORDER BY id DESC',
	'SELECT n, id FROM t ORDER BY n, id',
	'SELECT n, id FROM t WHERE n = 143 ORDER BY n, id',
	q{SELECT f, b || '|', id FROM t ORDER BY f DESC, b, id},
	q{SELECT f, b || '|', id FROM t WHERE f = 0 ORDER BY f DESC, b, id},
	'SELECT i, id, note FROM t ORDER BY i, id',
	q{SELECT i, id, note FROM t WHERE i = '30 days' ORDER BY i, id},
	q{SELECT a, id, f, note, b || '|' FROM t WHERE a >= '{17}' ORDER BY a, id});

sub answers
{
	return join("\n--\n", map { $node->safe_psql('postgres', $alone . $_) } @queries);
}

sub from_table
{
	return join("\n--\n", map { $node->safe_psql('postgres',
		'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; ' . $_) } @queries);
}

sub checked
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($node->safe_psql('postgres', q{
		SELECT string_agg(indexrelname, ' ' ORDER BY indexrelname COLLATE "C") FROM artidx_indexes,
			artidx_check(indexrelid, true) c WHERE c.entries >= c.heap_tuples}),
		't_a t_fb t_i t_id t_n', $name);
	return;
}

my $want = from_table();
for my $q (@queries)
{
	like($node->safe_psql('postgres', $alone . 'EXPLAIN ' . $q), qr/Index Only Scan/, "by the index alone: $q");
}
is(answers(), $want, 'as in the table');
checked('all is there');

# ---- saved and loaded ----
$node->restart;
$node->poll_query_until('postgres',
	q{SELECT count(*) = 4 FROM artidx_indexes WHERE state = 'ready' AND last_build_source = 'load'})
  or diag $node->safe_psql('postgres', 'SELECT indexrelname, state, last_build_source FROM artidx_indexes');
is($node->safe_psql('postgres', q{
		SELECT indexrelname FROM artidx_indexes WHERE last_build_source = 'load' ORDER BY 1}),
	"t_fb\nt_i\nt_id\nt_n", 'those with encoded keys were loaded, the compared one was not');
is(answers(), $want, 'as in the table, from the file');
checked('all is there after a restart');

# ---- no structure: from the table ----
my $private = $node->background_psql('postgres', on_error_stop => 1);
$private->query_safe($alone . 'BEGIN ISOLATION LEVEL REPEATABLE READ');
my @lost = (1, 3, 5, 7);		# the short ones
my @first;
for my $i (@lost)
{
	$private->query_safe("DECLARE c$i CURSOR FOR $queries[$i]");
	push @first, $private->query_safe("FETCH 1 FROM c$i");
}
$node->safe_psql('postgres', join(' ', map { "SELECT artidx_unload('$_');" } qw(t_id t_n t_fb t_i t_a)));
for my $i (@lost)
{
	my $rest = $private->query_safe("FETCH ALL FROM c$i");

	is(join("\n", shift(@first), $rest eq '' ? () : $rest),
		$node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; $queries[$i]"),
		"a cursor whose structure went away: $queries[$i]");
}
$private->query_safe('COMMIT');
$private->quit;
is(answers(), $want, 'as in the table, read from it');
is($node->safe_psql('postgres', q{SELECT count(*) FROM artidx_indexes WHERE state <> 'absent'}), 0,
	'no structure was there');

# ---- a proof without memory; a unique build in several runs ----
$node->safe_psql('postgres', q{
	CREATE TABLE d (n numeric, t text);
	INSERT INTO d SELECT round(g, g % 3), repeat('x', 200) FROM generate_series(1, 30000) g;
});
my ($rc, $out, $err);
for my $capped ('', q{, max_memory = '1MB'})
{

	$node->safe_psql('postgres', qq{
		SET maintenance_work_mem = '1MB';
		CREATE UNIQUE INDEX d_n ON d USING art (n) INCLUDE (t) WITH (fillfactor = 90 $capped)});
	$node->safe_psql('postgres', q{DROP INDEX d_n; INSERT INTO d VALUES (77.0000, 'equal')});
	($rc, $out, $err) = $node->psql('postgres', qq{
		SET maintenance_work_mem = '1MB';
		CREATE UNIQUE INDEX d_n ON d USING art (n) INCLUDE (t) WITH (fillfactor = 90 $capped)});
	like($err, qr/could not create unique index "d_n"\n.*Key \(n\)=\(77(\.0+)?\) is duplicated/,
		"a duplicate with another scale and text is found$capped");
	$node->safe_psql('postgres', q{DELETE FROM d WHERE t = 'equal'; VACUUM d});
}

# ---- many writers of few keys ----
$node->safe_psql('postgres', q{
	CREATE TABLE w (n numeric, t text, c int);
	CREATE UNIQUE INDEX w_n ON w USING art (n) INCLUDE (t, c);
	CREATE INDEX w_c ON w USING art (c) INCLUDE (n, t);
	CREATE FUNCTION one(g int) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		CASE g % 5
		WHEN 0 THEN INSERT INTO w VALUES (round((g % 100)::numeric, g % 7), 'i' || g, g % 10);
		WHEN 1 THEN DELETE FROM w WHERE n = g % 100;
		WHEN 2 THEN UPDATE w SET n = round(n, g % 7), t = 'u' || g WHERE n = g % 100;
		WHEN 3 THEN UPDATE w SET c = c + 1 WHERE c = g % 10 AND n < 20;
		ELSE INSERT INTO w VALUES (round((g % 100)::numeric, g % 5), 'c', 1) ON CONFLICT (n) DO UPDATE SET t = 'c' || g, n = excluded.n;
		END CASE;
	EXCEPTION WHEN unique_violation THEN NULL;
	END $$;
});
my $script = PostgreSQL::Test::Utils::tempdir() . '/w.sql';
append_to_file($script, "\\set g random(0, 1000000)\nSELECT one(:g);\n");
$node->command_ok([ 'pgbench', '-n', '-c', 8, '-j', 2, '-T', $seconds, '-f', $script, 'postgres' ],
	'many writers of equal keys');
is($node->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT n) FROM w'), 0, 'no duplicates');
is($node->safe_psql('postgres', q{
		SELECT count(*) FROM (SELECT n, t, c FROM w EXCEPT ALL SELECT n, t, c FROM w WHERE n > -1) x}), 0,
	'what one way finds, the other does');
is($node->safe_psql('postgres', $alone . 'SELECT n, t, c FROM w WHERE n > -1 ORDER BY n'),
	$node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; SELECT n, t, c FROM w ORDER BY n'),
	'by the index as in the table');
$node->safe_psql('postgres', 'VACUUM w');
is($node->safe_psql('postgres', q{
		SELECT string_agg(x || ' ' || (c.entries = c.heap_tuples), ', ' ORDER BY x) FROM unnest(ARRAY['w_n', 'w_c']) x,
			artidx_check(x::regclass, true) c}), 'w_c true, w_n true', 'each row has its entry, and none is left over');

$node->stop;
done_testing();
