# With artidx.build_workers = 0 a standby never uses art indexes and never errs; after
# promotion they are built from its heap.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
art_conf($primary);
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION artidx;
	CREATE TABLE t (id bigint, k int);
	CREATE UNIQUE INDEX t_id ON t USING art (id);
	CREATE INDEX t_k ON t USING art (k);
	INSERT INTO t SELECT i, i % 50 FROM generate_series(1, 5000) i;
	ANALYZE t;
});

my $backup = 'b';
$primary->backup($backup);
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, $backup, has_streaming => 1);
$standby->append_conf('postgresql.conf', 'artidx.build_workers = 0');
$standby->start;

# changes after the backup, of every kind that touches an index
$primary->safe_psql('postgres', q{
	INSERT INTO t SELECT i, i % 50 FROM generate_series(5001, 8000) i;
	DELETE FROM t WHERE id % 3 = 0;
	VACUUM t;
	CREATE INDEX t_kid ON t USING art (k, id);
	CREATE TABLE later (v int);
	CREATE INDEX later_v ON later USING art (v);
	INSERT INTO later SELECT generate_series(1, 100);
	REINDEX INDEX t_k;
	CREATE TABLE gone (v int);
	CREATE INDEX gone_v ON gone USING art (v);
	INSERT INTO gone VALUES (1);
	DROP TABLE gone;
	TRUNCATE later;
	INSERT INTO later SELECT generate_series(1, 70);
});
all_replayed($primary, $standby);

for my $query (
	'SELECT k FROM t WHERE id = 4000',
	'SELECT count(*) FROM t WHERE k = 7',
	'SELECT count(*) FROM later WHERE v < 50')
{
	my $plan = $standby->safe_psql('postgres',
		"SET enable_seqscan = off; EXPLAIN (COSTS OFF) $query");
	unlike($plan, qr/Index|Bitmap/, "the standby plans without: $query");
	is( $standby->safe_psql('postgres', "SET enable_seqscan = off; $query"),
		$primary->safe_psql('postgres', $query),
		"and answers right: $query");
}
is( $standby->safe_psql('postgres',
		"SELECT count(*) FROM artidx_indexes WHERE state = 'ready'"),
	'0', 'no index is in memory on the standby');
is( $standby->safe_psql('postgres',
		"SELECT DISTINCT reason FROM artidx_indexes"),
	'recovery', 'and the view says why');

# a session that is open over the promotion, with a plan made before
my $s = $standby->background_psql('postgres');
$s->query_safe('PREPARE p (bigint) AS SELECT k FROM t WHERE id = $1');
is($s->query_safe('EXECUTE p (4000)'), '0', 'prepared on the standby');

$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
is($s->query_safe('EXECUTE p (4000)'), '0', 'and right after promotion');

fails_with($standby, 'INSERT INTO t VALUES (4000, 1)',
	'23505', qr/"t_id"/, 'unique from the first insert on');
$standby->safe_psql('postgres', 'INSERT INTO t VALUES (1000000, 3)');
$standby->append_conf('postgresql.conf', 'artidx.build_workers = 2');
$standby->reload;
request_and_wait($standby, 't_k', 'SELECT id FROM t WHERE k = 3');
request_and_wait($standby, 't_kid',
	'SELECT id FROM t WHERE k = 3 AND id = 53');
request_and_wait($standby, 'later_v', 'SELECT v FROM later WHERE v = 3');
same_answer($standby, 'SELECT count(*), sum(id) FROM t WHERE k = 3',
	'built after promotion');
check_exact($standby, 't', 't_id');
check_exact($standby, 't', 't_k');
check_exact($standby, 't', 't_kid');
check_exact($standby, 'later', 'later_v');
is($s->query_safe('EXECUTE p (1000000)'), '3',
	'the old session sees the new row');
$s->quit;

# the primary never noticed
check_exact($primary, 't', 't_k');

my $log = slurp_file($standby->logfile);
unlike($log, qr/PANIC|TRAP:|terminated by signal/,
	'nothing bad in the log of the standby');

$standby->stop;
$primary->stop;
done_testing();
