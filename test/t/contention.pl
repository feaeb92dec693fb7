# artidx_contention under a load, over rebuilds and reset; and what waits show
# in pg_stat_activity.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my @engines = art_engines();
my $node = art_node(
	'contention',
	jit => 'off',
	deadlock_timeout => "'60s'",
	'artidx.build_workers' => 1);
$node->safe_psql('postgres', 'CREATE EXTENSION artidx_debug');
my @counters = qw(restarts pessimistic latch_waits parks handovers abandoned
  opportunistic_reads opportunistic_failed expansions);
my $sum = join(' + ', @counters);

sub sql
{
	return $node->safe_psql('postgres', join(' ', @_));
}

# ---- counters: many clients insert at the end of one index ----

sub count_of
{
	return sql("SELECT $sum FROM artidx_contention_details WHERE indexrelname = 'c_k'");
}

my $file = $node->basedir . '/tail.sql';
append_to_file($file,
	"INSERT INTO c SELECT 1000000 * :client_id + nextval('cs') FROM generate_series(1, 200);\n"
	  . "SELECT count(*) FROM (SELECT k FROM c ORDER BY k DESC LIMIT 50) s;\n");

# Until somebody met somebody: so many times.
sub load
{
	my ($e) = @_;
	my $n = 0;

	for my $try (1 .. 8)
	{
		$node->command_ok(
			[
				'pgbench', '-n', '-c', 8, '-j', 1, '-T', 2, '-f', $file,
				'-h', $node->host, '-p', $node->port, 'postgres'
			],
			"$e: a load");
		$n = count_of();
		last if $n > 0;
	}
	cmp_ok($n, '>', 0, "$e: processes met ($n)");
	return $n;
}

for my $e (@engines)
{
	sql('DROP TABLE IF EXISTS c; DROP SEQUENCE IF EXISTS cs; CREATE TABLE c (k bigint);',
		'CREATE SEQUENCE cs CACHE 200;',
		'CREATE INDEX c_k ON c USING art (k) WITH (', art_engine_options($e), ')');
	my $most = load($e);
	is(sql("SELECT count(*) FROM artidx_contention_details WHERE indexrelname = 'c_k' AND "
			  . join(' AND ', map { "$_ >= 0" } @counters) . " AND stats_reset IS NULL"),
		1, "$e: one row");

	# rewritten and reset at once: what the old one counted does not come back
	if ($e eq $engines[0])
	{
		sql("BEGIN; REINDEX INDEX c_k; SELECT artidx_reset_stats('c_k'); COMMIT");
		is(count_of(), 0, "$e: reset by who rewrote it");
		$most = load($e);
		sql("BEGIN; REINDEX INDEX c_k; ROLLBACK");
		cmp_ok(count_of(), '>=', $most, "$e: a REINDEX rolled back");
		$most = count_of();
	}

	# the statistics are the index's, not the structure's
	sql("SELECT artidx_unload('c_k')");
	is(count_of(), $most, "$e: kept when it is absent");
	sql("SELECT artidx_build('c_k')");
	cmp_ok(my $built = count_of(), '>=', $most, "$e: and built again");
	sql('REINDEX INDEX c_k');
	cmp_ok(my $reindexed = count_of(), '>=', $built, "$e: and reindexed");
	sql('ALTER INDEX c_k SET (fillfactor = 80, ',
		art_engine_options($e eq 'art-olc' ? 'art-coarse' : 'art-olc'), ')');
	cmp_ok(count_of(), '>=', $reindexed, "$e: and altered");
	sql("SELECT artidx_build('c_k')");
	sql("SELECT artidx_reset_stats('c_k')");
	is(count_of(), 0, "$e: reset");
	is(sql("SELECT stats_reset > now() - interval '1 minute' FROM artidx_contention_details WHERE indexrelname = 'c_k'"),
		't', "$e: says when");
}

# what the present structure has counted, too
load('art-olc');
sql('SELECT artidx_reset_stats()');
is(count_of(), 0, 'reset with counters in use');

# ---- wait events ----

# from 17 on waits have names of ours; before, all extensions' have one
my $named = $node->safe_psql('postgres',
	"SELECT current_setting('server_version_num')::int >= 170000") eq 't';

sub waits_in
{
	my ($who, $event, $what) = @_;
	my $name = $named ? $event : 'Extension';

	return ok(
		$node->poll_query_until(
			'postgres',
			"SELECT count(*) > 0 FROM pg_stat_activity WHERE $who "
			  . "AND wait_event_type = 'Extension' AND wait_event = '$name'"),
		"$what: $name");
}

waits_in("backend_type = 'artidx launcher'", 'ArtidxLauncher', 'the launcher has nothing to do');

# a background build takes its time, as VACUUM does
sql('CREATE TABLE b (k int, pad text);',
	"INSERT INTO b SELECT i, repeat('x', 500) FROM generate_series(1, 40000) i;",
	'CREATE UNIQUE INDEX b_k ON b USING art (k);', 'CREATE INDEX b_p ON b USING art (pad COLLATE "C");');
cmp_ok(sql("SELECT pg_relation_size('b') / 8192"), '>', 2000, 'a table worth a worker');
$node->append_conf('postgresql.conf',
	"vacuum_cost_delay = 100ms\nvacuum_cost_limit = 1\n");
$node->reload;
sql('ALTER INDEX b_p SET (structure = btree)');
waits_in("backend_type = 'artidx builder'", 'ArtidxBuildDelay', 'a slow build in the background');
$node->append_conf('postgresql.conf', "vacuum_cost_delay = 0\n");
$node->reload;
sql("SELECT artidx_build('b_p')");

# an insert waits for a worker to come, which does not, for its launcher stands
my $pid = sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'artidx launcher'");
sql("SELECT artidx_unload('b_k')");
kill 'STOP', $pid;
my $s = $node->background_psql('postgres');
$s->query_until(qr/start/, "\\echo start\nSET application_name = 'waiter'; INSERT INTO b VALUES (0, 'new');\n");
waits_in("application_name = 'waiter'", 'ArtidxBuild', 'an insert waits for the build');
kill 'CONT', $pid;
$s->quit;
is(sql('SELECT count(*) FROM b WHERE k = 0'), 1, 'and gets it');
check_clean($node, 'b_k');

$node->stop;
done_testing();
