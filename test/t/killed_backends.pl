# Phase 1: kill -9 of a random backend every two seconds, background workers
# included, under 32 clients that read, insert, update and delete, and one that
# VACUUMs and REINDEXes.  PostgreSQL restarts after each; no answer is wrong,
# and afterwards every index is clean.
# Phase 2: pg_cancel_backend and pg_terminate_backend at random, many a second;
# this time nothing may crash at all.
# KILL_SECONDS is the length of each phase.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $seconds = $ENV{KILL_SECONDS} // 8;
my $n = 10000;
my $node = art_node(
	'kill',
	autovacuum => 'on',
	autovacuum_naptime => '1s',
	restart_after_crash => 'on',
	log_line_prefix => $ArtTest::LOG_PREFIX,
	'artidx.memory' => "'256MB'",
	'artidx.build_workers' => 2);
$node->safe_psql('postgres', 'CREATE EXTENSION artidx_debug');

art_seed();
load_schema($node, $n);
my $offset = -s $node->logfile;

my (@loads, @lies);
my $allowed;
my $transactions = 0;

sub keep_running
{
	my @kept;

	for my $l (@loads)
	{
		if (load_running($l))
		{
			push @kept, $l;
			next;
		}
		load_finish($l);
		push @lies, load_lies($l, $allowed);
		$transactions += $1
		  if $l->{out} =~ /transactions actually processed: (\d+)/;
	}
	@loads = @kept;
	my $upkeep = grep { $_->{upkeep} } @loads;
	while (@loads - $upkeep < 4)
	{
		push @loads,
		  load_start($node, n => $n, clients => 8,
			mode => rand() < 0.7 ? 'prepared' : 'simple');
	}
	if (!$upkeep)
	{
		my $l = load_start($node, n => $n, clients => 1,
			scripts => ['upkeep'], mode => 'simple');
		$l->{upkeep} = 1;
		push @loads, $l;
	}
	return;
}

sub end_all
{
	for my $l (@loads)
	{
		load_finish($l, stop => 1);
		push @lies, load_lies($l, $allowed);
	}
	@loads = ();
	return;
}

# ---- phase 1 ----
my $kills = 0;
my %killed;
my $end = time() + $seconds;

# (three at least, however long the server takes to come back)
while (time() < $end || $kills < $seconds / 4)
{
	my $next = time() + 2;

	while (time() < $next)
	{
		keep_running();
		sleep 0.1;
	}
	# every third victim is one of artidx's own processes, if there is one
	my $order = $kills % 3 == 2
	  ? "(backend_type LIKE '%artidx%') DESC, random()" : 'random()';
	my ($rc, $out, $err) = $node->psql('postgres',
		'SELECT pid, backend_type FROM pg_stat_activity '
		  . 'WHERE pid <> pg_backend_pid() AND backend_type NOT IN '
		  . "('checkpointer', 'background writer', 'walwriter') "
		  . "ORDER BY $order LIMIT 1");
	next if $rc != 0 || $out !~ /^(\d+)\|(.+)$/;
	my ($pid, $type) = ($1, $2);
	# one that ended meanwhile does not count
	next if kill('KILL', $pid) == 0;
	$killed{$type}++;
	$kills++;
	comes_back($node, $pid) or BAIL_OUT('the server does not come back');
}
end_all();
diag("phase 1: $kills kills: ",
	join(', ', map { "$_ $killed{$_}" } sort keys %killed));
cmp_ok($kills, '>=', int($seconds / 4), "killed $kills processes");
comes_back($node);
is(join("\n", @lies), '', 'phase 1: no client saw an error or a wrong answer');
is( join("\n",
		grep { !/^57014 ERROR: canceling autovacuum/ }
		  server_errors($node, $offset, qr/^(57P0[123]|08\w{3})$/)),
	'', 'phase 1: nor has the log one');
is(join("\n", server_crashes($node, $offset)),
	'', 'phase 1: nothing died but of our hand');

$node->append_conf('postgresql.conf', 'autovacuum = off');
$node->reload;
all_ready($node, 'phase 1: all ready again, and nobody asked');
load_verify($node, $n, 'phase 1');

# ---- phase 2 ----
$node->append_conf('postgresql.conf', 'autovacuum = on');
$node->restart;
$offset = -s $node->logfile;
@lies = ();
# pgbench goes on when a statement was cancelled while it was prepared
$allowed = qr/canceling statement due to user request|terminating (connection|background worker) due to administrator command|prepared statement "P_\w+" does not exist/;
my ($cancels, $terminations) = (0, 0);
my $postmaster = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');

# (often enough, however slow the server is)
$end = time() + $seconds;
while (time() < $end || $cancels <= $seconds || $terminations <= $seconds / 2)
{
	keep_running();
	my $cancel = rand() < 0.7;
	my $function = $cancel ? 'pg_cancel_backend' : 'pg_terminate_backend';
	my $done = $node->safe_psql('postgres', qq{
		SELECT count(*) FILTER (WHERE $function(pid))
		FROM (SELECT pid FROM pg_stat_activity
			  WHERE pid <> pg_backend_pid()
				AND (backend_type IN ('client backend', 'autovacuum worker')
					 OR backend_type LIKE '%artidx%')
			  ORDER BY random() LIMIT 2) s});
	if ($cancel) { $cancels += $done; }
	else { $terminations += $done; }
	sleep rand(0.1);
}
end_all();
diag("phase 2: $cancels cancels, $terminations terminations");
cmp_ok($cancels, '>', $seconds, "cancelled $cancels times");
cmp_ok($terminations, '>', $seconds / 2, "terminated $terminations times");
is(join("\n", @lies), '', 'phase 2: no other error, no wrong answer');
is(join("\n", server_errors($node, $offset, qr/^(57014|57P01|26000|08\w{3})$/)),
	'', 'phase 2: nor has the log one');
unlike(slurp_file($node->logfile, $offset),
	qr/PANIC|TRAP:|terminated by signal|all server processes terminated/,
	'phase 2: nothing crashed');
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'),
	$postmaster, 'phase 2: one server all the way');
cmp_ok($transactions, '>', 1000, "the clients did something ($transactions)");

$node->append_conf('postgresql.conf', 'autovacuum = off');
$node->reload;
all_ready($node, 'phase 2: all ready, and nobody asked');
is( $node->safe_psql('postgres',
		"SELECT count(*) FROM artidx_indexes WHERE state = 'building'"),
	'0', 'phase 2: nothing stuck in building');
is( $node->safe_psql('postgres', q{
		SELECT count(*) FROM artidx_epochs e
		WHERE pid <> 0 AND pid <> pg_backend_pid()
		  AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = e.pid)}),
	'0', 'phase 2: no slot belongs to a process that is gone');
is( $node->safe_psql('postgres',
		'SELECT count(*) FROM artidx_epochs WHERE pinned_epoch IS NOT NULL'),
	'0', 'phase 2: nobody is inside an epoch');
load_verify($node, $n, 'phase 2');

# what crashed REINDEXes and dead processes left is given back
$node->safe_psql('postgres', 'DROP TABLE w');
memory_returns($node, 0, 1024 * 1024, 'no memory is lost');

$node->stop;
done_testing();
