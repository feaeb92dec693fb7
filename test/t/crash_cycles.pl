# Crash after crash under a load: processes are killed by one of three signals while
# clients read, write, prepare, vacuum, reindex, and make and drop indexes and tables, with
# commits asynchronous or not, full pages in the WAL or not.  Nobody is told a wrong
# answer, and after each crash every index is right, whether it was kept or given up: it agrees
# with its table, entry by entry and in its answers, and so do its btree twins.
# What was kept is checked under the next load.
#
# A cycle costs little more than the start of its clients, so a hundred of them take half a
# minute.  In half of the cycles nobody flushes WAL without need, so much of it is lost.
#
# SURVIVE_CYCLES says how often.  SURVIVE_SUMS names a file that keeps the sums: another run
# goes on from there.  SIGTERM ends the run after the cycle under way.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

plan skip_all => 'needs /proc' unless -r "/proc/$$/task/$$/children";

my $cycles = $ENV{SURVIVE_CYCLES} || 30;
my $sums = $ENV{SURVIVE_SUMS};
my $clients = 16;
my $renew = 50;    # cycles until all is made anew, with other structures
my $n = 2000;
my $node = art_node(
	'cycles',
	restart_after_crash => 'on',
	wal_level => 'replica',
	max_prepared_transactions => 40,
	log_line_prefix => $ArtTest::LOG_PREFIX,
	'artidx.memory' => "'256MB'",
	crash_often(),
	'artidx.build_workers' => 2);
my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
my $stop = 0;
local $SIG{TERM} = sub { $stop = 1 };

# ---- what may be asked afterwards ----

$node->append_conf('postgresql.conf', "include = 'cycle.conf'\n");

# Settings as one file, and one signal.
sub set
{
	my (%set) = @_;
	my $file = $node->data_dir . '/cycle.conf';

	open my $fh, '>', "$file.new" or die "$file: $!";
	print $fh map { "$_ = $set{$_}\n" } sort keys %set;
	close $fh;
	rename "$file.new", $file or die "$file: $!";
	kill 'HUP', $postmaster;
	return;
}

sub schema
{
	$node->safe_psql('postgres', q{
		SET client_min_messages = warning;
		DROP TABLE IF EXISTS w, made;
		DROP SEQUENCE IF EXISTS w_s;
		DROP FUNCTION IF EXISTS lie;
		DROP TABLE IF EXISTS answers;
		DROP FUNCTION IF EXISTS differences;
	});
	load_schema($node, $n);
	$node->safe_psql('postgres', q{
		ALTER INDEX w_id SET (tail_buffer = on);
		ALTER INDEX w_kid SET (tail_buffer = on);
		CREATE INDEX w_btree ON w (payload);
		-- no plan of the load's takes them
		CREATE INDEX w_id_twin ON w ((id + 0));
		CREATE INDEX w_k_twin ON w ((k + 0));
		CREATE INDEX w_t_twin ON w ((t || ''));
		CREATE INDEX w_u_twin ON w ((u::text));
		CREATE TABLE answers (index text, query text);
		INSERT INTO answers VALUES
			('w_id', 'SELECT concat(count(*), '' '', sum(id)) FROM w WHERE id > 0'),
			('w_id_twin', 'SELECT concat(count(*), '' '', sum(id)) FROM w WHERE id + 0 > 0'),
			('w_tid', 'SELECT concat(count(*), '' '', sum(id)) FROM w WHERE t > '''''),
			('w_t_twin', 'SELECT concat(count(*), '' '', sum(id)) FROM w WHERE t || '''' > '''''),
			('w_k', 'SELECT concat(count(*), '' '', sum(k)) FROM w WHERE k >= 0'),
			('w_k_twin', 'SELECT concat(count(*), '' '', sum(k)) FROM w WHERE k + 0 >= 0'),
			('w_kid', 'SELECT concat(count(*), '' '', md5(string_agg(id::text, '',''))) FROM (SELECT id FROM w WHERE k >= 0 ORDER BY k DESC NULLS LAST, id) s'),
			('w_u', 'SELECT concat(count(*), '' '', sum(id)) FROM w WHERE u >= ''00000000-0000-0000-0000-000000000000'''),
			('w_u_twin', 'SELECT concat(count(*), '' '', sum(id)) FROM w WHERE u::text > '''''),
			('w_x', 'SELECT concat(count(*), '' '', sum(id)) FROM w WHERE payload / 7 >= -1'),
			('w_part', 'SELECT concat(count(*), '' '', sum(k)) FROM w WHERE k >= 0 AND v = 1');

		-- What is wrong, in words.  The table's word counts.
		CREATE FUNCTION differences(lasting bigint) RETURNS SETOF text
		LANGUAGE plpgsql SET jit = off AS $$
		DECLARE
			r record;
			t record;
			rows bigint;
			got text;
			want text;
			detail text;
		BEGIN
			FOR r IN SELECT i.indexrelid::regclass AS index, i.indrelid::regclass AS heap,
					coalesce(pg_get_expr(i.indpred, i.indrelid), 'true') AS pred
				FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
				WHERE a.amname = 'art' AND i.indisvalid
			LOOP
				SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off;
				SET LOCAL enable_bitmapscan = off; SET LOCAL enable_seqscan = on;
				EXECUTE format('SELECT count(*) FROM %s WHERE %s', r.heap, r.pred) INTO rows;
				BEGIN
					SELECT entries, heap_tuples INTO STRICT t FROM artidx_check(r.index, true);
					IF t.entries <> rows THEN
						RETURN NEXT format('%s has %s entries for %s rows', r.index, t.entries, rows);
					END IF;
				EXCEPTION WHEN OTHERS THEN
					GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
					RETURN NEXT format('%s: %s (%s; %s)', r.index, SQLERRM, detail,
						(SELECT s FROM artidx_indexes s WHERE indexrelid = r.index));
				END;
			END LOOP;
			FOR r IN SELECT * FROM answers
			LOOP
				SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off;
				SET LOCAL enable_bitmapscan = off; SET LOCAL enable_seqscan = on;
				EXECUTE r.query INTO want;
				SET LOCAL enable_indexscan = on; SET LOCAL enable_indexonlyscan = on;
				SET LOCAL enable_seqscan = off;
				got := NULL;
				BEGIN
					-- this index, and no other
					UPDATE pg_index SET indisvalid = false
						WHERE indrelid = 'w'::regclass AND indexrelid <> r.index::regclass;
					EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || r.query INTO got;
					IF got NOT LIKE '%"Index Name": "' || r.index || '"%' THEN
						RETURN NEXT format('%s is not in the plan %s', r.index, got);
					END IF;
					EXECUTE r.query INTO got;
					RAISE EXCEPTION USING ERRCODE = 'XXBCK';
				EXCEPTION
					WHEN SQLSTATE 'XXBCK' THEN NULL;
					WHEN OTHERS THEN got := SQLERRM;
				END;
				IF got IS DISTINCT FROM want THEN
					RETURN NEXT format('%s: %s, the table: %s', r.index, got, want);
				END IF;
			END LOOP;
			SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off;
			SET LOCAL enable_seqscan = on;
			SELECT concat(count(*), ' ', sum(payload), ' ', count(DISTINCT id)) INTO got FROM w WHERE id <= lasting;
			want := concat(lasting, ' ', 7 * lasting * (lasting + 1) / 2 + 3 * lasting, ' ', lasting);
			IF got <> want THEN
				RETURN NEXT format('the rows that never change: %s, not %s', got, want);
			END IF;
			SELECT count(*) INTO rows FROM (SELECT id FROM w GROUP BY id HAVING count(*) > 1) d;
			IF rows > 0 THEN
				RETURN NEXT format('%s duplicates', rows);
			END IF;
		END $$;
	});
	return;
}

# What the server does with its WAL and its indexes after a crash is asked by one session.
my $ask = $node->basedir . '/ask.sql';
append_to_file($ask, qq{
SELECT format('ROLLBACK PREPARED %L', gid) FROM pg_prepared_xacts \\gexec
SELECT format('DROP INDEX %s', indexrelid::regclass) FROM pg_index WHERE indrelid = 'w'::regclass AND NOT indisvalid \\gexec
SELECT format('VACUUM (INDEX_CLEANUP ON) %s', c.oid::regclass) FROM pg_class c WHERE relname IN ('w', 'made') AND relkind = 'r' \\gexec
SELECT * FROM differences($n);
});

# ---- the load ----

my $twophase = $node->basedir . '/twophase.sql';
append_to_file($twophase, q{\set k random(0, 99)
SELECT nextval('w_s') AS i \gset
BEGIN;
INSERT INTO w VALUES (:i, :k, gen_random_uuid(), 'prepared ' || :i::bigint, -7, :k % 2);
PREPARE TRANSACTION 'p:i';
COMMIT PREPARED 'p:i';
DELETE FROM w WHERE id = :i;
});

# by one client only: two would rightly deadlock
my %upkeep = (
	vacuum => 'VACUUM w;',
	cleanup => 'VACUUM (INDEX_CLEANUP ON) w;',
	concurrently => 'REINDEX INDEX CONCURRENTLY w_k;',
	unique => 'REINDEX INDEX CONCURRENTLY w_id;',
	reindex => "REINDEX INDEX w_u;\nREINDEX INDEX w_kid;",
	table => 'REINDEX TABLE CONCURRENTLY w;',
	extra => "DROP INDEX IF EXISTS w_extra;\nCREATE INDEX w_extra ON w USING art ((k + id));",
	switch => join("\n", map { "ALTER INDEX w_u SET (sync = $_);\nVACUUM w;" } qw(coarse optiql olc)),
	table_made => q{DROP TABLE IF EXISTS made;
CREATE TABLE made (k int, t text COLLATE "C");
INSERT INTO made SELECT i, i FROM generate_series(1, 300) i;
CREATE INDEX made_k ON made USING art (k);
CREATE INDEX made_t ON made USING art (t, k) WITH (structure = btree);
DELETE FROM made WHERE k % 3 = 0;
INSERT INTO made SELECT i, i FROM generate_series(301, 400) i;
TRUNCATE made;
INSERT INTO made SELECT i, i FROM generate_series(1, 100) i;
});
my %calm = map { ("anew_$_" => "SELECT artidx_unload('w_$_');\nSELECT artidx_build('w_$_');\n") } qw(k u x);
append_to_file($node->basedir . "/$_->[0].sql", $_->[1])
  foreach map { [ $_, $upkeep{$_} // $calm{$_} ] } keys %upkeep, keys %calm;

sub bench
{
	my ($count, @files) = @_;
	my %l = (out => '', err => '', node => $node);

	local $ENV{PGOPTIONS} = '-c client_min_messages=warning';
	$l{h} = IPC::Run::start(
		[ 'pgbench', '-n', '-c', $count, '-T', 600, '--random-seed=' . int(rand(2**31)),
			(map { ('-f', $_) } @files), '-h', $node->host, '-p', $node->port, 'postgres' ],
		'<', \undef, '>', \$l{out}, '2>', \$l{err});
	return \%l;
}

# ---- processes ----

# [id, its title] of the server's processes that have to do with indexes
sub processes
{
	my @found;

	for my $pid (split ' ', slurp_file("/proc/$postmaster/task/$postmaster/children"))
	{
		my $title = eval { slurp_file("/proc/$pid/cmdline") } // '';

		push @found, [ $pid, $title ] if $title =~ /\[local\]|artidx/;
	}
	return @found;
}

# seconds of processor time that they have had
sub worked
{
	my $ticks = 0;

	for my $p (processes())
	{
		my $stat = eval { slurp_file("/proc/$p->[0]/stat") } // '';

		$ticks += $1 + $2 if $stat =~ /\) \S(?: \S+){10} (\d+) (\d+) /;
	}
	return $ticks / 100;
}

my %seen;
my %phase;
my $mark;

# where the time goes
sub phase
{
	my ($name) = @_;
	my $stat = slurp_file("/proc/$postmaster/stat");
	my @t = times();
	my ($now, $cpu) = (time(), $t[0] + $t[1] + $t[2] + $t[3]);

	$stat =~ /\) \S(?: \S+){10} (\d+) (\d+) (\d+) (\d+) / and $cpu += ($1 + $2 + $3 + $4) / 100;
	if (defined $name)
	{
		$phase{$name}[0] += $now - $mark->[0];
		$phase{$name}[1] += $cpu - $mark->[1];
	}
	$mark = [ $now, $cpu ];
	return;
}

# What came to the log since the cycle began, once it says something.  With a time: if it does.
my ($log, $offset);
sub logged
{
	my ($regex, $seconds) = @_;
	my $end = time() + ($seconds // $PostgreSQL::Test::Utils::timeout_default);

	for (;;)
	{
		$log = slurp_file($node->logfile, $offset);
		return 1 if $log =~ $regex;
		last if time() > $end;
		sleep 0.005;
	}
	BAIL_OUT("the log does not say $regex") if !defined $seconds;
	return 0;
}

# ---- the cycles ----

my @lies;
my $ran = 0;
my $differs = 0;

if (defined $sums && -e $sums)
{
	/^(.+): (\d+)$/ and $seen{$1} = $2 foreach split /\n/, slurp_file($sums);
}
art_seed();
schema();
while (($seen{cycles} // 0) < $cycles && !$stop)
{
	my $cycle = ($seen{cycles} // 0) + 1;
	my $flushes = rand() < 0.5;
	my %set = (
		synchronous_commit => $flushes ? 'on' : 'off',
		full_page_writes => rand() < 0.5 ? 'on' : 'off',
		# the writer of WAL is woken by each GB only
		wal_writer_delay => $flushes ? '200ms' : '10s',
		wal_writer_flush_after => $flushes ? '1MB' : '1GB');
	my $work = 0.03 + (rand() < 0.1 ? 1 : 0.15) * rand()**2;    # of a processor
	my $began = time();

	schema() if $ran > 0 && ($ran % $renew == 0 || $differs);
	$differs = 0;
	truncate $node->logfile, 0 if -s $node->logfile > 100e6;
	$offset = -s $node->logfile;
	phase();
	set(%set, 'artidx.build_workers' => 2);
	my @loads = (
		# a thread waits for a lock while it prepares, and another client of its may hold that
		load_start($node, n => $n, clients => $clients, threads => $clients,
			mode => rand() < 0.7 ? 'prepared' : 'simple'));
	my $calm = !$flushes && rand() < 0.7;    # nor does who removes entries, but for it

	push @loads, bench(1, map { $node->basedir . "/$_.sql" }
		  sort $calm ? (keys %calm, qw(vacuum cleanup)) : keys %upkeep);
	push @loads, bench(2, $twophase) if !$calm;
	phase('start');
	# longer where others have the processors
	for (my $rest = 0.03; time() < $began + 45 && worked() < $work; $rest *= 1.1)
	{
		sleep $rest;
	}
	phase('load');

	# one dies, or some at once; who does something rare is chosen more often
	my @killed;
	do
	{
		my @processes = processes();
		my @rare = grep { $_->[1] =~ /VACUUM|REINDEX|CREATE|ALTER|DROP|PREPARE|artidx (?!launcher)/ } @processes;

		for (1 .. (rand() < 0.8 ? 1 : 3))
		{
			my $from = @rare && rand() < 0.3 ? \@rare : \@processes;
			my $signal = (qw(KILL SEGV ABRT))[ int(rand(3)) ];
			my $victim = $from->[ int(rand(@$from)) ] or next;

			kill($signal, $victim->[0]) or next;
			push @killed, $signal . ($victim->[1] =~ /\[local\] ([A-Za-z ]+)|(artidx \w+)/ ? ' ' . ($1 // $2) : '');
			$seen{$signal}++;
		}
		# those that die need not read it
		set(%set, 'artidx.build_workers' => 0);
		# a worker may have ended just then
	} until (logged(qr/all server processes terminated; reinitializing/, 10));
	phase('end of all');
	logged(qr/reinitializing.*database system is ready to accept connections/s);
	phase('recovery');
	load_finish($_, stop => 1) foreach @loads;
	phase('end of clients');

	my ($rc, $out, $err);
	for my $try (1 .. 20)
	{
		($out, $err) = ('', '');
		$rc = IPC::Run::run(
			[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-f', $ask ],
			'>', \$out, '2>', \$err);
		# a builder's snapshot may keep dead rows
		last if $out !~ /has \d+ entries for/;
		sleep 0.1;
	}
	my $what = "cycle $cycle, " . join(', ', @killed, map { "$_ $set{$_}" } qw(synchronous_commit full_page_writes));
	chomp($out, $err);
	is(($rc ? '' : 'failed: ') . $out . $err, '', "$what: every index is right")
	  or $seen{differences}++, $differs = 1;
	phase('comparison');

	logged(qr/do not survive the crash: |after the crash: \d+ kept/);
	if ($log =~ /do not survive the crash: (.*)/)
	{
		$seen{"all given up, $1"}++;
	}
	elsif ($log =~ /after the crash: (\d+) kept, (\d+) given up.*\n.*; (\d+) entries of rows that are lost were removed\.(?: Given up: (.*)\.)?/)
	{
		$seen{kept} += $1;
		$seen{'kept in cycles'}++ if $1 > 0;
		$seen{removed} += $3;
		$seen{'removed in cycles'}++ if $3 > 0;
		/(\d+) (.*)/ and $seen{"given up $2"} += $1 foreach split /, /, $4 // '';
	}
	$seen{'checked in the background'} += $_ foreach $log =~ /artidx: checked (\d+) indexes/g;
	# but that the connection is lost, of which either side may hear first
	push @lies, "$what: $_" foreach server_errors($node, $offset, qr/^(57P0[123]|08\w{3})$/);
	push @lies, "$what: $_" foreach $log =~ /.*(?:TRAP:|PANIC|outlived a crash, and differs|could not be checked).*/g;
	phase('judgement');

	# no row stays for ever, nor does what is dead in the catalogs
	$node->safe_psql('postgres', "DELETE FROM w WHERE id > $n; VACUUM")
	  if $ran % 20 == 19;
	phase('upkeep');
	$seen{cycles} = $cycle;
	$ran++;
	if (defined $sums)
	{
		open my $fh, '>', "$sums.new" or die "$sums: $!";
		print $fh map { "$_: $seen{$_}\n" } sort keys %seen;
		close $fh;
		rename "$sums.new", $sums or die "$sums: $!";
	}
}
diag("$_: $seen{$_}") foreach sort keys %seen;
diag(sprintf('%-16s %.3f s, %.3f s of a processor', $_, map { $_ / ($ran || 1) } @{ $phase{$_} }))
  foreach sort { $phase{$b}[0] <=> $phase{$a}[0] } keys %phase;
is(join("\n", @lies), '', 'no client saw an error or a wrong answer, and the server found nothing wrong');
cmp_ok($seen{kept} // 0, '>', 0, 'indexes were kept');
is($seen{differences} // 0, 0, 'no difference');
$node->stop;
done_testing();
