# Planner hints, as pg_hint_plan gives them: a module that throws paths away and has
# core make them again, and that tells indexes by their access method.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $dir = build_modules('art_hinttest');
my $node = art_node('hints', shared_preload_libraries => "'$dir/art_hinttest, artidx'",
	'art_hinttest.again' => 'off', jit => 'off');

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE t (a int, b int, c int);
INSERT INTO t SELECT i % 100, i, i % 7 FROM generate_series(1, 10000) i;
CREATE INDEX t_ab ON t USING art (a, b);
CREATE INDEX t_c ON t (c);
CREATE TABLE p (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (50);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (50) TO (100);
INSERT INTO p SELECT a, b FROM t;
CREATE INDEX p_ab ON p USING art (a, b);
VACUUM ANALYZE t, p;
SQL

# ---- comparisons of rows, in paths that are made a second time ----

foreach my $query (
	'SELECT count(*) FROM t WHERE (a, b) > (98, 9000)',
	'SELECT a, b FROM t WHERE (a, b) > (98, 9000) ORDER BY a, b LIMIT 1',
	'SELECT count(*) FROM t WHERE a = 7 OR (a, b) < (1, 300)',
	'SELECT count(c) FROM t WHERE (a, b) >= (97, 1) AND (a, b) < (98, 400)',
	'SELECT count(*) FROM p WHERE (a, b) > (98, 9000)')
{
	foreach my $costs ('memory', 'btree')
	{
		my $set = "SET artidx.plan_costs = $costs; SET art_hinttest.again = on; SET enable_seqscan = off;";
		my $plan = $node->safe_psql('postgres', "$set EXPLAIN (COSTS OFF) $query");
		like($plan, qr/Index Cond: .*ROW\(a, b\) [<>]=? ROW\(\d/, "$costs: by the index: $query");
		is( $node->safe_psql('postgres', "$set $query"),
			$node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; $query"),
			"$costs: and with the right answer");
	}
}

# ---- a module before artidx sees the access method of the catalogs ----

my $query = 'EXPLAIN (COSTS OFF) SELECT * FROM t WHERE a = 5 AND c = 3';
like($node->safe_psql('postgres', "SET art_hinttest.am = art; $query"), qr/t_ab/, 'only art indexes');
unlike($node->safe_psql('postgres', "SET art_hinttest.am = art; SET enable_seqscan = off; $query"), qr/\bt_c\b/,
	'and none of btree');
unlike($node->safe_psql('postgres', "SET art_hinttest.am = btree; SET enable_seqscan = off; $query"), qr/t_ab/,
	'only btree indexes');

# ---- from 19 on an extension of core's says how two tables are joined ----

if ($node->pg_version >= 19)
{
	$node->safe_psql('postgres', <<'SQL');
CREATE TABLE o AS SELECT i, (i * 7919) % 10000 AS k FROM generate_series(1, 3000) i;
CREATE TABLE n AS SELECT i AS k, i AS v FROM generate_series(1, 10000) i;
CREATE UNIQUE INDEX n_k ON n USING art (k);
VACUUM ANALYZE o, n;
SQL
	my $set = "LOAD 'pg_plan_advice'; SET artidx.batched_joins = on; SET enable_hashjoin = off; SET enable_mergejoin = off;";
	my $join = 'EXPLAIN (COSTS OFF, PLAN_ADVICE) SELECT sum(n.v) FROM o JOIN n USING (k)';
	like($node->safe_psql('postgres', "$set $join"), qr/Batched Nested Loop/, 'a batched join without advice');
	my $advised = "$set SET pg_plan_advice.advice = 'JOIN_ORDER(o n) NESTED_LOOP_PLAIN(n)'; $join";
	unlike($node->safe_psql('postgres', $advised), qr/Batched|failed/, 'advice that names a join is followed');
	like($node->safe_psql('postgres', $advised), qr/Nested Loop\n.*Index Scan using n_k/s, 'by its plain nested loop');
}

$node->stop;
done_testing();
