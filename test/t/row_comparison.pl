# Comparisons of rows: random ones beside a sequential scan while rows change and VACUUM runs;
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

# ---- beside writers and VACUUM, each pair of answers from one snapshot ----

$node->safe_psql('postgres', q{
	CREATE TABLE rows.done (yes bool);
	CREATE PROCEDURE rows.churn() LANGUAGE plpgsql AS $$
	DECLARE
		n bigint := 0;
	BEGIN
		WHILE NOT EXISTS (SELECT FROM rows.done) LOOP
			EXECUTE format('UPDATE rows.t%s SET a = nullif((random() * 9)::int, 9), b = nullif((random() * 19)::int, 19),
				c = nullif((random() * 5)::int, 5), n = (random() * 8)::int / 2.0 WHERE id BETWEEN %s AND %2$s + 5',
				1 + n % 16, (random() * 3000)::int);
			n := n + 1;
			COMMIT;
		END LOOP;
		RAISE NOTICE 'rounds: %', n;
	END $$});
my ($churn_err, $vacuum_err) = ('', '');
my $churn = IPC::Run::start([ 'psql', '-XAtqc', 'CALL rows.churn()', '-d', $node->connstr('postgres') ], '2>', \$churn_err);
my $vacuum = IPC::Run::start([ 'psql', '-XAtq', (map { ('-c', "VACUUM rows.t$_") } 1 .. 16, 1 .. 16),
	'-d', $node->connstr('postgres') ], '2>', \$vacuum_err);
for (my $left = $queries; $left > 0; $left -= 100)
{
	my $n = $left < 100 ? $left : 100;
	my $err = '';
	my $s = ($seed % 1999 + $left) / 2000;
	my $got = $node->safe_psql('postgres',
		"BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT queries, by_rows > 0.9 * queries, answers > queries, different FROM rows.run($n, $s - floor($s));");
	is($got, "$n|t|t|0", "$n comparisons, SEED=$seed, $left left");
}
$node->safe_psql('postgres', 'INSERT INTO rows.done VALUES (true)');
ok($churn->finish, 'rows changed meanwhile') or diag($churn_err);
cmp_ok(($churn_err =~ /rounds: (\d+)/)[0] // 0, '>', 10, 'many of them');
ok($vacuum->finish, 'VACUUM ran') or diag($vacuum_err);
is($node->safe_psql('postgres', q{SELECT count(*) FROM artidx_indexes WHERE schemaname = 'rows' AND state <> 'ready'}), 0,
	'every index is in memory');

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
