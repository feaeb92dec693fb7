# A cursor that idles in the middle of an index-only scan does not make VACUUM
# wait for rows that it is not parked on, and does not return keys whose rows
# VACUUM has removed meanwhile.  Nor does a participant of a parallel scan, and it
# reads all of its share.
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

# A participant of a parallel scan of an array takes 32 keys at a time, and looks many
# of them up together.  It stands still in the middle of these.  It looks the first
# share up in two parts, and all later ones in one.  The last key of each is odd.
$node->safe_psql('postgres', q{
	CREATE FUNCTION stops(k int, at int) RETURNS bool LANGUAGE plpgsql PARALLEL SAFE COST 100000 AS $$
	BEGIN
		IF k = at THEN
			RAISE LOG 'stands at %', k;
			WHILE pg_stat_file('go' || k, true) IS NULL LOOP
				PERFORM pg_sleep(0.01);
			END LOOP;
		END IF;
		RETURN true;
	END $$});
my $keys = "k = ANY ('{" . join(',', 0 .. 4000) . "}')";
for my $at (3, 1491)
{
	fresh_table();
	$node->safe_psql('postgres', 'ALTER TABLE t SET (parallel_workers = 2)');
	my $query = "SELECT count(*), sum(k) FROM t WHERE $keys AND stops(k, $at)";
	my $one = "$off SET jit = off; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; "
	  . 'SET min_parallel_index_scan_size = 0; SET min_parallel_table_scan_size = 0; '
	  . 'SET max_parallel_workers_per_gather = 2; SET max_parallel_workers = 1; '
	  . 'SET parallel_leader_participation = off;';
	like(
		$node->safe_psql('postgres', "$one EXPLAIN (COSTS OFF) $query") =~ s/\{.*?\}/{}/r,
		qr/Parallel Index Only Scan using t_k/, "at $at: the plan is parallel and index-only");

	my $p = $node->background_psql('postgres');
	my $offset = -s $node->logfile;
	$p->query_safe($one);
	$p->query_until(qr/sent/, "\\echo sent\n$query;\n\\echo done\n");
	$node->wait_for_log(qr/LOG:  stands at $at\n/, $offset);
	$node->safe_psql('postgres', "SET statement_timeout = '60s'; VACUUM t");
	append_to_file($node->data_dir . "/go$at", '');
	my ($got) = $p->query_until(qr/done/, '') =~ /^(.*\|.*)$/m;
	$p->quit;
	is($got, $node->safe_psql('postgres',
			"$off SET max_parallel_workers_per_gather = 0; SELECT count(*), sum(k) FROM t WHERE $keys"),
		"at $at: as the serial scan");
}

# an error in the middle releases what the scan held
fresh_table();
$node->psql('postgres',
	"$off SELECT 1 / (k - 5) FROM t WHERE k >= 1 ORDER BY k");
$node->safe_psql('postgres', "SET statement_timeout = '60s'; VACUUM t");
check_exact($node, 't', 't_k');

$node->stop;
done_testing();
