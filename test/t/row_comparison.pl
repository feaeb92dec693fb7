# Comparisons of rows: random ones beside a sequential scan while rows change, and VACUUM and DDL run;
# plans that are begun anew for one row; what auto_explain prints.
# ROWS_QUERIES (200), SEED.
use strict;
use warnings;

use File::Basename qw(dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $seed = art_seed();
my $queries = $ENV{ROWS_QUERIES} // 200;
my $node = art_node('rows', jit => 'off', session_preload_libraries => 'auto_explain',
	'auto_explain.log_min_duration' => '-1');

$node->psql('postgres', '\i ' . dirname(__FILE__) . '/../rows.sql', on_error_die => 1);

# ---- beside writers, VACUUM and DDL, each pair of answers from one snapshot ----

rows_beside_churn($node, $queries, $seed, 0.9);

# ---- a plan that is begun anew for a row which another has changed (EvalPlanQual) ----

$node->safe_psql('postgres', q{
	CREATE TABLE e (a int, b int, v int);
	INSERT INTO e SELECT i % 10, i, 0 FROM generate_series(1, 100) i;
	CREATE INDEX e_ab ON e USING art (a, b);
	CREATE TABLE f AS SELECT a, b FROM e;
	CREATE INDEX f_ab ON f USING art (a, b);
	VACUUM ANALYZE e, f});
my $update = q{UPDATE e SET v = v + (SELECT count(*) FROM f WHERE (f.a, f.b) > (e.a, 50)) WHERE (a, b) > (8, 90)};
like($node->safe_psql('postgres', "SET enable_seqscan = off; EXPLAIN (COSTS OFF) $update"),
	qr/Index Cond: \(ROW\(a, b\) > ROW\(8, 90\)\).*Index Only Scan using f_ab.*Index Cond: \(ROW\(a, b\) > ROW\(e\.a, 50\)\)/s,
	'both by rows');
my $one = $node->background_psql('postgres');
my $other = $node->background_psql('postgres');
$one->query_safe('BEGIN; UPDATE e SET v = 1000 WHERE a = 9 AND b = 99');
$other->query_safe('SET enable_seqscan = off');
$other->query_until(qr/begun/, "\\echo begun\n$update;\n");
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'}), 'it waits');
$one->query_safe('COMMIT');
$one->quit;
$other->quit;
is($node->safe_psql('postgres', 'SELECT sum(v), max(v), count(*) FROM e WHERE v > 0'), '1065|1005|11', 'and goes on with the new row');

# ---- auto_explain ----

my $offset = -s $node->logfile;
$node->safe_psql('postgres', q{SET enable_seqscan = off; SET auto_explain.log_min_duration = 0;
	SELECT count(*) FROM f WHERE (a, b) >= (3, 33)});
like(slurp_file($node->logfile, $offset), qr/Index Only Scan.*Index Cond: \(ROW\(a, b\) >= ROW\(3, 33\)\)/s, 'what is logged');

$node->stop;
done_testing();
