# artidx_advise() with and without pg_stat_statements and pg_walinspect, and where it may
# not ask them; without the library preloaded; beside locks, others' temporary tables, a
# standby.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = PostgreSQL::Test::Cluster->new('advise');

$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "autovacuum = off\nfsync = off\njit = off\nenable_hashjoin = off\nenable_mergejoin = off\nenable_seqscan = off\nenable_bitmapscan = off");
$node->start;

my $row = q{SELECT verdict || '|' || coalesce(reason, '') || '|' || scans || '|' || (lookup_ms > 0) || '|' || (join_ms > 0) || '|' ||
	coalesce(page_images::text, 'unknown') FROM artidx_advise() WHERE indexrelid = 'public.t_k'::regclass};

sub advice
{
	my ($user) = @_;
	return $node->safe_psql('postgres', $row, extra_params => [ '-U', $user // getpwuid($<) ]);
}

# 2000 scans by one statement, which names the table
sub join_it
{
	$node->safe_psql('postgres', 'SELECT count(t.v) FROM outside o JOIN t ON t.k = o.k; SELECT pg_stat_force_next_flush()');
	return;
}

# ---- nothing preloaded ----

$node->safe_psql('postgres', q{
	CREATE EXTENSION artidx;
	CREATE ROLE plain LOGIN;
	CREATE ROLE watcher LOGIN IN ROLE pg_monitor;
	CREATE TABLE t (k bigint, v int);
	CREATE UNIQUE INDEX t_k ON t (k);
	INSERT INTO t SELECT i, i FROM generate_series(1, 10000) i;
	CREATE TABLE outside AS SELECT i AS k FROM generate_series(1, 2000) i;
	VACUUM ANALYZE});
is(advice(), 'convert|Preload artidx first.|0|false|false|unknown', 'without the library preloaded');

# ---- preloaded, and nothing else ----

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'artidx'\nartidx.memory = '64MB'");
$node->restart;
join_it();
is(advice(), 'convert||2000|true|false|unknown', 'without pg_stat_statements all scans are look-ups');
is(advice('watcher'), advice(), 'a member of pg_monitor sees the same');
is(advice('plain'), '', 'somebody else nothing');
$node->safe_psql('postgres', 'GRANT SELECT (v) ON t TO plain');
is(advice('plain'), advice(), 'or what he may read');

# ---- the extensions are there, and cannot be used ----

$node->safe_psql('postgres', 'CREATE SCHEMA "Else where"; CREATE EXTENSION pg_stat_statements SCHEMA "Else where"; CREATE EXTENSION pg_walinspect SCHEMA "Else where"');
is(advice('watcher'), 'convert||2000|true|false|unknown', 'with pg_stat_statements not loaded, and pg_walinspect for others');

# ---- and can ----

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'artidx,pg_stat_statements'");
$node->restart;
$node->safe_psql('postgres', 'SELECT pg_stat_reset(); CHECKPOINT; UPDATE t SET k = -k WHERE k % 1000 = 0');
join_it();
my ($verdict, $reason, $scans, $lookup, $join, $images) = split /\|/, advice();
is("$verdict $reason $scans $join", 'convert  2000 true', 'with pg_stat_statements the scans of one statement are a join');
cmp_ok($images, '>=', 1, "and pg_walinspect tells page images: $images");
is((split /\|/, advice('watcher'))[4], 'false', 'whoever may not use its schema is not told');
$node->safe_psql('postgres', 'GRANT USAGE ON SCHEMA "Else where" TO watcher');
is((split /\|/, advice('watcher'))[4], 'true', 'a member of pg_monitor is told of the join');
is((split /\|/, advice('watcher'))[5], 'unknown', 'but not of the images, for which pg_walinspect wants more');
$node->safe_psql('postgres', 'GRANT pg_read_server_files TO watcher');
is((split /\|/, advice('watcher'))[5], $images, 'with that, of those, too');

# ---- nothing is waited for ----

my $locker = $node->background_psql('postgres');
my $before = advice();
# which lets nobody in but readers
$locker->query_safe('BEGIN; LOCK TABLE t IN EXCLUSIVE MODE');
is(advice(), $before, 'its locks are a reader\'s');
$locker->query_safe('COMMIT');
$locker->query_safe('BEGIN; CREATE TEMP TABLE of_another (a int PRIMARY KEY); LOCK TABLE t IN ACCESS EXCLUSIVE MODE');
is($node->safe_psql('postgres', "SET lock_timeout = '20s'; SELECT verdict, reason, command IS NULL FROM artidx_advise() WHERE indexrelid::oid = (SELECT oid FROM pg_class WHERE relname = 't_k')"),
	'not possible|Somebody has locked the index or its table; ask again.|t', 'a locked table is told as such');
$locker->query_safe('COMMIT');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname = 'of_another_pkey'"), '1', 'another session has a temporary table');
is($node->safe_psql('postgres', "SELECT count(*) FROM artidx_advise() a JOIN pg_class c ON c.oid = a.indexrelid WHERE relname ~ 'another'"), '0', 'which is not told of');
$locker->quit;

# ---- a canceled one ends ----

my ($rc, $out, $err) = $node->psql('postgres', "SET statement_timeout = '1ms'; SELECT count(*) FROM generate_series(1, 100), artidx_advise()");
like($err, qr/canceling statement due to statement timeout/, 'a timeout is not taken for a lack of an extension');

# ---- a standby ----

$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
$node->safe_psql('postgres', 'CREATE UNLOGGED TABLE unlogged (a int PRIMARY KEY)');
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', "SELECT string_agg(indexrelid::text, ' ' ORDER BY 1) FROM artidx_advise()"), 't_k', 'on a standby, without unlogged tables');
$standby->stop;

is(join("\n", server_crashes($node, 0)), '', 'nothing crashed');
$node->stop;
done_testing();
