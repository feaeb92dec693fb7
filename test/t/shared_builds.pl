# Builds beside everything else: shared, left in the middle, taken over;
# statements that are cancelled before the build is done; inserts, updates and
# VACUUM in the middle of one.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use ArtTest;

my $node = art_node(
	'builds',
	'artidx.memory' => "'512MB'",
	'artidx.build_workers' => 0,
	'artidx.save_at_shutdown' => 'off',
	maintenance_work_mem => "'64MB'",
	shared_buffers => "'256MB'",
	fsync => 'off');

sub workers
{
	my ($n) = @_;

	$node->append_conf('postgresql.conf', "artidx.build_workers = $n\n");
	$node->reload;
	return ok(
		$node->poll_query_until(
			'postgres', "SELECT current_setting('artidx.build_workers') = '$n'"),
		"$n build workers");
}

# Out of memory, and wanted back by nobody before we say so.
sub unload
{
	my ($index) = @_;

	$node->safe_psql('postgres', "SELECT artidx_unload('$index')");
	return;
}

sub session
{
	my (@set) = @_;
	my $s = $node->background_psql('postgres', on_error_stop => 0);

	$s->query_safe("SET $_") for @set;
	return $s;
}

# Send a statement that is going to wait.
sub start
{
	my ($s, $sql) = @_;

	$s->{stderr} = '';
	$s->query_until(qr/begun/, "\\echo begun\n$sql;\n");
	return;
}

# Its end: what it said on stderr.
sub finish
{
	my ($s) = @_;

	$s->query('SELECT 1');
	my $err = $s->{stderr};
	$s->{stderr} = '';
	return $err;
}

# Wait until so many backends wait for a heavyweight lock of this kind.
sub waiting
{
	my ($n, $event) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(
		$node->poll_query_until(
			'postgres',
			"SELECT count(*) = $n FROM pg_stat_activity "
			  . "WHERE wait_event_type = 'Lock' AND wait_event = '$event'"),
		"$n wait: $event");
}

sub builds
{
	my ($index) = @_;

	return $node->safe_psql('postgres',
		"SELECT builds FROM artidx_indexes WHERE indexrelname = '$index'");
}

# An index expression that stops at one key, in a session that says so, until
# advisory lock 1 is free, and refuses another.
$node->safe_psql('postgres', q{
	CREATE FUNCTION frozen(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		IF k::text = current_setting('frozen.key', true) THEN
			PERFORM pg_advisory_lock(1);
			PERFORM pg_advisory_unlock(1);
		END IF;
		IF k = 666 THEN
			RAISE EXCEPTION 'not this key: %', k USING ERRCODE = '22023';
		END IF;
		RETURN k;
	END $$;
});

my $keeper = session();

sub freeze { $keeper->query_safe('SELECT pg_advisory_lock(1)'); return; }
sub thaw { $keeper->query_safe('SELECT pg_advisory_unlock(1)'); return; }

sub fresh
{
	my ($unique) = @_;

	$node->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (k int, v int DEFAULT 0) WITH (fillfactor = 50);
		INSERT INTO t SELECT i FROM generate_series(1, 600) i;
		CREATE $unique INDEX t_k ON t USING art (frozen(k));
		VACUUM ANALYZE t;
	});
	unload('t_k');
	return;
}

# ---- an insert frozen between heap and index, while another session builds
for my $unique ('', 'UNIQUE')
{
	my $name = $unique ? 'unique' : 'plain';

	for my $end ('COMMIT', 'ROLLBACK')
	{
		fresh($unique);
		freeze();
		my $a = session('frozen.key = 777');
		$a->query_safe('BEGIN');
		start($a, 'INSERT INTO t VALUES (777)');
		waiting(1, 'advisory');
		$node->safe_psql('postgres', "SELECT artidx_build('t_k')");
		is(index_state($node, 't_k'), 'ready',
			"$name, $end: built beside a frozen insert");
		thaw();
		is(finish($a), '', "$name, $end: the insert goes on");
		$a->query_safe($end);
		same_answer($node, 'SELECT count(*) FROM t WHERE frozen(k) >= 500',
			"$name, $end: right answer");
		check_exact($node, 't', 't_k');
		$a->quit;
	}
}

# ---- the other way round: the builder frozen, inserts and HOT updates go on
fresh('');
freeze();
my $b = session('frozen.key = 300');
start($b, q{SELECT artidx_build('t_k')});
waiting(1, 'advisory');
is(index_state($node, 't_k'), 'building', 'frozen in the middle');
$node->safe_psql('postgres', "SET statement_timeout = '30s'; "
	  . 'INSERT INTO t SELECT i FROM generate_series(1000, 1400) i');
my $hot = session();
$hot->query_safe('BEGIN; UPDATE t SET v = v + 1 WHERE k BETWEEN 1 AND 600');
$node->safe_psql('postgres', "SET statement_timeout = '30s'; "
	  . 'UPDATE t SET k = k + 1000000, v = 7 WHERE k BETWEEN 1000 AND 1100; '
	  . 'DELETE FROM t WHERE k BETWEEN 1101 AND 1200');
thaw();
is(finish($b), '', 'the builder ends');
is(index_state($node, 't_k'), 'ready', 'ready, with HOT updates in progress');
$hot->query_safe('ROLLBACK');
$hot->query_safe('BEGIN; UPDATE t SET v = v + 2 WHERE k BETWEEN 200 AND 400');
unload('t_k');
$node->safe_psql('postgres', "SELECT artidx_build('t_k')");
$hot->query_safe('UPDATE t SET v = v + 2 WHERE k BETWEEN 200 AND 300; COMMIT');
same_answer($node, 'SELECT sum(v) FROM t WHERE frozen(k) > 100',
	'HOT chains are found');
check_exact($node, 't', 't_k');
$hot->quit;

# ---- VACUUM against a build
fresh('');
$node->safe_psql('postgres', 'DELETE FROM t WHERE k % 3 = 0');
freeze();
start($b, 'SET frozen.key = 400');
finish($b);
start($b, q{SELECT artidx_build('t_k')});
waiting(1, 'advisory');
my $v = session();
start($v, 'VACUUM (INDEX_CLEANUP ON) t');
waiting(1, 'tuple');
thaw();
is(finish($b), '', 'the build ends before VACUUM');
is(finish($v), '', 'VACUUM after it');
is(index_state($node, 't_k'), 'ready', 'and leaves the structure');
check_exact($node, 't', 't_k');

# the builder is cancelled while VACUUM waits, and nobody goes on with it
fresh('');
$node->safe_psql('postgres', 'DELETE FROM t WHERE k % 3 = 0');
freeze();
start($b, q{SELECT artidx_build('t_k')});
waiting(1, 'advisory');
start($v, 'VACUUM (INDEX_CLEANUP ON) t');
waiting(1, 'tuple');
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM
	pg_stat_activity WHERE wait_event = 'advisory'});
like(finish($b), qr/canceling statement due to user request/,
	'the builder is cancelled');
is(finish($v), '', 'VACUUM does not wait for ever');
is(index_state($node, 't_k'), 'absent', 'it discards what was left');
thaw();
$node->safe_psql('postgres', "SELECT artidx_build('t_k')");
check_exact($node, 't', 't_k');
$v->quit;

# ---- left in the middle, and taken over
fresh('');
freeze();
start($b, q{SELECT artidx_build('t_k')});
waiting(1, 'advisory');
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM
	pg_stat_activity WHERE wait_event = 'advisory'});
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM
	pg_stat_activity WHERE wait_event = 'advisory'});
is(index_state($node, 't_k'), 'building', 'a builder that exits leaves its build');
eval { $b->quit };
thaw();
$node->safe_psql('postgres', 'INSERT INTO t VALUES (5000); DELETE FROM t WHERE k = 7');
$node->safe_psql('postgres', "SELECT artidx_build('t_k')");
is(index_state($node, 't_k'), 'ready', 'the next one ends it');
check_exact($node, 't', 't_k');

# ---- two sessions, one absent unique index: one builds
fresh('UNIQUE');
my $before = builds('t_k');
my $w1 = session();
my $w2 = session();
$b = session('frozen.key = 500');
freeze();
start($b, 'INSERT INTO t VALUES (2001)');
waiting(1, 'advisory');
start($w1, 'INSERT INTO t VALUES (2002)');
waiting(1, 'tuple');
thaw();
is(finish($b), '', 'the insert that builds succeeds');
is(finish($w1), '', 'and so does the one that waits');
is(builds('t_k'), $before + 1, 'one built');
check_exact($node, 't', 't_k');

# ---- the builder is cancelled with two waiters
fresh('UNIQUE');
freeze();
start($b, 'INSERT INTO t VALUES (2003)');
waiting(1, 'advisory');
start($w1, 'INSERT INTO t VALUES (2004)');
waiting(1, 'tuple');
start($w2, 'INSERT INTO t VALUES (2004)');
waiting(2, 'tuple');
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM
	pg_stat_activity WHERE wait_event = 'advisory'});
like(finish($b), qr/canceling statement/, 'the builder is cancelled');
my @ends = sort(finish($w1), finish($w2));
is($ends[0], '', 'one waiter inserts');
like($ends[1], qr/duplicate key value/, 'the other one finds its key there');
thaw();
check_exact($node, 't', 't_k');

# ---- a deadlock between builder and waiter
# The builder looks for one once, after deadlock_timeout: the waiter must be there by then.
$w1->query_safe("SET deadlock_timeout = '1000s'");
for my $seconds (2, 10, 100)
{
	fresh('UNIQUE');
	$b->query_safe("SET deadlock_timeout = '${seconds}s'");
	$w1->query_safe('BEGIN; SELECT pg_advisory_xact_lock(1)');
	my $begin = time;
	start($b, 'INSERT INTO t VALUES (2005)');
	waiting(1, 'advisory');
	start($w1, 'INSERT INTO t VALUES (2006)');
	# (or the builder has looked already)
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 OR
		NOT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'advisory')
		FROM pg_stat_activity WHERE wait_event = 'tuple'});
	last if time - $begin < $seconds || $seconds == 100;
	$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity
		WHERE wait_event IN ('advisory', 'tuple')});
	finish($_) foreach $b, $w1;
	$w1->query_safe('ROLLBACK');
}
like(finish($b), qr/deadlock detected/, 'the deadlock is detected');
is(finish($w1), '', 'and the waiter goes on with the build');
$w1->query_safe('COMMIT');
$b->query_safe('RESET deadlock_timeout');
check_exact($node, 't', 't_k');

# the same, seen from the waiter
fresh('UNIQUE');
$b->query_safe("SET deadlock_timeout = '100s'");
$w1->query_safe("SET deadlock_timeout = '10ms'");
$w1->query_safe('BEGIN; SELECT pg_advisory_xact_lock(1)');
start($b, 'INSERT INTO t VALUES (2007)');
waiting(1, 'advisory');
like(do { start($w1, 'INSERT INTO t VALUES (2008)'); finish($w1) },
	qr/deadlock detected/, 'the waiter sees it as well');
$w1->query('ROLLBACK');
$w1->{stderr} = '';
is(finish($b), '', 'and the builder goes on');
check_exact($node, 't', 't_k');
$b->quit;
$w2->quit;

# ---- a row whose expression errs, of an insert in progress
fresh('');
freeze();
my $bad = session('frozen.key = 666');
start($bad, 'INSERT INTO t VALUES (666)');
waiting(1, 'advisory');
start($w1, q{SELECT artidx_build('t_k')});
waiting(1, 'transactionid');
thaw();
like(finish($bad), qr/not this key: 666/, 'the insert meets its error');
is(finish($w1), '', 'and the build does not');
is(index_state($node, 't_k'), 'ready', 'which is ready then');
check_exact($node, 't', 't_k');
$bad->quit;
$w1->quit;

# one that is there to stay: an error, and no data of it in the view
unload('t_k');
$node->safe_psql('postgres', q{
	CREATE OR REPLACE FUNCTION frozen(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		IF k = 123 THEN
			RAISE EXCEPTION 'secret %', k USING ERRCODE = '22023';
		END IF;
		RETURN k;
	END $$;
});
fails_with($node, q{SELECT artidx_build('t_k')}, '22023', qr/secret 123/,
	'an expression that errs');
is( $node->safe_psql('postgres',
		"SELECT state || ': ' || reason FROM artidx_indexes WHERE indexrelname = 't_k'"),
	"absent: error: SQLSTATE 22023, see the server's log",
	'the view says what kind of error, not whose row');
is($node->safe_psql('postgres', 'INSERT INTO t VALUES (9001); SELECT 1'), '1',
	'the table takes inserts');
$node->safe_psql('postgres', 'DROP TABLE t');

# ---- statements cancelled long before the build is done
my $rows = $ENV{BUILD_ROWS} // 1500000;
$node->safe_psql('postgres', qq{
	CREATE TABLE big (id bigint);
	INSERT INTO big SELECT hashint8extended(i, 1) FROM generate_series(1, $rows) i;
	CREATE UNIQUE INDEX big_id ON big USING art (id);
	VACUUM ANALYZE big;
});

# Inserts one after the other, each given a sixth of what one process needs for the
# whole build, until one succeeds.  Each goes on with what the one before has built,
# or none would ever succeed.
my $key = 0;
my $sixth = sixth_of_a_build();

sub sixth_of_a_build
{
	workers(0);
	unload('big_id');
	my $began = time;
	$node->safe_psql('postgres', "SELECT artidx_build('big_id')");
	my $ms = int((time - $began) * 1000 / 6);
	note("a sixth of a build: $ms ms");
	return $ms > 10 ? $ms : 10;
}

sub insert_until_it_works
{
	my $script = "SET statement_timeout = '${sixth}ms';\n";
	my $cancelled;

	for (1 .. 5000)
	{
		$key++;
		$script .= "INSERT INTO big VALUES ($key) RETURNING 'done';\n"
		  . "\\if :ERROR\n\\else\n\\q\n\\endif\n";
	}
	# in a file: psql ends early, and a pipe would be broken then
	my $file = $node->basedir . "/tries_$key.sql";
	append_to_file($file, $script);
	unload('big_id');
	my ($out, $err) = ('', '');
	$node->psql(
		'postgres', "\\i $file",
		stdout => \$out,
		stderr => \$err,
		on_error_stop => 0);
	$cancelled = () = $err =~ /canceling statement due to statement timeout/g;
	is(scalar(() = $err =~ /ERROR/g), $cancelled,
		'no other error than the time-out');
	return ($out, $cancelled);
}

for my $n (0, 2)
{
	my ($out, $cancelled);

	workers($n);
	# on a busy machine the workers may be done before psql has begun
	for (1 .. 10)
	{
		($out, $cancelled) = insert_until_it_works();
		last if $cancelled > 0;
	}
	cmp_ok($cancelled, '>', 0, "$n workers: $cancelled inserts were cancelled");
	is($out, 'done', "$n workers: then one succeeds");
	check_clean($node, 'big_id', "$n workers: artidx_check");
}

# ---- a build in the background gives way to whoever wants the table
unload('big_id');
my $one = session();
start($one, 'INSERT INTO big VALUES (-1)');
ok( $node->poll_query_until(
		'postgres',
		"SELECT build_fraction > 0 FROM artidx_indexes WHERE indexrelname = 'big_id'"),
	'progress is shown');
is(finish($one), '', 'an insert waits for a build in the background');
$one->quit;
check_exact($node, 'big', 'big_id');

# nobody waits for this one: it is left to whoever wants the table, and goes on
# afterwards.  Throttled, it would take minutes.
$node->safe_psql('postgres', 'ALTER SYSTEM SET vacuum_cost_delay = 20');
$node->safe_psql('postgres', 'ALTER SYSTEM SET vacuum_cost_limit = 1');
$node->stop('immediate');
$node->start;
ok( $node->poll_query_until(
		'postgres',
		"SELECT build_fraction > 0 FROM artidx_indexes WHERE indexrelname = 'big_id'"),
	'built in the background after a crash');
my $locker = session("lock_timeout = '120s'");
$locker->query_safe('BEGIN; LOCK TABLE big IN ACCESS EXCLUSIVE MODE');
is(index_state($node, 'big_id'), 'building', 'left in the middle for a lock');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
$node->reload;
$locker->query_safe('INSERT INTO big VALUES (-2); COMMIT');
$locker->quit;
ok( $node->poll_query_until(
		'postgres',
		"SELECT state = 'ready' FROM artidx_indexes WHERE indexrelname = 'big_id'"),
	'and ended afterwards');
check_exact($node, 'big', 'big_id');

$node->stop;
done_testing();
