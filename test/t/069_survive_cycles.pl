# Crash after crash under a load: a process is killed by one of three signals while
# clients read, write, prepare, vacuum and reindex, with commits asynchronous or not,
# full pages in the WAL or not.  Nobody is told a wrong answer, and after each crash every index
# is right, whether it was kept or given up.  What was kept is checked under the next load.
# SURVIVE_CYCLES says how often.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $cycles = $ENV{SURVIVE_CYCLES} || 5;
my $clients = $cycles > 50 ? 16 : 8;
my $n = 2000;
my $node = art_node(
	'cycles',
	restart_after_crash => 'on',
	wal_level => 'replica',
	wal_writer_delay => '2s',
	max_prepared_transactions => 40,
	log_line_prefix => $ArtTest::LOG_PREFIX,
	'artidx.memory' => "'256MB'",
	'artidx.survive_crash_pause' => 0,
	'artidx.survive_crash_check' => 0,
	'artidx.build_workers' => 2);

art_seed();
load_schema($node, $n);
$node->safe_psql('postgres', q{
	ALTER INDEX w_id SET (tail_buffer = on);
	ALTER INDEX w_kid SET (tail_buffer = on);
	CREATE INDEX w_btree ON w (payload);
});

my $twophase = $node->basedir . '/twophase.sql';
append_to_file($twophase, q{\set k random(0, 99)
SELECT nextval('w_s') AS i \gset
BEGIN;
INSERT INTO w VALUES (:i, :k, gen_random_uuid(), 'prepared ' || :i::bigint, -7, :k % 2);
PREPARE TRANSACTION 'p:i';
COMMIT PREPARED 'p:i';
DELETE FROM w WHERE id = :i;
});

sub start_all
{
	my @loads = (
		load_start($node, n => $n, clients => $clients,
			mode => rand() < 0.7 ? 'prepared' : 'simple'),
		load_start($node, n => $n, clients => 1, scripts => ['upkeep'], mode => 'simple'));
	my %l = (out => '', err => '', node => $node);
	local $ENV{PGAPPNAME} = 'pgbench';

	$l{h} = IPC::Run::start(
		[ 'pgbench', '-n', '-c', 2, '-T', 600, '-f', $twophase,
			'-h', $node->host, '-p', $node->port, 'postgres' ],
		'<', \undef, '>', \$l{out}, '2>', \$l{err});
	return (@loads, \%l);
}

my %seen;
my @lies;
my $start = -s $node->logfile;

for my $cycle (1 .. $cycles)
{
	my $offset = -s $node->logfile;
	my $signal = (qw(KILL SEGV ABRT))[ int(rand(3)) ];
	my @set = map { "$_ = " . (rand() < 0.5 ? 'on' : 'off') }
	  qw(synchronous_commit full_page_writes);

	$node->safe_psql('postgres', "ALTER SYSTEM SET $_") foreach @set;
	$node->reload;
	my @loads = start_all();
	$node->safe_psql('postgres', 'ALTER SYSTEM SET artidx.survive_crash_check = 100');
	$node->reload;
	sleep(0.5 + rand(1.5));
	$node->safe_psql('postgres', 'ALTER SYSTEM SET artidx.survive_crash_check = 0');
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;
	# a worker may end before it is killed: then another process
	do
	{
		die 'nobody dies' if time() > $end;
		my $victim = $node->safe_psql('postgres',
			'SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() '
			  . "AND (backend_type = 'client backend' OR backend_type LIKE '%artidx%') "
			  . 'ORDER BY random() LIMIT 1');
		kill $signal, $victim;
		sleep 0.02 while kill(0, $victim) && time() < $end;
		$node->reload;
		comes_back($node) or BAIL_OUT('the server does not come back');
	} until slurp_file($node->logfile, $offset) =~ /terminating any other active server processes/;
	# the check that was turned off is over
	$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity
		WHERE backend_type = 'artidx builder' AND query LIKE 'checking%'});
	for my $l (@loads)
	{
		load_finish($l, stop => 1);
		push @lies, load_lies($l, qr/prepared transaction with identifier|pgbench: (error|warning)/);
	}
	$node->safe_psql('postgres', "ROLLBACK PREPARED '$_'")
	  foreach split /\n/, $node->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts');

	$node->safe_psql('postgres', 'SELECT count(*) FROM artidx_indexes');
	my $log = slurp_file($node->logfile, $offset);
	if ($log =~ /do not survive the crash: (.*)/)
	{
		$seen{"given up: $1"}++;
	}
	else
	{
		$log = slurp_file($node->logfile, $offset)
		  while $log !~ /after the crash: (\d+) kept, (\d+) given up/ && time() < $end;
		$log =~ /after the crash: (\d+) kept, (\d+) given up/ or die 'the log does not say what is kept';
		$seen{kept} += $1;
		$seen{'given up alone'} += $2;
		$seen{cycles}++ if $1 > 0;
		$seen{removed} += $1 if $log =~ /; (\d+) entries of rows that are lost/;
	}
	load_verify($node, $n, "cycle $cycle, SIG$signal, @set");
}
diag(join(', ', map { "$_ $seen{$_}" } sort keys %seen));
is(join("\n", @lies), '', 'no client saw an error or a wrong answer');
cmp_ok($seen{kept} // 0, '>', 0, 'indexes were kept');
my $log = slurp_file($node->logfile, $start);
unlike($log, qr/TRAP:|PANIC/, 'no PANIC and no failed assertion');
unlike($log, qr/outlived a crash, and differs|could not be checked/, 'nothing that was kept differs from its table');
$node->stop;
done_testing();
