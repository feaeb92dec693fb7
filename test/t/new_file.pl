
# A table gets a new file (SET TABLESPACE), and its index keeps its own.  A rollback or a
# crash takes the new file away, and with it what the index learned from it.
#
# First rollbacks.  Then a crash with three sessions in such a transaction: one has
# inserted, one has built the index, one has scanned rows whose DELETE is not flushed.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

plan skip_all => 'needs /proc' unless -r "/proc/$$/status";

my $node;

sub sql { return $node->safe_psql('postgres', $_[0]); }

# the index has an entry for each row, and no other
sub exact
{
	my ($table, $rows, $name) = @_;

	sql("SELECT artidx_build('${table}_k')");
	is(sql("SELECT entries || ' ' || heap_tuples FROM artidx_check('${table}_k', true)"),
		"$rows $rows", $name);
	is(sql("SELECT count(*), sum(k) FROM $table WHERE k > 0"),
		sql("SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off;
			SELECT count(*), sum(k) FROM $table"), "$name: index and table agree");
	return;
}

sub session
{
	my $s = $node->background_psql('postgres');

	$s->query_safe($_) foreach @_;
	return $s;
}

foreach my $level (qw(minimal replica))
{
	$node = art_node(
		"new_file_$level",
		wal_level => $level,
		max_wal_senders => 0,
		synchronous_commit => 'off',
		wal_writer_flush_after => "'1GB'",
		wal_buffers => "'16MB'",
		checkpoint_timeout => "'1h'",
		restart_after_crash => 'on',
		allow_in_place_tablespaces => 'on',
		enable_seqscan => 'off',
		enable_bitmapscan => 'off',
		'artidx.build_workers' => 0,
		crash_often());
	sql("CREATE TABLESPACE ts LOCATION ''");
	foreach my $t (qw(undone kept inserted built killed))
	{
		sql("CREATE TABLE $t (k int) WITH (autovacuum_enabled = off);
			INSERT INTO $t SELECT generate_series(1, 100);
			CREATE UNIQUE INDEX ${t}_k ON $t USING art (k)");
	}
	sql('VACUUM; CHECKPOINT');

	# ---- rollback ----

	sql('BEGIN; ALTER TABLE undone SET TABLESPACE ts; INSERT INTO undone VALUES (777); ROLLBACK');
	sql('INSERT INTO undone VALUES (6000)');
	is(sql('SELECT count(*) FROM undone WHERE k = 777'), 0,
		"$level: a row that was rolled back with its file is not found");
	sql('INSERT INTO undone VALUES (777)');
	exact('undone', 102, "$level: after the rollback");
	sql('BEGIN; SAVEPOINT s; ALTER TABLE undone SET TABLESPACE ts; INSERT INTO undone VALUES (778);
		ROLLBACK TO s; INSERT INTO undone VALUES (6001); COMMIT');
	is(sql('SELECT count(*) FROM undone WHERE k = 778'), 0, "$level: the same to a savepoint");
	exact('undone', 103, "$level: after the savepoint");
	# the index gets no other file meanwhile, which the rollback would not reset
	my $mover = session('BEGIN', 'ALTER TABLE undone SET TABLESPACE ts');
	fails_with($node, "SET lock_timeout = '100ms'; ALTER INDEX undone_k SET TABLESPACE ts",
		'55P03', qr/lock timeout/, "$level: an index does not move while its table does");
	$mover->query_safe('INSERT INTO undone VALUES (779); ROLLBACK');
	$mover->quit;
	exact('undone', 103, "$level: after two moves");
	# an index's new file, which a rolled-back savepoint makes core forget; another session knows the old entry
	sql('CREATE TABLE moved (k int); INSERT INTO moved SELECT generate_series(1, 100); CREATE INDEX moved_k ON moved USING art (k)');
	my $reader = session('SELECT count(*) FROM moved WHERE k = 1');
	my $writer = session('BEGIN', 'ALTER INDEX moved_k SET TABLESPACE ts', 'SAVEPOINT s', 'REINDEX INDEX moved_k',
		'ROLLBACK TO s', q{SELECT artidx_build('moved_k')}, 'ROLLBACK', 'INSERT INTO moved VALUES (4242)');
	is($reader->query_safe('SELECT count(*) FROM moved WHERE k = 4242'), 1,
		"$level: a row is found after an index's new file was rolled back");
	$_->quit foreach $reader, $writer;
	# an index that takes over the file of another one
	sql('CREATE TABLE taken (k varchar(10)); CREATE UNIQUE INDEX taken_k ON taken USING art (k);
		INSERT INTO taken SELECT generate_series(1, 1000)');
	my $had = sql('SELECT sum(indexes) FROM artidx_usage');
	sql("BEGIN; ALTER TABLE taken ALTER k TYPE varchar(20); INSERT INTO taken VALUES ('new'); ROLLBACK") foreach 1 .. 3;
	is(sql('SELECT sum(indexes) FROM artidx_usage'), $had, "$level: a type that was not changed after all leaves no structure");
	is(sql(q{CREATE TEMP TABLE own (k int); CREATE UNIQUE INDEX own_k ON own USING art (k);
		INSERT INTO own SELECT generate_series(1, 10);
		BEGIN; ALTER TABLE own SET TABLESPACE ts; INSERT INTO own VALUES (777); ROLLBACK;
		INSERT INTO own VALUES (6000), (777);
		BEGIN; SAVEPOINT s; ALTER TABLE own SET TABLESPACE ts; INSERT INTO own VALUES (778); ROLLBACK TO s; COMMIT;
		INSERT INTO own VALUES (6001);
		SELECT count(*), sum(k), count(*) FILTER (WHERE k = 778) FROM own WHERE k > 0}),
		'13|12833|0', "$level: nor are those of a temporary table");

	# ---- commit, and crash ----

	sql('BEGIN; ALTER TABLE kept SET TABLESPACE ts; INSERT INTO kept VALUES (778); COMMIT');
	is(sql("SELECT state FROM artidx_indexes WHERE indexrelname = 'kept_k'"), 'ready',
		"$level: a commit loses no index");

	my @open = (
		session('BEGIN', 'ALTER TABLE inserted SET TABLESPACE ts', 'INSERT INTO inserted VALUES (777)'),
		session(
			"SELECT artidx_unload('built_k')", 'BEGIN',
			'ALTER TABLE built SET TABLESPACE ts', 'INSERT INTO built VALUES (777)',
			"SELECT artidx_build('built_k')"));
	sql(q{SET synchronous_commit = on; SELECT pg_logical_emit_message(true, '', '')});
	my $writer = stop_wal_writer($node);
	# the DELETE's pages and WAL are written, its commit is not
	sql('BEGIN; DELETE FROM killed WHERE k <= 10; CHECKPOINT; COMMIT');
	push @open, session('BEGIN', 'ALTER TABLE killed SET TABLESPACE ts',
		('SELECT count(*) FROM killed WHERE k <= 20') x 3);
	crash_without_flush($node, $writer);
	eval { $_->{run}->finish } foreach @open;

	foreach my $t (qw(inserted built))
	{
		sql("INSERT INTO $t VALUES (6000)");
		is(sql("SELECT count(*) FROM $t WHERE k = 777"), 0, "$level: a row that is lost with its file is not found");
		exact($t, 101, "$level: $t");
	}
	is(sql('SELECT count(*) FROM killed WHERE k <= 10'), 10, "$level: rows whose DELETE is lost are found");
	exact('killed', 100, "$level: killed");
	is(sql("SELECT last_build_source FROM artidx_indexes WHERE indexrelname = 'kept_k'"), 'kept',
		"$level: what was committed before the crash is kept");
	exact('kept', 101, "$level: kept");
	$node->stop;
}

# An index without an entry is renamed, and gets one in that transaction.  Others use it, and
# the rollback must leave it to them.
foreach my $how ('ROLLBACK', 'ROLLBACK TO', 'PREPARE')
{
	$node = art_node('renamed_' . lc(substr($how, -2)), max_prepared_transactions => 5, enable_seqscan => 'off',
		enable_bitmapscan => 'off', 'artidx.build_workers' => 0, 'artidx.save_at_shutdown' => 'off');
	sql(q{CREATE TABLE known (k int); INSERT INTO known SELECT generate_series(1, 100);
		CREATE INDEX known_k ON known USING art (k);
		CREATE TABLE fresh (k bigint, b int); INSERT INTO fresh SELECT i, i FROM generate_series(1, 50) i});
	$node->restart;
	my $user = session();
	my $renamer = session('BEGIN', 'ALTER INDEX known_k RENAME TO renamed', 'SAVEPOINT s',
		q{SELECT artidx_build('renamed')});
	$user->query_safe('INSERT INTO known VALUES (1001)') if $how ne 'PREPARE';
	if ($how eq 'PREPARE')
	{
		$renamer->query_safe(q{PREPARE TRANSACTION 'r'});
		$renamer->query_safe(q{ROLLBACK PREPARED 'r'});
	}
	else
	{
		$renamer->query_safe($how . ($how eq 'ROLLBACK' ? '' : ' s; COMMIT'));
	}
	sql('ALTER INDEX IF EXISTS renamed RENAME TO known_k');
	$renamer->query_safe('CREATE INDEX fresh_k ON fresh USING art (k)');
	sql(q{SELECT artidx_build('known_k')});
	$user->query_safe('INSERT INTO known VALUES (1002)');
	exact('known', $how eq 'PREPARE' ? 101 : 102, "$how of a new name: the index");
	exact('fresh', 50, "$how of a new name: another one");
	eval { $_->quit } foreach $user, $renamer;
	$node->stop;
}

done_testing();
