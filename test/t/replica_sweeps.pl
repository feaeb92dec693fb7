# On a standby: what VACUUM frees is swept, once, and before a row that has come to such a place
# is read.  Each round is what one VACUUM or more leave, and then each row has its entry, and no
# other has one.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);
use ArtTest;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
art_conf($primary, autovacuum => 'off', max_standby_streaming_delay => -1, wal_receiver_status_interval => 1);
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION artidx;
	CREATE TABLE t (k int);
	INSERT INTO t SELECT generate_series(1, 2000);
	CREATE INDEX t_k ON t USING art (k)});
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->start;
ok($standby->poll_query_until('postgres', "SELECT count(*) = 1 FROM artidx_indexes WHERE state = 'ready'"), 'the index is kept');

my $free = 'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) t';
my $only_dead = 'VACUUM (INDEX_CLEANUP OFF, TRUNCATE OFF) t';

# The follower takes in one step all that the statements have written, which may be functions.
sub at_once
{
	my $pid = $standby->safe_psql('postgres', q{SELECT follower_pid FROM artidx_standby WHERE database = 'postgres'});

	# where it sleeps: a replay that waits for its transaction or its page would wait for ever
	all_replayed($primary, $standby);
	for (1 .. 1000)
	{
		kill 'STOP', $pid;
		last if $standby->safe_psql('postgres', "SELECT wait_event_type FROM pg_stat_activity WHERE pid = $pid") eq 'Extension';
		kill 'CONT', $pid;
		sleep 0.02;
	}
	foreach (@_) { ref ? $_->() : $primary->safe_psql('postgres', $_) }
	all_replayed($primary, $standby);
	kill 'CONT', $pid;
	return;
}

sub agrees
{
	my ($name, $entries) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	all_replayed($primary, $standby);
	check_followed($standby, $name, 't_k');
	is($standby->safe_psql('postgres', q{SELECT entries FROM artidx_indexes WHERE indexrelname = 't_k'}), $entries, "$name: entries");
	return;
}

# A scan that reads no row, and is in the middle when the visibility map comes before the sweep.
# (Its first row is in the last page: replay waits for no page that it has read.)
$primary->safe_psql('postgres', $_) foreach 'VACUUM t', 'INSERT INTO t VALUES (0)', 'DELETE FROM t WHERE k BETWEEN 1 AND 10';
agrees('before an index-only scan', 2001);
my $reader = $standby->background_psql('postgres');
like($reader->query_safe('SET enable_seqscan = off; EXPLAIN SELECT FROM t'), qr/Index Only Scan/, 'an index-only scan');
$reader->query_safe(q{BEGIN; DECLARE c CURSOR FOR SELECT 'row' FROM t; FETCH 1 FROM c});
at_once($free, sub {
	all_replayed($primary, $standby);
	is(scalar(split /\n/, $reader->query_safe('FETCH ALL FROM c')), 1990, 'no row that VACUUM freed');
});
$reader->query_safe('COMMIT');
$reader->quit;

at_once('DELETE FROM t WHERE k <= 500', $free);
agrees('freed, and no row comes', 1500);

# what is dead and not freed is swept with what a row needs at once, and remembered until it is freed
$primary->safe_psql('postgres', 'DELETE FROM t WHERE k BETWEEN 501 AND 600');
at_once($free, 'DELETE FROM t WHERE k BETWEEN 1001 AND 1500', $only_dead, 'INSERT INTO t SELECT generate_series(3001, 3100)');
agrees('dead ones are swept with those that a row needs', 1000);
$primary->safe_psql('postgres', $_) foreach $free, 'INSERT INTO t SELECT generate_series(4001, 5200)';
agrees('rows in all places that were swept', 2200);
$primary->safe_psql('postgres', $_) foreach 'DELETE FROM t WHERE k > 4000', $free;
agrees('which are swept again', 1000);

# a row comes to a place before what was there has been swept
at_once('DELETE FROM t WHERE k > 3000', $free, 'INSERT INTO t SELECT generate_series(5001, 6000)');
agrees('rows in places that are still to be swept', 1900);
is($standby->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*), min(k), max(k) FROM t WHERE k > 5000'),
	'1000|5001|6000', 'and each is found');

# A promotion: the follower waits at a row, and has not swept the places that an insert takes.
make_held($primary);
$primary->safe_psql('postgres', 'DELETE FROM t WHERE k > 5000');
agrees('before the promotion', 1900);
check_followed($standby, 'another index', 'h_k');
my $lock = $standby->background_psql('postgres');
$lock->query_safe('SELECT pg_advisory_lock(44)');
$primary->safe_psql('postgres', 'INSERT INTO h VALUES (1)');
$standby->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 44 AND NOT granted})
  or die 'the follower does not come to the row';
$primary->safe_psql('postgres', $free);
all_replayed($primary, $standby);
$standby->promote;
my $writer = $standby->background_psql('postgres');
$writer->query_until(qr/begun/, "\\echo begun\nINSERT INTO t SELECT generate_series(7001, 8000);\n");
my $insert = q{FROM pg_stat_activity WHERE query LIKE 'INSERT INTO t %'};
$standby->poll_query_until('postgres', "SELECT count(*) = 1 $insert AND (state = 'idle' OR wait_event_type = 'Extension')");
is($standby->safe_psql('postgres', "SELECT state $insert"), 'active', 'an insert waits for the sweep');
$lock->query_safe('SELECT pg_advisory_unlock(44)');
$lock->quit;
$writer->quit;
check_exact($standby, 't', 't_k');

$standby->stop;
$primary->stop;
done_testing();
