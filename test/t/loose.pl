# Loose scans: random statements beside a sequential scan while rows change, and VACUUM and DDL run;
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

# ---- beside writers, VACUUM and DDL, each pair of answers from one snapshot ----

beside_churn($node, schema => 'rows', tables => 16, queries => $queries, at_once => 100, seed => $seed, part => 0.5,
	run => 'loose.run(%d, %f)', churn => q{
		EXECUTE format('UPDATE %s SET a = nullif((random() * 9)::int, 9), b = nullif((random() * 19)::int, 19),
			c = nullif((random() * 5)::int, 5), n = (random() * 8)::int / 2.0 WHERE id BETWEEN %s AND %2$s + 5', t, (random() * 3000)::int);
		-- whole groups go, and come
		IF n % 20 = 0 THEN
			EXECUTE format('DELETE FROM %s WHERE a = 3 OR c = 2', t);
			EXECUTE format('INSERT INTO %s SELECT * FROM rows.made WHERE a = 3 OR c = 2', t);
		END IF;});

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
