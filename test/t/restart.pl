# After a restart the index is not in memory: every answer is right at once,
# the plans do without it, and it comes back by itself.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('restart');

$node->safe_psql('postgres', q{
	CREATE TABLE t (id bigint, k int, v text);
	INSERT INTO t SELECT i, i % 1000, md5(i::text)
		FROM generate_series(1, 20000) i;
	CREATE UNIQUE INDEX t_id ON t USING art (id);
	CREATE INDEX t_k ON t USING art (k);
	ANALYZE t;
});

my $point = 'SELECT v FROM t WHERE id = 777';
my $group = 'SELECT count(*) FROM t WHERE k = 17';
my $sum = 'SELECT sum(id) FROM t WHERE id BETWEEN 100 AND 2000';

is(index_state($node, 't_id'), 'ready', 'ready after CREATE INDEX');
ok(plan_uses($node, 't_id', $point), 'planned before the restart');
my $before = $node->safe_psql('postgres', "$point; $group; $sum");

# a build that nobody asked for must not run: look before any query does; and
# after a clean shutdown it would be there again at once (saved_file)
$node->append_conf('postgresql.conf', 'artidx.build_workers = 0');
$node->stop('immediate');
$node->start;

is(index_state($node, 't_id'), 'absent', 'absent after the restart');
is( $node->safe_psql('postgres',
		"SELECT reason FROM artidx_indexes WHERE indexrelname = 't_id'"),
	'restart', 'and the view says why');
ok(!plan_uses($node, 't_id', $point), 'hidden from the planner');
is($node->safe_psql('postgres', "$point; $group; $sum"),
	$before, 'the answers are right without it');

# rows come and go while it is absent
$node->safe_psql('postgres', q{
	DELETE FROM t WHERE k = 18;
	UPDATE t SET k = 5000 WHERE id = 777;
	VACUUM t;
});

$node->append_conf('postgresql.conf', 'artidx.build_workers = 2');
$node->reload;
request_and_wait($node, 't_id', $point);
request_and_wait($node, 't_k', $group);
ok(plan_uses($node, 't_id', $point), 'planned again');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; '
		  . 'SELECT count(*) FROM t WHERE k = 18'), '0',
	'what was deleted in between is gone');
same_answer($node, 'SELECT id FROM t WHERE k = 5000', 'moved in between');
same_answer($node, $sum, 'range after the build');
check_exact($node, 't', 't_id');
check_exact($node, 't', 't_k');
is( $node->safe_psql('postgres',
		"SELECT last_build_source FROM artidx_indexes WHERE indexrelname = 't_id'"),
	'rebuild', 'the view tells the build from CREATE INDEX');

# a unique index keeps its promise from the first insert on
$node->stop('immediate');
$node->start;
fails_with($node, "INSERT INTO t VALUES (777, 0, 'twice')",
	'23505', qr/duplicate key value violates unique constraint "t_id"/,
	'duplicate as the first statement after a restart');
$node->safe_psql('postgres', "INSERT INTO t VALUES (900000, 1, 'new')");
same_answer($node, 'SELECT v FROM t WHERE id = 900000',
	'a row inserted after the restart');
check_exact($node, 't', 't_id');

# a session's prepared plan survives both changes of state
my $s = $node->background_psql('postgres');
$s->query_safe('SET plan_cache_mode = force_generic_plan');
$s->query_safe('PREPARE p (bigint) AS SELECT id FROM t WHERE id = $1');
is($s->query_safe('EXECUTE p (900000)'), '900000', 'prepared, first time');
$node->safe_psql('postgres', 'REINDEX INDEX t_id');
is($s->query_safe('EXECUTE p (900000)'), '900000', 'prepared, after REINDEX');
$node->safe_psql('postgres', 'DROP INDEX t_id');
is($s->query_safe('EXECUTE p (900000)'), '900000', 'prepared, after DROP');
$s->quit;

$node->stop;
done_testing();
