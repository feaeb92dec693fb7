# Unlogged tables over restart, crash, standby and promotion; temporary tables
# over every way in which a session can end, many of them, and whether the
# memory comes back.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $scan = 'SET enable_seqscan = off; SET jit = off; ';

# ---- unlogged ----
my $node = PostgreSQL::Test::Cluster->new('unlogged');
$node->init(allows_streaming => 1);
art_conf($node,
	max_prepared_transactions => 5,
	restart_after_crash => 'on',
	log_line_prefix => $ArtTest::LOG_PREFIX);
$node->start;
my $offset = -s $node->logfile;
$node->safe_psql('postgres', q{
	CREATE EXTENSION artidx;
	CREATE TABLE logged (id int, k int);
	CREATE UNIQUE INDEX logged_id ON logged USING art (id);
	INSERT INTO logged SELECT i, i % 50 FROM generate_series(1, 3000) i;
	CREATE UNLOGGED TABLE u (id int, k int, t text COLLATE "C");
	CREATE UNIQUE INDEX u_id ON u USING art (id);
	CREATE INDEX u_k ON u USING art (k) WITH (structure = btree);
	CREATE INDEX u_x ON u USING art ((upper(t)), k) WHERE k > 10;
	CREATE INDEX u_n ON u USING art ((ARRAY[id]));
	INSERT INTO u SELECT i, i % 50, 't' || i FROM generate_series(1, 3000) i;
	ANALYZE u; ANALYZE logged;
});
my @indexes = indexes_of($node, 'u');
is(scalar(@indexes), 4, 'an unlogged table with four art indexes');

# what the index knows of the table, and the table of itself
sub verify_u
{
	my ($server, $rows, $what) = @_;

	for my $query (
		'SELECT count(*) FROM u WHERE id > 0',
		'SELECT count(*) FROM u WHERE k = 7',
		q{SELECT count(*) FROM u WHERE upper(t) >= 'T2' AND k > 10},
		'SELECT count(*) FROM u WHERE ARRAY[id] > ARRAY[5]',
		'SELECT sum(id) FROM (SELECT id FROM u ORDER BY id DESC LIMIT 9) x')
	{
		same_answer($server, $query, "$what: $query");
	}
	is($server->safe_psql('postgres', 'SELECT count(*) FROM u'),
		$rows, "$what: $rows rows");
	$_ eq 'u_x' ? check_clean($server, $_) : check_exact($server, 'u', $_) for @indexes;
	return;
}

verify_u($node, 3000, 'at first');

# a clean restart keeps the rows, and the structures come from the saved file
$node->restart;
all_ready($node, 'after a restart all are there again');
is( $node->safe_psql('postgres',
		q{SELECT string_agg(indexrelname || ' ' || last_build_source, ', ' ORDER BY indexrelname) FROM artidx_indexes}),
	'logged_id load, u_id load, u_k load, u_n rebuild, u_x load',
	'loaded, but for the one whose keys are compared');
verify_u($node, 3000, 'after a restart');
fails_with($node, 'INSERT INTO u VALUES (5)', '23505', qr/u_id/, 'after a restart');

# a crash empties the table
$node->stop('immediate');
$node->start;
is( $node->safe_psql('postgres', "$scan INSERT INTO u VALUES (5, 5, 't5'); SELECT count(*) FROM u WHERE id = 5"),
	1, 'after a crash a key that was there before is free');
all_ready($node, 'after a crash all are built');
verify_u($node, 1, 'after a crash');
is($node->safe_psql('postgres', "$scan SELECT count(*) FROM logged WHERE id > 0"),
	3000, 'and the logged one is complete');

# the cycle after a process was killed, the postmaster going on; what a
# prepared transaction had inserted is gone as well
$node->safe_psql('postgres', q{
	INSERT INTO u SELECT i, i % 50, 't' || i FROM generate_series(100, 200) i;
	BEGIN;
	INSERT INTO u SELECT i, i % 50, 't' || i FROM generate_series(1000, 1100) i;
	INSERT INTO logged SELECT i, 1 FROM generate_series(4000, 4100) i;
	PREPARE TRANSACTION 'p';});
my $victim = $node->background_psql('postgres');
my $pid = $victim->query_safe('SELECT pg_backend_pid()');
kill 'KILL', $pid;
ok(comes_back($node, $pid), 'the server comes back');
eval { $victim->quit };
is( $node->safe_psql('postgres', "$scan SELECT count(*) FROM u WHERE id > 0"),
	0, 'nothing is left in the unlogged table');
$node->safe_psql('postgres', q{COMMIT PREPARED 'p'});
all_ready($node, 'after a killed process all are built');
verify_u($node, 0, 'after a killed process');
is($node->safe_psql('postgres', "$scan SELECT count(*) FROM logged WHERE id > 0"),
	3101, 'what was prepared is in the logged table');

# The saved file of a clean shutdown is never believed after a crash, not even
# if somebody keeps the very file over its claim.
$node->safe_psql('postgres',
	q{INSERT INTO u SELECT i, i % 50, 't' || i FROM generate_series(1, 500) i});
$node->stop('fast');
my $saved = $node->data_dir . '/pg_stat/artidx.saved';
ok(-s $saved, 'a saved file');
link($saved, "$saved.kept") or die "link: $!";
$node->start;
all_ready($node, 'loaded from it');
verify_u($node, 500, 'loaded from it');
$node->stop('immediate');
ok(!-e $saved, 'it is not there any more');
rename("$saved.kept", $saved) or die "rename: $!";
my $log = -s $node->logfile;
$node->start;
all_ready($node, 'after a crash with an old file');
like(slurp_file($node->logfile, $log),
	qr/artidx\.saved" is not used: the server was not cleanly shut down/,
	'the old file is refused');
verify_u($node, 0, 'after a crash with an old file');

# LOGGED and UNLOGGED, over crashes
$node->safe_psql('postgres', q{
	INSERT INTO u SELECT i, i % 50, 't' || i FROM generate_series(1, 300) i;
	ALTER TABLE u SET LOGGED;
	ALTER TABLE logged SET UNLOGGED;
	INSERT INTO u SELECT i, i % 50, 't' || i FROM generate_series(301, 400) i;});
$node->stop('immediate');
$node->start;
all_ready($node, 'made logged');
verify_u($node, 400, 'made logged');
is($node->safe_psql('postgres', "$scan SELECT count(*) FROM logged WHERE id > 0"),
	0, 'made unlogged: empty after a crash');
check_exact($node, 'logged', 'logged_id');
$node->safe_psql('postgres', q{
	ALTER TABLE logged SET LOGGED;
	BEGIN; ALTER TABLE u SET UNLOGGED; INSERT INTO u VALUES (9999); ROLLBACK;});
verify_u($node, 400, 'rolled back');
$node->safe_psql('postgres', 'ALTER TABLE u SET UNLOGGED');
verify_u($node, 400, 'made unlogged');

# a standby, and its promotion
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
$node->safe_psql('postgres', q{
	INSERT INTO u SELECT i, i % 50, 't' || i FROM generate_series(501, 600) i;
	CREATE INDEX u_later ON u USING art (k DESC);
	INSERT INTO logged SELECT i, i % 50 FROM generate_series(1, 3000) i;});
all_replayed($node, $standby);
fails_with($standby, 'SELECT count(*) FROM u WHERE id = 5', '0A000',
	qr/cannot access temporary or unlogged relations during recovery/,
	'standby: core\'s refusal');
fails_with($standby, q{SELECT artidx_build('u_id')}, '55000',
	qr/during recovery/, 'standby: artidx_build');
is( $standby->safe_psql('postgres',
		q{SELECT string_agg(DISTINCT state || ' ' || reason, ', ') FROM artidx_indexes WHERE relname = 'u'}),
	'absent recovery', 'standby: the view shows them');
is($standby->safe_psql('postgres', "$scan SELECT count(*) FROM logged WHERE id > 0"),
	3000, 'standby: the logged table');
$standby->promote;
push @indexes, 'u_later';
is( $standby->safe_psql('postgres', "$scan INSERT INTO u VALUES (5, 5, 't5'); SELECT count(*) FROM u WHERE id > 0"),
	1, 'promoted: empty, and unique');
fails_with($standby, 'INSERT INTO u VALUES (5)', '23505', qr/u_id/, 'promoted');
all_ready($standby, 'promoted: all are built');
verify_u($standby, 1, 'promoted');
$standby->restart;
verify_u($standby, 1, 'promoted and restarted');
$standby->stop;
verify_u($node, 500, 'the primary');
is_deeply([ grep { !/^XX000 FATAL: .*terminat/ } server_errors($node, $offset, qr/^(23505|57P0\d)$/) ],
	[], 'no other error');
is(join('|', server_crashes($node, $offset)), '', 'no crash but the one that was wanted');
$node->stop;

# ---- temporary ----

# a statement that is to fail: query_safe would meet what it says
sub refused
{
	my ($session, $sql) = @_;

	$session->query($sql);
	my $said = $session->{stderr};
	$session->{stderr} = '';
	return $said =~ /ERROR/;
}

$node = art_node(
	'temporary',
	autovacuum_naptime => "'1s'",
	restart_after_crash => 'on',
	log_line_prefix => $ArtTest::LOG_PREFIX);
$offset = -s $node->logfile;
my $make = q{
	CREATE TEMP TABLE tt (id int, k int, t text COLLATE "C");
	CREATE UNIQUE INDEX tt_id ON tt USING art (id);
	CREATE INDEX tt_k ON tt USING art (k);
	CREATE INDEX tt_t ON tt USING art (t, k) WITH (structure = btree);
	INSERT INTO tt SELECT i, i % 50, 'text ' || i FROM generate_series(1, 4000) i;
	ANALYZE tt;};
# (once, so that what lasts for ever is there)
$node->safe_psql('postgres', $make);
my $used = $node->safe_psql('postgres', 'SELECT used_bytes FROM artidx_memory');
my $temps = q{SELECT count(*) FROM artidx_indexes WHERE schemaname ~ '^pg_temp'};
is($node->safe_psql('postgres', $temps), 0, 'the session is over, and its indexes');

# no transaction number is taken when ON COMMIT DELETE ROWS makes an index
# again, or every commit would wait for the disk
is( $node->safe_psql('postgres', q{
	CREATE TEMP TABLE d (k int) ON COMMIT DELETE ROWS;
	CREATE INDEX d_k ON d USING art (k);
	CREATE TEMP TABLE x AS SELECT pg_snapshot_xmax(pg_current_snapshot()) AS before;
	SELECT 1;
	BEGIN; SELECT count(*) FROM d; COMMIT;
	BEGIN; SELECT count(*) FROM d; COMMIT;
	SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint - before::text::bigint FROM x}),
	"1\n0\n0\n1", 'two commits took no transaction number, CREATE TABLE AS one');

my @sessions = map { $node->background_psql('postgres', on_error_stop => 0) } (1 .. 12);
$_->query_safe($make) for @sessions;
is($node->safe_psql('postgres', $temps), 36, 'twelve sessions with three indexes each');
my $lies = 0;
for my $s (@sessions)
{
	$s->query_safe('SET enable_seqscan = off');
	$lies++ if $s->query_safe('SELECT count(*) FROM tt WHERE k = 7') ne '80';
	$lies++ if $s->query_safe(q{SELECT id FROM tt WHERE t = 'text 77'}) ne '77';
	$lies++ unless refused($s, 'INSERT INTO tt VALUES (1)');
	$lies++ if $s->query_safe('SELECT count(*) FROM tt WHERE id = 1') ne '1';
	$s->query_safe('DELETE FROM tt WHERE id % 2 = 0');
	$s->query_safe('VACUUM tt');
	$lies++ if $s->query_safe('SELECT count(*) FROM tt WHERE k = 7') ne '80';
	$lies++ if $s->query_safe('SELECT count(*) FROM tt WHERE k = 8') ne '0';
	$lies++ if $s->query_safe(q{SELECT count(*) FROM artidx_check('tt_k', true)}) ne '1';
}
is($lies, 0, 'each sees its own rows by its own indexes');
like($sessions[0]->query_safe('EXPLAIN (COSTS OFF) SELECT count(*) FROM tt WHERE k = 7'),
	qr/tt_k/, 'and uses them');

# parallel plans leave temporary tables to the leader
unlike($sessions[0]->query_safe(q{
	SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
	SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0;
	EXPLAIN (COSTS OFF) SELECT count(*) FROM tt WHERE k < 40}),
	qr/Gather/, 'no workers on a temporary table');

# another session's
my $other = $sessions[1]->query_safe(q{SELECT 'tt_k'::regclass::oid});
for my $f ('artidx_build(%s::oid::regclass)', 'artidx_unload(%s::oid::regclass)',
	'artidx_reset_stats(%s::oid::regclass)')
{
	fails_with($node, 'SELECT ' . sprintf($f, $other), '0A000',
		qr/cannot access temporary indexes of other sessions/, $f);
}
fails_with($node, "SELECT * FROM artidx_check($other, true)", '0A000',
	qr/cannot check temporary index "tt_k" of another session/, 'artidx_check');
my $schema = $sessions[1]->query_safe(q{SELECT relnamespace::regnamespace FROM pg_class WHERE oid = 'tt'::regclass});
fails_with($node, "SELECT count(*) FROM $schema.tt WHERE k = 7", '0A000',
	qr/cannot access temporary tables of other sessions/, 'a query');
is( $node->safe_psql('postgres',
		"SELECT state, entries FROM artidx_indexes WHERE indexrelid = $other"),
	'ready|2000', 'the view shows it');
is($sessions[1]->query_safe('SELECT count(*) FROM tt WHERE k = 7'), '80',
	'and its own session has it');

# every way to end
$sessions[$_]->quit for (0 .. 3);
for my $i (4 .. 5)
{
	$sessions[$i]->query_safe('BEGIN; CREATE TEMP TABLE more (k int) ON COMMIT DROP;
		CREATE INDEX ON more USING art (k); INSERT INTO more SELECT generate_series(1, 1000);
		TRUNCATE tt; INSERT INTO tt VALUES (1)');
	$sessions[$i]->quit;
}
for my $i (6 .. 9)
{
	my $p = $sessions[$i]->query_safe('SELECT pg_backend_pid()');

	$sessions[$i]->query_safe('BEGIN; REINDEX TABLE tt; SAVEPOINT s; TRUNCATE tt') if $i % 2;
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($p, 10000)");
	eval { $sessions[$i]->quit };
}
$sessions[10]->query_safe('DISCARD TEMP');
$sessions[11]->query_safe('DROP TABLE tt');
ok($node->poll_query_until('postgres', "SELECT ($temps) = 0"), 'all are gone');
is($node->safe_psql('postgres', 'SELECT indexes FROM artidx_memory'), 0,
	'no structure is left');
memory_returns($node, $used, 512 * 1024, 'the memory comes back');
$sessions[$_]->query_safe($make) for (10 .. 11);
is($sessions[10]->query_safe('SET enable_seqscan = off; SELECT count(*) FROM tt WHERE k = 7'), '80',
	'a session that discarded makes new ones');
$sessions[$_]->quit for (10 .. 11);

# an error at the end of a build, and a cancelled one
my $s = $node->background_psql('postgres', on_error_stop => 0);
$s->query_safe($make . q{CREATE FUNCTION pg_temp.slow(int) RETURNS int IMMUTABLE LANGUAGE plpgsql
	AS $$ BEGIN PERFORM pg_sleep(0.01); RETURN $1; END $$;});
ok(refused($s, $_), "refused: $_")
  for ('CREATE UNIQUE INDEX ON tt USING art (k)',
	'CREATE INDEX ON tt USING art ((1 / (id - 4000)))',
	q{SET statement_timeout = '20ms'; CREATE INDEX ON tt USING art (pg_temp.slow(id))});
$s->query_safe('RESET statement_timeout');
is($s->query_safe($temps), 3, 'of failed builds nothing stays');
is($s->query_safe('SELECT count(*) FROM tt WHERE k = 7'), 80, 'nor is anything lost');
$s->quit;
ok($node->poll_query_until('postgres', 'SELECT indexes = 0 FROM artidx_memory'),
	'nothing is left of it');

# A crash leaves temporary tables in the catalog.  They are shown, nobody
# tries to build their indexes, and whoever comes upon them removes them.
$s = $node->background_psql('postgres', on_error_stop => 0);
$s->query_safe($make);
my $dead = $s->query_safe('SELECT pg_backend_pid()');
kill 'KILL', $dead;
ok(comes_back($node, $dead), 'the server comes back');
eval { $s->quit };
is($node->safe_psql('postgres', $temps), 3, 'orphans');
is( $node->safe_psql('postgres',
		q{SELECT string_agg(DISTINCT state, ', ') FROM artidx_indexes WHERE schemaname ~ '^pg_temp'}),
	'absent', 'which are absent');
# as many sessions at a time as there are slots that may have had it
@sessions = map { $node->background_psql('postgres', on_error_stop => 0) } (1 .. 5);
$_->query_safe($make) for @sessions;
$lies = 0;
$lies++ for grep { $_->query_safe('SET enable_seqscan = off; SELECT count(*) FROM tt WHERE k = 7') ne '80' } @sessions;
is($lies, 0, 'who gets the slot of the dead one has his own rows');
$_->quit for @sessions;
$node->append_conf('postgresql.conf', "autovacuum = on");
$node->reload;
ok($node->poll_query_until('postgres', "SELECT ($temps) = 0"),
	'none is left, or autovacuum removes the rest');
is($node->safe_psql('postgres', 'SELECT indexes FROM artidx_memory'), 0,
	'no structure is left');
is_deeply([ server_errors($node, $offset, qr/^(23505|57P0\d|57014|22012|0A000)$/) ],
	[], 'no other error');
is(join('|', server_crashes($node, $offset)), '', 'no crash but the one that was wanted');
$node->stop;

# ---- the memory full of temporary indexes ----
# Two of them have no room, and one has, also if its keys come in any order or in several loads.
$node = art_node('full', 'artidx.memory' => "'16MB'", 'artidx.temp_limit' => "'100%'", work_mem => "'16MB'",
	temp_buffers => "'8MB'", log_line_prefix => $ArtTest::LOG_PREFIX);
$offset = -s $node->logfile;
$node->safe_psql('postgres', q{
	CREATE TABLE p (id int);
	CREATE UNIQUE INDEX p_id ON p USING art (id);
	INSERT INTO p SELECT generate_series(1, 20000);});
my @full = map { $node->background_psql('postgres', on_error_stop => 0) } (1, 2);
for my $f (@full)
{
	$f->query_safe(q{SET client_min_messages = error;
		CREATE TEMP TABLE f (id int, t text COLLATE "C");
		CREATE INDEX f_t ON f USING art (t);});
	$f->query_safe(q{INSERT INTO f SELECT i, md5(i::text) FROM generate_series(1, 160000) i});
}
cmp_ok($node->safe_psql('postgres', 'SELECT sealed FROM artidx_memory'),
	'>', 0, 'a temporary index was sealed');
for my $f (@full)
{
	is($f->query_safe(q{SET enable_seqscan = off; SELECT id FROM f WHERE t = md5('77')}),
		77, 'the answer is right');
}
$node->safe_psql('postgres', 'INSERT INTO p SELECT generate_series(20001, 30000)');
is($node->safe_psql('postgres', 'SELECT count(*) FROM p WHERE id > 100'), 29900,
	'others get on');
$full[0]->query_safe('TRUNCATE f');
$full[0]->quit;
# with the memory free again the other session builds its own again
my $ready = 0;
for my $try (1 .. 300)
{
	$full[1]->query_safe('INSERT INTO f VALUES (0, md5(random()::text))');
	if ($full[1]->query_safe(q{EXPLAIN (COSTS OFF) SELECT id FROM f WHERE t = md5('77')}) =~ /f_t/)
	{
		$ready = 1;
		last;
	}
	select(undef, undef, undef, 0.1);
}
ok($ready, 'a sealed temporary index comes back when there is room');
is($full[1]->query_safe(q{SELECT id FROM f WHERE t = md5('77')}), 77, 'and answers');
is($full[1]->query_safe(q{SELECT entries >= 160000 FROM artidx_check('f_t', true)}), 't', 'and is whole');
$full[1]->quit;

# What the memory is too small for is tried again without delay when ALTER INDEX
# asks for another structure, of which nobody knows what it will take.
$node->safe_psql('postgres', q{SET client_min_messages = error;
	CREATE TABLE q AS SELECT i AS k FROM generate_series(1, 1550000) i;
	CREATE INDEX q_k ON q USING art (k) WITH (structure = btree);});
is(index_state($node, 'q_k'), 'sealed', 'a B+-tree is too large');
$node->safe_psql('postgres', 'ALTER INDEX q_k SET (structure = art)');
ok( $node->poll_query_until('postgres',
		q{SELECT state = 'ready' FROM artidx_indexes WHERE indexrelname = 'q_k'}),
	'the radix tree fits');
is_deeply([ server_errors($node, $offset, qr/^(53200)$/) ], [], 'no other error');
is(join('|', server_crashes($node, $offset)), '', 'no crash');
$node->stop;

done_testing();
