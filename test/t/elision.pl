# Elision as the settings say, in one session and in all, alone and beside others,
# with counters that are zero after a restart.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $module = build_modules('art_elidetest') . '/art_elidetest';
my $node = art_node('elision', shared_preload_libraries => "'artidx, $module'", jit => 'off',
	'artidx.elision' => 'auto', 'art_elidetest.provider' => 'rtm');
$node->safe_psql('postgres', 'CREATE EXTENSION artidx_debug');
my $rtm = $node->safe_psql('postgres', 'SELECT rtm_usable FROM artidx_hardware()') eq 't';

sub sql
{
	return $node->safe_psql('postgres', join(' ', @_));
}

# In all sessions, and those to come.
sub setting
{
	my ($name, $value) = @_;

	sql("ALTER SYSTEM SET $name = '$value'");
	$node->reload;
	ok($node->poll_query_until('postgres', "SELECT current_setting('$name') = '$value'"),
		"$name = $value");
	return;
}

my $inject = 'SET art_elidetest.provider = inject;';

sub inserts
{
	my ($n) = @_;
	return "INSERT INTO t SELECT nextval('s') * 7919 % 1000003 FROM generate_series(1, $n);";
}

sub of_leaf_insert
{
	return sql("SELECT $_[0] FROM artidx_aborts WHERE indexrelname = 't_k' AND site = 'leaf_insert'");
}

sql('CREATE TABLE t (k bigint); CREATE SEQUENCE s; CREATE INDEX t_k ON t USING art (k);',
	'INSERT INTO t SELECT i * 1000 FROM generate_series(1, 3000) i;');

# ---- by session ----

sql("ALTER INDEX t_k SET (elision = on); SELECT artidx_reset_stats('t_k');", inserts(200));
is(of_leaf_insert('sections > 150'), $rtm ? 't' : 'f', 'where the processor has transactions, all do');
is(sql('SELECT elision, reason IS NULL FROM artidx_hardware()'),
	$rtm ? 'auto|t' : 'off|f', 'what there is');
sql("SELECT artidx_reset_stats('t_k');", $inject, "SET art_elidetest.script = 'conflict*5 commit loop';",
	inserts(200));
is(of_leaf_insert('sections > 150 AND conflict = 5 * commits AND fallbacks = 0'), 't', 'one session elides');
sql('ALTER INDEX t_k RESET (elision)');

# ---- switched off and on in the server ----

setting('artidx.elision', 'off');
sql("SELECT artidx_reset_stats('t_k');", $inject, inserts(200));
is(of_leaf_insert('sections'), 0, 'off: nothing is tried');
is(sql($inject, "SELECT mode FROM artidx_aborts WHERE indexrelname = 't_k' AND site = 'split'"),
	'off', 'off: and says so');
is(sql($inject, 'SELECT elision, reason FROM artidx_hardware()'),
	'off|artidx.elision is off', 'off: and why');

# auto: nothing between latches; whole calls under a coarse latch, beside others
setting('artidx.elision', 'auto');
sql("SELECT artidx_reset_stats('t_k');", $inject, inserts(700));
is(sql($inject, "SELECT sections, mode FROM artidx_aborts WHERE indexrelname = 't_k' AND site = 'leaf_insert'"),
	'0|off', 'auto: nothing is tried between latches');
sql('CREATE TABLE c (k bigint); CREATE INDEX c_k ON c USING art (k) WITH (structure = btree, sync = coarse);');
my $coarse = sub { sql("SELECT $_[0] FROM artidx_aborts WHERE indexrelname = 'c_k' AND site = 'coarse_write'") };
my $some = "INSERT INTO c SELECT nextval('s') * 7919 % 1000003 FROM generate_series(1, 200);";
sql($inject, $some);
is($coarse->('sections'), 0, 'auto: nor a coarse call that is alone');
append_to_file($node->basedir . '/some.sql', "$some\n");
{
	local $ENV{PGOPTIONS} = '-c art_elidetest.provider=inject';
	my $tries = 0;
	do
	{
		$node->command_ok([
				'pgbench', '-n', '-c', 8, '-T', 2, '-f', $node->basedir . '/some.sql',
				'-h', $node->host, '-p', $node->port, 'postgres'
			], 'eight sessions at once');
	} until ($coarse->('sections') > 0 || ++$tries >= 20);
}
is($coarse->('sections > 0'), 't', 'auto: but one that others wait for');

setting('artidx.elision', 'on');
sql("SELECT artidx_reset_stats('t_k');", $inject, "SET art_elidetest.script = 'zero*100000';",
	inserts(700));
is(of_leaf_insert('sections > 500 AND switch_offs = 0 AND commits = 0 AND fallbacks = sections AND zero >= 2 * sections'),
	't', 'on: never switched off');

# an open session follows, and its script does not begin anew
my $session = $node->background_psql('postgres');
$session->query_safe("$inject SET art_elidetest.script = 'commit*100000'; " . inserts(10));
my $before = of_leaf_insert('sections');
setting('artidx.elision', 'off');
$session->query_safe(inserts(100));
$session->query_safe(inserts(100));
cmp_ok(of_leaf_insert('sections'), '<', $before + 100, 'an open session follows');
$session->quit;
setting('artidx.elision', 'auto');

# ---- workers do as their leader ----

sql('CREATE TABLE p AS SELECT i AS k FROM generate_series(1, 200000) i;',
	'CREATE INDEX p_k ON p USING art (k) WITH (sync = coarse, elision = on); VACUUM ANALYZE p;');
my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;'
  . ' SET min_parallel_index_scan_size = 0; SET min_parallel_table_scan_size = 0;'
  . ' SET enable_seqscan = off; SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 2;'
  . ' SET parallel_leader_participation = off;';
my $before_p = sql("SELECT coalesce(sum(sections), 0) FROM artidx_aborts WHERE indexrelname = 'p_k'");
is(sql($inject, $parallel, 'SELECT count(*) FROM p WHERE k > 10'), 199990, 'a parallel scan');
cmp_ok(sql("SELECT sum(sections) FROM artidx_aborts WHERE indexrelname = 'p_k' AND site = 'coarse_read'"),
	'>', $before_p, 'its workers elide');

# ---- under a load, each session its own way ----

my %way = (inject => "conflict*3,commit*5,capacity*4,zero,busy,commit*9,explicit,nested,other,loop",
	software => "commit*4,conflict*2,commit,capacity,zero*7,loop");
my $file = $node->basedir . '/load.sql';
append_to_file($file,
	inserts(20) . "\nDELETE FROM t WHERE k IN (SELECT k FROM t WHERE k > random() * 1000000 ORDER BY k LIMIT 5);\n"
	  . "SELECT count(*) FROM (SELECT k FROM t WHERE k > 500000 ORDER BY k DESC LIMIT 50) s;\n");
sql('CREATE INDEX t_coarse ON t USING art (k) WITH (structure = btree, sync = coarse)');
setting('artidx.elision', 'on');
my @loads;
for my $how (sort keys %way)
{
	local $ENV{PGOPTIONS} = "-c art_elidetest.provider=$how -c art_elidetest.script=$way{$how}";
	push @loads, IPC::Run::start(
		[
			'pgbench', '-n', '-c', 4, '-T', 4, '-f', $file,
			'-h', $node->host, '-p', $node->port, 'postgres'
		],
		'>', $node->basedir . "/load.$how", '2>&1');
}
ok($_->finish, 'a load') for @loads;
is(sql('SELECT sum(commits) > 0 AND sum(fallbacks) > 0 AND sum(conflict) > 0 AND sum(capacity) > 0'
		  . ' AND sum(zero) > 0 FROM artidx_abort_stats()'), 't', 'all of it happened');
sql('SELECT artidx_reset_stats()');
sql('VACUUM t');
check_clean($node, $_) for qw(t_k t_coarse);

# ---- a restart ----

sql($inject, inserts(100));
cmp_ok(sql("SELECT sum(sections) FROM artidx_aborts"), '>', 0, 'before a restart');
setting('artidx.elision', 'off');
$node->restart;
is(sql('SELECT sum(sections), count(stats_reset) FROM artidx_aborts'), '0|0', 'zeros after a restart');

$node->stop;
done_testing();
