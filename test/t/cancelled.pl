# Statements that are cancelled, timed out or terminated at random moments of
# CREATE INDEX, rebuild, load, insert, scan and VACUUM; then a backend whose
# address space ends in the middle of them.  Nothing may crash or stay behind.
# CANCEL_ROUNDS says how many, SEED which.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $rounds = $ENV{CANCEL_ROUNDS} // 20;
my $rows = 20000;
my $node = art_node(
	'cancel',
	log_line_prefix => $ArtTest::LOG_PREFIX,
	jit => 'off',
	'artidx.memory' => "'256MB'",
	'artidx.build_workers' => 1);
$node->safe_psql('postgres', 'CREATE EXTENSION artidx_debug');
my $offset = -s $node->logfile;
my $used = $node->safe_psql('postgres', 'SELECT used_bytes FROM artidx_memory');

art_seed();
$node->safe_psql('postgres', qq{
	CREATE TABLE t (id bigint, k int, x text COLLATE "C") WITH (fillfactor = 90);
	INSERT INTO t SELECT i, i % 100, md5(i::text) FROM generate_series(1, $rows) i;
	CREATE UNIQUE INDEX t_id ON t USING art (id);
	CREATE INDEX t_k ON t USING art (k);
	CREATE INDEX t_x ON t USING art (x, k);
	CREATE SEQUENCE s START 1000000;
	CREATE TABLE t2 (id bigint);
	CREATE UNIQUE INDEX t2_id ON t2 USING art (id);
	ANALYZE t;
	-- what REINDEX CONCURRENTLY and the victims below leave
	CREATE PROCEDURE tidy() LANGUAGE plpgsql AS \$\$
	DECLARE r regclass;
	BEGIN
		FOR r IN SELECT i.indexrelid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
			WHERE indrelid IN ('t'::regclass, 't2'::regclass)
			  AND (NOT indisvalid OR relname LIKE 'c\\_%')
		LOOP
			EXECUTE 'DROP INDEX ' || r;
		END LOOP;
	END \$\$;
});

my @statements = (
	'CREATE INDEX c_1 ON t USING art (k, id)',
	'CREATE UNIQUE INDEX c_2 ON t USING art (id, x)',
	'CREATE INDEX CONCURRENTLY c_3 ON t USING art (x)',
	'REINDEX INDEX t_k',
	'REINDEX INDEX CONCURRENTLY t_id',
	'REINDEX TABLE t',
	q{BEGIN; SELECT artidx_unload('t_k'); SELECT artidx_build('t_k'); COMMIT},
	q{SELECT artidx_unload('t_x'); SELECT artidx_build('t_x')},
	q{SELECT artidx_unload('t_id'); INSERT INTO t SELECT nextval('s'), 5, 'after unload'},
	q{SELECT artidx_unload('t_id'); SELECT count(*) FROM t WHERE id BETWEEN 5 AND 5000},
	q{INSERT INTO t SELECT nextval('s'), i % 100, md5(i::text) FROM generate_series(1, 5000) i},
	q{UPDATE t SET k = k + 1000 WHERE id > 1000000; UPDATE t SET k = k - 1000 WHERE id > 1000000},
	'DELETE FROM t WHERE id > 1000000',
	q{BEGIN; DELETE FROM t WHERE k = 7; INSERT INTO t SELECT nextval('s'), 7, 'x'; ROLLBACK},
	'SET enable_seqscan = off; SELECT count(*), sum(id) FROM t WHERE k BETWEEN 5 AND 60',
	'SET enable_seqscan = off; SELECT count(*) FROM (SELECT x FROM t ORDER BY x) s',
	'SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SELECT count(*) FROM t a JOIN t b ON a.id = b.id WHERE a.k < 20',
	'VACUUM t',
	'VACUUM (INDEX_CLEANUP ON) t',
	'BEGIN; TRUNCATE t2; INSERT INTO t2 SELECT generate_series(1, 5000); COMMIT',
	'BEGIN; CREATE TABLE c_t (id int); CREATE INDEX ON c_t USING art (id); INSERT INTO c_t SELECT generate_series(1, 5000); ROLLBACK',
	'VACUUM FULL t2',
	q{SELECT entries FROM artidx_check('t_id', true)},
	'ALTER TABLE t2 ALTER id TYPE int; ALTER TABLE t2 ALTER id TYPE bigint');

# artidx_unload may not be there in an older version
my $can_unload = $node->safe_psql('postgres',
	"SELECT count(*) FROM pg_proc WHERE proname = 'artidx_unload'");
ok($can_unload, 'artidx_unload is there');

my (%ended, @odd);
my $cut = 0;

# more of them, if the machine is so fast that few are cut short
for (my $round = 1; $round <= $rounds || ($cut <= $rounds / 20 && $round <= 10 * $rounds); $round++)
{
	my $sql = $statements[ int rand @statements ] =~ s/\bc_\d/c_$round/r;
	my $how = (qw(timeout cancel terminate))[ int rand 3 ];
	my $delay = rand() < 0.5 ? rand(0.01) : rand(0.12);
	my ($out, $err) = ('', '');
	my @settings = $how eq 'timeout'
	  ? (sprintf 'SET statement_timeout = %d', 1 + 1000 * $delay) : ();
	my @args = map { ('-c', $_) } @settings, split /;\s*/, $sql;

	local $ENV{PGAPPNAME} = 'victim';
	my $h = IPC::Run::start(
		[ 'psql', '-XAtq', '-v', 'VERBOSITY=verbose',
			'-d', $node->connstr('postgres'), @args ],
		'<', \undef, '>', \$out, '2>', \$err);
	if ($how ne 'timeout')
	{
		local $ENV{PGAPPNAME} = 'killer';
		$node->safe_psql('postgres', qq{
			DO \$\$ BEGIN
				FOR i IN 1 .. 1000 LOOP
					PERFORM pg_stat_clear_snapshot();
					EXIT WHEN EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'victim' AND state = 'active');
					PERFORM pg_sleep(0.001);
				END LOOP; END \$\$;
			SELECT pg_sleep($delay);
			SELECT pg_${how}_backend(pid) FROM pg_stat_activity
			WHERE application_name = 'victim'})
		  if $h->pumpable;
	}
	$h->finish;
	$cut++ if $err =~ /57014|57P01|server closed/;
	push @odd, "round $round: $how $sql: $err"
	  if $err =~ /(ERROR|FATAL|PANIC):  (?!57014|57P01|25P02)/;

	# what a cut DDL left behind, and the whole server now and then
	if ($round % 8 == 0)
	{
		$node->safe_psql('postgres', 'CALL tidy()');
	}
	if ($round % 40 == 0)
	{
		$node->safe_psql('postgres', 'CALL tidy()');
		$node->restart;
	}
	elsif ($round % 40 == 20)
	{
		$node->stop('immediate');
		$node->start;
	}
}
note("$cut statements were cut short");
is(join("\n", @odd), '', 'no statement ended in another way');
cmp_ok($cut, '>', $rounds / 20, "$cut were cut short");

sub at_rest
{
	my ($what) = @_;

	$node->safe_psql('postgres', 'CALL tidy()');
	all_ready($node, "$what: all ready");
	is( $node->safe_psql('postgres',
			"SELECT count(*) FROM artidx_indexes WHERE state = 'building'"),
		'0', "$what: nothing stuck in building");
	is( $node->safe_psql('postgres',
			'SELECT count(*) FROM artidx_epochs WHERE pinned_epoch IS NOT NULL'),
		'0', "$what: nobody is inside an epoch");
	check_exact($node, 't', $_) for qw(t_id t_k t_x);
	check_exact($node, 't2', 't2_id');
	same_answer($node, $_, "$what: $_")
	  for 'SELECT count(*), sum(id) FROM t WHERE id > 0',
	  'SELECT count(*), sum(id) FROM t WHERE k >= 0',
	  "SELECT count(*), sum(id) FROM t WHERE x > 'a'";
	is( $node->safe_psql('postgres',
			"SELECT count(*), sum(id) FROM t WHERE id <= $rows"),
		$rows . '|' . $rows * ($rows + 1) / 2,
		"$what: the rows that never change are all there");
	return;
}
# artidx_unload keeps an index out until somebody wants it back
$node->safe_psql('postgres', 'CALL tidy(); SELECT count(artidx_build(indexrelid)) FROM artidx_indexes');
at_rest('cancelled');

# ---- in the load of a large run ----
# It gives up, as if memory were full, but memory is not: the old structure stays.
my $loads = 0;

$node->safe_psql('postgres', q{
	CREATE TABLE big (id bigint) WITH (autovacuum_enabled = off);
	INSERT INTO big SELECT hashint8extended(i, 19) FROM generate_series(1, 600000) i;
	CREATE INDEX big_art ON big USING art (id);
	CREATE INDEX big_btree ON big USING art (id) WITH (structure = btree);
	CREATE INDEX big_hydra ON big USING art (id) WITH (structure = hydra)});
my $states = q{SELECT string_agg(concat_ws(' ', state, last_build_source, builds), ', ' ORDER BY indexrelid)
	FROM artidx_indexes WHERE indexrelid::regclass::text LIKE 'big%'};
my $before = $node->safe_psql('postgres', $states);
for my $try (1 .. 30)
{
	my $index = (qw(big_art big_btree big_hydra))[ $try % 3 ];
	my $workers = int($try / 3) % 2;
	my $err = '';

	local $ENV{PGAPPNAME} = 'victim';
	my $h = IPC::Run::start(
		[ 'psql', '-XAtq', '-v', 'VERBOSITY=verbose', '-d', $node->connstr('postgres'),
			'-c', "SET max_parallel_maintenance_workers = $workers", '-c', "REINDEX INDEX $index" ],
		'<', \undef, '>', \my $out, '2>', \$err);
	{
		local $ENV{PGAPPNAME} = 'killer';
		$node->safe_psql('postgres', q{
			DO $$ BEGIN
				FOR i IN 1 .. 1000000 LOOP
					PERFORM pg_stat_clear_snapshot();
					EXIT WHEN EXISTS (SELECT FROM pg_stat_progress_create_index WHERE phase LIKE '%: loading sorted keys');
					EXIT WHEN i > 1000 AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'victim');
				END LOOP; END $$;
			SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'victim' AND state = 'active'});
	}
	$h->finish;
	$loads++ if $err =~ /57014/;
	last if $try >= 6 && $loads >= 4;
}
cmp_ok($loads, '>=', 4, "$loads REINDEX were cancelled when they loaded");
is($node->safe_psql('postgres', $states), $before, 'what there was is there still');
check_exact($node, 'big', $_) for qw(big_art big_btree big_hydra);
$node->safe_psql('postgres', 'DROP TABLE big');

# ---- out of memory in the backend ----
# A limit on the address space of one running backend makes its next large
# allocations fail at an unforeseen place.
SKIP:
{
	my ($rc) = IPC::Run::run([ 'sh', '-c', 'command -v prlimit' ], '>', \my $o);
	skip 'no prlimit here', 1 unless $rc && -r '/proc/self/status';

	my $oom = 0;
	my @oom_odd;
	# until enough statements have met their limit, by chance
	for my $round (1 .. 5 * $rounds)
	{
		last if $round > $rounds / 4 + 1 && $oom > $rounds / 40;
		my $sql = $statements[ int rand @statements ] =~ s/\bc_\d/c_$round/r;
		my $s = $node->background_psql('postgres', on_error_stop => 0);
		my $pid = $s->query_safe('SELECT pg_backend_pid()');
		# so that the catalogs are in the cache, and the limit meets the work
		$s->query_safe("SET maintenance_work_mem = '64MB'; SELECT count(*) FROM t WHERE id < 100");
		my ($size) = slurp_file("/proc/$pid/status") =~ /VmSize:\s+(\d+) kB/;
		my $limit = 1024 * ($size + int(rand(rand() < 0.5 ? 1500 : 12000)));
		IPC::Run::run([ 'prlimit', "--pid=$pid", "--as=$limit:" ])
		  or die 'prlimit failed';
		my ($answer, $failed) = $s->query("\\set VERBOSITY verbose\n$sql");
		$oom++ if $s->{stderr} =~ /53200/;
		# a query can then say 25P02 for the rest of its transaction
		push @oom_odd, "$sql: $s->{stderr}"
		  if $s->{stderr} =~ /(ERROR|FATAL|PANIC):  (?!53200|25P02)/
		  || $s->{stderr} =~ /server closed/;
		$s->{stderr} = '';
		IPC::Run::run([ 'prlimit', "--pid=$pid", '--as=unlimited:' ]);
		$s->query('ROLLBACK');
		$s->{stderr} = '';
		is($s->query('SELECT count(*) FROM t WHERE id = 4711'), '1',
			"out of memory, round $round: the backend goes on");
		$s->quit;
		$node->safe_psql('postgres', 'CALL tidy()');
	}
	diag("$oom statements ran out of memory");
	cmp_ok($oom, '>', $rounds / 40, "$oom statements ran out of memory");
	is(join("\n", @oom_odd), '', 'out of memory: 53200, and nothing else');
}
$node->safe_psql('postgres', 'CALL tidy(); SELECT count(artidx_build(indexrelid)) FROM artidx_indexes');
at_rest('out of memory');

is(join("\n", server_errors($node, $offset, qr/^(57014|57P0[123]|53200|25P02|08\w{3})$/)),
	'', 'the log has no other error');
is(join("\n", server_crashes($node, $offset)), '', 'nothing crashed');
unlike(slurp_file($node->logfile, $offset), qr/terminated by signal|all server processes terminated/,
	'nothing at all');

$node->safe_psql('postgres', 'DROP TABLE t, t2');
memory_returns($node, $used, 512 * 1024, 'no memory is lost');
$node->stop;
done_testing();
