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
$node->stop;
done_testing();
