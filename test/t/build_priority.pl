# Builds in the background and the processors: artidx.build_priority, and a single
# index that all workers build together.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('build_priority',
	'artidx.build_workers' => 3,
	'artidx.save_at_shutdown' => 'off',
	'artidx.build_wait' => 'off',
	max_worker_processes => 16,
	max_parallel_workers_per_gather => 0);

sub set
{
	my ($name, $value) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET $name = '$value'");
	$node->safe_psql('postgres', 'SELECT pg_reload_conf()');
	return $node->poll_query_until('postgres', "SELECT current_setting('$name') = '$value'");
}

sub builders_are
{
	my ($condition) = @_;

	return $node->poll_query_until('postgres',
		"SELECT $condition FROM pg_stat_activity WHERE backend_type = 'artidx builder'");
}

$node->safe_psql('postgres', q{
	CREATE TABLE p (k int);
	INSERT INTO p SELECT generate_series(1, 400000);
	CREATE INDEX p_k ON p USING art (k);
	ANALYZE p;
});

# At one per cent the build of half a second takes most of a minute.
my $rest = q{count(*) FILTER (WHERE state = 'active' AND wait_event_type = 'Extension') > 0};
set('artidx.build_workers', 1);
set('artidx.build_priority', 1);
$node->safe_psql('postgres', 'ALTER INDEX p_k SET (structure = btree)');
ok(builders_are($rest), 'a builder of low priority rests');
is(index_state($node, 'p_k'), 'building', 'in the middle of the build');
set('artidx.build_priority', 100);
all_ready($node, 'a reload takes effect in a build that goes on');

# somebody waits: by the planner, and on the build's lock
set('artidx.build_priority', 1);
$node->safe_psql('postgres', 'ALTER INDEX p_k SET (structure = art)');
ok(builders_are($rest), 'it rests again');
my $waiter = $node->background_psql('postgres');
$waiter->query_safe("SET artidx.build_wait = '10min'; SET application_name = 'waiter'");
$waiter->query_until(qr/begun/, "\\echo begun\nEXPLAIN SELECT * FROM p WHERE k = 5;\n");
$node->poll_query_until('postgres', q{SELECT state = 'idle' OR wait_event_type = 'Extension'
	FROM pg_stat_activity WHERE application_name = 'waiter' AND query LIKE 'EXPLAIN%'});

# While somebody waits for the index nearly every look would meet a rest.
sub no_rest
{
	my ($index, $what) = @_;
	my ($looks, $rests) = (0, 0);

	while (index_state($node, $index) ne 'ready')
	{
		$looks++;
		$rests++ if $node->safe_psql('postgres',
			"SELECT $rest FROM pg_stat_activity WHERE backend_type = 'artidx builder'") eq 't';
	}
	return cmp_ok($rests, '<=', 3 + $looks / 2, "$what ($rests of $looks)");
}
no_rest('p_k', 'a builder does not rest while a query waits for it');
like($waiter->query_safe('SELECT 1'), qr/p_k/, 'and the query uses the index');
$waiter->quit;
check_exact($node, 'p', 'p_k');

# ---- all workers on one index ----
set('artidx.build_priority', 100);
set('artidx.build_workers', 3);
my $keeper = $node->background_psql('postgres');
$keeper->query_safe('SELECT pg_advisory_lock(1)');
$node->safe_psql('postgres', in_builder('slow', q{
	PERFORM pg_advisory_lock_shared(1);
	PERFORM pg_advisory_unlock_shared(1);}));
$node->safe_psql('postgres', q{
	CREATE TABLE w (k int, pad text) WITH (fillfactor = 10);
	ALTER TABLE w ALTER pad SET STORAGE PLAIN;
	INSERT INTO w SELECT i, repeat('x', 700) FROM generate_series(1, 9000) i;
	CREATE INDEX w_k ON w USING art (slow(k));
	ANALYZE w;
});
$node->safe_psql('postgres', 'ALTER INDEX w_k SET (structure = btree)');
ok(builders_are(q{count(*) FILTER (WHERE wait_event = 'advisory') = 3}),
	'all workers build the only index that is asked for');
$keeper->query_safe('SELECT pg_advisory_unlock_all()');
all_ready($node, 'they end it');
check_exact($node, 'w', 'w_k');

# ---- somebody comes to a builder that is at rest ----
set('artidx.build_workers', 1);
set('artidx.build_priority', 1);
$keeper->query_safe('SELECT pg_advisory_lock(1)');
$node->safe_psql('postgres', 'DROP INDEX w_k; CREATE UNIQUE INDEX w_k ON w USING art (slow(k))');
$node->safe_psql('postgres', 'ALTER INDEX w_k SET (structure = btree)');
ok(builders_are(q{count(*) FILTER (WHERE wait_event = 'advisory') = 1}), 'a builder works, for a while');
sleep 3;
$keeper->query_safe('SELECT pg_advisory_unlock_all()');
ok(builders_are($rest), 'and rests after that');
my $writer = $node->background_psql('postgres');
$writer->query_until(qr/begun/, "\\echo begun\nINSERT INTO w VALUES (0);\n");
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'tuple' AND NOT granted}),
	'an insert waits for the build');
no_rest('w_k', 'its rest ends');
$writer->query_safe('SELECT 1');
$writer->quit;
check_exact($node, 'w', 'w_k');

$keeper->quit;
$node->stop;
done_testing();
