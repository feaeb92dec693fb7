# Skips: random conditions that leave leading columns open, beside a sequential scan while rows
# change, and VACUUM and DDL run; how many searches EXPLAIN counts; a scan whose skips never end is cancelled.
# SKIP_QUERIES (200), SEED.
use strict;
use warnings;

use File::Basename qw(dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $seed = art_seed();
my $node = art_node('skips', jit => 'off');

$node->psql('postgres', '\i ' . dirname(__FILE__) . "/../$_.sql", on_error_die => 1) for qw(rows skips);
rows_beside_churn($node, $ENV{SKIP_QUERIES} // 200, $seed, 0.8, 'Index Cond');

# ---- searches ----

$node->safe_psql('postgres', q{
	CREATE TABLE g AS SELECT i / 2000 AS a, i AS b FROM generate_series(0, 99999) i;
	CREATE INDEX g_ab ON g USING art (a, b);
	VACUUM ANALYZE g});
my $query = 'SELECT a, b FROM g WHERE b = 77777';
my $searches = $node->safe_psql('postgres', "SET enable_seqscan = off; BEGIN; $query \\g /dev/null\nSELECT pg_stat_get_xact_numscans('g_ab'::regclass); COMMIT");
cmp_ok($searches, '>=', 50, 'a search for each of 50 values at least');
cmp_ok($searches, '<=', 102, 'and two at most');
like($node->safe_psql('postgres', "SET enable_seqscan = off; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) $query"),
	qr/Index Searches: $searches\b/, 'EXPLAIN counts the same')
  if $node->pg_version >= 18;

# ---- cancelled ----

$node->safe_psql('postgres', q{
	CREATE TABLE many AS SELECT i / 100 AS a, i AS b FROM generate_series(0, 999999) i;
	CREATE INDEX many_ab ON many USING art (a, b);
	VACUUM ANALYZE many});
times_out($node, 'SET enable_seqscan = off;
	SELECT count(*) FROM generate_series(1, 1000000) g, LATERAL (SELECT a, b FROM many WHERE b = -g OFFSET 0) m',
	qr/canceling statement due to statement timeout/, 'a scan that skips');

$node->stop;
done_testing();
