# The follower of a standby goes on: when somebody cancels it between two calls, and when a
# segment that it reads is replaced by its copy from the archive.  Estimates leave out unlogged
# tables.  A check that waits for an index can be cancelled and ended, and goes on at a promotion.
# A failover hands over what the primary altered at last.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);
use ArtTest;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1, has_archiving => 1);
art_conf($primary, autovacuum => 'off', wal_receiver_status_interval => 1, wal_retrieve_retry_interval => "'100ms'");
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION artidx;
	CREATE TABLE t (id bigint, k int);
	CREATE UNIQUE INDEX t_id ON t USING art (id) WITH (max_memory = '256kB');
	CREATE INDEX t_k ON t USING art (k);
	INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i;
	CREATE UNLOGGED TABLE u (k int);
	CREATE INDEX u_k ON u USING btree (k);
	CREATE INDEX t_btree ON t USING btree (k);
});
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1, has_restoring => 1);
$standby->start;

sub on_standby { return $standby->safe_psql('postgres', $_[0]); }

# all of the primary's WAL was replayed, and the follower has taken it
sub follows
{
	my ($name) = @_;
	my $lsn = $primary->safe_psql('postgres', q{SELECT pg_logical_emit_message(true, '', 'now')});

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok($standby->poll_query_until('postgres',
			"SELECT coalesce(min(follower_lsn) >= '$lsn', false) FROM artidx_standby WHERE database = 'postgres'"), $name);
}

ok($standby->poll_query_until('postgres', "SELECT count(*) = 2 FROM artidx_indexes WHERE state = 'ready'"),
	'both indexes are kept');
my $follower = on_standby('SELECT follower_pid FROM artidx_standby');

# ---- an unlogged table has no file on a standby ----
is($primary->safe_psql('postgres', 'SELECT count(*) FROM artidx_estimate_database()'), 2,
	'the primary estimates both btree indexes');
is(on_standby('SELECT indexrelid FROM artidx_estimate_database()'), 't_btree', 'the standby leaves the unlogged one out');
foreach my $call (q{'u_k'}, q{'u', '{k}'})
{
	my ($rc, undef, $err) = $standby->psql('postgres', "\\set VERBOSITY verbose\nSELECT artidx_estimate($call)");

	like($err, qr/0A000: cannot access temporary or unlogged relations during recovery/, "artidx_estimate($call) says why");
}

# ---- altered, and a row comes: they come back ----
foreach my $structure ('btree', 'art', 'btree', 'art')
{
	$primary->safe_psql('postgres', "ALTER INDEX t_k SET (structure = $structure); INSERT INTO t VALUES (5000, 5000); DELETE FROM t WHERE id = 5000");
	all_replayed($primary, $standby);
	# the follower closes the structure, and builds it again
	is(on_standby("SELECT count(*) FROM artidx_check('t_k', true)"), 1, "artidx_check, too");
	is(on_standby("SELECT bool_and(artidx_wait('1 min')) FROM generate_series(1, 20), LATERAL (SELECT pg_sleep(0.02)) s"),
		't', "artidx_wait waits for an index that is $structure now");
}

# ---- a cancel when the follower is in no call ----
my $builds = on_standby('SELECT sum(builds) FROM artidx_indexes');
foreach (1 .. 10)
{
	on_standby('SELECT pg_cancel_backend(follower_pid) FROM artidx_standby');
	sleep 0.1;
}
$primary->safe_psql('postgres', 'INSERT INTO t VALUES (1001, 1001)');
follows('after ten cancels the follower goes on');
is(on_standby('SELECT follower_pid FROM artidx_standby'), $follower, 'it is the same process');
is(on_standby('SELECT sum(builds) FROM artidx_indexes'), $builds, 'and nothing was built again');

# ---- the segment that it has open comes from the archive ----
$standby->safe_psql('postgres', "ALTER SYSTEM SET primary_conninfo = ''");
$standby->reload;
ok($standby->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_wal_receiver'), 'streaming has ended');
foreach my $i (1 .. 3)
{
	my $segment = $primary->safe_psql('postgres', "INSERT INTO t VALUES (1001 + $i, 7); SELECT pg_walfile_name(pg_switch_wal())");
	my $lsn = $primary->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');

	ok($primary->poll_query_until('postgres', "SELECT last_archived_wal >= '$segment' FROM pg_stat_archiver"), "segment $i is archived");
	ok($standby->poll_query_until('postgres',
			"SELECT count(*) = 1 FROM t WHERE id = 1001 + $i"), 'and replayed');
	ok($standby->poll_query_until('postgres',
			"SELECT follower_lsn >= pg_last_wal_replay_lsn() FROM artidx_standby WHERE database = 'postgres'"), 'and followed');
}
is(on_standby('SELECT follower_pid FROM artidx_standby'), $follower, 'by the same process');
is(on_standby('SELECT sum(builds) FROM artidx_indexes'), $builds, 'and nothing was built again');
unlike(slurp_file($standby->logfile), qr/could not read WAL/, 'it could read all of it');

# ---- altered at last, no row after it, and a failover ----
$standby->append_conf('postgresql.auto.conf', "primary_conninfo = '" . $primary->connstr . " application_name=standby'\n");
$standby->reload;
$primary->safe_psql('postgres', q{
	CREATE TABLE small (k bigint);
	INSERT INTO small SELECT hashint8extended(i, 1) FROM generate_series(1, 20000) i;
	CREATE INDEX small_k ON small USING art (k) WITH (max_memory = '64kB')});
follows('an index that is full');
ok($standby->poll_query_until('postgres', "SELECT reason = 'max_memory' FROM artidx_indexes WHERE indexrelname = 'small_k'"),
	'the standby says what is full');
fails_with($standby, q{SET statement_timeout = '30s'; SELECT * FROM artidx_check('small_k')}, '55000',
	qr/"small_k" is not in memory on this standby/, 'and a check does not wait for what does not come');
$primary->safe_psql('postgres', 'DROP TABLE small');
$primary->safe_psql('postgres', q{ALTER INDEX t_k SET (structure = btree); ALTER INDEX t_id SET (max_memory = '64MB')});
make_held($primary);
# the standby's build stops at the first row while lock 46 is held
$primary->safe_psql('postgres', in_builder('stops_there', q{
	IF pg_is_in_recovery() AND k = 1 THEN
		WHILE NOT pg_try_advisory_lock_shared(46) LOOP PERFORM pg_sleep(0.01); END LOOP;
		PERFORM pg_advisory_unlock_shared(46);
	END IF;}));
$primary->safe_psql('postgres', q{
	CREATE TABLE c (k int);
	INSERT INTO c SELECT generate_series(1, 100);
	CREATE INDEX c_k ON c USING art (stops_there(k))});
follows('the standby has replayed it');
on_standby("SELECT artidx_wait('1 min')");

# ---- a check that waits for an index ----
# an expression that takes ten times deadlock_timeout would be cancelled
$standby->append_conf('postgresql.conf', "deadlock_timeout = '5min'");
$standby->reload;
my $keeper = $standby->background_psql('postgres');
$keeper->query_safe('SELECT pg_advisory_lock(46)');
$primary->safe_psql('postgres', 'ALTER INDEX c_k SET (structure = btree); INSERT INTO c VALUES (101)');
follows('and that an index was altered');
ok($standby->poll_query_until('postgres', "SELECT state = 'building' FROM artidx_indexes WHERE indexrelname = 'c_k'"),
	'it is being built, and not done');
my $check_c = q{SELECT count(*) FROM artidx_check('c_k', true)};
my $waits = q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'check' AND state = 'active' AND wait_event_type = 'Extension'};

# A session whose check waits; what the session does before.
sub check_waits
{
	my $s = $standby->background_psql('postgres', on_error_stop => 0);

	$s->query_safe($_) foreach q{SET application_name = 'check'}, @_;
	$s->query_until(qr/begun/, "\\echo begun\n$check_c;\n");
	ok($standby->poll_query_until('postgres', $waits), 'a check waits');
	return $s;
}

my $check = check_waits(q{SET statement_timeout = '10s'});
is($check->query('SELECT 1'), 1, 'statement_timeout ends its wait, and the session goes on');
like($check->{stderr}, qr/canceling statement due to statement timeout/, 'with an error');
$check->{stderr} = '';
$check->quit;
$check = check_waits();
on_standby(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'check'});
is($check->query('SELECT 1'), 1, 'a cancel ends it, and the session goes on');
like($check->{stderr}, qr/canceling statement due to user request/, 'with an error');
$check->{stderr} = '';
$check->quit;
$check = check_waits();
on_standby(q{SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'check'});
is(on_standby(q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'check'}), 0, 'its session can be ended');
eval { $check->quit; };
is(index_state($standby, 'c_k'), 'building', 'the build goes on');
$check = check_waits();
$keeper->query_safe('SELECT pg_advisory_unlock(46)');
is($check->query('SELECT 2'), "1\n2", 'a check that is let be has an answer');
is($check->{stderr}, '', 'without an error');
$check->quit;
$keeper->quit;
$standby->append_conf('postgresql.conf', "deadlock_timeout = '1s'");
$standby->reload;
# the follower waits at a row; from 19 on a promotion would wait for a process that is stopped
my $lock = $standby->background_psql('postgres');
$lock->query_safe('SELECT pg_advisory_lock(44)');
$primary->safe_psql('postgres', 'INSERT INTO h VALUES (1)');
$standby->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 44 AND NOT granted})
  or die 'the follower does not come to the row';
$check = check_waits();
$standby->promote;
is(on_standby("SELECT artidx_wait('300ms')"), 'f', 'an index that is not handed over is waited for');
$lock->query_safe('SELECT pg_advisory_unlock(44)');
$lock->quit;
is(on_standby("SELECT artidx_wait('1 min')"), 't', 'until it is');
is($check->query('SELECT 2'), "1\n2", 'a check that waited goes on after the promotion');
is($check->{stderr}, '', 'without an error');
$check->quit;
is($standby->psql('postgres', 'INSERT INTO t SELECT 100000 + i, i FROM generate_series(1, 50000) i'), 0,
	'a unique index has its new max_memory');
ok($standby->poll_query_until('postgres', "SELECT state = 'ready' AND structure = 'btree' FROM artidx_indexes WHERE indexrelname = 't_k'"),
	'and the other its new structure');
check_exact($standby, 't', $_) foreach 't_id', 't_k';
check_exact($standby, 'c', 'c_k');
is(join("\n", server_crashes($standby)), '', 'nothing crashed');
done_testing();
