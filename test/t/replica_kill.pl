# Kill after kill on a standby, while clients of its primary insert, update, delete and
# vacuum, and clients of its own ask: the follower, the startup process, or all the
# processes of the standby at once.  Now and then the next one comes before the
# first is mended.  When the indexes are back replay is paused.  At that position every
# answer through art is that of the table, and of a btree index on the same column, and
# artidx_check finds nothing.
#
# REPLICA_KILLS says how often.  REPLICA_SUMS names a file that keeps the sums: another run
# goes on from there.  SIGTERM ends the run after the kill under way.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

plan skip_all => 'needs /proc' unless -r "/proc/$$/task/$$/children";

my $kills = $ENV{REPLICA_KILLS} || 6;
my $sums = $ENV{REPLICA_SUMS};
my @kinds = qw(follower startup standby);
my $stop = 0;
local $SIG{TERM} = sub { $stop = 1 };

art_seed();
my $primary = PostgreSQL::Test::Cluster->new('primary');
# ICU wants an encoding that it knows
$primary->init(allows_streaming => 1, extra => [ '--no-locale', '--encoding=UTF8' ]);
art_conf(
	$primary,
	wal_keep_size => "'512MB'",
	restart_after_crash => 'on',
	max_standby_streaming_delay => "'2s'",
	checkpoint_timeout => "'30s'",
	log_line_prefix => $ArtTest::LOG_PREFIX);
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION artidx;
	CREATE TABLE s (id bigint, k int, t text COLLATE "C", v int DEFAULT 0)
		WITH (fillfactor = 70, autovacuum_enabled = off);
	CREATE UNIQUE INDEX s_id ON s USING art (id);
	CREATE INDEX s_k ON s USING art (k);
	-- not on (t, id): that may cost less than s_id for "id > 0"
	CREATE INDEX s_tid ON s USING art (t) INCLUDE (id) WITH (structure = btree);
	CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	CREATE INDEX s_icu ON s USING art (t COLLATE "de-x-icu", k);
	CREATE INDEX s_case ON s USING art (t COLLATE nocase) INCLUDE (id);
	CREATE FUNCTION odd(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN 2 * k + 1; END $$;
	CREATE INDEX s_odd ON s USING art (odd(k), t) WHERE k % 3 > 0;
	-- no plan of the load's takes them
	CREATE INDEX s_id_twin ON s ((id + 0));
	CREATE INDEX s_k_twin ON s ((k + 0));
	CREATE INDEX s_t_twin ON s ((t || ''));
	INSERT INTO s SELECT i, i % 100, 'key ' || i % 500 FROM generate_series(1, 6000, 2) i;
	ANALYZE s;
	CREATE TABLE answers (index text, query text);
	INSERT INTO answers VALUES
		('s_id', 'SELECT concat(count(*), '' '', sum(id), '' '', sum(v)) FROM s WHERE id > 0'),
		('s_id_twin', 'SELECT concat(count(*), '' '', sum(id), '' '', sum(v)) FROM s WHERE id + 0 > 0'),
		('s_k', 'SELECT concat(count(*), '' '', sum(k), '' '', sum(id)) FROM s WHERE k >= 0'),
		('s_k_twin', 'SELECT concat(count(*), '' '', sum(k), '' '', sum(id)) FROM s WHERE k + 0 >= 0'),
		('s_tid', 'SELECT concat(count(*), '' '', min(t), '' '', sum(id)) FROM s WHERE t > ''a'''),
		('s_icu', 'SELECT md5(string_agg(concat(t, k), '','')) FROM (SELECT t, k FROM s ORDER BY t COLLATE "de-x-icu", k) o'),
		('s_case', 'SELECT concat(count(*), '' '', sum(id), '' '', sum(v)) FROM s WHERE t COLLATE nocase > ''A'''),
		('s_odd', 'SELECT concat(count(*), '' '', sum(id), '' '', min(t)) FROM s WHERE odd(k) > 0 AND k % 3 > 0'),
		('s_t_twin', 'SELECT concat(count(*), '' '', min(t), '' '', sum(id)) FROM s WHERE t || '''' > ''a''');

	-- The same twice, in one snapshot: without an index, and with one.
	CREATE FUNCTION differ(q text) RETURNS SETOF text LANGUAGE plpgsql STABLE SET jit = off AS $$
	DECLARE
		got text;
		want text;
	BEGIN
		PERFORM set_config(n, 'off', true) FROM unnest(ARRAY['enable_indexscan', 'enable_bitmapscan',
			'enable_indexonlyscan']) n;
		PERFORM set_config('enable_seqscan', 'on', true);
		EXECUTE q INTO want;
		PERFORM set_config(n, 'on', true) FROM unnest(ARRAY['enable_indexscan', 'enable_bitmapscan']) n;
		PERFORM set_config('enable_seqscan', 'off', true);
		EXECUTE q INTO got;
		IF got IS DISTINCT FROM want THEN
			RETURN NEXT format('wrong answer: %s, the table: %s, of %s', got, want, q);
		END IF;
	END $$;
	CREATE FUNCTION not_used(index text, q text) RETURNS SETOF text LANGUAGE plpgsql
	SET enable_seqscan = off AS $$
	DECLARE
		plan text;
	BEGIN
		EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || q INTO plan;
		IF plan NOT LIKE '%"Index Name": "' || index || '"%' THEN
			RETURN NEXT format('it is not in the plan %s', plan);
		END IF;
	END $$;
	CREATE FUNCTION must_agree(q text) RETURNS void LANGUAGE plpgsql STABLE AS $$
	DECLARE
		r text;
	BEGIN
		FOR r IN SELECT differ(q) LOOP
			RAISE EXCEPTION '%', r USING ERRCODE = 'XXLIE';
		END LOOP;
	END $$;
});
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->start;

# ---- the load ----

my %script = (
	write => q{
INSERT INTO s SELECT i, :k, 'key ' || :n FROM generate_series(:x::int, :x::int + :n::int) i ON CONFLICT DO NOTHING;
UPDATE s SET k = :k, t = 'key ' || :n WHERE id BETWEEN :x + 30 AND :x + 33;
UPDATE s SET v = v + 1 WHERE id BETWEEN :x + 40 AND :x + 45;
DELETE FROM s WHERE id BETWEEN :x + 60 AND :x + 60 + :n;
BEGIN;
INSERT INTO s VALUES (:x + 90, :k, 'gone') ON CONFLICT DO NOTHING;
UPDATE s SET k = :k WHERE id = :x + 91;
ROLLBACK;
},
	vacuum => q{
VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) s;
\sleep 60 ms
\if :n < 2
DELETE FROM s WHERE ctid > (SELECT format('(%s,1)', pg_relation_size('s') / 8192 * 3 / 4)::tid);
VACUUM (INDEX_CLEANUP ON) s;
CHECKPOINT;
\endif
},
	ask => q{
SELECT must_agree('SELECT concat(count(*), '' '', sum(k), min(t), sum(v)) FROM s WHERE id = ' || :x);
SELECT must_agree('SELECT concat(count(*), '' '', sum(id), sum(v)) FROM s WHERE k = ' || :k);
SELECT must_agree('SELECT concat(count(*), '' '', sum(id), sum(v)) FROM s WHERE t = ''key ' || :n || '''');
SELECT must_agree('SELECT concat(count(*), '' '', sum(id), sum(v)) FROM s WHERE t COLLATE nocase = ''KEY ' || :n || '''');
SELECT must_agree('SELECT concat(count(*), '' '', sum(id), sum(v)) FROM s WHERE id > 0');
});

# so many clients, so many transactions a second
sub bench
{
	my ($node, $clients, $rate, $name) = @_;
	my %l = (out => '', err => '', node => $node);
	my $file = $node->basedir . "/bench-$name.sql";

	append_to_file($file, "\\set x random(1, 6000)\n\\set k random(0, 99)\n\\set n random(0, 20)\n$script{$name}")
	  unless -e $file;
	local $ENV{PGOPTIONS} = '-c jit=off';
	$l{h} = IPC::Run::start(
		[
			'pgbench', '-n', '-c', $clients, '-R', $rate, '-T', 36000, '--max-tries=1000',
			'--random-seed=' . int(rand(2**31)), '-f', $file, '-h', $node->host, '-p', $node->port,
			'postgres'
		],
		'<', \undef, '>', \$l{out}, '2>', \$l{err});
	return \%l;
}

# ---- processes ----

sub state_of
{
	my ($pid) = @_;
	my $stat = eval { slurp_file("/proc/$pid/stat") } // '';

	return $stat =~ /\) (\S)/ ? $1 : 'X';
}

# until nobody but the one who is to reap them knows of them
sub gone
{
	foreach my $pid (@_)
	{
		sleep 0.01 until state_of($pid) =~ /[XZ]/;
	}
	return;
}

sub postmaster
{
	my ($pid) = slurp_file($standby->data_dir . '/postmaster.pid') =~ /^(\d+)/;

	return $pid;
}

sub children
{
	my ($postmaster) = @_;

	return split ' ', eval { slurp_file("/proc/$postmaster/task/$postmaster/children") } // '';
}

# The process with this in its title, once there is one.
sub process
{
	my ($title) = @_;
	my $postmaster = postmaster();
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;

	while (time() < $end)
	{
		foreach my $pid (children($postmaster))
		{
			return $pid if (eval { slurp_file("/proc/$pid/cmdline") } // '') =~ $title;
		}
		sleep 0.02;
	}
	die "no process with $title in its title";
}

# The postmaster has ended: start another.
sub start_again
{
	my ($postmaster) = @_;
	my $file = $standby->data_dir . '/postmaster.pid';

	gone($postmaster);
	# where nobody reaps it, it would be taken for alive
	unlink $file, $standby->host . '/.s.PGSQL.' . $standby->port . '.lock'
	  if state_of($postmaster) eq 'Z';
	$standby->{_pid} = undef;
	return $standby->start;
}

my %kill = (
	follower => sub {
		my $pid = process(qr/artidx follower/);

		kill 'KILL', $pid;
		gone($pid);
		return sub { comes_back($standby, $pid) or die 'the server does not come back' };
	},
	startup => sub {
		my $postmaster = postmaster();

		kill 'KILL', process(qr/startup/);
		return sub { start_again($postmaster) };
	},
	standby => sub {
		my $postmaster = postmaster();
		my @pids = children($postmaster);

		kill 'KILL', $postmaster, @pids;
		gone(@pids);
		return sub { start_again($postmaster) };
	});

# ---- comparison ----

my $ready = q{SELECT count(*) = 6 FROM artidx_indexes WHERE state = 'ready'};
my $compare = $standby->basedir . '/compare.sql';
append_to_file($compare, q{
SELECT format('%s: %s', index, not_used(index, query)) FROM answers;
SELECT format('%s: %s', index, differ(query)) FROM answers;
SELECT format('%s answers', count(*)) FROM answers HAVING count(*) <> 9;
SELECT format('%s indexes are checked', count(*)) FROM unnest(ARRAY['s_id', 's_k', 's_tid', 's_icu', 's_case', 's_odd']) i, artidx_check(i::regclass, true) HAVING count(*) <> 6;
SELECT format('%s duplicates', count(*)) FROM (SELECT id FROM s GROUP BY id HAVING count(*) > 1) d HAVING count(*) > 0;
});

# Replay stands still meanwhile, and the follower has come there.  What is different, in words.
sub differences
{
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;
	my $locked = q{SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock'};
	my $at_rest = q{SELECT pg_get_wal_replay_pause_state() = 'paused' AND lag_bytes = 0
		FROM artidx_standby WHERE database = 'postgres'};
	my ($out, $err);

	for (;;)
	{
		$standby->poll_query_until('postgres', $ready) or return 'not ready: '
		  . $standby->safe_psql('postgres', 'SELECT indexrelname, state, reason FROM artidx_indexes');
		# replay may go first, and end whatever asks
		$standby->poll_query_until('postgres', 'SELECT pg_wal_replay_pause() IS NOT NULL');
		$standby->poll_query_until('postgres', $at_rest) or return 'the follower does not come to replay';
		($out, $err) = ('', '');
		# it stands in the middle of a VACUUM that cuts the table off, and has that locked
		if ($standby->safe_psql('postgres', $locked) ne '0')
		{
			$standby->psql('postgres', 'SELECT pg_wal_replay_resume()');
			next;
		}
		IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $standby->connstr('postgres'), '-f', $compare ],
			'>', \$out, '2>', \$err);
		$standby->psql('postgres', 'SELECT pg_wal_replay_resume()');
		# one that was closed just before, and is begun again
		last if "$out$err" !~ /is not in memory on this standby|is not in the plan/ || time() > $end;
	}
	chomp($out, $err);
	return $out . $err;
}

# ---- the kills ----

my %seen;
my $ran = 0;
my @lies;
my $core = qr{conflict with recovery|due to administrator command|due to unexpected postmaster exit};

if (defined $sums && -e $sums)
{
	/^(.+): (\d+)$/ and $seen{$1} = $2 foreach split /\n/, slurp_file($sums);
}
my @writers = (bench($primary, 4, 150, 'write'), bench($primary, 1, 10, 'vacuum'));
is(differences(), '', 'before the first kill');
while (($seen{kills} // 0) < $kills && !$stop)
{
	my $n = $seen{kills} // 0;
	my $kind = $kinds[ $n < @kinds ? $n : int(rand(@kinds)) ];
	my $again = rand() < 0.2;
	my $readers = bench($standby, 2, 50, 'ask');
	my $offset = -s $standby->logfile;

	sleep 0.2 + rand() / 2;
	my $mend = $kill{$kind}->();
	$seen{$kind}++;
	$seen{kills}++;
	if ($again)
	{
		# while it recovers, or begins its indexes again
		$kind eq 'follower' ? sleep rand() / 4 : $mend->();
		sleep rand() / 4;
		my $second = $kinds[ 1 + int(rand(2)) ];
		$mend = $kill{$second}->();
		$seen{$second}++;
		$seen{kills}++;
		$seen{'before the last was mended'}++;
		$kind .= " and $second";
	}
	$mend->();
	load_finish($readers, stop => 1);
	push @lies, map { "$kind: $_" } load_lies($readers, $core);
	is(differences(), '', "kill $seen{kills}, $kind: as the tables say, and as btree") or $seen{differences}++;
	push @lies, map { "$kind: $_" } grep { /TRAP:|PANIC|terminated by signal (?!9:)/ }
	  split /\n/, slurp_file($standby->logfile, $offset);
	foreach my $w (@writers)
	{
		load_running($w) or BAIL_OUT("a writer has ended: $w->{err}");
	}
	if ($ran++ % 20 == 19)
	{
		# what is to be replayed again stays short
		$_->safe_psql('postgres', 'CHECKPOINT') foreach $primary, $standby;
		truncate $_->logfile, 0 foreach grep { -s $_->logfile > 100e6 } $primary, $standby;
	}
	if (defined $sums)
	{
		open my $fh, '>', "$sums.new" or die "$sums: $!";
		print $fh map { "$_: $seen{$_}\n" } sort keys %seen;
		close $fh;
		rename "$sums.new", $sums or die "$sums: $!";
	}
}
load_finish($_, stop => 1) foreach @writers;
is(join("\n", @lies, map { load_lies($_) } @writers), '', 'no client saw an error or a wrong answer');
all_replayed($primary, $standby);
is(differences(), '', 'at the end');
is($standby->safe_psql('postgres', 'SELECT concat(count(*), sum(id), sum(k), sum(v), md5(string_agg(t, \'\' ORDER BY id))) FROM s'),
	$primary->safe_psql('postgres', 'SELECT concat(count(*), sum(id), sum(k), sum(v), md5(string_agg(t, \'\' ORDER BY id))) FROM s'),
	'and as the primary says');
$seen{differences} //= 0;
diag("$_: $seen{$_}") foreach grep { $_ ne 'differences' } sort keys %seen;
diag("differences $seen{differences}");
is($seen{differences}, 0, 'no difference');
$standby->stop;
$primary->stop;
done_testing();
