# structure = hydra in a server: the updater comes, sleeps, is stopped, ended and killed, and
# nothing depends on it but how far search layers are behind.  Its indexes through crashes,
# restarts with saved structures, a standby, a cap, pg_dump, and a server without a place for
# the updater.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $node = PostgreSQL::Test::Cluster->new('hydra');
$node->init(allows_streaming => 1);
art_conf($node, restart_after_crash => 'on', wal_receiver_status_interval => 1,
	crash_often());
$node->start;

sub sql { return $node->safe_psql('postgres', join(' ', @_)) }

my %with = map { ("h_$_" => "WITH (structure = hydra, sync = $_)") } qw(olc optiql coarse mvrlu);

sql(qq{
	CREATE EXTENSION artidx;
	CREATE EXTENSION artidx_debug;
	CREATE TABLE h (id bigint, k int, t text COLLATE "C");
	CREATE UNIQUE INDEX h_olc ON h USING art (id) $with{h_olc};
	CREATE INDEX h_optiql ON h USING art (k, id) $with{h_optiql};
	CREATE INDEX h_coarse ON h USING art (t) $with{h_coarse};
	CREATE INDEX h_mvrlu ON h USING art (k, t) $with{h_mvrlu};
});

my $rows = 0;

# So many rows more: at random places of one index and of another, at the end of the third.
sub grow
{
	my ($n) = @_;

	sql("INSERT INTO h SELECT i, i % 97, md5(i::text) || repeat('y', i % 40) ",
		"FROM generate_series($rows + 1, $rows + $n) i");
	$rows += $n;
	return;
}

my @questions = (
	'SELECT count(*), sum(id), sum(k) FROM (SELECT id, k FROM h WHERE id > 0 ORDER BY id) s',
	'SELECT count(*), sum(id) FROM h WHERE k BETWEEN 0 AND 100000',
	'SELECT count(*), min(t), max(t) FROM h WHERE t > \'\'',
	'SELECT md5(string_agg(t, \',\')) FROM (SELECT t FROM h WHERE t > \'8\' ORDER BY t DESC LIMIT 1000) s',
	'SELECT md5(string_agg(t, \',\')) FROM (SELECT t FROM h WHERE k > 5 ORDER BY k, t LIMIT 1000) s',
	'SELECT count(*), sum(k), max(t) FROM (SELECT k, t FROM h WHERE k >= 0 ORDER BY k DESC, t DESC) s',
	'SELECT k, t FROM h WHERE id = 1234');

sub both_ways
{
	my ($where, $name) = @_;
	my $ask = join('; ', @questions);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(
		$where->safe_psql('postgres', "SET enable_seqscan = off; $ask"),
		$where->safe_psql('postgres',
			"SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; $ask"),
		"$name: through art as through the table");
}

sub right
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	both_ways($node, $name);
	check_clean($node, $_, "$name: artidx_check of $_") for sort keys %with;
	return;
}

# Nothing is logged that the search layers do not have.
sub caught_up
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(
		$node->poll_query_until('postgres',
			q{SELECT sum(search_lag) = 0 FROM artidx_contention WHERE relname = 'h'}),
		"$name: the search layers catch up");
}

# A new updater, which comes when something is logged; its pid.
sub updater
{
	my ($name, $old) = @_;
	my $pid = '';

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	for (my $end = time() + $PostgreSQL::Test::Utils::timeout_default; time() < $end; sleep 0.1)
	{
		grow(50);
		$pid = sql(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'artidx hydra updater'});
		last if $pid ne '' && $pid ne ($old // '');
	}
	ok($pid =~ /^\d+$/ && $pid ne ($old // ''), "$name: there is one updater") or BAIL_OUT("pid '$pid'");
	return $pid;
}

sub sources
{
	return sql(q{SELECT string_agg(DISTINCT state || ' ' || last_build_source, ',') FROM artidx_indexes
		WHERE relname = 'h'});
}

# ---- the updater ----

is( sql(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'artidx hydra updater'}),
	0, 'no updater while nothing was logged');
grow(5000);
my $pid = updater('the first inserts');
caught_up('the first inserts');
like(sql('EXPLAIN SELECT t FROM h WHERE k > 5 ORDER BY k, t LIMIT 1000'), qr/using h_mvrlu/, 'one question is for versions');
right('the first inserts');
ok( $node->poll_query_until('postgres',
		"SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $pid"),
	'it sleeps');

kill 'STOP', $pid;
grow(5000);
sql('DELETE FROM h WHERE id % 100 BETWEEN 20 AND 80');
sql('VACUUM (INDEX_CLEANUP ON) h');
right('while it is stopped');
kill 'CONT', $pid;
caught_up('stopped, and going on');
right('after that');

sql("SELECT pg_terminate_backend($pid, 180000)");
grow(2000);
right('without it');
my $second = updater('ended', $pid);
caught_up('ended');

# ---- crashes: the updater is killed asleep; a writer is killed at work ----

# asleep, so outside of the core: what is in memory is kept
kill_and_recover($node, $second);
sql('SELECT count(*) FROM artidx_indexes');
all_ready($node, 'after the death of the updater');
is(sources(), 'ready kept', 'the structures were kept');
ok( $node->poll_query_until('postgres',
		q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'artidx hydra updater'}),
	'an updater comes though nothing was logged: the dead one may have left something');
right('kept');
$pid = updater('after the crash', $second);
caught_up('after the crash');

for my $round (1 .. 2)
{
	my $s = $node->background_psql('postgres');
	my $victim = $s->query_safe('SELECT pg_backend_pid()');

	$s->query_until(qr/go/,
		"\\echo go\nINSERT INTO h SELECT i, i % 97, md5(i::text) FROM generate_series(10000000, 20000000) i;\n");
	sleep 0.2 + rand(0.5);
	kill_and_recover($node, $victim);
	eval { $s->{run}->finish };
	all_ready($node, "round $round: a writer was killed");
	right("round $round");
}
grow(1000);
caught_up('after the crashes');

# ---- restarts ----

$node->restart;
all_ready($node, 'after a clean restart');
is(sources(), 'ready load', 'the structures were saved and loaded');
right('loaded');
grow(1000);
$node->stop('immediate');
$node->start;
all_ready($node, 'after an immediate stop');
right('built again');
grow(1000);
right('and written to');

# ---- pg_dump ----

my $dir = PostgreSQL::Test::Utils::tempdir();
$node->command_ok([ 'pg_dump', '-f', "$dir/h.sql", $node->connstr('postgres') ], 'dumped');
like(slurp_file("$dir/h.sql"), qr/h_optiql ON public\.h USING art \(k, id\) WITH \(structure=hydra, sync=optiql\)/,
	'with the options');
sql('CREATE DATABASE copy');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$dir/h.sql", $node->connstr('copy') ], 'and restored');
is( $node->safe_psql('copy', q{SELECT string_agg(structure || '-' || sync, ' ' ORDER BY sync) FROM artidx_indexes}),
	'hydra-coarse hydra-mvrlu hydra-olc hydra-optiql', 'as it was');

# ---- a cap ----

sql(q{
	CREATE TABLE c (id bigint);
	CREATE UNIQUE INDEX c_id ON c USING art (id) WITH (structure = hydra, max_memory = '1MB');
	INSERT INTO c SELECT i * 7919 % 1000003 FROM generate_series(1, 1000) i;});
fails_with($node, 'INSERT INTO c SELECT 2000000 + i FROM generate_series(1, 400000) i',
	'53200', qr/max_memory/, 'a cap');
sql('VACUUM (INDEX_CLEANUP ON) c');
check_clean($node, 'c_id', 'the capped index is sound');
sql(q{ALTER INDEX c_id SET (max_memory = '64MB')});
sql('INSERT INTO c SELECT 3000000 + i FROM generate_series(1, 100000) i');
is(sql('SET enable_seqscan = off; SELECT count(*) FROM c WHERE id > 3000000'), 100000, 'and takes rows again');
check_clean($node, 'c_id', 'with a higher cap');
sql('DROP TABLE c');

# ---- a standby ----

sql('CHECKPOINT');
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('hydra_standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
grow(3000);
sql('DELETE FROM h WHERE id % 7 = 0');
sql('VACUUM (INDEX_CLEANUP ON) h');
all_replayed($node, $standby);
ok( $standby->poll_query_until('postgres',
		q{SELECT count(*) = 4 FROM artidx_indexes WHERE relname = 'h' AND state = 'ready' AND structure = 'hydra'}),
	'a standby has the indexes');
grow(3000);
all_replayed($node, $standby);
both_ways($standby, 'the standby');
check_followed($standby, 'the standby', sort keys %with);
ok( $standby->poll_query_until('postgres',
		q{SELECT sum(search_lag) = 0 FROM artidx_contention WHERE relname = 'h'}),
	'its search layers catch up');
$standby->promote;
$standby->safe_psql('postgres', 'INSERT INTO h SELECT 30000000 + i, i % 97, md5(i::text) FROM generate_series(1, 2000) i');
all_ready($standby, 'promoted');
both_ways($standby, 'promoted');
$standby->stop;

# ---- no place for the updater: writers take everything to the search layers ----

$node->append_conf('postgresql.conf', "max_worker_processes = 1\n");
$node->restart;
sql('SELECT artidx_build(indexrelid) FROM artidx_indexes');
grow(5000);
is( sql(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'artidx hydra updater'}),
	0, 'no place for an updater');
is( sql(q{SELECT bool_and(search_applied > 0 AND search_lag < 50) FROM artidx_contention_details WHERE indexrelname = 'h_coarse'}),
	't', 'writers do without');
right('without a place for it');

is(join("\n", server_crashes($node)), '', 'nothing else died');
$node->stop;
done_testing();
