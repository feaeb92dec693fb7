# A crash in the middle of a bulk insert does not cost the indexes.  A process's ring
# is full within milliseconds, long before the WAL writer comes by, so the process wakes
# it.  If the WAL writer does not come at all, the indexes of that table alone are lost.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

plan skip_all => 'needs /proc' unless -r "/proc/$$/status";

my $node = art_node(
	'bulk',
	restart_after_crash => 'on',
	# nobody but the WAL writer writes WAL before a commit, and it sleeps for long
	autovacuum => 'off',
	bgwriter_lru_maxpages => 0,
	checkpoint_timeout => '1h',
	wal_buffers => "'16MB'",
	wal_writer_delay => '10s',
	wal_level => 'minimal',
	max_wal_senders => 0,
	'artidx.build_workers' => 0,
	crash_often());

sub sql { return $node->safe_psql('postgres', $_[0]); }

sql(q{
	CREATE TABLE t (k bigint, r bigint, u uuid, s text COLLATE "C");
	CREATE INDEX t_k ON t USING art (k);
	CREATE INDEX t_r ON t USING art (r) WITH (sync = rowex);
	CREATE INDEX t_u ON t USING art (u) WITH (sync = optiql);
	CREATE INDEX t_s ON t USING art (s) WITH (structure = btree);
	CREATE TABLE o (k int);
	CREATE INDEX o_k ON o USING art (k);
	INSERT INTO o SELECT generate_series(1, 100);
	CREATE PROCEDURE load(lo int, hi int) LANGUAGE sql AS $$
		INSERT INTO t SELECT i, hashint8extended(i, 1), md5(i::text)::uuid, md5(i::text)
			FROM generate_series(lo, hi) i $$;
	CALL load(1, 1000);
});

# A session with a bulk insert that is not committed, and where the WAL ends behind it.
sub bulk
{
	my $s = $node->background_psql('postgres');

	$s->query_safe('BEGIN; CALL load(10001, 30000)');
	return ($s, $s->query_safe('SELECT pg_current_wal_insert_lsn()'));
}

# The WAL is written, but for its last pages.  The session that asks reads no table: else
# it might prune one, and wake the WAL writer for that.
sub written
{
	my ($s, $lsn) = @_;

	return $s->query_safe("SELECT pg_current_wal_lsn() >= '$lsn'::pg_lsn - 65536::numeric") eq 't';
}

# What the server says of the indexes after a crash.
sub verdict
{
	my ($offset) = @_;

	sql('SELECT count(*) FROM artidx_indexes');
	return slurp_file($node->logfile, $offset) =~ /art indexes after the crash: (.*)/ ? $1 : 'nothing';
}

# ---- the WAL writer is woken.  It comes by itself ten seconds after the start. ----
my $early = 0;

for my $try (1 .. 5)
{
	$node->restart;
	sql("SELECT artidx_build('$_')") foreach qw(t_k t_r t_u t_s o_k);

	my ($s, $lsn) = bulk();
	my $end = time() + 5;

	sleep 0.05 while !($early = written($s, $lsn)) && time() < $end;
	if ($early)
	{
		my $offset = -s $node->logfile;
		my $pid = $s->query_safe('SELECT pg_backend_pid()');

		kill_and_recover($node, $pid);
		eval { $s->{run}->finish };
		is(verdict($offset), '5 kept, 0 given up', 'a process dies behind its bulk insert');
		last;
	}
	$s->quit;
}
ok($early, 'a bulk insert has its WAL written before the WAL writer comes by itself');
foreach (qw(t_k t_r t_u t_s)) { check_clean($node, $_); check_exact($node, 't', $_); }

# ---- it does not come ----
my $writer = stop_wal_writer($node);

# What wakes a process is a SIGURG, which waits while it is stopped.
sub woken
{
	my ($pending) = slurp_file("/proc/$writer/status") =~ /^ShdPnd:\s*([0-9a-f]+)/m;

	return hex($pending) >> 22 & 1;
}

# It waits for its latch, and nobody else is at work.  While it runs it is sent no signal.
sub asleep
{
	return slurp_file("/proc/$writer/stat") =~ /\) S /;
}

my $s = $node->background_psql('postgres');
$s->query_safe('BEGIN; CALL load(10001, 10010)');
# a prune wakes it, too
for (1 .. 100)
{
	kill 'CONT', $writer;
	sleep 0.1;
	sleep 0.1 until asleep();
	kill 'STOP', $writer;
	last if !woken();
}
is(woken(), 0, 'some rows do not wake the WAL writer');
$s->query_safe('CALL load(10011, 30000)');
is(woken(), 1, 'many do');
my $offset = -s $node->logfile;

crash_without_flush($node, $writer);
eval { $s->{run}->finish };
is(verdict($offset), '1 kept, 4 given up', 'what would be lost with WAL that is not written');
is(index_state($node, 'o_k'), 'ready', "another table's index is not");
sql("SELECT artidx_build('$_')") foreach qw(t_k t_r t_u t_s);
foreach (qw(t_k t_r t_u t_s)) { check_clean($node, $_); check_exact($node, 't', $_); }

$node->stop;
done_testing();
