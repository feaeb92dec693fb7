# Statements that have nodes of ours, on a replica whose primary writes: counts, sums, groups,
# matches and joins, random ones, beside a sequential scan of the same snapshot.
# REPLICA_QUERIES (120) of each kind, SEED.
use strict;
use warnings;

use File::Basename qw(dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $seed = art_seed();
my $queries = $ENV{REPLICA_QUERIES} // 120;
my $primary = PostgreSQL::Test::Cluster->new('primary');

$primary->init(allows_streaming => 1);
art_conf($primary, jit => 'off', max_parallel_workers_per_gather => 0, autovacuum => 'off', max_standby_streaming_delay => -1);
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION artidx');
$primary->psql('postgres', '\i ' . dirname(__FILE__) . "/../$_.sql", on_error_die => 1) for qw(rows loose aggregates);
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->start;

# a follower keeps each index
$standby->psql('postgres', 'SELECT count(*) FROM rows.t1 WHERE a = 1');
ok($standby->poll_query_until('postgres', q{SELECT count(*) > 30 AND bool_and(state = 'ready') FROM artidx_indexes WHERE schemaname IN ('rows', 'aggs')}),
	'the indexes are followed');

# ---- what is taken there ----

my @asks = (
	[ 'SELECT DISTINCT a FROM rows.t1', qr/Loose Scan.*Index Scan using t1_i/s, 'groups by a loose scan, which reads their rows' ],
	[ 'SELECT count(*), sum(b) FROM aggs.t1', qr/^Aggregate(?!.*Index Aggregate)/s, 'no aggregate from an index alone' ],
	[ 'SELECT count(*) FROM aggs.t1', qr/^Aggregate(?!.*Index Aggregate)/s, 'nor a count, which needs no column' ]);
like($standby->safe_psql('postgres', "SET enable_seqscan = off; EXPLAIN (COSTS OFF) $_->[0]"), $_->[1], $_->[2]) for @asks;

# ---- beside writes that are replayed ----

$primary->safe_psql('postgres', q{
	CREATE TABLE done (yes bool);
	CREATE PROCEDURE churn() LANGUAGE plpgsql AS $$
	DECLARE
		n bigint := 0;
	BEGIN
		WHILE NOT EXISTS (SELECT FROM done) LOOP
			EXECUTE format('UPDATE rows.t%s SET a = nullif((random() * 9)::int, 9), b = nullif((random() * 19)::int, 19),
				c = nullif((random() * 5)::int, 5) WHERE id BETWEEN %s AND %2$s + 5', 1 + n % 16, (random() * 3000)::int);
			EXECUTE format('UPDATE aggs.t%s SET a = nullif((random() * 9)::int, 9), c = (random() * 300)::int WHERE id BETWEEN %s AND %2$s + 3',
				1 + n % 13, (random() * 4000)::int);
			EXECUTE format('DELETE FROM rows.t%s WHERE id = %s', 1 + n % 16, (random() * 3000)::int);
			n := n + 1;
			COMMIT;
		END LOOP;
		RAISE NOTICE 'rounds: %', n;
	END $$});
my ($churn_err, $vacuum_err) = ('', '');
my $churn = IPC::Run::start([ 'psql', '-XAtqc', 'CALL churn()', '-d', $primary->connstr('postgres') ], '2>', \$churn_err);
my $vacuum = IPC::Run::start([ 'psql', '-XAtq', (map { ('-c', "VACUUM rows.t$_", '-c', "VACUUM aggs.t" . (1 + $_ % 13)) } (1 .. 16) x 2),
	'-d', $primary->connstr('postgres') ], '2>', \$vacuum_err);
for (my $left = $queries; $left > 0; $left -= 20)
{
	my $n = $left < 20 ? $left : 20;
	my $s = (($seed % 1999) * 7919 + $left) % 20000 / 20000;

	for my $kind (qw(loose aggs))
	{
		is($standby->safe_psql('postgres', "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT queries, answers > queries, different FROM $kind.run($n, $s)"),
			"$n|t|0", "$kind: $n statements, SEED=$seed, $left left");
	}
}
$primary->safe_psql('postgres', 'INSERT INTO done VALUES (true)');
ok($churn->finish, 'rows changed meanwhile') or diag($churn_err);
cmp_ok(($churn_err =~ /rounds: (\d+)/)[0] // 0, '>', 10, 'many of them');
ok($vacuum->finish, 'VACUUM ran') or diag($vacuum_err);

# ---- promoted: the same statements, by the same structures ----

$standby->promote;
$standby->poll_query_until('postgres', q{SELECT count(*) = 0 FROM artidx_indexes WHERE schemaname = 'aggs' AND state <> 'ready'})
  or diag($standby->safe_psql('postgres', 'SELECT indexrelname, state, reason FROM artidx_indexes'));
is($standby->safe_psql('postgres', "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT queries, taken > 10, different FROM aggs.run(60, 0.3)"),
	'60|t|0', 'after a promotion aggregates come from the index');

$standby->stop;
$primary->stop;
done_testing();
