# ALTER INDEX ... SET (structure, sync, page_size): under load, rolled back,
# prepared, and over restarts.  SECONDS of the load: SWITCH_SECONDS.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $seconds = $ENV{SWITCH_SECONDS} // 10;
my @engines = art_engines();
my $n = 20000;

art_seed();
my $node = art_node(
	'switch',
	max_prepared_transactions => 5,
	allow_system_table_mods => 'on',
	restart_after_crash => 'on',
	jit => 'off',
	log_line_prefix => $ArtTest::LOG_PREFIX);

sub sql
{
	return $node->safe_psql('postgres', join(' ', @_));
}

# structure, sync, page size, and how it came to be, when it is ready
sub made
{
	my ($index) = @_;

	$node->poll_query_until('postgres',
		"SELECT state = 'ready' FROM artidx_indexes WHERE indexrelname = '$index'");
	return sql("SELECT structure || '-' || sync || coalesce(' ' || (nodes ->> 'page_size'), ''), last_build_source, builds",
		"FROM artidx_indexes WHERE indexrelname = '$index'");
}

# ---- nobody asks: a worker builds it, and plans pick it up again ----

sql('CREATE TABLE t (k int, v int)');
sql('INSERT INTO t SELECT i, i % 10 FROM generate_series(1, 5000) i');
sql('CREATE UNIQUE INDEX t_k ON t USING art (k)');
sql('CREATE INDEX t_v ON t USING art (v)');
sql('VACUUM ANALYZE t');
my $builds = 1;
for my $e (@engines, 'art-olc')
{
	my $page = $e =~ /^btree/ ? ', page_size = 512' : '';

	sql('BEGIN; ALTER INDEX t_k RESET (page_size);',
		'ALTER INDEX t_k SET (', art_engine_options($e) . $page, '); COMMIT;');
	my $want = $e . ($page ? ' 512' : '');
	$builds++ unless $builds == 1 && $e eq 'art-olc';
	is(made('t_k'), "$want|" . ($builds == 1 ? 'create' : 'alter') . "|$builds",
		"altered to $want, and built in the background");
	ok(plan_uses($node, 't_k', 'SELECT * FROM t WHERE k = 7'), "$e: planned with");
	my ($rc, $out, $err) = $node->psql('postgres', 'INSERT INTO t VALUES (17, 0)');
	like($err, qr/duplicate key value violates unique constraint "t_k"/, "$e: unique");
	check_exact($node, 't', 't_k');
}

# ---- a session that had it open, its plans prepared, a cursor ----

my $s = $node->background_psql('postgres');
$s->query_safe('SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;'
	  . 'PREPARE q AS SELECT v FROM t WHERE k = $1; EXECUTE q (3); INSERT INTO t VALUES (6001, 1)');
for my $e (@engines)
{
	sql("ALTER INDEX t_k SET (" . art_engine_options($e) . ')') unless $e =~ /^btree/;
	sql("ALTER INDEX t_v SET (" . art_engine_options($e) . ')');
	is($s->query_safe('EXECUTE q (13)'), '3', "$e: a prepared plan");
	is($s->query_safe('SELECT count(*) FROM t WHERE v = 4'), '500', "$e: a new one");
	$s->query_safe('BEGIN; DELETE FROM t WHERE k = 6001; INSERT INTO t VALUES (6001, 1); COMMIT');
}
made('t_v');
$s->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT k FROM t WHERE v = 2 ORDER BY v');
$s->query_safe('FETCH 10 FROM c');
my ($rc, $out, $err) = $node->psql('postgres',
	"SET lock_timeout = '200ms'; ALTER INDEX t_v SET (structure = art, sync = rowex)");
like($err, qr/lock timeout/, 'ALTER INDEX waits for a transaction that scanned it');
is(scalar(split /\n/, $s->query_safe('FETCH ALL FROM c')), 490, 'which goes on');
$s->query_safe('COMMIT');
check_exact($node, 't', $_) for qw(t_k t_v);

# ---- rolled back: the structure was never touched ----

sql('ALTER INDEX t_k SET (structure = art, sync = rowex)');
my $before = made('t_k');
$node->psql('postgres', 'BEGIN; ALTER INDEX t_k SET (structure = btree, sync = coarse);'
	  . 'INSERT INTO t VALUES (7001, 0); SELECT count(*) FROM t WHERE k > 10; ROLLBACK');
is(made('t_k'), $before, 'ROLLBACK');
$node->psql('postgres', 'BEGIN; ALTER INDEX t_k SET (structure = btree, sync = coarse); SELECT 1 / 0; COMMIT');
is(made('t_k'), $before, 'an error');
check_exact($node, 't', 't_k');

# A rollback leaves it to the next to look; a parallel worker sees the options
# of its uncommitted transaction, and takes them for nobody's.
sql('BEGIN; ALTER INDEX t_k SET (sync = coarse); ROLLBACK');
is(sql(q{BEGIN; ALTER INDEX t_k SET (structure = btree, sync = coarse);
	SET LOCAL enable_seqscan = off; SELECT set_config(name, 'on', true) FROM pg_settings
		WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
	SELECT v FROM t WHERE k = 8; ROLLBACK}), "on\n8", 'a parallel worker in a transaction that alters');
is(made('t_k'), $before, 'ROLLBACK after a parallel worker');

# ---- the lock, also in a session that has never used an art index ----

for my $o ('structure = btree, sync = olc', 'sync = coarse', 'max_memory = \'1GB\'')
{
	is(sql("BEGIN; ALTER INDEX t_v SET ($o); SELECT mode FROM pg_locks",
			"WHERE relation = 't_v'::regclass AND pid = pg_backend_pid(); ROLLBACK"),
		'AccessExclusiveLock', "the lock of ALTER INDEX SET ($o)");
}

# ---- prepared ----

for my $end ('ROLLBACK', 'COMMIT')
{
	sql("BEGIN; ALTER INDEX t_k SET (structure = btree, sync = olc); PREPARE TRANSACTION 'p'");
	$node->restart if $end eq 'COMMIT';
	sql("$end PREPARED 'p'");
	my $want = $end eq 'COMMIT' ? 'btree-olc' : 'art-rowex';
	# the server may not know of the index yet
	sql('SET enable_seqscan = off; SELECT v FROM t WHERE k = 3');
	ok($node->poll_query_until('postgres', "SELECT structure || '-' || sync = '$want' "
			  . "AND state = 'ready' FROM artidx_indexes WHERE indexrelname = 't_k'"),
		"$end PREPARED: $want");
	check_exact($node, 't', 't_k');
}

# ---- an index that the directory does not know yet ----

$node->append_conf('postgresql.conf',
	"artidx.build_workers = 0\n");
$node->stop('immediate');
$node->start;
$node->psql('postgres', q{BEGIN; ALTER INDEX t_k SET (sync = coarse);
	SELECT artidx_build('t_k'); INSERT INTO t VALUES (8001, 0); ROLLBACK});
sql("SELECT artidx_build('t_k')");
like(made('t_k'), qr/^btree-olc 1024\|/, 'built in a transaction that was rolled back: by the old options');
$node->append_conf('postgresql.conf',
	"artidx.build_workers = 2\n");
$node->reload;

# ---- a crash right after it ----

sql('ALTER INDEX t_k SET (structure = art, sync = optiql)');
sql('ALTER INDEX t_v SET (structure = btree, sync = coarse)');
$node->stop('immediate');
$node->start;
like(made('t_k'), qr/^art-optiql\|/, 'after a crash: by the options');
like(made('t_v'), qr/^btree-coarse 1024\|/, 'the other one, too');
check_exact($node, 't', $_) for qw(t_k t_v);

# ---- saved at a shutdown: every engine comes back as itself ----

for my $e (@engines)
{
	my $name = $e =~ tr/-/_/r;

	sql("CREATE TABLE s_$name AS SELECT i AS k, md5(i::text) COLLATE \"C\" AS w FROM generate_series(1, 3000) i");
	sql("CREATE INDEX si_$name ON s_$name USING art (k, w) WITH (" . art_engine_options($e) . ')');
}
sql('CREATE TABLE x AS SELECT * FROM s_' . ($engines[0] =~ tr/-/_/r));
sql('CREATE INDEX x_art ON x USING art (k, w) WITH (sync = olc)');
sql('CREATE INDEX x_btree ON x USING art (k, w) WITH (structure = btree)');
$node->restart;
for my $e (@engines)
{
	my $name = $e =~ tr/-/_/r;
	my $page = $e =~ /^btree/ ? ' 1024' : '';

	is(made("si_$name"), "$e$page|load|2", "$e is loaded from the file");
	check_exact($node, "s_$name", "si_$name");
}

# What the file has is not what the options say (here: of a change that nobody
# was told): it is not taken for that.
sql(q{UPDATE pg_class SET reloptions = '{structure=btree,sync=olc}' WHERE relname = 'x_art'});
sql(q{UPDATE pg_class SET reloptions = '{structure=btree,page_size=2048,sync=optiql}' WHERE relname = 'x_btree'});
$node->restart;
ok($node->poll_query_until('postgres', q{SELECT count(*) = 2 FROM artidx_indexes
	WHERE indexrelname IN ('x_art', 'x_btree') AND last_build_source = 'alter'}),
	'a file of other structures is not believed');
like(made('x_art'), qr/^btree-olc 1024\|alter\|/, 'one is what the options say');
like(made('x_btree'), qr/^btree-optiql 2048\|alter\|/, 'the other, too');
check_exact($node, 'x', 'x_art');
check_exact($node, 'x', 'x_btree');

# ---- under load: 8 clients, everything altered all the time ----

load_schema($node, $n);
my $offset = -s $node->logfile;
my $load = load_start($node, n => $n, clients => 8, seconds => $seconds);
my $end = time() + $seconds;
my @indexes = indexes_of($node, 'w');
my ($altered, $back) = (0, 0);
my $alterer = $node->background_psql('postgres');
# (on a slow machine some come when the load is over)
while ((time() < $end && load_running($load)) || $altered <= 5)
{
	my $index = $indexes[ int(rand(@indexes)) ];
	my $e = $engines[ int(rand(@engines)) ];
	my $page = $e =~ /^btree/ ? ', page_size = ' . 64 * (4 + int(rand(60))) : '';
	my $commit = rand() < 0.8;

	$alterer->query_safe("BEGIN; ALTER INDEX $index RESET (page_size);"
		  . "ALTER INDEX $index SET (" . art_engine_options($e) . "$page);"
		  . ($commit ? 'COMMIT' : 'ROLLBACK'));
	$commit ? $altered++ : $back++;
	sleep rand(0.4);
}
$alterer->quit;
load_finish($load);
is(join("\n", load_lies($load)), '', 'no client erred or was told a lie');
cmp_ok($altered, '>', 5, "altered $altered times, and $back rolled back");
is(join("\n", server_errors($node, $offset, qr/^(57P01)$/)), '', 'no error in the log');
is(join("\n", server_crashes($node, $offset)), '', 'no crash');
all_ready($node, 'all of them are there in the end');
load_verify($node, $n, 'after the load');

$node->stop;
done_testing();
