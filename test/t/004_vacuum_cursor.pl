# A cursor that idles in the middle of an index-only scan does not make VACUUM
# wait for rows that it is not parked on, and does not return keys whose rows
# VACUUM has removed meanwhile.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('cursor');

# Dead entries must still be in the index when the cursor copies its batch:
# the rows go without anybody meeting them in a scan.
sub fresh_table
{
	$node->safe_psql('postgres', q{
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (k int, pad text);
		INSERT INTO t SELECT i, repeat('x', 20) FROM generate_series(1, 4000) i;
		CREATE INDEX t_k ON t USING art (k);
		VACUUM (FREEZE, ANALYZE) t;
		SET enable_indexscan = off; SET enable_bitmapscan = off;
		SET enable_indexonlyscan = off;
		DELETE FROM t WHERE k % 2 = 0;
	});
	return;
}

my $off = 'SET enable_seqscan = off; SET enable_bitmapscan = off; '
  . 'SET enable_sort = off; ';

for my $dir ('ASC', 'DESC')
{
	fresh_table();
	my $query = "SELECT k FROM t WHERE k BETWEEN 1 AND 4000 ORDER BY k $dir";
	like(
		$node->safe_psql('postgres', "$off EXPLAIN (COSTS OFF) $query"),
		qr/Index Only Scan.*using t_k/, "$dir: the plan is index-only");

	my $s = $node->background_psql('postgres');
	$s->query_safe("$off BEGIN; DECLARE c CURSOR FOR $query;");
	my $first = $s->query_safe('FETCH 3 FROM c');
	is($first, $dir eq 'ASC' ? "1\n3\n5" : "3999\n3997\n3995",
		"$dir: the first rows");

	# the rows were dead before the cursor's snapshot, so VACUUM removes them,
	# frees their line pointers and marks the pages all-visible
	$node->safe_psql('postgres',
		"SET statement_timeout = '60s'; VACUUM t");
	pass("$dir: VACUUM did not wait for the idle cursor");
	$node->safe_psql('postgres',
		"INSERT INTO t SELECT 100000 + i, 'new' FROM generate_series(1, 1500) i");

	my @rest = split /\n/, $s->query_safe('FETCH ALL FROM c');
	is(scalar(@rest), 1997, "$dir: every live row once");
	is(scalar(grep { $_ % 2 == 0 } @rest), 0, "$dir: and no removed one");
	my @sorted = sort { $dir eq 'ASC' ? $a <=> $b : $b <=> $a } @rest;
	is("@rest", "@sorted", "$dir: in order");
	$s->query_safe('COMMIT');
	$s->quit;
	check_exact($node, 't', 't_k');
}

# the same while the index is not in memory: VACUUM has nothing to remove from
# it, and a later build must not bring the dead back
fresh_table();
$node->restart;
$node->safe_psql('postgres', "SET statement_timeout = '60s'; VACUUM t");
request_and_wait($node, 't_k', 'SELECT k FROM t WHERE k = 5');
same_answer($node, 'SELECT count(*), sum(k) FROM t WHERE k > 0',
	'VACUUM before the build');
check_exact($node, 't', 't_k');

# a scroll cursor that goes back over what VACUUM removed
fresh_table();
my $s = $node->background_psql('postgres');
$s->query_safe("$off BEGIN; DECLARE c SCROLL CURSOR FOR "
	  . 'SELECT k FROM t WHERE k >= 1 ORDER BY k');
is($s->query_safe('FETCH 4 FROM c'), "1\n3\n5\n7", 'scroll: forward');
$node->safe_psql('postgres', "SET statement_timeout = '60s'; VACUUM t");
is($s->query_safe('FETCH BACKWARD 2 FROM c'), "5\n3", 'scroll: backward');
is($s->query_safe('FETCH 3 FROM c'), "5\n7\n9", 'scroll: forward again');
$s->query_safe('COMMIT');
$s->quit;

# an error in the middle releases what the scan held
fresh_table();
$node->psql('postgres',
	"$off SELECT 1 / (k - 5) FROM t WHERE k >= 1 ORDER BY k");
$node->safe_psql('postgres', "SET statement_timeout = '60s'; VACUUM t");
check_exact($node, 't', 't_k');

$node->stop;
done_testing();
