# Loose scans: random statements beside a sequential scan while rows change and VACUUM runs;
# memory that is full, and a structure that goes away in the middle; cancel.
# LOOSE_QUERIES (300), SEED.
use strict;
use warnings;

use File::Basename qw(dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $seed = art_seed();
my $queries = $ENV{LOOSE_QUERIES} // 300;
my $node = art_node('loose', jit => 'off', max_parallel_workers_per_gather => 0);

$node->psql('postgres', '\i ' . dirname(__FILE__) . "/../$_.sql", on_error_die => 1) for 'rows', 'loose';

# ---- beside writers and VACUUM, each pair of answers from one snapshot ----

$node->safe_psql('postgres', q{
	CREATE TABLE rows.done (yes bool);
	CREATE PROCEDURE rows.churn() LANGUAGE plpgsql AS $$
	DECLARE
		n bigint := 0;
		t text;
	BEGIN
		WHILE NOT EXISTS (SELECT FROM rows.done) LOOP
			t := 'rows.t' || 1 + n % 16;
			EXECUTE format('UPDATE %s SET a = nullif((random() * 9)::int, 9), b = nullif((random() * 19)::int, 19),
				c = nullif((random() * 5)::int, 5), n = (random() * 8)::int / 2.0 WHERE id BETWEEN %s AND %2$s + 5', t, (random() * 3000)::int);
			-- whole groups go, and come
			IF n % 20 = 0 THEN
				EXECUTE format('DELETE FROM %s WHERE a = 3 OR c = 2', t);
				EXECUTE format('INSERT INTO %s SELECT * FROM rows.made WHERE a = 3 OR c = 2', t);
			END IF;
			n := n + 1;
			COMMIT;
		END LOOP;
		RAISE NOTICE 'rounds: %', n;
	END $$});
my ($churn_err, $vacuum_err) = ('', '');
my $churn = IPC::Run::start([ 'psql', '-XAtqc', 'CALL rows.churn()', '-d', $node->connstr('postgres') ], '2>', \$churn_err);
my $vacuum = IPC::Run::start([ 'psql', '-XAtq', (map { ('-c', "VACUUM (INDEX_CLEANUP ON) rows.t$_") } (1 .. 16) x 3),
	'-d', $node->connstr('postgres') ], '2>', \$vacuum_err);
for (my $left = $queries; $left > 0; $left -= 100)
{
	my $n = $left < 100 ? $left : 100;
	my $s = ($seed % 1999 + $left) / 40000;
	my $got = $node->safe_psql('postgres',
		"BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT queries, by_loose > 0.5 * queries, answers > queries, different FROM loose.run($n, $s - floor($s));");
	is($got, "$n|t|t|0", "$n statements, SEED=$seed, $left left");
}
$node->safe_psql('postgres', 'INSERT INTO rows.done VALUES (true)');
ok($churn->finish, 'rows changed meanwhile') or diag($churn_err);
cmp_ok(($churn_err =~ /rounds: (\d+)/)[0] // 0, '>', 10, 'many of them');
ok($vacuum->finish, 'VACUUM ran') or diag($vacuum_err);

# ---- no structure, and no room to sort for one ----

$node->safe_psql('postgres', q{
	CREATE TABLE big (a int, b int, v text);
	INSERT INTO big SELECT i % 50, i, repeat('x', 100) FROM generate_series(1, 60000) i;
	CREATE INDEX big_i ON big USING art (a, b);
	VACUUM ANALYZE big});
my $last = 'SELECT DISTINCT ON (a) a, b FROM big ORDER BY a, b DESC';
my $both = 'SELECT a, min(b), max(b) FROM big GROUP BY a ORDER BY a';
my $expected = $node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_indexonlyscan = off; $last; $both");
for my $settings ('', q{SET work_mem = '64kB'}, q{SET work_mem = '64kB'; SET temp_file_limit = '10MB'})
{
	my $got = $node->safe_psql('postgres', "$settings; BEGIN; " . join(' ', map {
		qq{DECLARE c CURSOR FOR $_; FETCH 3 FROM c;
		SELECT artidx_unload('big_i') \\g /dev/null
		FETCH ALL FROM c; CLOSE c; SELECT artidx_build('big_i') \\g /dev/null\n}} $last, $both));
	is($got, $expected, "no structure: $settings");
}
like($node->safe_psql('postgres', "EXPLAIN (COSTS OFF) $_"), qr/Loose Scan/, 'by a loose scan') for $last, $both;

# ---- cancel, where no row passes the condition ----

my $err;
my $ret = $node->psql('postgres', q{SET statement_timeout = '300ms'; SELECT DISTINCT a FROM big WHERE pg_sleep_for('10 ms') IS NULL}, stderr => \$err);
like($err, qr/canceling statement due to statement timeout/, 'cancelled');

$node->stop;
done_testing();
