# Aggregates from an index alone: random ones beside a sequential scan of the same snapshot, while
# rows change, and VACUUM and DDL run; without a structure; a cancel.
# AGG_QUERIES (400), SEED.
use strict;
use warnings;

use File::Basename qw(dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $seed = art_seed();
my $queries = $ENV{AGG_QUERIES} // 400;
my $node = art_node('aggregates', jit => 'off');

$node->psql('postgres', '\i ' . dirname(__FILE__) . '/../aggregates.sql', on_error_die => 1);

# ---- beside writers, VACUUM and DDL, each pair of answers from one snapshot ----

beside_churn($node, schema => 'aggs', tables => 13, queries => $queries, at_once => 20, seed => $seed, part => 1 / 3,
	run => 'aggs.run(%d, %f)', churn => q{
		at := (random() * 4000)::int;
		EXECUTE format('UPDATE %s SET a = nullif((random() * 9)::int, 9), c = (random() * 300)::int, d = random() < 0.5,
			t = chr(97 + (random() * 3)::int), n = (random() * 8)::int / 2.0 WHERE id BETWEEN %s AND %2$s + 3', t, at);
		EXECUTE format('DELETE FROM %s WHERE id BETWEEN %s AND %2$s + 40', t, at + 100);
		COMMIT;
		EXECUTE format('INSERT INTO %s SELECT * FROM aggs.made WHERE id BETWEEN %s AND %2$s + 40', t, at + 100);
		IF n % 5 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
		EXECUTE format('INSERT INTO %s SELECT * FROM aggs.made WHERE id BETWEEN %s AND %2$s + 40', t, at + 100);});

# ---- without a structure: a plan that was made with one goes on ----

$node->safe_psql('postgres', q{
	CREATE TABLE u (k int, v int);
	INSERT INTO u SELECT i % 100, i FROM generate_series(1, 100000) i;
	CREATE INDEX u_kv ON u USING art (k, v);
	VACUUM ANALYZE u});
my $s = $node->background_psql('postgres');
$s->query_safe(q{BEGIN; DECLARE c CURSOR FOR SELECT k, count(*), sum(v) FROM u GROUP BY k});
like($node->safe_psql('postgres', 'EXPLAIN SELECT k, count(*), sum(v) FROM u GROUP BY k'), qr/Index Aggregate/, 'groups from the index');
is($s->query_safe('FETCH 3 FROM c'), "0|1000|50050000\n1|1000|49951000\n2|1000|49952000", 'the first ones');
$node->safe_psql('postgres', q{SELECT artidx_unload('u_kv')});
is($s->query_safe('FETCH 2 FROM c'), "3|1000|49953000\n4|1000|49954000", 'the next ones, unloaded in the middle');
$s->query_safe('MOVE 94 FROM c');
is($s->query_safe('FETCH ALL FROM c'), '99|1000|50049000', 'and the last');
$s->query_safe('COMMIT');
$s->quit;
is($node->safe_psql('postgres', q{
	SET plan_cache_mode = force_generic_plan;
	SELECT artidx_build('u_kv') \g /dev/null
	PREPARE p AS SELECT count(*), sum(v) FROM u WHERE k >= $1;
	EXECUTE p(50) \g /dev/null
	ALTER INDEX u_kv SET (max_memory = '64kB');
	SELECT artidx_unload('u_kv') \g /dev/null
	EXECUTE p(50)}), '50000|2501225000', 'and where it may not be in memory');

# ---- a table with a second page of the visibility map: more than 32672 blocks, of a row each ----

$node->safe_psql('postgres', q{
	CREATE UNLOGGED TABLE far (k int, pad text);
	ALTER TABLE far ALTER pad SET STORAGE PLAIN;
	INSERT INTO far SELECT i, repeat('x', 4200) FROM generate_series(1, 33000) i;
	CREATE INDEX far_k ON far USING art (k);
	VACUUM ANALYZE far;
	SET enable_indexscan = off; SET enable_bitmapscan = off;
	DELETE FROM far WHERE k > 32900 OR k BETWEEN 200 AND 220});
my $far = 'SELECT count(*), sum(k) FROM far WHERE k > 100';
like($node->safe_psql('postgres', "SET enable_seqscan = off; EXPLAIN $far"), qr/Index Aggregate/, 'a large table from the index');
same_answer($node, "SELECT r::text FROM ($far) r", 'rows that are gone count on neither page');
$node->safe_psql('postgres', 'DROP TABLE far');

# ---- cancel ----

$node->safe_psql('postgres', q{ALTER INDEX u_kv RESET (max_memory); SELECT artidx_build('u_kv')});
my ($rc, $out, $err) = $node->psql('postgres', q{SET statement_timeout = '50ms';
	SELECT (SELECT sum(c) FROM (SELECT k, count(*) + g AS c FROM u WHERE v > g GROUP BY k) x) FROM generate_series(1, 100000) g});
like($err, qr/canceling statement due to statement timeout/, 'a timeout ends it');

$node->stop;
done_testing();
