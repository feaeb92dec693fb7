# A merge join whose inner side is an index-only scan of art goes back to a mark
# behind which VACUUM has removed rows meanwhile, and whose TIDs others took.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('mark');

my $off = 'SET enable_seqscan = off; SET enable_bitmapscan = off; '
  . 'SET enable_sort = off; SET enable_hashjoin = off; SET enable_nestloop = off; '
  . 'SET enable_material = off; SET max_parallel_workers_per_gather = 0; ';
my $query = 'SELECT o.v, i.k, i.v FROM o JOIN i ON o.k = i.k ORDER BY o.k, o.v';

for my $structure ('stays', 'goes')
{
	# key 5 of the inner side: 900 rows, every other one dead but still in the
	# index, read once for each of three outer rows
	$node->safe_psql('postgres', q{
		DROP TABLE IF EXISTS o, i;
		CREATE TABLE o (k int, v int);
		CREATE TABLE i (k int, v int, pad text);
		INSERT INTO o SELECT i, j FROM generate_series(4, 6) i, generate_series(1, 3) j;
		INSERT INTO i SELECT 5, j, repeat('x', 20) FROM generate_series(1, 900) j;
		INSERT INTO i VALUES (4, -4, ''), (6, -6, '');
		CREATE INDEX o_k ON o USING art (k, v);
		CREATE INDEX i_k ON i USING art (k, v);
		VACUUM (FREEZE, ANALYZE) o, i;
		SET enable_indexscan = off; SET enable_bitmapscan = off;
		SET enable_indexonlyscan = off;
		DELETE FROM i WHERE k = 5 AND v % 2 = 0;
	});
	like(
		$node->safe_psql('postgres', "$off EXPLAIN (COSTS OFF) $query"),
		qr/Merge Join.*Index Only Scan using i_k on i/s,
		"$structure: an index-only scan is the inner side");

	my $s = $node->background_psql('postgres');
	$s->query_safe("$off BEGIN; DECLARE c CURSOR FOR $query;");

	# into the middle of key 5, second round: the mark is a batch away
	my @rows = split /\n/, $s->query_safe('FETCH 700 FROM c');

	$node->safe_psql('postgres', "SET statement_timeout = '60s'; VACUUM i");
	pass("$structure: VACUUM did not wait for the marked batch");
	$node->safe_psql('postgres',
		"INSERT INTO i SELECT 1000 + j, j, 'new' FROM generate_series(1, 1500) j");
	$node->safe_psql('postgres', "SELECT artidx_unload('i_k')")
	  if $structure eq 'goes';
	push @rows, split /\n/, $s->query_safe('FETCH ALL FROM c');
	$s->query_safe('COMMIT');
	$s->quit;

	my @want = map { "$_|4|-4" } 1 .. 3;
	for my $v (1 .. 3)
	{
		push @want, map { "$v|5|" . (2 * $_ - 1) } 1 .. 450;
	}
	push @want, map { "$_|6|-6" } 1 .. 3;
	is(scalar(@rows), scalar(@want), "$structure: every live pair once");
	is("@rows", "@want", "$structure: in order, and no removed row");
}

$node->stop;
done_testing();
