# artidx_trial(): its verdict; cancel, termination and a crash in the middle; who may call it;
# expressions, partial and unique indexes, NULLs; what others see and are kept from; memory.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $node = PostgreSQL::Test::Cluster->new('trial');

$node->init(allows_streaming => 1);
art_conf($node, jit => 'off', restart_after_crash => 'on', 'artidx.memory' => "'64MB'", log_line_prefix => $ArtTest::LOG_PREFIX,
	shared_preload_libraries => "'artidx,pg_stat_statements'", 'pg_stat_statements.track' => 'all');
$node->append_conf('postgresql.conf', 'autovacuum = off');
$node->start;
$node->safe_psql('postgres', q{
	CREATE SCHEMA "Ext";
	GRANT USAGE ON SCHEMA "Ext" TO PUBLIC;
	CREATE EXTENSION artidx SCHEMA "Ext";
	CREATE EXTENSION pg_stat_statements;
	CREATE ROLE owner LOGIN;
	CREATE ROLE plain LOGIN;
	CREATE SCHEMA "O";
	GRANT USAGE ON SCHEMA "O" TO PUBLIC;
	CREATE TABLE "O"."T" (id int PRIMARY KEY, "K k" uuid NOT NULL, mail text, city int, gone int, much text);
	INSERT INTO "O"."T" SELECT i, gen_random_uuid(), CASE WHEN i % 3 > 0 THEN 'User' || i END, i % 50, NULL, repeat(md5(i::text), 100)
		FROM generate_series(1, 20000) i;
	CREATE UNIQUE INDEX t_u ON "O"."T" ("K k");
	CREATE FUNCTION public.fold(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
		IF current_user <> 'owner' THEN RAISE 'run by %', current_user; END IF; RETURN lower(t); END $$;
	GRANT USAGE ON SCHEMA "O" TO owner;
	ALTER TABLE "O"."T" OWNER TO owner;
	CREATE INDEX t_expr ON "O"."T" (public.fold(mail) DESC NULLS LAST, city) INCLUDE (id) WHERE city > 5;
	CREATE INDEX "t gone" ON "O"."T" (gone);
	CREATE INDEX t_city ON "O"."T" (city);
	VACUUM ANALYZE "O"."T"});

my $twins = q{SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE a.amname = 'art' AND c.relkind = 'i'};
my $trial_backend = q{SELECT pid FROM pg_stat_activity WHERE query ~ '^CALL' AND state = 'active' AND pid <> pg_backend_pid()};

sub trial
{
	my ($index, $seconds, $user) = @_;
	return $node->psql('postgres', "CALL \"Ext\".artidx_trial('$index', $seconds)", extra_params => [ '-U', $user // getpwuid($<) ]);
}

# A row of the last trial of an index.
sub found
{
	my ($index, $measure, $what) = @_;
	return $node->safe_psql('postgres', qq{SELECT $what FROM "Ext".artidx_trials WHERE index_name ~ '$index' AND measure = '$measure'
		AND started = (SELECT max(started) FROM "Ext".artidx_trials WHERE index_name ~ '$index')});
}

sub nothing_left
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($node->safe_psql('postgres', $twins), '0', $name);
}

# Begin a trial, and wait until its twin is there.
sub begin_trial
{
	my ($index) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_until(qr/began/, "\\echo began\nCALL \"Ext\".artidx_trial('$index', 60);\n");
	$node->poll_query_until('postgres', "$twins AND NOT EXISTS (SELECT FROM pg_locks WHERE mode = 'ShareUpdateExclusiveLock' AND relation = '\"O\".\"T\"'::regclass)", '1')
		or die 'no twin';
	return $session;
}

# ---- a unique index ----

my $before = $node->safe_psql('postgres', q{SELECT n_tup_ins, idx_scan, n_dead_tup FROM pg_stat_user_tables WHERE relname = 'T'});
my ($rc, $out, $err) = trial('"O".t_u', 4);
is("$rc$err", '0', 'a unique index is tried');
is(found('t_u', 'answers', 'remark'), 'all the same', 'the answers are the same');
cmp_ok(found('t_u', 'answers', 'calls'), '>=', 1000, 'of many statements');
foreach my $measure ('look-up', 'range', 'index-only range', 'join', 'insert')
{
	my $gain = found('t_u', $measure, 'gain') || 0;
	cmp_ok($gain, '>', 0, "$measure: $gain times as fast");
}
my ($btree, $art) = split /\|/, found('t_u', 'WAL', 'btree, art');
cmp_ok($btree, '>', 50, 'btree writes WAL');
is($art, '0.000', 'art writes none');
like(found('t_u', 'verdict', 'remark'), qr/^(convert|no gain); [-0-9.]+ ms would have been saved/, 'a verdict');
nothing_left('nothing is left');
$node->safe_psql('postgres', 'SELECT pg_stat_force_next_flush()');
is($node->safe_psql('postgres', q{SELECT n_tup_ins, idx_scan, n_dead_tup FROM pg_stat_user_tables WHERE relname = 'T'}), $before,
	'the statistics do not count the trial');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_statements WHERE query ~ 'FROM ONLY'}), '0', 'nor does pg_stat_statements');

# ---- expressions, a predicate, NULLs ----

($rc, $out, $err) = trial('"O".t_expr', 3);
is("$rc$err", '0', 'expressions, a predicate, DESC, INCLUDE, for a superuser: run by the owner');
is(found('t_expr', 'answers', 'remark'), 'all the same', 'the answers are the same');
ok(found('t_expr', $_, 'btree > 0 AND art > 0') eq 't', "it has: $_") foreach 'look-up', 'first rows', 'range', 'join', 'insert';
($rc, $out, $err) = trial('"O".t_expr', 1, 'owner');
is("$rc$err", '0', 'the owner, who may not create anything there');
($rc, $out, $err) = trial('"O"."t gone"', 1);
is("$rc$err", '0', 'nothing but NULLs');
like(found('t gone', 'look-up', 'remark'), qr/^not tried/, 'is not looked up');
($rc, $out, $err) = trial('"O".t_city', 1, 'plain');
like($err, qr/ERROR:  must be owner of index t_city/, 'another may not');
nothing_left('nothing is left');

# ---- the commands work ----

$node->safe_psql('postgres', 'CREATE TABLE small (k int); INSERT INTO small SELECT i * 7919 % 10007 FROM generate_series(1, 5000) i; CREATE INDEX "s k" ON small (k, k DESC); CREATE TABLE none (k int PRIMARY KEY); ANALYZE');
$node->safe_psql('postgres', q{CREATE TABLE wal (k uuid); INSERT INTO wal SELECT gen_random_uuid() FROM generate_series(1, 30000); CREATE UNIQUE INDEX "w k" ON wal (k)});
($rc, $out, $err) = trial('"w k"', 4);
is("$rc$err", '0', 'another');
my $hand = found('w k', 'swap by hand', 'remark');
SKIP:
{
	skip 'no gain on this machine', 3 if $hand eq '';
	$node->safe_psql('postgres', $_) foreach split /; /, $hand;
	is($node->safe_psql('postgres', q{SELECT amname, indisunique, indisvalid FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam WHERE relname = 'w k'}),
		'art|t|t', 'swapped by hand');
	$node->safe_psql('postgres', found('w k', 'back', 'remark'));
	$node->safe_psql('postgres', found('w k', 'swap', 'remark'));
	is($node->safe_psql('postgres', q{SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'w k'}), 'art', 'back, and swapped by CALL');
	$node->safe_psql('postgres', 'DROP TABLE wal');
	nothing_left('nothing is left');
}
($rc, $out, $err) = trial('"s k"', 1);
is("$rc$err", '0', 'a column twice');
($rc, $out, $err) = trial('none_pkey', 1);
is("$rc$err", '0', 'an empty table');
like(found('none_pkey', 'verdict', 'remark'), qr/^too few rows to tell/, 'has no verdict');

# ---- while it runs ----

my $session = begin_trial('"O".t_u');
is($node->safe_psql('postgres', q{SELECT indisvalid, indisunique, obj_description(indexrelid) ~ '^artidx_trial: ' FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam WHERE amname = 'art'}),
	'f|f|t', 'others see an index that is not valid, and what it is for');
my $plan = $node->safe_psql('postgres', q{SET enable_seqscan = off; SET enable_bitmapscan = off; EXPLAIN (COSTS OFF) SELECT * FROM "O"."T" WHERE "K k" = '00000000-0000-0000-0000-000000000000'});
unlike($plan, qr/trial/, 'no plan of theirs has it');
like($plan, qr/Index Scan using t_u/, 'but the index itself');
($rc, $out, $err) = trial('"O".t_city', 1);
like($err, qr/ERROR:  another trial is running in this database/, 'one at a time');
$node->safe_psql('postgres', q{SET ROLE owner; INSERT INTO "O"."T" SELECT i, gen_random_uuid(), 'New', i % 50 FROM generate_series(30001, 31000) i; DELETE FROM "O"."T" WHERE id % 100 = 0});
$node->safe_psql('postgres', 'VACUUM "O"."T"');
$node->safe_psql('postgres', q{SET lock_timeout = '20s'; ALTER TABLE "O"."T" ADD COLUMN later int});
pass('others insert, delete, VACUUM and ALTER meanwhile');
my $offset = -s $node->logfile;
$node->safe_psql('postgres', q{SET lock_timeout = '20s'; DROP INDEX "O".t_u});
ok($node->wait_for_log(qr/ERROR:  index "t_u" was dropped or altered while it was tried/, $offset), 'and drop the index');
$session->query('SELECT 1');
$session->quit;
nothing_left('which ends the trial');
$node->safe_psql('postgres', q{CREATE UNIQUE INDEX t_u ON "O"."T" ("K k")});

# ---- cancel, time-out, termination ----

foreach my $moment (0, 1)
{
	$session = begin_trial('"O".t_city');
	sleep 0.5 * $moment;
	$offset = -s $node->logfile;
	$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM ($trial_backend) t");
	ok($node->wait_for_log(qr/canceling statement due to user request/, $offset), 'canceled');
	like(scalar $session->query('SELECT 7 * 6'), qr/42/, 'the session goes on');
	nothing_left('and its twin is dropped');
	$session->quit;
}
($rc, $out, $err) = $node->psql('postgres', q{SET statement_timeout = '2s'; CALL "Ext".artidx_trial('"O".t_city', 60)});
is($rc, 3, 'a time-out');
nothing_left('drops it, too');
$session = begin_trial('"O".t_city');
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM ($trial_backend) t");
ok($node->poll_query_until('postgres', $twins, '0'), 'terminated: a worker drops it');
eval { $session->quit };

# ---- rests ----

# The hundredths of a second that a process has worked.
sub worked
{
	my ($pid) = @_;
	my @stat = split ' ', slurp_file("/proc/$pid/stat") =~ s/.*\) //r;
	return $stat[11] + $stat[12];
}

$session = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $session->query_safe('SELECT pg_backend_pid()');
my @was = (worked($pid), time);
$session->query(q{CALL "Ext".artidx_trial('"O".t_u', 4)});
my $share = (worked($pid) - $was[0]) / (time - $was[1]) / 100;
ok($share < 0.2, "a trial works for some of the time: $share");
like(slurp_file("/proc/$pid/status"), qr/^SigCgt:\s*0{7}[01]/m, 'its signal is handled by nobody any more');
$session->quit;

# ---- a crash ----

$session = begin_trial('"O".t_city');
kill 'KILL', $node->safe_psql('postgres', $trial_backend);
eval { $session->quit };
ok($node->poll_query_until('postgres', 'SELECT 1', '1'), 'killed: the server recovers');
ok($node->poll_query_until('postgres', $twins, '0'), 'and a worker drops it');

# The process dies while the twin is built.
my $holder = $node->background_psql('postgres');
$holder->query_safe(q{BEGIN; INSERT INTO "O"."T" (id, "K k") VALUES (-1, gen_random_uuid())});
$session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_until(qr/began/, "\\echo began\nCALL \"Ext\".artidx_trial('\"O\".t_city', 60);\n");
ok($node->poll_query_until('postgres', "$twins AND EXISTS (SELECT FROM pg_index WHERE indrelid = '\"O\".\"T\"'::regclass AND NOT indisready)", '1'),
	'the twin waits for another transaction');
# The trial's timer must let a process sleep: core counts its naps while it waits for a spinlock, and crashes after a thousand.
my $waiting = $node->safe_psql('postgres', $trial_backend);
sub slept { return slurp_file("/proc/$waiting/status") =~ /^voluntary_ctxt_switches:\s*(\d+)/m ? $1 : die 'no count' }
sleep 1;
my $slept = slept();
sleep 2;
cmp_ok(slept() - $slept, '<', 200, 'and hardly wakes up meanwhile');
kill 'KILL', $node->safe_psql('postgres', $trial_backend);
eval { $session->quit };
eval { $holder->quit };
ok($node->poll_query_until('postgres', 'SELECT 1', '1'), 'killed while it builds: the server recovers');
ok($node->poll_query_until('postgres', $twins, '0'), 'and a worker drops it');

# Nobody has dropped it: the next trial does.
$node->append_conf('postgresql.conf', 'artidx.build_workers = 0');
$node->restart;
$session = begin_trial('"O".t_city');
$node->stop('immediate');
eval { $session->quit };
$node->start;
cmp_ok($node->safe_psql('postgres', $twins), '<=', 1, 'without workers it may be left');
($rc, $out, $err) = trial('"O".t_u', 1);
is("$rc$err", '0', 'the next trial works');
nothing_left('and drops it');

# ---- memory ----

$node->safe_psql('postgres', q{CREATE TABLE wide (k text COLLATE "C"); INSERT INTO wide SELECT repeat(md5(i::text), 60) FROM generate_series(1, 40000) i; CREATE INDEX wide_k ON wide (k)});
($rc, $out, $err) = trial('wide_k', 1);
like($err, qr/ERROR:  not enough memory to try index "wide_k"/, 'too little memory is said before anything is done');
nothing_left('nothing is left');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname ~ '^pg_temp_[0-9]'"), '0', 'no copy either');

$node->stop;
done_testing();
