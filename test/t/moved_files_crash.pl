# A table's indexes get other files, and the server stops, or crashes: after the commit, before it,
# and with a commit that is not flushed.  No structure is taken for that of a file that it does not
# belong to.  A standby sees the same in the WAL.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtMoves;
use ArtTest;

plan skip_all => 'needs /proc' unless -r "/proc/$$/status";

my $node = moves_node(
	'moves', 3000,
	restart_after_crash => 'on',
	# LSNs that nobody flushes
	wal_writer_flush_after => "'1GB'",
	wal_buffers => "'16MB'",
	checkpoint_timeout => "'1h'",
	max_wal_size => "'10GB'",
	crash_often());
my @tablespace = map { "ALTER INDEX m_$_ SET TABLESPACE ts" } qw(id v t);
my $s = $node->background_psql('postgres');

# "lost" was not flushed, "open" not committed.
foreach my $how (qw(restart kept lost open))
{
	foreach my $kind (qw(exchange tablespace))
	{
		copy();
		my @commands = ('BEGIN', $kind eq 'exchange' ? (lock_both(), swap()) : @tablespace, $how eq 'open' ? () : 'COMMIT');
		my $writer;

		sql(q{SET synchronous_commit = on; SELECT pg_logical_emit_message(true, '', '')});
		if ($how eq 'lost')
		{
			$writer = stop_wal_writer($node);
			$s->query_safe('SET synchronous_commit = off');
		}
		$s->query_safe($_) foreach @commands;
		if ($how eq 'restart')
		{
			$s->quit;
			$node->restart;
		}
		else
		{
			$writer //= stop_wal_writer($node);
			crash_without_flush($node, $writer);
			eval { $s->{run}->finish };
		}
		$s = $node->background_psql('postgres');
		right("$kind, $how");
		# the same once more, with what is left
		if ($how =~ /lost|open/ && $kind eq 'exchange')
		{
			sql('INSERT INTO c VALUES (888888, 8, 8), (777777, 7, 7)', 'DELETE FROM c WHERE id = 5');
			moves("exchange after a crash, $how", 'kept', $s, 'SELECT artidx_wait(\'1min\')', 'BEGIN', lock_both(), swap(), 'COMMIT');
			right("exchange after a crash, $how");
		}
		sql(map { "ALTER INDEX m_$_ SET TABLESPACE pg_default" } qw(id v t));
		right("$kind, $how, and back");
	}
}
$s->quit;

# ---- a standby ----

fresh();
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
$s = $node->background_psql('postgres');
foreach my $kind (qw(exchange tablespace prepared))
{
	copy();
	$node->wait_for_catchup($standby);
	$standby->poll_query_until('postgres', "SELECT count(*) = 6 FROM artidx_indexes WHERE state = 'ready'") or die;
	$s->query_safe($_) foreach 'BEGIN', $kind eq 'tablespace' ? @tablespace : (lock_both(), swap()),
	  $kind eq 'prepared' ? (q{PREPARE TRANSACTION 'p'}, q{COMMIT PREPARED 'p'}) : 'COMMIT';
	sql('INSERT INTO m VALUES (888888, 8, 8)', 'DELETE FROM m WHERE id = 5', 'VACUUM m', 'INSERT INTO m VALUES (777777, 7, 7)');
	$node->wait_for_catchup($standby);
	right("a standby, $kind", $standby);
	ok($standby->poll_query_until('postgres', "SELECT count(*) = 3 FROM artidx_indexes WHERE relname = 'm' AND state = 'ready'"),
		"a standby, $kind: they are kept again");
	check_followed($standby, "a standby, $kind", qw(m_id m_v m_t));
	right("a standby, $kind, ready", $standby);
}
$s->quit;
$standby->stop;

done_testing();
