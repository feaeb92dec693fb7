# Row types are altered while others read, write, wait and replay: the art indexes that
# hold them answer as the table does, on the primary and on its standby.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
art_conf($primary, max_prepared_transactions => 5, restart_after_crash => 'on',
	max_standby_streaming_delay => -1, wal_receiver_status_interval => 1);
$primary->start;
# values are made by name, for every number of attributes
$primary->safe_psql('postgres', q{
	CREATE EXTENSION artidx;
	CREATE TYPE pair AS (a int, b text, c int);
	CREATE FUNCTION pair(i int) RETURNS pair LANGUAGE sql AS $$
		SELECT jsonb_populate_record(NULL::pair, jsonb_build_object('a', i % 20, 'b', 'x' || i % 31, 'c', i)) $$;
	CREATE TABLE t (id int, k pair, n int DEFAULT 0) WITH (fillfactor = 80);
	CREATE INDEX t_k ON t USING art (k);
	CREATE INDEX t_desc ON t USING art (k DESC, n);
	CREATE INDEX t_hash ON t USING art ((hash_record(k)));
	CREATE UNIQUE INDEX t_id ON t USING art (id) INCLUDE (k);
	INSERT INTO t SELECT i, pair(i) FROM generate_series(1, 3000) i;
	CREATE UNLOGGED TABLE u (id int, k pair);
	CREATE INDEX u_k ON u USING art (k);
	INSERT INTO u SELECT i, pair(i) FROM generate_series(1, 300) i;
	VACUUM ANALYZE t;
});
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->start;

my @indexes = qw(t_k t_desc t_hash t_id);
my @questions = (
	'SELECT count(*), sum(id) FROM t WHERE k = (SELECT k FROM t WHERE id = 77)',
	'SELECT count(*), sum(id) FROM t WHERE k >= (SELECT k FROM t WHERE id = 55) AND k < (SELECT k FROM t WHERE id = 74)',
	'SELECT md5(string_agg(k::text, \',\')) FROM (SELECT k FROM t WHERE k > (SELECT k FROM t WHERE id = 3) ORDER BY k) s',
	'SELECT md5(string_agg(k::text, \',\')) FROM (SELECT k FROM t WHERE k < (SELECT k FROM t WHERE id = 16) ORDER BY k DESC) s',
	'SELECT count(*), sum(id) FROM t WHERE hash_record(k) = (SELECT hash_record(k) FROM t WHERE id = 1234)',
	'SELECT md5(string_agg(k::text, \',\')) FROM (SELECT k FROM t WHERE id > 0 ORDER BY id) s');

# Every index is in memory, is used, and answers as the table does.
sub right
{
	my ($node, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($node->poll_query_until('postgres',
			"SELECT count(*) = 4 FROM artidx_indexes WHERE relname = 't' AND state = 'ready'"),
		"$name: the indexes are ready");
	same_answer($node, join('; ', @questions), "$name: by the indexes as by the table");
	return check_followed($node, $name, @indexes);
}

sub both_right
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	right($primary, $name);
	all_replayed($primary, $standby);
	right($standby, "$name, standby");
	return;
}

both_right('before');
ok(plan_uses($primary, 't_k', $questions[0]), 'the plan uses the index');

# ---- a reader keeps it out; it waits for the index before it locks the type ----
my $reader = $primary->background_psql('postgres');
my $other = $primary->background_psql('postgres');
$other->query_safe(q{
	CREATE TEMP TABLE own (id int, k pair);
	INSERT INTO own SELECT i, pair(i) FROM generate_series(1, 500) i;
	CREATE INDEX own_k ON own USING art (k);});
my $own = 'SELECT count(*) FROM own WHERE k = (SELECT k FROM own WHERE id = 77)';
is($other->query_safe("SET enable_seqscan = off; $own"), 1, 'a temporary table of another session');
$reader->query_safe(q{
	SET enable_seqscan = off; SET enable_sort = off;
	BEGIN;
	DECLARE c CURSOR FOR SELECT id FROM t ORDER BY k;
	MOVE 1000 IN c;});
my $altering = $primary->background_psql('postgres');
$altering->query_until(qr/begun/, "\\echo begun\nALTER TYPE pair DROP ATTRIBUTE b;\n\\echo altered\n");
ok($primary->poll_query_until('postgres',
		q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock' AND locktype = 'relation'
			AND relation IN (SELECT indexrelid FROM pg_index WHERE indrelid = 't'::regclass)}),
	'ALTER TYPE waits for a reader of the index');
is($primary->safe_psql('postgres',
		q{SELECT count(*) FROM pg_locks WHERE relation = 'pair'::regclass}),
	0, 'and has not locked the type');
$reader->query_safe('SELECT hash_record(pair(5))');
is($reader->query_safe('FETCH ALL FROM c') =~ tr/\n//, 1999, 'the reader goes on to the end');
$reader->query_safe('COMMIT');
$altering->query_until(qr/altered/, '');
$altering->quit;
both_right('DROP ATTRIBUTE');
my $answer = $other->query_safe("SET enable_seqscan = on; SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; $own");
is($other->query_safe("RESET enable_indexscan; RESET enable_indexonlyscan; SET enable_seqscan = off; $own"),
	$answer, 'the temporary table of the other session is read right');
is($other->query_safe(q{SELECT entries FROM artidx_check('own_k', true)}), 500, 'and its index is clean');
$other->quit;
$reader->quit;

# ---- a new attribute, with rows that have it ----
$primary->safe_psql('postgres', q{
	ALTER TYPE pair ADD ATTRIBUTE b text;
	INSERT INTO t SELECT i, pair(i) FROM generate_series(3001, 4000) i;
	UPDATE t SET k = pair(id) WHERE id % 3 = 0});
both_right('ADD ATTRIBUTE');

# ---- prepared transactions, over a restart ----
foreach my $end (qw(ROLLBACK COMMIT))
{
	$primary->safe_psql('postgres', q{
		BEGIN;
		ALTER TYPE pair DROP ATTRIBUTE c;
		UPDATE t SET n = n + 1 WHERE id < 100;
		PREPARE TRANSACTION 'p'});
	$primary->restart;
	$primary->safe_psql('postgres', "$end PREPARED 'p'");
	both_right("$end PREPARED");
}
$primary->safe_psql('postgres', 'ALTER TYPE pair ADD ATTRIBUTE c int; UPDATE t SET k = pair(id) WHERE id > 500');

# ---- in the file of a clean shutdown, and in memory that outlives a crash ----
$primary->safe_psql('postgres', 'ALTER TYPE pair DROP ATTRIBUTE b; ALTER TYPE pair ADD ATTRIBUTE d int');
ok($primary->poll_query_until('postgres',
		q{SELECT count(*) = 4 FROM artidx_indexes WHERE relname = 't' AND state = 'ready'}), 'ready before the restart');
$primary->restart;
both_right('restart');
$primary->safe_psql('postgres', 'ALTER TYPE pair ADD ATTRIBUTE b text; UPDATE t SET k = pair(id) WHERE id > 1000');
right($primary, 'before a crash');
my $victim = $primary->background_psql('postgres');
my $pid = $victim->query_safe('SELECT pg_backend_pid()');
# the type is altered in a transaction that the crash rolls back, and in one that it does not
$victim->query_safe('BEGIN; ALTER TYPE pair DROP ATTRIBUTE c; INSERT INTO t VALUES (10000, pair(1))');
kill_and_recover($primary, $pid);
both_right('a crash rolls it back');
$primary->safe_psql('postgres', 'ALTER TYPE pair DROP ATTRIBUTE a');
$victim = $primary->background_psql('postgres');
kill_and_recover($primary, $victim->query_safe('SELECT pg_backend_pid()'));
both_right('a crash after the commit');
# what is unlogged is empty now, and takes rows
$primary->safe_psql('postgres', 'INSERT INTO u SELECT i, pair(i) FROM generate_series(1, 200) i');
same_answer($primary, 'SELECT count(*) FROM u WHERE k >= (SELECT k FROM u WHERE id = 77)', 'unlogged, after a crash');
check_clean($primary, 'u_k');

# ---- readers and writers beside it ----
my ($script) = map { my $f = $primary->basedir . '/load.sql'; append_to_file($f, $_); $f } q{
\set i random(1, 4000)
\set j random(1, 100000000)
UPDATE t SET k = pair(:i + 7), n = n + 1 WHERE id = :i;
DELETE FROM t WHERE id = :j;
INSERT INTO t VALUES (:j, pair(:i)) ON CONFLICT DO NOTHING;
SELECT count(*) FROM t WHERE k > (SELECT k FROM t WHERE id = :i) AND k <= (SELECT k FROM t WHERE id = 5);
};
my $offset = -s $primary->logfile;
my ($out, $err) = ('', '');
my $load = IPC::Run::start([ 'pgbench', '-n', '-c', 4, '-T', 12, '-M', 'prepared', '-f', $script, '-h', $primary->host, '-p', $primary->port, 'postgres' ],
	'>', \$out, '2>', \$err);
my $until = time() + 10;
my $rounds = 0;
while (time() < $until)
{
	$primary->safe_psql('postgres', 'ALTER TYPE pair DROP ATTRIBUTE b');
	sleep 0.2;
	$primary->safe_psql('postgres', 'ALTER TYPE pair ADD ATTRIBUTE b text');
	sleep 0.2;
	$rounds++;
}
my $no_error = $load->finish;
cmp_ok($rounds, '>', 3, 'the type was altered many times');
ok($no_error, 'readers and writers met no error') || diag($err);
unlike(slurp_file($primary->logfile, $offset), qr/(ERROR|FATAL|PANIC):/, 'nor did the log');
both_right('under load');

# ---- promoted ----
$standby->promote;
$standby->safe_psql('postgres', q{ALTER TYPE pair DROP ATTRIBUTE d; INSERT INTO u SELECT i, pair(i) FROM generate_series(1, 200) i});
right($standby, 'promoted');
check_clean($standby, 'u_k');

done_testing();
