# A statement that opened a unique index while CREATE INDEX CONCURRENTLY was at it goes
# on when the index is valid and its maker gone: it is checked as any other.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('valid', 'artidx.build_workers' => 1, jit => 'off');
$node->safe_psql('postgres', 'CREATE TABLE t (k int); INSERT INTO t SELECT generate_series(1, 100)');
my $keeper = $node->background_psql('postgres');
my $old = $node->background_psql('postgres');
my $maker = $node->background_psql('postgres', on_error_stop => 0);
my $writer = $node->background_psql('postgres', on_error_stop => 0);
$keeper->query_safe('SELECT pg_advisory_lock(5)');
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class');

# its last wait is for the old snapshot, not for later ones
$maker->query_until(qr/begun/, "\\echo begun\nCREATE UNIQUE INDEX CONCURRENTLY t_k ON t USING art (k);\n\\q\n");
ok( $node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_progress_create_index
	WHERE phase = 'waiting for old snapshots'}), 'it waits for the last time');
$node->safe_psql('postgres', 'SELECT pg_current_xact_id()') for 1 .. 2;
$writer->query_until(qr/begun/, "\\echo begun\nINSERT INTO t SELECT i FROM (VALUES (1005), (5)) v(i), LATERAL pg_advisory_xact_lock(i);\n\\echo ended\n");
ok( $node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}),
	'a writer is in the middle');
$old->query_safe('COMMIT');
ok( $node->poll_query_until('postgres', q{SELECT (SELECT indisvalid FROM pg_index WHERE indexrelid = 't_k'::regclass)
	AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'CREATE UNIQUE%')}), 'the index is valid, its maker gone');
$node->safe_psql('postgres', q{SELECT artidx_unload('t_k')});
$keeper->query_safe('SELECT pg_advisory_unlock(5)');
ok( $node->poll_query_until('postgres', q{SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'INSERT INTO t SELECT%' AND state = 'active')}),
	'the writer is done');
is($node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM t WHERE k = 5'),
	'1', 'no duplicate');
$_->quit for $keeper, $old, $writer;

# A committed row's entry stays while CREATE INDEX CONCURRENTLY waits for one who updates that.
sub is_waiting
{
	my ($what) = @_;

	return ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_progress_create_index WHERE $what"), "it waits: $what");
}
$node->safe_psql('postgres', 'CREATE TABLE c (u int, v int); CREATE INDEX ON c (v); INSERT INTO c VALUES (1, 1)');
my ($first, $second, $updates) = map { $node->background_psql('postgres') } 1 .. 3;
$first->query_safe('BEGIN; LOCK c IN ROW EXCLUSIVE MODE');
$maker = $node->background_psql('postgres', on_error_stop => 0);
$maker->query_until(qr/begun/, "\\echo begun\nCREATE UNIQUE INDEX CONCURRENTLY c_u ON c USING art (u);\n");
is_waiting(q{phase = 'waiting for writers before build'});
$second->query_safe('BEGIN; LOCK c IN ROW EXCLUSIVE MODE');
$first->query_safe('COMMIT');
is_waiting(q{phase = 'waiting for writers before validation'});
$node->safe_psql('postgres', q{SELECT artidx_unload('c_u'); INSERT INTO c VALUES (2, 2)});
$updates->query_safe('BEGIN; UPDATE c SET v = 2 WHERE u = 1');
$second->query_safe('COMMIT');
is_waiting(q{pid IN (SELECT pid FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted)});
$node->safe_psql('postgres', 'SELECT pg_cancel_backend(pid) FROM pg_stat_progress_create_index');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_progress_create_index'), 'it is cancelled');
$updates->query_safe('ROLLBACK');
isnt($node->psql('postgres', 'INSERT INTO c VALUES (1, 9)'), 0, 'a second row of the key is refused');
is($node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM c WHERE u = 1'),
	'1', 'and not there');
$_->quit for $first, $second, $updates, $maker;
$node->stop;
done_testing();
