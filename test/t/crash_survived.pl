# Art indexes outlive a crash of the server, one kind of crash after the other: a
# process is killed outside the core and inside it, others must die while they are
# inside, rows are lost with their commits, a second crash comes too soon, or before
# anybody looked, the server starts as a standby or from a backup.  Table a has an
# index of each engine; b has the same rows, and btree indexes.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my @engines = art_engines();
my $node = art_node(
	'survive',
	restart_after_crash => 'on',
	wal_level => 'replica',
	# what is not flushed by a commit is not flushed soon
	wal_writer_delay => '10s',
	checkpoint_timeout => '1h',
	bgwriter_lru_maxpages => 0,
	crash_often());
$node->safe_psql('postgres', 'CREATE EXTENSION artidx_debug');

my $indexes = join('', map {
		my $with = art_engine_options($_);
		(my $name = "a_$_") =~ tr/-/_/;
		"CREATE INDEX $name ON a USING art (k, id) WITH ($with);\n"
} @engines);
my @names = ('a_id', map { (my $name = "a_$_") =~ tr/-/_/; $name } @engines);

$node->safe_psql('postgres', qq{
	CREATE TABLE a (id bigint, k int) WITH (autovacuum_enabled = off);
	CREATE TABLE b (id bigint, k int) WITH (autovacuum_enabled = off);
	CREATE UNIQUE INDEX a_id ON a USING art (id);
	$indexes
	CREATE UNIQUE INDEX b_id ON b (id);
	CREATE INDEX b_k ON b (k, id);
	CREATE PROCEDURE put(lo bigint, hi bigint) LANGUAGE sql AS \$\$
		INSERT INTO a SELECT i, i % 100 FROM generate_series(lo, hi) i;
		INSERT INTO b SELECT i, i % 100 FROM generate_series(lo, hi) i;
	\$\$;
	CALL put(1, 2000);
	DELETE FROM a WHERE id % 20 = 0;
	DELETE FROM b WHERE id % 20 = 0;
	VACUUM ANALYZE a; VACUUM ANALYZE b;
});

sub sql { return $node->safe_psql('postgres', $_[0]) }

my $offset;
sub mark { $offset = -s $node->logfile; return }

# Wait for a line of the log behind the mark.
sub logged
{
	my ($regex) = @_;
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;

	while (time() < $end)
	{
		return $1 // 1 if slurp_file($node->logfile, $offset) =~ $regex;
		sleep 0.1;
	}
	return undef;
}

# Kill a process, and wait until the server is back.
sub crash
{
	my ($pid, $signal) = @_;

	mark();
	kill_and_recover($node, $pid, $signal);
	return;
}

# What became of the memory: the log says one of the two.
sub outcome
{
	sql('SELECT count(*) FROM artidx_indexes');
	return logged(qr/(after the crash: \d+ kept, \d+ given up|do not survive the crash: [^\n]+)/) // '';
}

sub kept
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(outcome(), "after the crash: @{[scalar @names]} kept, 0 given up", $name);
}

sub given_up
{
	my ($why, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	like(outcome(), qr/do not survive the crash: $why/, $name);
	sql('SELECT count(*) FROM a WHERE id = 7');
	return all_ready($node, "$name: built again");
}

# Every index says what its table says, and what its btree twin says.
sub right
{
	my ($name) = @_;
	my @bad;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $force = 'SET enable_seqscan = off; SET enable_bitmapscan = off;';
	my $b = sql("$force SELECT count(*), sum(id), sum(k) FROM b WHERE k > -1");
	for my $index (@names)
	{
		my ($rc, $out, $err) = $node->psql('postgres',
			"SELECT count(*) FROM artidx_check('$index', true)");

		push @bad, "$index: $out $err" if "$rc|$out|$err" ne '0|1|';
		# this index, and no other: as an index-only scan where it can be
		my $hide = "UPDATE pg_index SET indisvalid = false WHERE indrelid = 'a'::regclass "
		  . "AND indexrelid <> '$index'::regclass;";
		my $col = $index eq 'a_id' ? 'id' : 'k';
		$out = sql("$force BEGIN; $hide SELECT count(*), sum(id), sum(k) "
			  . "FROM a WHERE $col > -1; ROLLBACK;");
		push @bad, "$index: $out, btree: $b" if $out ne $b;
	}
	return is(join("\n", @bad), '', "$name: every index is right");
}

# What a server answers within two seconds, or else nothing.
sub ask
{
	my ($sql) = @_;
	my ($out, $err) = ('', '');
	my $asked = eval {
		IPC::Run::run([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $sql ],
			'<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout(2));
	};

	chomp $out;
	return $asked ? $out : '';
}

# Stop a process that works in a loop where it is inside a core call.
sub stop_inside
{
	my ($s) = @_;
	my $pid = $s->{pid};
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;

	while (time() < $end)
	{
		kill 'STOP', $pid;
		for (1 .. 1000)
		{
			last if slurp_file("/proc/$pid/stat") =~ /\) T /;
			sleep 0.001;
		}
		# It may be stopped with a lock that everybody needs: ask for a moment only.
		return 1 if ask("SELECT coalesce(pinned_epoch, 0) <> 0 FROM artidx_epochs WHERE pid = $pid") eq 't';
		kill 'CONT', $pid;
		sleep 0.003;
	}
	return 0;
}

# A session of its own name that is busy with its last command.
my $started = 0;
sub start
{
	my @commands = @_;
	my $name = 'w' . ++$started;
	my %w = (out => '', err => '');

	$w{h} = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'),
			'-c', "SET application_name = '$name'", map { ('-c', $_) } @commands ],
		'>', \$w{out}, '2>', \$w{err});
	my $start = substr($commands[-1], 0, 9);
	$node->poll_query_until('postgres',
		'SELECT count(*) = 1 FROM pg_stat_activity '
		  . "WHERE application_name = '$name' AND state = 'active' AND query LIKE '$start%'")
	  or BAIL_OUT("$name does not start: $w{err}");
	$w{pid} = sql("SELECT pid FROM pg_stat_activity WHERE application_name = '$name'");
	return \%w;
}

my @reads = ('SET enable_seqscan = off; SET enable_bitmapscan = off', q{DO $$BEGIN LOOP PERFORM count(*) FROM a WHERE k = 7 AND id > 0; END LOOP; END$$});
my @inserts = (q{DO $$DECLARE i bigint := (SELECT max(id) + 1 FROM a); BEGIN LOOP
	INSERT INTO a VALUES (i, 5); INSERT INTO b VALUES (i, 5); i := i + 1; IF i % 40 = 0 THEN COMMIT; END IF; END LOOP; END$$});

sub victim { return start('SELECT pg_sleep(600)') }

# made by several transactions
sql("REINDEX INDEX CONCURRENTLY $_") foreach 'a_id', $names[1];
all_ready($node, 'the indexes are there');
my $builds = sql('SELECT sum(builds) FROM artidx_indexes');

# ---- at rest ----
my $w = victim();
crash($w->{pid});
$w->{h}->finish;
kept('a process at rest was killed: all are kept');
is(sql("SELECT string_agg(DISTINCT state || ' ' || last_build_source, ',') FROM artidx_indexes"),
	'ready kept', 'artidx_indexes says so');
is(sql('SELECT sum(builds) FROM artidx_indexes'), $builds, 'and nothing was built');
right('kept');
sql('CALL put(10001, 10100); VACUUM a; VACUUM b;');
right('kept, and changed');

for my $signal (qw(SEGV ABRT))
{
	$w = victim();
	crash($w->{pid}, $signal);
	$w->{h}->finish;
	kept("SIG$signal: the same");
}
right('kept again');

# ---- rows that are lost with their commits ----
# They lie on pages that are all-visible for those who did not see them: what is left
# over in an index would be told by an index-only scan.  The process that put them
# there is gone when another one crashes.
for my $alive (0, 1)
{
	my $removed = 0;

	for my $try (1 .. 10)
	{
		sql('VACUUM a; VACUUM b');
		# the pages are in the WAL since the last checkpoint, and what comes is little
		sql('BEGIN; CALL put(20001, 20003); ROLLBACK');
		sql('VACUUM a; VACUUM b');
		$w = victim();
		my $put = 'CALL put(20001, 20003)';
		my $w2 = $alive ? start('SET synchronous_commit = off', $put, 'SELECT pg_sleep(601)') : undef;
		sql("SET synchronous_commit = off; $put") if !$alive;
		crash($w->{pid});
		$_->{h}->finish foreach grep { defined } $w, $w2;
		$removed = logged(qr/; (\d+) entries of rows that are lost were removed/);
		last if $removed > 0;
		sql('DELETE FROM a WHERE id > 20000; DELETE FROM b WHERE id > 20000');
	}
	cmp_ok($removed, '>', 0, 'entries are removed whose rows are lost'
		  . ($alive ? ', of a process that was there' : ''));
	kept('the indexes are kept');
	right('rows lost');
	sql('DELETE FROM a WHERE id > 20000; DELETE FROM b WHERE id > 20000; '
		  . 'CALL put(20001, 20050); DELETE FROM a WHERE id > 20000; DELETE FROM b WHERE id > 20000');
	right('rows lost, and their places used again');
}

# ---- an index whose making is lost ----
$w = victim();
sql('SET synchronous_commit = off; CREATE TABLE c (k int); INSERT INTO c VALUES (1); CREATE INDEX c_k ON c USING art (k)');
crash($w->{pid});
$w->{h}->finish;
is(outcome(), "after the crash: @{[scalar @names]} kept, 1 given up",
	'an index whose CREATE is lost is not kept')
  if sql(q{SELECT to_regclass('c') IS NULL}) eq 't';
sql('DROP TABLE IF EXISTS c');

# ---- what is never kept ----
sql(q{CREATE UNLOGGED TABLE u (k int); CREATE INDEX u_k ON u USING art (k);
	INSERT INTO u VALUES (1)});
$w = victim();
crash($w->{pid});
$w->{h}->finish;
is(outcome(), "after the crash: @{[scalar @names]} kept, 1 given up",
	'that of an unlogged table is not kept');
is(sql('SET enable_seqscan = off; SELECT count(*) FROM u WHERE k > 0'), '0', 'and says that it is empty');
sql('DROP TABLE u');

# ---- inside a core call ----
for my $does (\@reads, \@inserts)
{
	my $what = $does == \@reads ? 'reads' : 'inserts';

	# told to die while it is inside: it goes on to the end first.  One that gets no
	# processor for five seconds is killed: then once more.
	my $inside;
	for my $try (1 .. 5)
	{
		$w = victim();
		$inside = start(@$does);
		stop_inside($inside) or BAIL_OUT("a process that $what cannot be stopped inside");
		mark();
		kill 'KILL', $w->{pid};
		logged(qr/terminating any other active server processes/);
		sleep 0.2;
		kill 'CONT', $inside->{pid};
		logged(qr/all server processes terminated; reinitializing/);
		comes_back($node) or BAIL_OUT('the server does not come back');
		$_->{h}->finish foreach $w, $inside;
		last if $try == 5 || slurp_file($node->logfile, $offset) !~ /issuing SIGKILL/;
		all_ready($node, "a process that $what got no processor: once more");
	}
	kept("a process that $what was told to die inside: all are kept");
	right("told to die, $what");

	# killed inside
	$inside = start(@$does);
	ok(stop_inside($inside), "a process that $what is stopped inside, again");
	crash($inside->{pid});
	$inside->{h}->finish;
	given_up(qr/a process died while it used them/, "a process that $what was killed inside");
	right("killed inside, $what");
}

# ---- inside the directory ----
# One that resets counters has each of the directory's locks in turn.  It is stopped where
# somebody else waits for such a lock.
$w = start('DO $$BEGIN LOOP PERFORM artidx_reset_stats(); END LOOP; END$$');
my $held = 0;
for (1 .. 500)
{
	kill 'STOP', $w->{pid};
	my ($out, $err) = ('', '');
	my $probe = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'),
			'-c', "SET application_name = 'probe'", '-c', 'SELECT count(*) FROM artidx_memory' ],
		'<', \undef, '>', \$out, '2>', \$err);
	# It may be stopped with a lock that everybody needs, so that nobody comes in.
	my $patience = time() + 5;
	while ($out eq '' && $err eq '' && !$held && time() < $patience)
	{
		$probe->pump_nb;
		$held = ask(q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'probe'
			AND wait_event = 'artidx directory'});
	}
	if ($held)
	{
		crash($w->{pid});
		$probe->finish;
		last;
	}
	kill 'CONT', $w->{pid};
	$probe->finish;
	sleep rand(0.01);
}
$w->{h}->finish if $held;
is($held, '1', "a process is stopped with a lock of the directory, and killed");
given_up(qr/a process died while it used them/, 'that gives all up');
right('killed inside the directory');

# ---- the pause ----
sql(q{ALTER SYSTEM SET art_insidetest.crash_pause = '1h'});
sql('SELECT pg_reload_conf()');
$w = victim();
crash($w->{pid});
$w->{h}->finish;
given_up(qr/the server crashed a short time before/, 'a second crash within the pause');
sql(q{ALTER SYSTEM SET art_insidetest.crash_pause = 0});
sql('SELECT pg_reload_conf()');
right('after a second crash');

# ---- a backup's label ----
my $label = $node->background_psql('postgres');
$label->query_safe('SET client_min_messages = error');
$label->query_safe(q{SELECT pg_backup_start('x', true)});
my $text = $label->query_safe('SELECT labelfile FROM pg_backup_stop(false)');
$label->quit;
$w = victim();
append_to_file($node->data_dir . '/backup_label', $text =~ s/\n*\z/\n/r);
crash($w->{pid});
$w->{h}->finish;
given_up(qr/the server starts from a backup/, "a backup's label");
right("after a backup's label");

# ---- nobody looked ----
# Without workers nobody comes to the indexes by himself.
$node->append_conf('postgresql.conf', "max_worker_processes = 0\nmax_parallel_workers = 0\n");
$node->restart;
sql("SELECT artidx_build('$_')") foreach @names;
$w = victim();
crash($w->{pid});
$w->{h}->finish;
$w = victim();
crash($w->{pid});
$w->{h}->finish;
like(outcome(), qr/do not survive the crash: what an earlier crash had left was not looked at/,
	'a second crash before anybody looked');
sql("SELECT artidx_build('$_')") foreach @names;
right('after a second crash');

# ---- a shutdown before anybody looked saves nothing ----
$w = victim();
crash($w->{pid});
$w->{h}->finish;
$node->stop;
ok(!-e $node->data_dir . '/pg_stat/artidx.saved', 'a shutdown before anybody looked saves nothing');
$node->start;
sql("SELECT artidx_build('$_')") foreach @names;
right('after a restart');

# ---- off ----
$node->append_conf('postgresql.conf', "artidx.survive_crash = off\n");
$node->restart;
sql("SELECT artidx_build('$_')") foreach @names;
$w = victim();
crash($w->{pid});
$w->{h}->finish;
is(sql("SELECT count(*) FROM artidx_indexes WHERE state = 'ready'"), '0',
	'artidx.survive_crash = off: nothing is kept');
right('off');

# ---- the postmaster ends, too ----
$node->append_conf('postgresql.conf', "artidx.survive_crash = on\nrestart_after_crash = off\n");
$node->restart;
sql("SELECT artidx_build('$_')") foreach @names;
$w = victim();
mark();
kill 'KILL', $w->{pid};
ok(logged(qr/shutting down because "?restart_after_crash"? is off/), 'restart_after_crash = off: the server ends');
$w->{h}->finish;
$node->{_pid} = undef if logged(qr/database system is shut down/);
$node->start;
is(sql("SELECT count(*) FROM artidx_indexes WHERE state = 'ready'"), '0', 'and nothing is kept');
sql("SELECT artidx_build('$_')") foreach @names;
right('restart_after_crash = off');
$node->append_conf('postgresql.conf', "restart_after_crash = on\n");

# ---- a standby ----
$node->append_conf('postgresql.conf', "artidx.survive_crash = on\nmax_worker_processes = 8\n");
$node->restart;
sql("SELECT artidx_build('$_')") foreach @names;
$w = victim();
append_to_file($node->data_dir . '/standby.signal', '');
crash($w->{pid});
$w->{h}->finish;
like(logged(qr/(after the crash: |do not survive the crash: [^\n]+)/), qr/the server starts as a standby/, 'a standby');
$node->promote;
$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
all_ready($node, 'promoted: built again');
right('promoted');

unlike(slurp_file($node->logfile), qr/PANIC|TRAP:/, 'no PANIC and no failed assertion');
$node->stop;
done_testing();
