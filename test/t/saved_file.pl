# Structures outlive a clean shutdown in a file, and nothing else: whatever
# happened in between, the file is not believed and every answer stays right.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use IPC::Run;
use Time::HiRes qw(usleep time);
use ArtTest;

my $node = art_node('saved',
	max_prepared_transactions => 5,
	wal_level => 'replica',
	restart_after_crash => 'on',
	allow_in_place_tablespaces => 'on',
	'artidx.build_workers' => 0);
my $dir = $node->data_dir;
my $saved = "$dir/pg_stat/artidx.saved";
my $loading = "$dir/pg_stat/artidx.loading";

# enough that the loader can be caught at work
my $rows = 150000;
$node->safe_psql('postgres', qq{
	CREATE TABLE t (id bigint, k int, g uuid, a text COLLATE "C", b int, note text);
	INSERT INTO t SELECT hashint8extended(i, 1), i % 100, md5(i::text)::uuid,
			CASE WHEN i % 7 = 0 THEN NULL ELSE repeat('x', i % 40) || i / 3 END,
			CASE WHEN i % 5 = 0 THEN NULL ELSE i END, ''
		FROM generate_series(1, $rows) i;
	CREATE UNIQUE INDEX t_id ON t USING art (id);
	CREATE INDEX t_k ON t USING art (k) WITH (max_memory = '50MB');
	CREATE INDEX t_g ON t USING art (g DESC) WITH (fillfactor = 70);
	CREATE UNIQUE INDEX t_ab ON t USING art (a, b);
	DELETE FROM t WHERE k = 3;
	VACUUM t;
	DELETE FROM t WHERE k = 4;
	UPDATE t SET k = 200 WHERE k = 5;
	INSERT INTO t SELECT i, 300, NULL, NULL, NULL, 'null'
		FROM generate_series(1, 50) i;
	CREATE TABLE empty (i int);
	CREATE INDEX empty_i ON empty USING art (i);
	VACUUM ANALYZE t;
});
my @indexes = qw(t_id t_k t_g t_ab empty_i);
my $n = scalar(@indexes);
my @queries = (
	'SELECT count(*) FROM t WHERE k = 17',
	'SELECT count(*) FROM t WHERE k IN (3, 4, 5, 200, 300)',
	'SELECT sum(b) FROM t WHERE id > 0 AND id < 9000000000000000',
	"SELECT count(*) FROM t WHERE g < '40000000-0000-0000-0000-000000000000'",
	"SELECT count(*) FROM t WHERE a >= 'xxx' AND a < 'xxxx'",
	'SELECT count(*) FROM t WHERE a IS NULL AND b IS NULL',
	'SELECT count(*) FROM empty WHERE i > 0');

sub count_where
{
	my ($where) = @_;

	return $node->safe_psql('postgres',
		"SELECT count(*) FROM artidx_indexes WHERE $where");
}

# all, or so many, were loaded; the rest is absent, for nothing else builds
sub loaded
{
	my ($want, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM artidx_indexes WHERE state = 'building'");
	is( count_where("state = 'ready' AND last_build_source = 'load'") . ' '
		  . count_where("state = 'absent' AND reason = 'restart'"),
		$want . ' ' . ($n - $want), $name);
	ok(!-e $saved && !-e $loading, "$name: no file is left");
	return;
}

# with whatever plan the planner takes, and without any index
sub answers
{
	my ($name) = @_;
	my $all = join(';', @queries);
	my $off = join(' ', map { "SET enable_$_ = off;" }
		  qw(indexscan indexonlyscan bitmapscan));

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is( $node->safe_psql('postgres', "SET enable_seqscan = off; $all"),
		$node->safe_psql('postgres', "$off $all"), "$name: the answers are right");
	return;
}

sub check_all
{
	my ($name) = @_;
	my ($rc, $out, $err) = $node->psql('postgres',
		join(' ', map { "SELECT '$_' FROM artidx_check('$_', true);" } @indexes));

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($err . $out, join("\n", @indexes), "$name: artidx_check of all");
	return;
}

sub build_missing
{
	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM artidx_indexes WHERE state = 'building'");
	$node->safe_psql('postgres',
		join(' ', map { "SELECT artidx_build('$_');" } @indexes));
	return;
}

# bring all of them back, and see that they are right
sub build_all
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	build_missing();
	check_all($name);
	return;
}

sub log_since
{
	my ($offset) = @_;

	return substr(slurp_file($node->logfile), $offset);
}

# ---- what is saved comes back, and is the same ------------------------------
my $shape = q{SELECT string_agg(concat_ws(' ', indexrelname, entries, max_memory,
	builds), ',' ORDER BY indexrelname) FROM artidx_indexes};
my $before = $node->safe_psql('postgres', $shape);
$node->stop;
ok(-e $saved, 'a clean shutdown leaves a file');
is((stat($saved))[2] & 0077, 0, 'which nobody else can read');
$node->start;
loaded($n, 'after a clean restart');
is( $node->safe_psql('postgres', $shape),
	$before =~ s/(\d+)(?=,|$)/$1 + 1/ger,
	'entries, caps and numbers of builds are what they were');
answers('loaded');
check_all('loaded');
ok(plan_uses($node, 't_id', 'SELECT b FROM t WHERE id = 17'), 'and planned');
fails_with($node, "INSERT INTO t (id) SELECT max(id) FROM t",
	'23505', qr/"t_id"/, 'a duplicate after the load');
fails_with($node,
	'INSERT INTO t (id, a, b) SELECT 0, a, b FROM t '
	  . 'WHERE a IS NOT NULL AND b IS NOT NULL LIMIT 1',
	'23505', qr/"t_ab"/, 'a duplicate of two columns');
$node->safe_psql('postgres', q{
	INSERT INTO t VALUES (0, 77, NULL, NULL, NULL, 'again');
	UPDATE t SET k = 400 WHERE k = 17;
	DELETE FROM t WHERE k = 18;
	VACUUM t});
answers('changed after the load');
check_exact($node, 't', 't_k');

# one restart upon the other, and a shutdown in the middle of the load
for my $i (1 .. 3)
{
	$node->restart;
	$node->safe_psql('postgres', "INSERT INTO t VALUES (-$i, 500)");
}
$node->poll_query_until('postgres',
	"SELECT count(*) = 0 FROM artidx_indexes WHERE state = 'building'");
build_all('after several restarts');
answers('after several restarts');

# ---- a prepared transaction -------------------------------------------------
$node->safe_psql('postgres', q{
	BEGIN;
	INSERT INTO t VALUES (4711, 600, NULL, 'prepared', 1);
	DELETE FROM t WHERE id = 1 AND k = 300;
	PREPARE TRANSACTION 'p';
});
$node->restart;
loaded($n, 'with a prepared transaction');
is($node->safe_psql('postgres',
		'SET enable_seqscan = off; SELECT count(*) FROM t WHERE id = 4711'),
	'0', 'its row is not there yet');
# a unique insert would wait for the transaction
my ($rc, $out, $err) = $node->psql('postgres',
	'SET statement_timeout = 300; INSERT INTO t VALUES (4711, 601)');
like($err, qr/statement timeout/, 'but its key is taken');
$node->safe_psql('postgres', "COMMIT PREPARED 'p'");
is($node->safe_psql('postgres',
		'SET enable_seqscan = off; SELECT k FROM t WHERE id = 4711'),
	'600', 'found by the index once it has committed');
fails_with($node, 'INSERT INTO t VALUES (4711, 601)', '23505', qr/"t_id"/,
	'and unique');
check_clean($node, 't_id');

# ---- writers, VACUUM and waiters while it loads -------------------------------

# Stop the loader as soon as it appears; its pid, or 0 when it was too fast.
sub start_and_catch
{
	my $pidfile = $node->basedir . '/caught';

	unlink $pidfile;
	my $watcher = fork();
	if ($watcher == 0)
	{
		my $end = time() + 60;
		my %seen;

		while (time() < $end)
		{
			opendir(my $proc, '/proc') or last;
			my @pids = grep { /^\d+$/ && !$seen{$_} } readdir($proc);
			closedir($proc);
			for my $pid (@pids)
			{
				open(my $f, '<', "/proc/$pid/cmdline") or next;
				my $cmd = <$f> // '';
				close($f);
				if ($cmd !~ /^postgres/)
				{
					# a process takes its name after it was forked
					$seen{$pid} = 1 if $cmd ne '' && $cmd !~ /postgres/;
					next;
				}
				next unless $cmd =~ /artidx loader/;
				next unless parent($pid) == postmaster();
				kill 'STOP', $pid;
				append_to_file($pidfile, $pid);
				require POSIX;
				POSIX::_exit(0);
			}
			usleep(500);
			last if -e "$pidfile.give_up";
		}
		require POSIX;
		POSIX::_exit(1);
	}
	$node->start;
	for (1 .. 20)
	{
		last if -e $pidfile && -s $pidfile;
		usleep(50000);
	}
	append_to_file("$pidfile.give_up", '') unless -e $pidfile;
	waitpid($watcher, 0);
	unlink "$pidfile.give_up";
	return 0 unless -e $pidfile;
	my $pid = slurp_file($pidfile);
	# caught late, it has a table locked, and an ALTER TABLE would wait for it
	return $pid if count_where("state = 'building'") > 0 &&
		$node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE pid = $pid AND locktype = 'relation'") eq '0';
	kill 'CONT', $pid;
	return 0;
}

sub parent
{
	my ($pid) = @_;

	open(my $f, '<', "/proc/$pid/stat") or return 0;
	my $line = <$f> // '';
	close($f);
	return $line =~ /\) \S (\d+)/ ? $1 : 0;
}

sub postmaster
{
	open(my $f, '<', "$dir/postmaster.pid") or return -1;
	my $pid = <$f> // -1;
	close($f);
	chomp $pid;
	return $pid;
}

sub catch_loader
{
	for (1 .. 10)
	{
		build_missing();
		$node->stop;
		my $pid = start_and_catch();
		return $pid if $pid;
	}
	return 0;
}

my $loader = catch_loader();
SKIP:
{
	skip 'the loader was always too fast', 1 unless $loader;

	ok(-e $loading && !-e $saved, 'the file is claimed by renaming it');
	answers('while it loads');
	$node->safe_psql('postgres', q{
		INSERT INTO empty SELECT generate_series(1, 100);
		DELETE FROM t WHERE k = 40});
	my @busy;
	for my $sql (
		"INSERT INTO t SELECT i, 800, NULL, 'new' || i, i FROM generate_series(1000, 1999) i",
		'UPDATE t SET k = 700 WHERE k = 41 AND id < 0',
		'VACUUM t',
		'REINDEX INDEX t_g',
		'SELECT count(*) FROM artidx_check(\'t_ab\', true)')
	{
		my $h = { err => '', out => '' };
		$h->{run} = IPC::Run::start(
			[ 'psql', '-X', '-A', '-t', '-q', '-v', 'ON_ERROR_STOP=1', '-d',
				$node->connstr('postgres'), '-c', $sql ],
			'>', \$h->{out}, '2>', \$h->{err});
		$h->{sql} = $sql;
		push @busy, $h;
	}
	usleep(1500000);
	is(index_state($node, 't_ab') . index_state($node, 't_id'),
		$node->safe_psql('postgres',
			"SELECT string_agg(state, '' ORDER BY indexrelname) FROM artidx_indexes "
			  . "WHERE indexrelname IN ('t_id', 't_ab')"),
		'the view can be read meanwhile');
	my ($wrc, $wout, $werr) = $node->psql('postgres',
		"SET statement_timeout = 300; INSERT INTO t (id, a, b) VALUES (31337, 'c', 1)");
	ok($wrc == 0 || $werr =~ /statement timeout/,
		'who waits for the loader can be cancelled');
	kill 'CONT', $loader;
	for my $h (@busy)
	{
		IPC::Run::finish($h->{run});
		is($h->{err}, '', "beside the load: $h->{sql}");
	}
	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM artidx_indexes WHERE state = 'building'");
	ok(!-e $loading, 'the file is gone when all is loaded');
	is(count_where("state = 'ready'"), $n, 'all are ready');
	answers('after the load');
	check_all('written while it loaded');
	check_exact($node, 't', 't_id');
}

# the same with many clients and nobody stopped
build_missing();
$node->stop;
my $script = $node->basedir . '/clients.sql';
append_to_file($script, q{
\set i random(1, 1000000000)
INSERT INTO t VALUES (:i::bigint * 100000 + :client_id, :i % 100, NULL, 'c' || :i, :client_id) ON CONFLICT DO NOTHING;
DELETE FROM t WHERE id = :i::bigint * 100000 + :client_id AND :i % 3 = 0;
UPDATE t SET k = k + 1 WHERE id = :i::bigint * 100000 + :client_id;
});
$node->start;
$node->command_ok(
	[ 'pgbench', '-n', '-c', '4', '-j', '2', '-T', '3', '-f', $script,
		'postgres' ],
	'clients from the first moment on');
$node->poll_query_until('postgres',
	"SELECT count(*) = 0 FROM artidx_indexes WHERE state = 'building'");
is(count_where("state = 'ready' AND last_build_source = 'load'"), $n,
	'loaded under them');
answers('after the clients');
check_all('after the clients');
check_exact($node, 't', 't_k');

# ---- the table moves while it loads --------------------------------------------
$node->safe_psql('postgres', q{CREATE TABLESPACE ts LOCATION ''});
$loader = catch_loader();
SKIP:
{
	skip 'the loader was always too fast', 1 unless $loader;

	my $mover = $node->background_psql('postgres');
	# what was loaded before the loader was stopped moves as it is
	my $had = $mover->query_safe(q{SELECT coalesce(string_agg(indexrelid::text, ','), '0')
		FROM artidx_indexes WHERE indexrelname LIKE 't\_%' AND state = 'ready'});
	$mover->query_safe('BEGIN');
	$mover->query_safe('ALTER TABLE t SET TABLESPACE ts');
	is($mover->query_safe(qq{SELECT string_agg(DISTINCT state, ',') FROM artidx_indexes
		WHERE indexrelname LIKE 't\\_%' AND indexrelid NOT IN ($had)}),
		'absent', 'what may be rolled back is not loaded into');
	$mover->query_safe(q{INSERT INTO t VALUES (-7, 900, NULL, 'moved', 1)});
	kill 'CONT', $loader;
	$mover->query_safe('ROLLBACK');
	$mover->quit;
	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM artidx_indexes WHERE state = 'building'");
	answers('after a table moved and was rolled back');
	check_all('after a table moved and was rolled back');
}
$node->safe_psql('postgres', 'DROP TABLESPACE ts');

# ---- the loader dies -----------------------------------------------------------
$loader = catch_loader();
SKIP:
{
	skip 'the loader was always too fast', 1 unless $loader;
	# what it had loaded survives, unless it dies inside of a call
	my $not_loaded_now = "state = 'absent' OR last_build_source = 'kept'";
	kill 'KILL', $loader;
	$node->poll_query_until('postgres',
		"SELECT count(*) = $n FROM artidx_indexes WHERE $not_loaded_now")
	  or diag('no crash cycle');
	ok(!-e $loading && !-e $saved, 'after kill -9 of the loader no file is left');
	is(count_where($not_loaded_now), $n, 'and nothing of it is believed');
	cmp_ok(count_where("state = 'absent'"), '>', 0, 'but what it had loaded');
	answers('after kill -9 of the loader');
	build_all('after kill -9 of the loader');
}

# terminated, it gives up only what it has not loaded
$loader = catch_loader();
SKIP:
{
	skip 'the loader was always too fast', 1 unless $loader;
	kill 'TERM', $loader;
	kill 'CONT', $loader;
	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM artidx_indexes WHERE state = 'building'");
	cmp_ok(count_where("state = 'absent'"), '>', 0,
		'a terminated loader leaves what it had not loaded absent');
	ok(!-e $loading, 'and no file');
	answers('after its termination');
	build_all('after its termination');
}

# the server crashes while it loads
$loader = catch_loader();
SKIP:
{
	skip 'the loader was always too fast', 1 unless $loader;
	$node->safe_psql('postgres', 'INSERT INTO t VALUES (-100, 900)')
	  if index_state($node, 't_id') eq 'ready'
	  && index_state($node, 't_ab') eq 'ready';
	$node->kill9;
	kill 'KILL', $loader;
	# it starts once all children have noticed that the postmaster is gone
	for (1 .. 100)
	{
		last if $node->start(fail_ok => 1);
		$node->{_pid} = undef;
		usleep(300000);
	}
	loaded(0, 'after kill -9 of the postmaster');
	answers('after kill -9 of the postmaster');
	build_all('after kill -9 of the postmaster');
}

# the rest is many restarts: a small table will do
$node->safe_psql('postgres', "DELETE FROM t WHERE b % 10 <> 0; VACUUM FULL ANALYZE t");

# ---- what must not be believed ---------------------------------------------------
# Each: all are ready, the server is stopped, something happens, it starts.
sub between
{
	my ($name, $do, %opt) = @_;
	my $offset = -s $node->logfile;

	build_missing();
	$node->stop($opt{stop} // 'fast');
	$do->();
	$node->start unless $opt{started};
	loaded($opt{loaded} // 0, $name);
	like(log_since($offset), $opt{log}, "$name: the log says why") if $opt{log};
	answers($name);
	build_all($name);
	return;
}

sub overwrite
{
	my ($file, $at, $bytes) = @_;

	open(my $f, '+<:raw', $file) or die "open $file: $!";
	seek($f, $at, 0);
	print $f $bytes;
	close($f) or die "close $file: $!";
	return;
}

# what the file had at this place, changed
sub flip
{
	my ($file, $at) = @_;
	my $byte;

	open(my $f, '<:raw', $file) or die "open $file: $!";
	seek($f, $at, 0);
	read($f, $byte, 1);
	close($f);
	overwrite($file, $at, chr(ord($byte) ^ 0x10));
	return;
}

between('immediate shutdown', sub {
	ok(!-e $saved, 'an immediate shutdown leaves no file');
}, stop => 'immediate');

# a file from before, when the server has run since
my $old = $node->basedir . '/old';
build_missing();
$node->stop;
rename $saved, $old or die "rename: $!";
$node->start;
$node->safe_psql('postgres', 'UPDATE t SET k = 1000 WHERE k = 50');
between('a file of an earlier shutdown', sub {
	rename $old, $saved or die "rename: $!";
}, log => qr/has run since/);
build_missing();
$node->stop;
rename $saved, $old or die "rename: $!";
$node->start;
$node->safe_psql('postgres', 'UPDATE t SET k = 1001 WHERE k = 51');
between('the same after a crash', sub {
	rename $old, $saved or die "rename: $!";
}, stop => 'immediate', log => qr/not cleanly shut down/);

between('header damaged', sub { flip($saved, 20); }, log => qr/it is damaged/);
between('table of sections damaged', sub { flip($saved, (-s $saved) - 20); },
	log => qr/it is damaged/);
between('file cut short', sub { truncate($saved, (-s $saved) / 2); },
	log => qr/it is damaged/);
between('file too short for a header', sub { truncate($saved, 10); },
	log => qr/it is damaged/);
between('file empty', sub { truncate($saved, 0); }, log => qr/it is damaged/);
between('one section damaged', sub { flip($saved, (-s $saved) / 2); },
	loaded => $n - 1, log => qr/is damaged and will be rebuilt/);
between('zeros in the first section', sub {
	overwrite($saved, 4096, "\0" x 8192);
}, loaded => $n - 1, log => qr/is damaged and will be rebuilt/);

between('the directory is a copy', sub {
	system('cp', '-a', $dir, "$dir.copy") == 0 or die 'cp';
	rename $dir, "$dir.first" or die "rename: $!";
	rename "$dir.copy", $dir or die "rename: $!";
}, log => qr/it is a copy/);
PostgreSQL::Test::Utils::system_or_bail('rm', '-rf', "$dir.first");

between('single-user mode', sub {
	my $in = "UPDATE t SET k = 1002 WHERE k = 52;\n";
	my $all = '';
	IPC::Run::run([ 'postgres', '--single', '-D', $dir, 'postgres' ],
		'<', \$in, '>', \$all, '2>&1') or diag($all);
	ok(!-e $saved, 'single-user mode leaves no file');
});

between('started without artidx', sub {
	$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
	$node->start;
	$node->safe_psql('postgres', 'DELETE FROM t WHERE k = 53');
	$node->stop;
	ok(-e $saved, 'nobody touched the file');
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'artidx'");
}, log => qr/has run since/);

between('pg_resetwal', sub {
	$node->command_ok([ 'pg_resetwal', '-f', '-D', $dir ], 'pg_resetwal');
}, log => qr/has run since/);

between('archive recovery', sub {
	$node->append_conf('postgresql.conf', "restore_command = 'false'");
	$node->append_conf('recovery.signal', '');
	$node->start;
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
}, started => 1, log => qr/starts with recovery/);

between('standby, then promoted', sub {
	$node->append_conf('standby.signal', '');
	$node->start;
	is(count_where("state <> 'absent'"), '0', 'nothing is loaded on a standby');
	$node->promote;
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
}, started => 1, log => qr/starts with recovery/);

# ---- settings ---------------------------------------------------------------------
$node->append_conf('postgresql.conf', 'artidx.save_at_shutdown = off');
$node->reload;
$node->poll_query_until('postgres',
	"SELECT current_setting('artidx.save_at_shutdown') = 'off'");
between('save_at_shutdown = off', sub {
	ok(!-e $saved, 'no file with save_at_shutdown = off');
});
$node->append_conf('postgresql.conf', 'artidx.save_at_shutdown = on');
$node->reload;

# a cap that was altered just before the shutdown is that of what is loaded; the
# transaction that alters it has it at once, and not when it is rolled back
$node->safe_psql('postgres', q{
	CREATE TABLE c (k bigint);
	CREATE UNIQUE INDEX c_k ON c USING art (k) WITH (max_memory = '1MB');
	INSERT INTO c SELECT hashint8extended(i, 0) FROM generate_series(1, 20000) i;
	ALTER INDEX c_k SET (max_memory = '50MB')});
$node->restart;
$node->poll_query_until('postgres',
	"SELECT state = 'ready' FROM artidx_indexes WHERE indexrelname = 'c_k'");
$node->safe_psql('postgres', q{
	INSERT INTO c SELECT hashint8extended(i, 0) FROM generate_series(20001, 90000) i});
my $bytes = $node->safe_psql('postgres', "SELECT artidx_index_size('c_k')");
cmp_ok($bytes, '>', 1024 * 1024, 'a cap altered before the shutdown is in force');
($rc, $out, $err) = $node->psql('postgres', q{
	DROP TABLE c;
	CREATE TABLE c (k bigint);
	CREATE UNIQUE INDEX c_k ON c USING art (k) WITH (max_memory = '1MB');
	BEGIN;
	SAVEPOINT s;
	ALTER INDEX c_k SET (max_memory = '50MB');
	INSERT INTO c SELECT hashint8extended(i, 0) FROM generate_series(1, 90000) i;
	ROLLBACK TO s;
	SELECT count(*) FROM c;
	INSERT INTO c SELECT hashint8extended(i, 0) FROM generate_series(100001, 300000) i;
	COMMIT}, on_error_stop => 1);
is($out, '0', 'an altered cap is in force in its own transaction');
like($err, qr/out of memory for art index "c_k"/, 'and not after its rollback');
$node->safe_psql('postgres', 'DROP TABLE c');

# less memory than before: what finds no room is absent, nothing errs
$node->safe_psql('postgres', q{
	INSERT INTO t SELECT 1000000 + i, i, md5(i::text)::uuid, md5(i::text), i
		FROM generate_series(1, 250000) i});
build_missing();
$node->append_conf('postgresql.conf', "artidx.memory = '16MB'");
$node->restart;
$node->poll_query_until('postgres',
	"SELECT count(*) = 0 FROM artidx_indexes WHERE state = 'building'");
cmp_ok(count_where("state = 'absent'"), '>', 0,
	'with less memory some are absent');
answers('with less memory');
$node->append_conf('postgresql.conf', "artidx.memory = '128MB'");
$node->restart;
build_missing();
check_all('with memory again');

# no place for the loader: who waits gives up waiting, nothing is stuck
$node->append_conf('postgresql.conf', 'max_worker_processes = 0');
$node->restart;
$node->safe_psql('postgres', "INSERT INTO t (id, a, b) VALUES (-555, 'last', 1)");
is(index_state($node, 't_id'), 'ready', 'a unique insert builds in the end');
ok(!-e $loading, 'and the file goes');
# the others nobody has asked for yet
$node->safe_psql('postgres',
	join(' ', map { "SELECT artidx_build('$_');" } @indexes));
check_all('without the loader');
answers('without the loader');

$node->stop;
done_testing();
