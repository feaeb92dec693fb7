# After a crash the WAL ends in the middle of a record, or long before what was flushed: its
# file is damaged while the postmaster is stopped and all others are killed.
#
# First the record of a row goes on for some bytes on the next page of WAL, and that page is
# lost.  The server writes something else there, and its next checkpoint begins
# behind where that row's record ended.  But the row is lost, and so is its entry.  Then
# WAL is lost up to which VACUUM relied when it removed entries: nothing is kept.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

plan skip_all => 'needs /proc' unless -r "/proc/$$/stat";

use constant PAGE => 8192;

my $node = art_node(
	'tail',
	wal_level => 'minimal',
	max_wal_senders => 0,
	synchronous_commit => 'off',
	checkpoint_timeout => "'1h'",
	restart_after_crash => 'on',
	autovacuum => 'off',
	enable_seqscan => 'off',
	enable_bitmapscan => 'off',
	'artidx.build_workers' => 0,
	# VACUUM would pass over what it reads just then
	crash_often());

sub sql { return $node->safe_psql('postgres', $_[0]) }

# the state of a process and its parent's id
sub stat_of
{
	my ($pid) = @_;
	my $stat = eval { slurp_file("/proc/$pid/stat") } // '';

	return $stat =~ /\) (\S) (\d+)/ ? ($1, $2) : ('Z', 0);
}

sub await
{
	my ($pid, $states) = @_;
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;

	while ((stat_of($pid))[0] !~ /[$states]/)
	{
		die "process $pid does not come to $states" if time() > $end;
		sleep 0.01;
	}
	return;
}

# All that is written is on disk, and then the server crashes and the WAL from a page on
# is gone.  What the judge says.
sub crash_without
{
	my ($lsn) = @_;
	my $log = -s $node->logfile;
	my ($file, $offset) = split /\|/, sql("SELECT * FROM pg_walfile_name_offset('$lsn')");
	my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;

	sql(q{SET synchronous_commit = on; SELECT pg_logical_emit_message(true, '', '')});
	kill 'STOP', $postmaster;
	await($postmaster, 'T');
	for my $pid (map { m{/proc/(\d+)$} } glob '/proc/[0-9]*')
	{
		next if (stat_of($pid))[1] != $postmaster;
		kill 'KILL', $pid;
		await($pid, 'ZX');
	}
	open my $fh, '+<:raw', $node->data_dir . "/pg_wal/$file" or die "$file: $!";
	seek $fh, $offset - $offset % PAGE, 0;
	print $fh "\0" x (64 * PAGE);
	close $fh;
	kill 'CONT', $postmaster;
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;
	sleep 0.05
	  while slurp_file($node->logfile, $log) !~ /all server processes terminated/ && time() < $end;
	comes_back($node) or BAIL_OUT('the server does not come back');
	sql('SELECT count(*) FROM artidx_indexes');
	my ($said) = slurp_file($node->logfile, $log) =~ /after the crash: (\d+ kept, \d+ given up)/;
	my ($removed) = slurp_file($node->logfile, $log) =~ /; (\d+) entries of rows that are lost/;
	return (($said // '') . ', removed ' . ($removed // ''), slurp_file($node->logfile, $log));
}

sub right
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(sql(q{SELECT count(*) FROM artidx_check('t_k', true)}), '1', "$name: the index is right");
	is(sql('SELECT count(*) FROM t WHERE k > 0'),
		sql('SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_seqscan = on; SELECT count(*) FROM t WHERE k > 0'),
		"$name: it has as many rows as the table");
	return;
}

sql(q{CREATE TABLE t (k int) WITH (autovacuum_enabled = off)});
sql(q{CREATE INDEX t_k ON t USING art (k)});
sql(q{INSERT INTO t SELECT i FROM generate_series(1, 300) i});
sql('VACUUM t');
sql('CHECKPOINT');

# ---- a record that goes on behind the end ----
my $s = $node->background_psql('postgres');
my $key = 1000;

sub pos_of
{
	my ($lsn) = @_;
	my ($high, $low) = split m{/}, $lsn;

	return hex($low);
}
sub wal { return $s->query_safe('SELECT pg_current_wal_insert_lsn()') }
sub put { $key++; $s->query_safe("INSERT INTO t VALUES ($key)"); return }

# how long a message is beside its bytes
put() for 1 .. 3;
my $overhead;
for (1 .. 10)
{
	my $from = pos_of(wal());
	$s->query_safe(q{SELECT pg_logical_emit_message(false, '', '')});
	my $to = pos_of(wal());
	next if int($from / PAGE) != int($to / PAGE);
	$overhead = $to - $from;
	last;
}

# A row's record is 59 bytes, and so 64.
my ($lost, $end);
for (1 .. 1000)
{
	my $at = pos_of(wal()) % PAGE;
	my $left = PAGE - 48 - $at;

	if ($left < 0 || $left > 2 * $overhead + 200 || ($left > 0 && $left < $overhead))
	{
		my $n = $left > 2000 ? 1000 : 80;
		$s->query_safe("SELECT pg_logical_emit_message(false, '', repeat('x', $n))");
		next;
	}
	if ($left > 0)
	{
		my $n = $left - $overhead;
		$n = int($n / 16) * 8 if $n > 150;
		$s->query_safe("SELECT pg_logical_emit_message(false, '', repeat('x', $n))");
		next if pos_of(wal()) % PAGE != PAGE - 48;
	}
	# the end of the row's own record: the transaction waits
	$s->query_safe('BEGIN');
	put();
	$end = wal();
	if (pos_of($end) % PAGE < 72)
	{
		$lost = $end;
		last;
	}
	$s->query_safe('COMMIT');
}
isnt($lost, undef, "a row's record goes on for some bytes on the next page") or BAIL_OUT('no such record');
$s->query_safe('COMMIT');
my ($said, $log) = crash_without($lost);
eval { $s->{run}->finish };
is($said, '1 kept, 0 given up, removed 1', 'the row is lost, and its entry removed');
right('a record that ends behind the end');
sql('INSERT INTO t SELECT i FROM generate_series(2000, 2100) i');
sql('VACUUM t');
right('and later');

# ---- the end before what was relied on ----
sql('CHECKPOINT');
sql(q{SELECT pg_logical_emit_message(false, '', repeat('x', 20000))});
$lost = sql('SELECT pg_current_wal_insert_lsn()');
sql(q{SELECT pg_logical_emit_message(false, '', repeat('x', 20000))});
sql('DELETE FROM t WHERE k % 3 = 0');
sql('VACUUM t');
($said, $log) = crash_without($lost);
is($said, '0 kept, 1 given up, removed 0', 'WAL is lost that VACUUM relied on: nothing is kept');
sql(q{SELECT artidx_build('t_k')});
right('relied');

unlike(slurp_file($node->logfile), qr/PANIC|TRAP:/, 'no PANIC and no failed assertion');
$node->stop;
done_testing();
