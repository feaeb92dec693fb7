# artidx.build_wait: who waits for an index that is being built, how long, what ends
# the wait, and who does without.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $node = art_node('build_wait',
	'artidx.build_workers' => 1,
	'artidx.save_at_shutdown' => 'off',
	deadlock_timeout => "'1s'",
	jit => 'off',
	max_parallel_workers_per_gather => 0);

# A build stops, at work and not waiting for a lock, while advisory lock 1 is held.
# Advisory lock 2 it waits for.  To read the table without the index is dear.
my $stop = q{
	WHILE NOT pg_try_advisory_lock_shared(1) LOOP PERFORM pg_sleep(0.01); END LOOP;
	PERFORM pg_advisory_unlock_shared(1);
	PERFORM pg_advisory_lock_shared(2);
	PERFORM pg_advisory_unlock_shared(2);};
$node->safe_psql('postgres', in_builder('slow', $stop) =~ s/(?= THEN)/ OR current_setting('my.builder', true) = 'on'/r);
$node->safe_psql('postgres', q{
	CREATE TABLE b (k int, other int);
	INSERT INTO b SELECT i, i FROM generate_series(1, 1000) i;
	CREATE INDEX b_k ON b USING art (slow(k));
	ALTER FUNCTION slow(int) COST 1000000;
	ANALYZE b;
});
my $query = 'SELECT other FROM b WHERE slow(k) = 17';
my $explain = "EXPLAIN (COSTS OFF) $query";
my $index = qr/Scan.*b_k/;
my $table = qr/Seq Scan on b/;

my $keeper = $node->background_psql('postgres');
my @structures = ('btree', 'art');

# The index is being built, and will not be before release().
sub hold
{
	$keeper->query_safe('SELECT pg_advisory_lock(1)');
	$node->safe_psql('postgres', "ALTER INDEX b_k SET (structure = $structures[0])");
	push @structures, shift @structures;
	return is_building();
}

sub is_building
{
	return ok($node->poll_query_until('postgres',
		"SELECT state = 'building' FROM artidx_indexes WHERE indexrelname = 'b_k'"), 'it is being built');
}

sub release
{
	$keeper->query_safe('SELECT pg_advisory_unlock_all()');
	return;
}

sub ready
{
	release();
	all_ready($node, $_[0]);
	return;
}

# A session that has begun a statement, and waits in its planning.
sub waiter
{
	my ($sql, %settings) = @_;
	my $s = $node->background_psql('postgres', on_error_stop => 0);

	$s->query_safe("SET $_ = '$settings{$_}'") foreach sort keys %settings;
	$s->query_safe(q{SET application_name = 'waiter'});
	$s->query_until(qr/begun/, "\\echo begun\n$sql;\n");
	ok($node->poll_query_until('postgres', q{
		SELECT count(*) = 1 FROM pg_stat_activity
		WHERE application_name = 'waiter' AND state = 'active' AND wait_event_type = 'Extension'}),
		"it waits: $sql");
	return $s;
}

sub seconds_of
{
	my ($sql) = @_;
	my $begin = time;
	my ($rc, $out, $err) = $node->psql('postgres', $sql);

	return (time - $begin, $out, $err);
}

# ---- values ----
is($node->safe_psql('postgres', 'SHOW artidx.build_wait'), 'auto', 'the default');
fails_with($node, "SET artidx.build_wait = '$_'", '22023', qr/Valid values are "auto", "off", and a time/,
	"artidx.build_wait = $_")
  foreach 'on', '-1', '3 parsecs';

# ---- the wait ----
hold();
my $s = waiter($explain);
release();
like($s->query('SELECT 1'), $index, 'it waits for the build, and uses the index');
$s->quit;
all_ready($node, 'ready');

hold();
my ($seconds, $plan) = seconds_of("SET artidx.build_wait = off; $explain");
like($plan, $table, 'off: it does without');
($seconds, $plan) = seconds_of("SET artidx.build_wait = '700ms'; $explain");
like($plan, $table, 'a time: then it does without');
cmp_ok($seconds, '>=', 0.7, 'after that time');
($seconds, $plan) = seconds_of("SET artidx.build_wait = '10min'; SET lock_timeout = '600ms'; $explain");
like($plan, $table, 'lock_timeout ends the wait, not the statement');
cmp_ok($seconds, '>=', 0.6, 'after that time');
cmp_ok($seconds, '<', 300, 'and not after that of artidx.build_wait');

# statements that the index is of no use to, or that are sooner done
($seconds, $plan) = seconds_of('EXPLAIN (COSTS OFF) SELECT * FROM b WHERE other = 3');
like($plan, $table, 'not waited for where it would not be used');
$node->safe_psql('postgres', 'ALTER FUNCTION slow(int) COST 1');
like($node->safe_psql('postgres', $explain), $table, 'nor where the table is sooner read');
$node->safe_psql('postgres', 'ALTER FUNCTION slow(int) COST 1000000');

# a billion rows for all that the planner knows: the build takes minutes
$node->safe_psql('postgres', q{UPDATE pg_class SET reltuples = 1e9 WHERE relname = 'b'});
($seconds, $plan) = seconds_of("SET statement_timeout = '3min'; $explain");
like($plan, $table, 'nor where statement_timeout would strike first');
$node->safe_psql('postgres', 'ALTER FUNCTION slow(int) COST 1');
($seconds, $plan) = seconds_of($explain);
like($plan, $table, 'nor where the build takes long and the query less');
cmp_ok($seconds, '<', 30, 'it is not even tried');
$node->safe_psql('postgres', 'ALTER FUNCTION slow(int) COST 1000000; ANALYZE b');

# ---- what else ends it ----
my $context = qr/CONTEXT:  while waiting for art index "b_k" to be built/;
times_out($node, "SET artidx.build_wait = '10min'; $query", $context, 'statement_timeout');
$s = waiter($query, 'artidx.build_wait' => '1min');
$node->safe_psql('postgres',
	q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'waiter'});
$s->query('SELECT 1');
like($s->{stderr}, qr/canceling statement due to user request/, 'it can be cancelled');
$s->{stderr} = '';
$s->quit;
is(index_state($node, 'b_k'), 'building', 'the build goes on');

# a builder that is ended comes again
$s = waiter($query, 'artidx.build_wait' => '1min');
$node->safe_psql('postgres',
	q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'artidx builder'});
release();
like($s->query('SELECT 1'), qr/^17$/m, 'a builder was ended, and the statement has its answer');
$s->quit;
ready('built by another');

# ---- locks ----
# the builder waits for a lock of the statement's own transaction
$s = $node->background_psql('postgres');
hold();
$s->query_safe("SET artidx.build_wait = '10min'");
$s->query_safe('BEGIN; SELECT pg_advisory_xact_lock(2)');
release();
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory'}),
	'the builder waits');
like($s->query_safe($explain), $table, 'a builder that waits for our lock is not waited for');
$s->query_safe('COMMIT');
all_ready($node, 'it was built afterwards');

# Two builders.  The owner of the build is done, and waits for its helper, which is at work
# while advisory lock 1 is held, and waits for advisory lock 2.  The owner goes on from its first row
# when the helper stands in one: then that holds advisory lock 3.  A statement that waits for
# them has a short deadlock_timeout; the server has a long one, which lets the helper be.
$node->safe_psql('postgres', in_builder('shared', qq{
	IF k % 1000 = 1 THEN
		IF EXISTS (SELECT FROM pg_locks WHERE locktype = 'tuple' AND granted AND mode = 'ShareLock' AND pid = pg_backend_pid()) THEN
			PERFORM pg_advisory_xact_lock_shared(3);
			$stop
		ELSE
			WHILE NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 3) LOOP PERFORM pg_sleep(0.01); END LOOP;
		END IF;
	END IF;}));
$node->safe_psql('postgres', q{
	CREATE TABLE h (k int, other text) WITH (fillfactor = 10);
	INSERT INTO h SELECT i, repeat('x', 200) FROM generate_series(1, 20000) i;
	CREATE INDEX h_k ON h USING art (shared(k));
	ALTER FUNCTION shared(int) COST 1000000;
	ANALYZE h;
});
my $explain_h = 'EXPLAIN (COSTS OFF) SELECT other FROM h WHERE shared(k) = 17';
my @h_structures = ('btree', 'art');
$node->append_conf('postgresql.conf', "artidx.build_workers = 2\ndeadlock_timeout = '5min'");
$node->reload;

# The owner waits for its helper.  Called with lock 1 or 2 held.
sub owner_waits
{
	$node->safe_psql('postgres', "ALTER INDEX h_k SET (structure = $h_structures[0])");
	push @h_structures, shift @h_structures;
	return ok($node->poll_query_until('postgres',
		q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'tuple' AND mode = 'ExclusiveLock' AND NOT granted}),
		'the owner of the build waits for its helper');
}

$keeper->query_safe('SELECT pg_advisory_lock(1)');
owner_waits();
my $w = waiter($explain_h, 'artidx.build_wait' => '10min', deadlock_timeout => '100ms');
sleep(0.5);
release();
like($w->query('SELECT 1'), qr/Scan.*h_k/, 'a helper that is at work is waited for, for longer than deadlock_timeout');
$w->quit;
all_ready($node, 'built by two');

$s->query_safe(q{SET deadlock_timeout = '100ms'});
$s->query_safe('BEGIN; SELECT pg_advisory_xact_lock(2)');
owner_waits();
like($s->query_safe($explain_h), qr/Seq Scan on h/, 'a helper that waits for our lock is not');
$s->query_safe('COMMIT');
$s->query_safe('RESET deadlock_timeout');
all_ready($node, 'built by two, again');
$node->safe_psql('postgres', 'DROP TABLE h');
$node->append_conf('postgresql.conf', "artidx.build_workers = 1\ndeadlock_timeout = '1s'");
$node->reload;

# The index comes between two plans of one statement, and nothing is to be built any more.  The
# planner calls the function once a plan.  The second call lets the build go on, and awaits its end.
$node->safe_psql('postgres', q{
	CREATE FUNCTION at_second_plan() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		PERFORM set_config('my.plans', (current_setting('my.plans')::int + 1)::text, false);
		IF current_setting('my.plans') = '2' THEN
			PERFORM pg_advisory_unlock(1);
			WHILE (SELECT state <> 'ready' FROM artidx_indexes WHERE indexrelname = 'b_k') LOOP PERFORM pg_sleep(0.01); END LOOP;
			PERFORM pg_sleep(1);
		END IF;
		RETURN 17;
	END $$;});
$s->query_safe(q{SET my.plans = '0'; SELECT pg_advisory_lock(1)});
$node->safe_psql('postgres', "ALTER INDEX b_k SET (structure = $structures[0])");
push @structures, shift @structures;
is_building();
like($s->query_safe($explain =~ s/17/at_second_plan()/r), $index, 'an index that came between two plans is used');
is($s->query_safe('SHOW my.plans'), '3', 'the statement was planned a third time');

# no builder may come in
$s->query_safe("BEGIN; LOCK TABLE b; SET LOCAL artidx.build_wait = '10min'");
$node->safe_psql('postgres', 'ALTER INDEX b_k RESET (structure)');
$node->safe_psql('postgres', "ALTER INDEX b_k SET (structure = btree, sync = optiql)");
like($s->query_safe($explain), $table, 'nor one that our lock keeps out');
$s->query_safe('COMMIT');
$s->quit;
ready('built again');

# ---- a scan by a plan that was made before ----
foreach my $wait ('off', '300ms', '1min')
{
	my $c = $node->background_psql('postgres');

	$c->query_safe("SET artidx.build_wait = '$wait'");
	$keeper->query_safe('SELECT pg_advisory_lock(1)');
	$c->query_safe("BEGIN; DECLARE c CURSOR FOR $query");
	$node->safe_psql('postgres', q{SELECT artidx_unload('b_k')});
	my $b = $node->background_psql('postgres');
	$b->query_safe('SET my.builder = on');
	$b->query_until(qr/begun/, "\\echo begun\nSELECT artidx_build('b_k');\n");
	is_building();
	if ($wait eq '1min')
	{
		$c->query_until(qr/begun/, "\\echo begun\nFETCH ALL FROM c;\n");
		release();
		like($c->query('SELECT 1'), qr/^17$/m, 'the scan waited');
	}
	else
	{
		is($c->query_safe('FETCH ALL FROM c'), '17', "$wait: the scan reads the table");
		is(index_state($node, 'b_k'), 'building', 'before it is built');
	}
	$c->query_safe('COMMIT');
	$c->quit;
	release();
	$b->query_safe('SELECT 1');
	$b->quit;
}

# ---- after a crash, before anybody knows of the index ----
$node->stop('immediate');
$node->start;
like($node->safe_psql('postgres', $explain), $index, 'the first statement after a crash waits');

# ---- nobody builds ----
$node->append_conf('postgresql.conf', 'artidx.build_workers = 0');
$node->stop('immediate');
$node->start;
like($node->safe_psql('postgres', "SET artidx.build_wait = '10min'; $explain"), $table,
	'nobody waits for what nobody builds');
check_exact($node, 'b', 'b_k') if $node->safe_psql('postgres', q{SELECT artidx_build('b_k') IS NOT NULL});

$keeper->quit;
$node->stop;
done_testing();
