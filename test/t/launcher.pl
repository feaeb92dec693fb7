# Nobody asks, and the indexes come back: the launcher, its workers, what it
# remembers, and whom it must not stand in the way of.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

# what a clean shutdown saves would be loaded, which is another test
my $node = art_node('launcher',
	'artidx.build_workers' => 1,
	'artidx.save_at_shutdown' => 'off',
	log_min_messages => 'log');

# slow only for workers: a build in a database that is held lasts until it is released
my $slow = in_builder('slow', q{
	WHILE (pg_catalog.pg_stat_file('held-' || current_database(), true)).size IS NOT NULL LOOP
		PERFORM pg_sleep(0.02);
	END LOOP;});

sub hold { append_to_file($node->data_dir . "/held-$_[0]", 'x'); return; }
sub release { unlink $node->data_dir . "/held-$_[0]"; return; }

# A command that wants a database for itself does not wait for a worker in it.  For one
# that stays it would wait five seconds, and then fail.
sub does_not_wait
{
	my ($sql, $name) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', $sql);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is("$rc $err", '0 ', $name);
}

sub fill
{
	my ($db, $rows) = @_;

	$node->safe_psql($db, qq{
		CREATE EXTENSION IF NOT EXISTS artidx;
		CREATE TABLE t (id int, a int, b int, c int);
		INSERT INTO t SELECT i, i % 10, i % 100, i FROM generate_series(1, $rows) i;
		CREATE INDEX t_cold ON t USING art (a);
		CREATE INDEX t_hot ON t USING art (b);
		CREATE UNIQUE INDEX t_id ON t USING art (id);
		CREATE TABLE s (x int);
		INSERT INTO s SELECT generate_series(1, 10);
		CREATE INDEX s_small ON s USING art (x);
		ANALYZE;
	});
	return;
}

sub launcher_pid
{
	return $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE backend_type = 'artidx launcher'");
}

sub order_of_builds
{
	my ($db) = @_;

	return join ' ',
	  split /\n/,
	  $node->safe_psql($db,
		'SELECT indexrelname FROM artidx_indexes ORDER BY last_build');
}

# use an index for so many seconds
sub use_index
{
	my ($db, $query, $times) = @_;
	my $s = $node->background_psql($db);

	$s->query_safe('SET enable_seqscan = off');
	for my $i (1 .. $times)
	{
		$s->query_safe($query);
		sleep 1.1 if $i < $times;
	}
	$s->quit;
	return;
}

like(launcher_pid(), qr/^\d+$/, 'the launcher runs');
is( $node->safe_psql('postgres',
		"SELECT datname IS NULL FROM pg_stat_activity WHERE backend_type = 'artidx launcher'"),
	't',
	'and is connected to no database');

$node->safe_psql('postgres', 'CREATE DATABASE two');
fill('postgres', 20000);
fill('two', 20000);
use_index('postgres', 'SELECT count(*) FROM t WHERE b = 5', 3);
use_index('two', 'SELECT count(*) FROM t WHERE b = 5', 2);

# ---- a fast restart: remembered, in order ----
my $offset = -s $node->logfile;
$node->restart;
ok(-s $node->data_dir . '/pg_stat/artidx.hot', 'what was used was written down');
all_ready($node, 'after a fast restart all is ready, unasked');
all_ready($node, 'in the other database, too', 'two');
is(order_of_builds('postgres'), 't_id t_hot s_small t_cold',
	'unique first, then hot, then small');
is(order_of_builds('two'), 't_id t_hot s_small t_cold',
	'in the other database, too');
is( $node->safe_psql('postgres',
		"SELECT string_agg(DISTINCT last_build_source, ',') FROM artidx_indexes"),
	'rebuild', 'they were rebuilt');
check_exact($node, 't', $_) for qw(t_id t_hot t_cold);

# ---- immediate: the file of the clean shutdown still tells ----
$node->restart;
all_ready($node, 'ready again');
$node->stop('immediate');
$node->start;
all_ready($node, 'after an immediate restart all is ready, unasked');
all_ready($node, 'in the other database, too', 'two');
is(order_of_builds('postgres'), 't_id t_hot s_small t_cold',
	'and in the same order: fame outlives two restarts');

# ---- a damaged file is ignored ----
$node->stop;
my $file = $node->data_dir . '/pg_stat/artidx.hot';
my $content = slurp_file($file);
substr($content, -3, 1) = chr(ord(substr($content, -3, 1)) ^ 0x55);
open my $fh, '>', $file or die;
binmode $fh;
print $fh $content;
close $fh;
$offset = -s $node->logfile;
$node->start;
all_ready($node, 'with a damaged file all is ready');
is(order_of_builds('postgres'), 't_id s_small t_cold t_hot',
	'unique first, then small: fame is lost');
like(slurp_file($node->logfile, $offset),
	qr/ignoring file "pg_stat\/artidx.hot": its checksum is wrong/,
	'the log says so');
unlike(slurp_file($node->logfile, $offset), qr/ERROR|FATAL|PANIC/, 'and no error');

# ---- a file that is too short ----
$node->stop;
open $fh, '>', $file or die;
print $fh "ARTX";
close $fh;
$node->start;
all_ready($node, 'with a file that is too short all is ready');

# ---- no workers: nothing is built by itself; then there are ----
$node->append_conf('postgresql.conf', 'artidx.build_workers = 0');
$node->restart;
like(launcher_pid(), qr/^\d+$/, 'with artidx.build_workers = 0 the launcher runs');
$node->safe_psql('postgres', 'EXPLAIN SELECT * FROM t WHERE b = 5');
sleep 2.5;
is( $node->safe_psql('postgres',
		"SELECT string_agg(DISTINCT state || ' ' || reason, ',') FROM artidx_indexes"),
	'absent restart', 'and builds nothing');
is( $node->safe_psql('postgres', 'SELECT count(*) FROM t WHERE b = 5'),
	'200', 'answers are right without');
$node->safe_psql('postgres', 'INSERT INTO t VALUES (20001, 1, 1, 1)');
is(index_state($node, 't_id'), 'ready', 'an insert builds the unique index it needs');
$node->append_conf('postgresql.conf', 'artidx.build_workers = 2');
$node->reload;
all_ready($node, 'once there are workers, all is built');

# ---- the launcher is killed, and comes back ----
my $pid = launcher_pid();
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
ok( $node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity "
		  . "WHERE backend_type = 'artidx launcher' AND pid <> $pid"),
	'the launcher comes back when terminated');

# ---- building: seen as such, and its end brings the plans back ----
$node->safe_psql('two', qq{
	$slow
	CREATE TABLE p (id int, y int);
	INSERT INTO p SELECT i, i FROM generate_series(1, 200) i;
	CREATE INDEX p_slow ON p USING art (slow(y));
	CREATE INDEX p_y ON p USING art (y);
	ANALYZE p;
});

sub wait_building
{
	my ($db) = @_;

	return ok(
		$node->poll_query_until('postgres',
			"SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = '$db' "
			  . "AND backend_type = 'artidx builder' AND query ~ 'building.*p_slow'"),
		"a worker is at work in $db");
}

hold('two');
$node->stop('immediate');
$node->start;
wait_building('two');
is( $node->safe_psql('two',
		"SELECT build_fraction BETWEEN 0 AND 1 FROM artidx_indexes WHERE indexrelname = 'p_slow'"),
	't', 'its progress is shown');

# ---- CREATE DATABASE ... TEMPLATE while workers are in the template ----
for my $strategy ('wal_log', 'file_copy')
{
	does_not_wait("CREATE DATABASE copy_$strategy TEMPLATE two STRATEGY $strategy",
		"a copy by $strategy does not wait for the worker");
	release('two');
	is( $node->safe_psql("copy_$strategy", 'SELECT id FROM p WHERE y = 77'),
		'77', 'the copy answers at once');
	fails_with_in("copy_$strategy", 'INSERT INTO t VALUES (5, 1, 1, 1)', '23505');
	all_ready($node, "the indexes of the copy by $strategy get ready", "copy_$strategy");
	is( $node->safe_psql("copy_$strategy",
			"SELECT count(*) FROM artidx_indexes i, artidx_check(i.indexrelid, true)"),
		$node->safe_psql('two', 'SELECT count(*) FROM artidx_indexes'),
		'all of them are right');
	like(
		$node->safe_psql("copy_$strategy",
			'SET enable_seqscan = off; EXPLAIN SELECT * FROM p WHERE y = 77'),
		qr/p_y/,
		'and used');

	# once more at work in the template
	hold('two');
	$node->stop('immediate');
	$node->start;
	wait_building('two');
}

sub fails_with_in
{
	my ($db, $sql, $sqlstate) = @_;
	my ($rc, $out, $err) =
	  $node->psql($db, $sql, extra_params => [ '-v', 'VERBOSITY=verbose' ]);

	return like($err, qr/ERROR:\s+$sqlstate:/, "$sql in $db: SQLSTATE $sqlstate");
}

release('two');

# the same as a template nobody names
hold($_) foreach qw(template1 plain simple);
$node->safe_psql('template1', 'CREATE EXTENSION artidx');
$node->safe_psql('template1', qq{
	$slow
	CREATE TABLE p (id int, y int);
	INSERT INTO p SELECT i, i FROM generate_series(1, 400) i;
	CREATE INDEX p_slow ON p USING art (slow(y));
});
$node->stop('immediate');
$node->start;
wait_building('template1');
does_not_wait('CREATE DATABASE plain', 'CREATE DATABASE does not wait for a worker in template1');
release('template1');
$node->safe_psql('template1', 'DROP TABLE p');

# ---- RENAME, SET TABLESPACE, DROP with a worker in the database ----
wait_building('plain');
does_not_wait('ALTER DATABASE plain RENAME TO simple', 'ALTER DATABASE RENAME');
wait_building('simple');
$node->safe_psql('postgres', q{
	SET allow_in_place_tablespaces = on;
	CREATE TABLESPACE place LOCATION '';
});
does_not_wait('ALTER DATABASE simple SET TABLESPACE place', 'ALTER DATABASE SET TABLESPACE');
is($node->safe_psql('simple', 'SELECT count(*) FROM p WHERE slow(y) < 100'),
	'99', 'it answers');
wait_building('simple');
does_not_wait('DROP DATABASE simple', 'DROP DATABASE');

# a command that fails lets the workers back in, and who may not give it does
# not end them
$node->safe_psql('two', 'INSERT INTO p SELECT i, i FROM generate_series(201, 1000) i');
hold('two');
$node->safe_psql('postgres', 'CREATE ROLE nobody LOGIN');
$node->stop('immediate');
$node->start;
wait_building('two');
my $s = $node->background_psql('two');
my ($rc, $out, $err) = $node->psql('postgres', 'DROP DATABASE two');
like($err, qr/is being accessed by other users/, 'refused');
like($err, qr/There is 1 other session using the database/, 'for the session, not a worker');
$s->quit;
wait_building('two');
my $worker = $node->safe_psql('two',
	"SELECT pid FROM pg_stat_activity WHERE backend_type = 'artidx builder' AND datname = 'two' ORDER BY pid LIMIT 1");
like($worker, qr/^\d+$/, 'a worker builds again after the command was refused');
($rc, $out, $err) = $node->psql('postgres', 'SET ROLE nobody; DROP DATABASE two');
like($err, qr/must be owner of database two/, 'not the owner');
is( $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $worker"),
	'1', 'that ended no worker');
release('two');
all_ready($node, 'and it gets done', 'two');
$node->safe_psql('postgres', "DROP DATABASE $_") for qw(copy_wal_log copy_file_copy);

# ---- prepared transactions: what they leave is swept ----
$node->append_conf('postgresql.conf', 'max_prepared_transactions = 10');
$node->restart;
all_ready($node, 'ready');
all_ready($node, 'ready in the other database', 'two');

# every structure there is, also one whose index is gone from the catalog
my $count = q{SELECT indexes || ' ' || (SELECT count(*) FROM artidx_indexes
	WHERE state = 'ready') FROM artidx_memory};
my $used = $node->safe_psql('postgres', 'SELECT used_bytes FROM artidx_memory');
my $before = $node->safe_psql('postgres', $count);

$node->safe_psql('postgres', q{
	CREATE TABLE q (i int);
	INSERT INTO q SELECT generate_series(1, 20000);
	CREATE INDEX q_i ON q USING art (i);
	BEGIN;
	DROP INDEX q_i;
	PREPARE TRANSACTION 'drops';
});
isnt($node->safe_psql('postgres', 'SELECT used_bytes FROM artidx_memory'), '', 'prepared');
$node->safe_psql('postgres', "COMMIT PREPARED 'drops'");
memory_returns($node, $used, 0, 'a prepared DROP INDEX, committed');
$node->safe_psql('postgres', q{
	BEGIN;
	CREATE INDEX q_i ON q USING art (i);
	PREPARE TRANSACTION 'creates';
});
$node->safe_psql('postgres', "ROLLBACK PREPARED 'creates'");
memory_returns($node, $used, 0, 'a prepared CREATE INDEX, rolled back');
$node->safe_psql('postgres', q{
	CREATE INDEX q_i ON q USING art (i);
	BEGIN;
	DROP INDEX q_i;
	PREPARE TRANSACTION 'drops';
});
$node->safe_psql('postgres', "ROLLBACK PREPARED 'drops'");
request_and_wait($node, 'q_i', 'SELECT * FROM q WHERE i = 5');
check_exact($node, 'q', 'q_i');
$node->safe_psql('postgres', q{
	BEGIN;
	TRUNCATE q;
	INSERT INTO q SELECT generate_series(1, 10);
	PREPARE TRANSACTION 'truncates';
});
$node->safe_psql('postgres', "COMMIT PREPARED 'truncates'");
all_ready($node, 'after a prepared TRUNCATE');
check_exact($node, 'q', 'q_i');
$node->safe_psql('postgres', 'DROP TABLE q');
memory_returns($node, $used, 0, 'all that is gone');
is($node->safe_psql('postgres', $count), $before, 'and no structure is left over');

# ---- a database dropped behind the launcher's back leaves nothing either ----
$node->safe_psql('postgres', 'DROP DATABASE two');
cmp_ok($node->safe_psql('postgres', 'SELECT used_bytes FROM artidx_memory'),
	'<', $used, 'DROP DATABASE frees');

# ---- the end of a clean run ----
my $log = slurp_file($node->logfile);
unlike($log, qr/PANIC|TRAP:/, 'no PANIC and no failed assertion');
$node->stop;
done_testing();
