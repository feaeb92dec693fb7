# What a standby answers through art is what its tables say, in the same snapshot,
# whatever the primary does: rows in and out, HOT and not, savepoints, aborts, prepared
# transactions, VACUUM, TRUNCATE, rewrites, indexes and partitions that come and go.
# Meanwhile the standby is restarted and killed, its follower is stopped, replay is
# paused, and a standby of the standby follows the same.  At the end it is promoted, and
# pg_rewind makes a standby of the old primary.
# REPLICA_ROUNDS is the number of such faults, REPLICA_SECONDS the length of each.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);
use ArtTest;

my $rounds = $ENV{REPLICA_ROUNDS} // 3;
my $seconds = $ENV{REPLICA_SECONDS} // 1;

art_seed();
my $primary = PostgreSQL::Test::Cluster->new('primary');
# ICU wants an encoding that it knows
$primary->init(allows_streaming => 1, extra => [ '--no-locale', '--encoding=UTF8' ]);
art_conf(
	$primary,
	max_prepared_transactions => 20,
	wal_keep_size => "'512MB'",
	wal_log_hints => 'on',
	restart_after_crash => 'on',
	allow_in_place_tablespaces => 'on',
	# without an end startup, which holds a table's lock, and a query, whose snapshot it
	# waits for, can wait for each other; with any access method
	max_standby_streaming_delay => "'2s'",
	log_line_prefix => $ArtTest::LOG_PREFIX);
$primary->start;
$primary->safe_psql('postgres', $_) foreach (
	"CREATE TABLESPACE other LOCATION ''",
	q{
	CREATE EXTENSION artidx;
	CREATE TABLE s (id bigint, k int, t text COLLATE "C", v int DEFAULT 0)
		WITH (fillfactor = 70, autovacuum_enabled = off);
	CREATE UNIQUE INDEX s_id ON s USING art (id);
	CREATE INDEX s_k ON s USING art (k);
	CREATE INDEX s_kt ON s USING art (k DESC, t) WITH (structure = btree);
	CREATE INDEX s_t ON s USING art (t);
	CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	CREATE INDEX s_icu ON s USING art (t COLLATE "de-x-icu", k);
	CREATE INDEX s_case ON s USING art (t COLLATE nocase) INCLUDE (id);
	-- errs on rows that are then rolled back
	CREATE FUNCTION odd(k bigint, t text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		RETURN (k + 1) / CASE t WHEN 'errs' THEN 0 ELSE 1 END;
	END $$;
	CREATE FUNCTION try(x int, k int) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO s SELECT i, k, CASE i WHEN x + 3 THEN 'errs' ELSE 'gone' END FROM generate_series(x, x + 5) i
			ON CONFLICT DO NOTHING;
		UPDATE s SET t = 'errs' WHERE id = x + 9;
	EXCEPTION WHEN division_by_zero THEN
		NULL;
	END $$;
	CREATE INDEX s_odd ON s USING art (odd(k, t), id);
	CREATE INDEX s_part ON s USING art (t) WHERE k < 30 AND odd(k, t) % 2 = 0;
	CREATE TABLE p (LIKE s) PARTITION BY RANGE (k);
	CREATE TABLE p0 PARTITION OF p FOR VALUES FROM (0) TO (50);
	CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (50) TO (100);
	CREATE INDEX p_id ON p USING art (id);
	CREATE INDEX p_kid ON p USING art (k, id);
	INSERT INTO s SELECT i, i % 100, 'key ' || i % 500, 0 FROM generate_series(1, 4000) i;
	INSERT INTO p SELECT i, i % 100, 'key ' || i % 500, 0 FROM generate_series(1, 4000) i;
	ANALYZE;
	-- One snapshot: that of the statement which calls it.  But the second plan knows of a partition that
	-- was attached since the first; none is detached, for the first has its lock.
	CREATE FUNCTION differ(q text) RETURNS void LANGUAGE plpgsql STABLE AS $$
	DECLARE
		parts bigint := (SELECT count(*) FROM pg_partition_tree('p'));
		a text;
		b text;
	BEGIN
		PERFORM set_config('enable_seqscan', 'off', true),
			set_config('enable_indexscan', 'on', true),
			set_config('enable_bitmapscan', 'on', true);
		EXECUTE q INTO a;
		PERFORM set_config('enable_seqscan', 'on', true),
			set_config('enable_indexscan', 'off', true),
			set_config('enable_indexonlyscan', 'off', true),
			set_config('enable_bitmapscan', 'off', true);
		EXECUTE q INTO b;
		IF a IS DISTINCT FROM b AND (q NOT LIKE '% FROM p %' OR
				parts = (SELECT count(*) FROM pg_partition_tree('p'))) THEN
			RAISE EXCEPTION 'wrong answer: % gives % through art, and % without', q, a, b
				USING ERRCODE = 'XXLIE';
		END IF;
	END $$;});
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->start;
my $cascade = PostgreSQL::Test::Cluster->new('cascade');
$cascade->init_from_backup($primary, 'b', has_streaming => 0);
$cascade->enable_streaming($standby);
$cascade->append_conf('postgresql.conf', "recovery_target_timeline = 'latest'");
$cascade->set_standby_mode;
$cascade->start;

# ---- the load ----

my %script = (
	# ---- on the primary ----
	insert => q{
INSERT INTO s SELECT i, i % 100, 'key ' || i % 500 FROM generate_series(:x::int, :x::int + :n::int) i ON CONFLICT DO NOTHING;
INSERT INTO p VALUES (:x, :k, 'key ' || :n);
},
	cold => q{
UPDATE s SET k = :k, t = 'key ' || :n WHERE id BETWEEN :x AND :x + 5;
UPDATE p SET k = :k WHERE id = :x;
},
	hot => q{
UPDATE s SET v = v + 1 WHERE id BETWEEN :x AND :x + :n;
UPDATE p SET v = v + 1 WHERE id BETWEEN :x AND :x + :n;
},
	remove => q{
DELETE FROM s WHERE id BETWEEN :x AND :x + :n;
DELETE FROM p WHERE id BETWEEN :x AND :x + 3;
},
	savepoint => q{
BEGIN;
SAVEPOINT a;
INSERT INTO s VALUES (:x, :k, 'gone') ON CONFLICT DO NOTHING;
UPDATE s SET k = :k WHERE id = :x + 1;
ROLLBACK TO a;
UPDATE s SET v = v + 1 WHERE id = :x + 1;
SAVEPOINT b;
INSERT INTO s VALUES (:x + 2, :k, 'stays') ON CONFLICT DO NOTHING;
DELETE FROM s WHERE id = :x + 3;
RELEASE b;
COMMIT;
},
	abort => q{
BEGIN;
INSERT INTO s SELECT i, :k, 'gone' FROM generate_series(:x::int, :x::int + 20) i ON CONFLICT DO NOTHING;
UPDATE s SET t = 'gone' WHERE id BETWEEN :x + 21 AND :x + 25;
DELETE FROM p WHERE id = :x;
ROLLBACK;
},
	prepare => q{
BEGIN;
INSERT INTO s VALUES (:x, :k, 'prepared') ON CONFLICT DO NOTHING;
UPDATE s SET k = :k WHERE id = :x + 1;
DELETE FROM p WHERE id = :x;
PREPARE TRANSACTION 'g:server-:client_id';
\sleep 30 ms
\if :n > 10
COMMIT PREPARED 'g:server-:client_id';
\else
ROLLBACK PREPARED 'g:server-:client_id';
\endif
},
	errs => q{
BEGIN;
SELECT try(:x, :k);
INSERT INTO s VALUES (:x + 20, :k, 'stays') ON CONFLICT DO NOTHING;
COMMIT;
},
	lock => q{
BEGIN;
SELECT count(*) FROM (SELECT 1 FROM s WHERE id BETWEEN :x AND :x + 5 FOR KEY SHARE) l;
UPDATE s SET v = v + 1 WHERE id = :x + 1;
COMMIT;
},
	# by one client; an earlier one may have been ended anywhere
	vacuum => q{
VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) s;
\sleep 50 ms
DELETE FROM s WHERE ctid > (SELECT format('(%s,1)', pg_relation_size('s') / 8192 * 2 / 3)::tid);
VACUUM (INDEX_CLEANUP ON) s;
VACUUM (INDEX_CLEANUP ON) p;
\sleep 50 ms
\if :n < 2
CHECKPOINT;
\endif
},
	ddl => q{
\if :n < 3
TRUNCATE s;
\elif :n < 6
REINDEX INDEX s_k;
\elif :n < 8
VACUUM FULL s;
\elif :n < 10
REINDEX TABLE p0;
\elif :n < 12
ALTER TABLE s SET TABLESPACE other;
INSERT INTO s VALUES (:x, :k, 'moved') ON CONFLICT DO NOTHING;
ALTER TABLE s SET TABLESPACE pg_default;
\elif :n < 14
DROP INDEX IF EXISTS s_new;
CREATE INDEX s_new ON s USING art (id, k);
\sleep 200 ms
DROP INDEX s_new;
\elif :n < 16
TRUNCATE p1;
DROP TABLE IF EXISTS p2;
BEGIN;
CREATE TABLE p2 (LIKE p);
INSERT INTO p2 SELECT i, 100 + i % 50, 'key ' || i % 500, 0 FROM generate_series(1, 1000) i;
TRUNCATE p2;
INSERT INTO p2 SELECT i, 100 + i % 50, 'key ' || i % 500, 0 FROM generate_series(1, 1000) i;
COMMIT;
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (100) TO (150);
\sleep 200 ms
ALTER TABLE p DETACH PARTITION p2;
DROP TABLE p2;
\elif :n < 18
ALTER INDEX s_t SET (structure = art);
ALTER INDEX s_t SET (structure = btree);
\else
ALTER TABLE s ALTER COLUMN k TYPE bigint;
ALTER TABLE s ALTER COLUMN k TYPE int;
\endif
\sleep 800 ms
},

	# ---- on a standby ----
	ask => q{
SELECT differ('SELECT concat(count(*), '' '', sum(k), min(t), sum(v)) FROM s WHERE id = ' || :x);
SELECT differ('SELECT concat(count(*), '' '', sum(id), sum(v)) FROM s WHERE k = ' || :k);
SELECT differ('SELECT concat(count(*), '' '', sum(id), sum(v)) FROM s WHERE t = ''key ' || :n || '''');
SELECT differ('SELECT md5(string_agg(t, '','')) FROM (SELECT t FROM s WHERE t > ''key 2'' ORDER BY t LIMIT 100) s');
SELECT differ('SELECT concat(count(*), '' '', sum(id), sum(v)) FROM s WHERE t COLLATE "de-x-icu" = ''key ' || :n || ''' AND k = ' || :k);
SELECT differ('SELECT concat(count(*), '' '', sum(id), sum(v)) FROM s WHERE t COLLATE nocase = ''KEY ' || :n || '''');
SELECT differ('SELECT concat(count(*), '' '', sum(id), sum(v)) FROM s WHERE odd(k, t) = ' || :k);
SELECT differ('SELECT concat(count(*), '' '', sum(id), sum(v)) FROM s WHERE t > ''key 3'' AND k < 30 AND odd(k, t) % 2 = 0');
SELECT differ('SELECT count(*) FROM s WHERE k BETWEEN ' || :k || ' AND ' || :k + 5);
SELECT differ('SELECT concat(count(*), '' '', sum(id), sum(v)) FROM p WHERE id BETWEEN ' || :x || ' AND ' || :x + 50);
SELECT differ('SELECT concat(count(*), '' '', sum(id), sum(v)) FROM p WHERE k = ' || :k + :n * 3);
SELECT differ('SELECT count(*) FROM s a JOIN s b ON a.id = b.id WHERE a.k = ' || :k);
},
	whole => q{
SELECT differ('SELECT concat(count(*), '' '', sum(k), sum(v)) FROM s WHERE id > 0');
SELECT differ('SELECT concat(count(*), '' '', sum(id), sum(v)) FROM s WHERE k >= 0');
SELECT differ('SELECT concat(count(*), '' '', sum(id), sum(v)) FROM s WHERE t > ''a''');
SELECT differ('SELECT md5(string_agg(t, '','')) FROM (SELECT t FROM s WHERE t COLLATE "de-x-icu" > ''key 2'' ORDER BY t COLLATE "de-x-icu" LIMIT 500) s');
SELECT differ('SELECT concat(count(*), '' '', sum(id), sum(v)) FROM p WHERE k >= 0');
},
	old => q{
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM s WHERE id = :x;
\sleep 100 ms
SELECT differ('SELECT concat(count(*), '' '', sum(k), sum(v)) FROM s WHERE id > 0');
SELECT differ('SELECT concat(count(*), '' '', sum(id), sum(v)) FROM s WHERE k = ' || :k);
COMMIT;
});

sub bench
{
	my ($node, $clients, @names) = @_;
	my %l = (out => '', err => '', node => $node);
	my @args;

	for my $name (@names)
	{
		my $file = $node->basedir . "/bench-$name.sql";

		append_to_file($file,
			"\\set x random(1, 6000)\n\\set k random(0, 99)\n\\set n random(0, 20)\n$script{$name}")
		  unless -e $file;
		push @args, '-f', $file;
	}
	local $ENV{PGOPTIONS} = '-c jit=off -c client_min_messages=warning';
	$l{h} = IPC::Run::start(
		[
			'pgbench', '-n', '-c', $clients, '-j', 1, '-T', 600, '-M', 'simple',
			'-D', 'server=' . $node->port, '--max-tries=1000', '--random-seed=' . int(rand(2**31)),
			@args, '-h', $node->host, '-p', $node->port, 'postgres'
		],
		'<', \undef, '>', \$l{out}, '2>', \$l{err});
	return \%l;
}

my @writing = qw(insert cold hot remove savepoint abort errs prepare lock);

sub write_to
{
	my ($node) = @_;

	return (bench($node, 3, @writing), bench($node, 1, 'vacuum'), bench($node, 1, 'ddl'));
}

# with any access method: the index that a plan was made for is gone, or replay went first
my $core = qr/could not open relation with OID|conflict with recovery|due to administrator command/;

sub quiet
{
	my ($name, @loads) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	load_finish($_, stop => 1) foreach @loads;
	return is(join("\n", map { grep { !/perhaps the backend died|^(PL\/pgSQL |SQL statement ")/ } load_lies($_, $core) } @loads), '', $name);
}

sub roll_back_prepared
{
	my ($node) = @_;

	$node->safe_psql('postgres', "ROLLBACK PREPARED '$_'")
	  foreach split /\n/, $node->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts');
	return;
}

# What a client has asked for goes on without it, and may wait for what was prepared.
sub at_rest
{
	my ($node) = @_;

	foreach (1 .. 600)
	{
		roll_back_prepared($node);
		return
		  if $node->safe_psql('postgres', q{SELECT (SELECT count(*) FROM pg_prepared_xacts)
			+ count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'}) eq '1';
		sleep 0.1;
	}
	die 'the clients do not end';
}

# all of them, but of no partition that is gone a moment later
my @kept = qw(s_id s_k s_kt s_t s_icu s_case s_odd s_part p0_id_idx p0_k_id_idx p1_id_idx p1_k_id_idx);

sub kept
{
	my ($node, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $list = join(', ', map { "'$_'" } @kept);
	my $ok = $node->poll_query_until('postgres',
		"SELECT count(*) = " . @kept . " FROM artidx_indexes WHERE state = 'ready' AND indexrelname IN ($list)");
	diag($node->safe_psql('postgres', 'SELECT indexrelname, state, reason FROM artidx_indexes'))
	  unless $ok;
	return ok($ok, $name);
}

sub checked
{
	my ($node, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return check_followed($node, $name, @kept);
}

# Nothing happens on the first, and the others have all of it: the same questions, there
# without an index, and on each other one with and without.
my @questions = map { "SELECT concat(count(*), ' ', sum(id), ' ', sum(k), ' ', sum(v), ' ', md5(string_agg(t, ',' ORDER BY id, t))) FROM $_" }
  's WHERE id > 0', 's WHERE k >= 0', q{s WHERE t > ''}, 's WHERE k = 7', 'p WHERE k >= 0', 'p WHERE id > 0';

sub same_everywhere
{
	my ($name, $first, @others) = @_;
	my %set = (
		art => 'SET enable_seqscan = off;',
		table => 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;');
	my $want = $first->safe_psql('postgres', join(';', $set{table}, @questions));

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $node (@others)
	{
		is($node->safe_psql('postgres', join(';', $set{$_}, @questions)), $want,
			"$name: as on the primary, by $_: " . $node->name)
		  foreach sort keys %set;
	}
	return;
}

kept($_, $_->name . ': built beside replay') foreach $standby, $cascade;
my @writers = write_to($primary);

sub follower
{
	return $standby->safe_psql('postgres',
		q{SELECT coalesce((SELECT follower_pid FROM artidx_standby WHERE database = 'postgres'), 0)});
}

my @faults = (
	[ 'nothing', sub { } ],
	[ 'the follower stands still', sub {
		my $pid = follower() or return;
		kill 'STOP', $pid;
		sleep 1;
		kill 'CONT', $pid; } ],
	[ 'replay is paused', sub {
		$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
		sleep 1;
		$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()'); } ],
	[ 'the follower is killed', sub {
		my $pid = follower() or return;
		kill_and_recover($standby, $pid); } ],
	[ 'restarted', sub { $standby->restart } ],
	[ 'crashed', sub { $standby->stop('immediate'); $standby->start } ],
	[ 'the follower is terminated', sub {
		$standby->safe_psql('postgres', 'SELECT pg_terminate_backend(' . follower() . ')') } ],
	[ 'startup is killed', sub {
		my $pid = $standby->safe_psql('postgres',
			q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'startup'});
		kill 'KILL', $pid;
		sleep 0.1 while -e $standby->data_dir . '/postmaster.pid' && kill(0, $standby->{_pid});
		$standby->{_pid} = undef;
		$standby->start; } ]);

for my $round (1 .. $rounds)
{
	my ($name, $do) = @{ $faults[ $round <= @faults ? $round - 1 : int(rand(@faults)) ] };
	my @readers = (
		bench($standby, 3, qw(ask whole old)),
		bench($cascade, 2, qw(ask whole old)));

	sleep $seconds / 2;
	$do->();
	# its clients are gone then
	my @more = bench($standby, 2, qw(ask whole old));
	sleep $seconds / 2;
	quiet("$round, $name: as the tables say", @readers, @more);
}
is(join("\n", server_errors($cascade, 0, qr/^(57P0[123]|08\w{3}|42P01|XX000|40001)$/)), '',
	'no error in the log of the cascading standby');

# ---- at rest ----
quiet('the primary saw no error', @writers);
at_rest($primary);
all_replayed($primary, $standby);
$standby->wait_for_catchup($cascade, 'replay', $primary->lsn('flush'));
cmp_ok($cascade->safe_psql('postgres', 'SELECT sum(idx_scan) FROM pg_stat_user_indexes'),
	'>', 0, 'the questions were put to art');
for my $node ($standby, $cascade)
{
	kept($node, $node->name . ': all kept at the end');
	checked($node, $node->name);
}

same_everywhere('at rest', $primary, $standby, $cascade);

# ---- promoted under load ----
@writers = write_to($primary);
my @readers = map { bench($_, 2, qw(ask whole old)) } $standby, $cascade;
sleep 1;
my $builds = 'SELECT sum(builds) FROM artidx_indexes';
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
# what the old primary had prepared would hold up the new clients
roll_back_prepared($standby);
my @new = write_to($standby);
sleep $seconds;
quiet('promoted: the readers saw no difference', @readers);
@readers = map { bench($_, 2, qw(ask whole old)) } $standby, $cascade;
sleep $seconds;
quiet('promoted: and go on', @readers);
load_finish($_, stop => 1) foreach @writers;
quiet('promoted: the new writers saw no error', @new);
at_rest($standby);
all_ready($standby, 'promoted: all ready');
check_exact($standby, 's', $_) foreach grep { /^s_/ && $_ ne 's_part' } @kept;
check_clean($standby, 's_part');
all_replayed($standby, $cascade);
kept($cascade, 'the standby of the promoted one goes on');
checked($cascade, 'the standby of the promoted one');
same_everywhere('promoted', $standby, $cascade);

# ---- the old primary comes back ----
# from a server that rests: of one that runs 15 does not know tablespaces within its directory
$_->stop foreach $primary, $standby;
my ($out, $err) = ('', '');
my $conf = slurp_file($primary->data_dir . '/postgresql.conf');
IPC::Run::run([ 'pg_rewind', '--target-pgdata=' . $primary->data_dir, '--source-pgdata=' . $standby->data_dir, '--no-sync' ],
	'>', \$out, '2>', \$err) or BAIL_OUT("pg_rewind: $out$err");
$standby->start;
open my $fh, '>', $primary->data_dir . '/postgresql.conf' or die $!;
print $fh $conf;
close $fh;
$primary->enable_streaming($standby);
$primary->set_standby_mode;
$primary->start;
kept($primary, 'the old primary, as a standby');
@new = write_to($standby);
@readers = bench($primary, 2, qw(ask whole old));
sleep $seconds;
quiet('rewound: as the tables say', @readers);
quiet('rewound: the writers saw no error', @new);
at_rest($standby);
all_replayed($standby, $primary, $cascade);
kept($_, 'rewound: all kept: ' . $_->name) foreach $primary, $cascade;
checked($_, 'rewound: ' . $_->name) foreach $primary, $cascade;
same_everywhere('rewound', $standby, $primary, $cascade);

for my $node ($standby, $cascade)
{
	is(join("\n", server_crashes($node)), '', 'nothing crashed by itself: ' . $node->name);
}
$cascade->stop;
$standby->stop;
$primary->stop;
done_testing();
