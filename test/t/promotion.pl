# A standby under load, promoted under load: its sessions are told the truth
# before, during and after, plans made before the promotion included, and pick
# the indexes up when they are ready.  Then the other ways in which a data
# directory comes to life without what was in memory: a base backup, recovery
# to a point in time, pg_rewind.
# PROMOTE_SECONDS is the length of each load.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $seconds = $ENV{PROMOTE_SECONDS} // 4;
my $n = 10000;
my @readers = qw(point range order count other);

sub followed
{
	my ($node, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(
		$node->poll_query_until('postgres',
			q{SELECT string_agg(indexrelname, ' ' ORDER BY indexrelname) = 'w_id w_k w_kid w_part w_tid w_u w_x'
				FROM artidx_indexes WHERE state = 'ready' AND relname = 'w' AND indexrelname <> 'w_new'}),
		"$name: the follower keeps them all");
}

art_seed();
my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1, has_archiving => 1);
art_conf(
	$primary,
	wal_log_hints => 'on',
	wal_keep_size => "'512MB'",
	# a cancelled query would be core's error, not ours
	max_standby_streaming_delay => -1,
	log_line_prefix => $ArtTest::LOG_PREFIX);
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION artidx');
load_schema($primary, $n);
# for a cursor that stays open: a REINDEX of its table would wait in replay for
# its end, and so would the promotion
$primary->safe_psql('postgres', q{
	CREATE TABLE still (id bigint);
	INSERT INTO still SELECT generate_series(1, 5000);
	CREATE UNIQUE INDEX still_id ON still USING art (id);
	ANALYZE still;});

$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'hot_standby_feedback = on');
$standby->start;
my $offset = -s $standby->logfile;

followed($standby, 'standby');

my $old = $standby->background_psql('postgres', timeout => 600);
$old->query_safe('SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off');
$old->query_safe('PREPARE p (bigint) AS SELECT payload FROM w WHERE id = $1');
$old->query_safe('PREPARE c (int) AS SELECT count(*) FROM w WHERE k = $1 AND id <= ' . $n);
is($old->query_safe('EXECUTE p (77)'), 77 * 7 + 3, 'standby: prepared');
like($old->query_safe('EXPLAIN (COSTS OFF) EXECUTE p (77)'),
	qr/w_id/, 'standby: and planned with the index');
my $writers = load_start($primary, n => $n, clients => 4,
	scripts => [qw(write hot back unique)]);
my $upkeep = load_start($primary, n => $n, clients => 1,
	scripts => ['upkeep_locked'], mode => 'simple');
# these live through the promotion
my @sessions = (
	load_start($standby, n => $n, clients => 4, scripts => \@readers,
		options => '-c enable_seqscan=off -c jit=off -c plan_cache_mode=force_generic_plan'),
	load_start($standby, n => $n, clients => 2, scripts => \@readers,
		options => '-c jit=off'),
	load_start($standby, n => $n, clients => 2, scripts => \@readers,
		mode => 'simple'));

# a cursor that is open from before the promotion until after the build
my $cursor = $standby->background_psql('postgres', timeout => 600);
$cursor->query_safe('BEGIN');
$cursor->query_safe('DECLARE c SCROLL CURSOR FOR SELECT id FROM still ORDER BY id');
is($cursor->query_safe('FETCH 2 FROM c'), "1\n2", 'standby: a cursor');

sleep $seconds;
is( $standby->safe_psql('postgres',
		"SELECT count(*) FROM artidx_standby WHERE database = 'postgres'"),
	'1', 'standby: the follower goes on');
ok(load_running($_), 'the readers go on') for @sessions;

# the standby is promoted while the primary still writes
my $switch = time();
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
is($old->query_safe('EXECUTE p (78)'),
	78 * 7 + 3, 'promoted: the old session answers at once');
my $new_writers = load_start($standby, n => $n, clients => 4);
is($old->query_safe('EXECUTE c (5)'), $n / 100, 'promoted: and counts');
load_finish($writers, stop => 1);
load_finish($upkeep, stop => 1);
is(join("\n", load_lies($writers), load_lies($upkeep)),
	'', 'the primary saw no error');

all_ready($standby, 'promoted: all ready');
diag(sprintf 'ready %.1f s after the promotion', time() - $switch);
like($old->query_safe('EXPLAIN (COSTS OFF) EXECUTE p (77)'),
	qr/w_id/, 'promoted: the old plan has picked the index up');
is($old->query_safe('EXECUTE p (79)'),
	79 * 7 + 3, 'promoted: and answers through it');
like($old->query_safe('EXPLAIN (COSTS OFF) EXECUTE c (5)'),
	qr/w_k/, 'promoted: the other one too');
is($old->query_safe('EXECUTE c (6)'), $n / 100, 'promoted: and counts');
is($cursor->query_safe('FETCH 2 FROM c'), "3\n4", 'promoted: the old cursor goes on');
is($cursor->query_safe('FETCH BACKWARD 1 FROM c'), '3', 'promoted: and back');
$cursor->query_safe('COMMIT');
$cursor->quit;
$old->quit;
sleep $seconds;
for my $l (@sessions, $new_writers)
{
	ok(load_running($l), 'promoted: the same sessions go on');
	load_finish($l, stop => 1);
	is(join("\n", load_lies($l)), '', 'and saw no error and no wrong answer');
}
is(join("\n", server_errors($standby, $offset, qr/^(57P0[123]|08\w{3})$/)),
	'', 'nor does the log have one');
is(join("\n", server_crashes($standby, $offset)), '', 'and nothing crashed');
load_verify($standby, $n, 'promoted');
check_exact($standby, 'still', 'still_id');
load_verify($primary, $n, 'the old primary');

# ---- a base backup of a server with ready indexes, taken under load ----
my $load = load_start($primary, n => $n, clients => 4);
sleep 0.5;
$primary->backup('hot');
load_finish($load, stop => 1);
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($primary, 'hot');
$copy->start;
is($copy->safe_psql('postgres', 'SELECT payload FROM w WHERE id = 80'),
	80 * 7 + 3, 'base backup: the first query is right');
all_ready($copy, 'base backup: the indexes come back');
load_verify($copy, $n, 'base backup');
$copy->stop;

# ---- to a named point in time ----
$primary->safe_psql('postgres',
	"INSERT INTO w (id, payload) VALUES (5000001, 1)");
$primary->safe_psql('postgres', "SELECT pg_create_restore_point('here')");
$primary->safe_psql('postgres', q{
	INSERT INTO w (id, payload) VALUES (5000002, 1);
	DELETE FROM w WHERE id = 5000001;
	VACUUM w;
	REINDEX INDEX w_id;
	SELECT pg_switch_wal();});
my $pitr = PostgreSQL::Test::Cluster->new('pitr');
$pitr->init_from_backup($primary, 'hot', has_restoring => 1, standby => 0);
$pitr->append_conf('postgresql.conf',
	"recovery_target_name = 'here'\nrecovery_target_action = 'promote'\n"
	  # the standby's archive_command is the primary's
	  . "recovery_target_timeline = 'current'\narchive_mode = off");
$pitr->start;
$pitr->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
is( $pitr->safe_psql('postgres',
		'SET enable_seqscan = off; SELECT string_agg(id::text, \' \') FROM w WHERE id IN (5000001, 5000002)'),
	'5000001', 'PITR: the rows of that moment, no others');
fails_with($pitr, 'INSERT INTO w (id) VALUES (5000001)',
	'23505', qr/"w_id"/, 'PITR: unique at once');
all_ready($pitr, 'PITR: the indexes come back');
load_verify($pitr, $n, 'PITR');
$pitr->stop;

# ---- pg_rewind: the old primary follows the new one ----
$standby->safe_psql('postgres', q{
	INSERT INTO w (id, payload) VALUES (6000001, 2);
	CREATE INDEX w_new ON w USING art (payload, id);
	CHECKPOINT;});
$primary->safe_psql('postgres',
	'INSERT INTO w (id, payload) VALUES (6000001, 3); INSERT INTO w (id, payload) VALUES (6000002, 3)');
$primary->stop;
my ($out, $err) = ('', '');
my $conf = slurp_file($primary->data_dir . '/postgresql.conf');
my $rewound = IPC::Run::run(
	[
		'pg_rewind', '--target-pgdata=' . $primary->data_dir,
		'--source-server=' . $standby->connstr('postgres'), '--no-sync'
	],
	'>', \$out, '2>', \$err);
ok($rewound, 'pg_rewind') or diag("$out$err");
open my $fh, '>', $primary->data_dir . '/postgresql.conf' or die $!;
print $fh $conf;
close $fh;
$primary->enable_streaming($standby);
$primary->set_standby_mode;
$primary->start;
$standby->wait_for_catchup($primary->name);
is( $primary->safe_psql('postgres',
		'SET enable_seqscan = off; SELECT string_agg(payload::text, \' \') FROM w WHERE id IN (6000001, 6000002)'),
	'2', 'rewound: the other history is gone');
followed($primary, 'rewound: a standby again');
$standby->stop('immediate');
$primary->promote;
$primary->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
all_ready($primary, 'rewound and promoted: the indexes come back');
load_verify($primary, $n, 'rewound');
$primary->stop;

done_testing();
