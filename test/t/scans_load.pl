# Arrays, merge joins and parallel scans beside writers, VACUUM and an
# administrator who unloads what they read; a parallel scan that loses its
# structure in the middle; participants that are cancelled or ended.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $n = 20_000;
my $seconds = $ENV{SCANS_SECONDS} // 8;
my $node = art_node(
	'scans',
	max_connections => 60,
	max_worker_processes => 24,
	max_parallel_workers => 16,
	jit => 'off');

my $parallel = '-c min_parallel_index_scan_size=0 -c min_parallel_table_scan_size=0 '
  . '-c parallel_setup_cost=0 -c parallel_tuple_cost=0 -c enable_seqscan=off '
  . '-c enable_bitmapscan=off -c jit=off -c max_parallel_workers_per_gather=2';

load_schema($node, $n);
$node->safe_psql('postgres', 'ALTER TABLE w SET (parallel_workers = 2)');

# ---- all at once ----

{
	local $ENV{PGOPTIONS} = $parallel;

	like(
		$node->safe_psql('postgres', 'EXPLAIN (COSTS OFF) SELECT count(*), sum(payload) FROM w '
			  . 'WHERE id BETWEEN 5000 AND 15000'),
		qr/Parallel Index Scan using w_id/, 'the plans are parallel');
}
my @loads = (
	load_start($node, n => $n, clients => 3, seconds => $seconds,
		scripts => [qw(write hot back)]),
	load_start($node, n => $n, clients => 2, seconds => $seconds, mode => 'simple',
		scripts => ['parallel'], options => $parallel),
	load_start($node, n => $n, clients => 2, seconds => $seconds, mode => 'simple',
		scripts => ['array'], options => '-c enable_seqscan=off -c enable_bitmapscan=off -c jit=off'),
	load_start($node, n => $n, clients => 1, seconds => $seconds, mode => 'simple',
		scripts => ['merge'],
		options => '-c enable_seqscan=off -c enable_hashjoin=off -c enable_nestloop=off '
		  . '-c enable_sort=off -c enable_material=off -c jit=off'),
	load_start($node, n => $n, clients => 1, seconds => $seconds, mode => 'simple',
		scripts => ['unload']));
my @names = ('writers', 'parallel scans', 'arrays', 'merge joins', 'unloading');
for my $i (0 .. $#loads)
{
	load_finish($loads[$i]);
	is(join("\n", load_lies($loads[$i])), '', "$names[$i]: no wrong answer, no error");
	my ($done) = $loads[$i]{out} =~ /number of transactions actually processed: (\d+)/;
	cmp_ok($done, '>', 0, "$names[$i]: $done");
}
$node->safe_psql('postgres', "SELECT artidx_build('w_id'), artidx_build('w_k'), artidx_build('w_kid')");
load_verify($node, $n, 'afterwards');

# ---- a parallel scan that loses its structure in the middle ----

# The scans below are those of w_id, whatever the statistics say.  A scan of w_kid would meet all
# rows that nap (k = 7) within one batch or two, and leave nothing to the third participant.
$node->safe_psql('postgres', 'DROP INDEX w_kid');
$node->safe_psql('postgres', q{
	CREATE FUNCTION nap(x bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1000
	AS $$ BEGIN
		IF x % 500 = 7 THEN
			PERFORM pg_sleep(0.05);
			WHILE (pg_stat_file('held', true)).size IS NOT NULL LOOP PERFORM pg_sleep(0.01); END LOOP;
		END IF;
		RETURN x;
	END $$;
});

# Nobody who naps goes on before release().
sub hold { append_to_file($node->data_dir . '/held', 'x'); return; }
sub release { unlink $node->data_dir . '/held'; return; }

# how many processes work for the query that naps
sub nappers
{
	return $node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT count(*), sum(nap%' AND state = 'active'});
}

sub wait_for_workers
{
	my $end = time + $PostgreSQL::Test::Utils::timeout_default;

	while (time < $end)
	{
		return 1 if nappers() >= 3;
		sleep 0.02;
	}
	diag($node->safe_psql('postgres', q{
		SELECT pid, leader_pid, backend_type, state, wait_event, left(query, 60) FROM pg_stat_activity;
		SELECT indexrelname, state, reason FROM artidx_indexes}));
	return 0;
}

for my $columns ('id', 'payload')
{
	my $q = "SELECT count(*), sum(nap($columns)) FROM w WHERE id BETWEEN 1 AND $n";
	my $want = $node->safe_psql('postgres',
		"SELECT count(*), sum($columns) FROM w WHERE id BETWEEN 1 AND $n");

	$node->safe_psql('postgres', 'VACUUM w');
	{
		local $ENV{PGOPTIONS} = $parallel;

		like($node->safe_psql('postgres', "EXPLAIN (COSTS OFF) $q"),
			qr/Parallel Index (Only )?Scan using w_id/, "$columns: a parallel scan of w_id");
	}
	for my $times (0, 1, 2)
	{
		local $ENV{PGOPTIONS} = $parallel;
		my $s = $node->background_psql('postgres');
		my $got;

		# dead to everybody before the query begins, so that VACUUM may remove them
		# meanwhile
		if ($times == 0)
		{
			$node->safe_psql('postgres',
				"INSERT INTO w SELECT 90000000 + i FROM generate_series(1, 5) i");
			$node->safe_psql('postgres', 'DELETE FROM w WHERE id > 90000000');
		}

		# the query is on its way while the structure goes, once or more often
		hold();
		$s->query_until(qr/begun/, "\\echo begun\n$q;\n");
		ok(wait_for_workers(), "$columns: two workers");
		release();
		# VACUUM makes an index-only scan drop its batches
		if ($times == 0)
		{
			my ($out, $err);

			$node->psql('postgres', 'VACUUM (VERBOSE, INDEX_CLEANUP ON) w',
				stdout => \$out, stderr => \$err);
			like($err, qr/index scan needed: .* had [1-9][0-9]* dead item identifiers removed/,
				"$columns: VACUUM had something to remove");
		}
		for my $i (1 .. $times)
		{
			$node->safe_psql('postgres', "SELECT artidx_unload('w_id')");
			sleep 0.05;
			$node->safe_psql('postgres', "SELECT artidx_build('w_id')") if $i < $times;
		}
		$got = $s->query('\echo end');
		like($got, qr/^\Q$want\E$/m, "$columns: every row once, "
			  . ($times == 0 ? 'beside VACUUM' : "without a structure ($times)"));
		$s->quit;
		$node->safe_psql('postgres', "SELECT artidx_build('w_id')");
	}
}

# ---- participants that go ----

my $q = "SELECT count(*), sum(nap(id)) FROM w WHERE id BETWEEN 1 AND $n";
for my $how ('worker', 'leader')
{
	local $ENV{PGOPTIONS} = $parallel;
	my $s = $node->background_psql('postgres', on_error_stop => 0);
	my $start = time;

	hold();
	$s->query_until(qr/begun/, "\\echo begun\n$q;\n");
	ok(wait_for_workers(), "$how: two workers");
	$node->safe_psql('postgres',
		$how eq 'worker'
		? q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE leader_pid IS NOT NULL LIMIT 1}
		: q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT count(*), sum(nap%' AND leader_pid IS NULL});
	$s->query('\echo end');
	release();
	cmp_ok(time - $start, '<', $PostgreSQL::Test::Utils::timeout_default, "$how: nobody hangs");
	for my $try (1 .. 100)
	{
		last if nappers() == 0;
		sleep 0.05;
	}
	is(nappers(), 0, "$how: and nobody is left");
	$s->quit;
}
is($node->safe_psql('postgres', "SELECT count(*) FROM w WHERE id BETWEEN 1 AND $n"),
	$n, 'and the next answer is right');
is(join("\n", server_crashes($node)), '', 'no crash');

$node->stop;
done_testing();
