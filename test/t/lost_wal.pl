# Structures outlive a crash, and WAL that was not flushed does not.
#
# Nothing flushes WAL here but what the test asks for: commits are asynchronous, and
# the WAL writer is stopped.  First, nothing is taken out of a structure for a change whose
# WAL is not flushed: by scans, by the unique check, by the removal of churned
# versions; and VACUUM and builds flush.  Then the server crashes.  Rows whose DELETE
# is lost have their entries, and rows that are lost have none.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

plan skip_all => 'needs /proc' unless -r "/proc/$$/status";

my $node = art_node(
	'lost',
	synchronous_commit => 'off',
	wal_writer_flush_after => "'1GB'",
	wal_buffers => "'16MB'",
	checkpoint_timeout => "'1h'",
	restart_after_crash => 'on',
	enable_seqscan => 'off',
	enable_bitmapscan => 'off',
	'artidx.build_workers' => 0,
	# its snapshot would keep what others have deleted
	crash_often());
my $writer;

sub sql { return $node->safe_psql('postgres', $_[0]); }

sub flush_wal
{
	# a commit that has written something flushes
	sql(q{SET synchronous_commit = on; SELECT pg_logical_emit_message(true, '', '')});
	return;
}

sub is_flushed
{
	my ($lsn) = @_;
	return sql("SELECT pg_current_wal_flush_lsn() >= '$lsn'") eq 't';
}

sub wal { return sql('SELECT pg_current_wal_insert_lsn()'); }

sub entries
{
	return sql("SELECT entries FROM artidx_indexes WHERE indexrelid = '$_[0]'::regclass");
}

sub crash
{
	my $log = -s $node->logfile;

	crash_without_flush($node, $writer);
	sql("SELECT count(*) FROM artidx_indexes");
	return $log;
}

sub source
{
	return sql("SELECT state || ' ' || last_build_source FROM artidx_indexes
		WHERE indexrelid = '$_[0]'::regclass");
}

# the index has an entry for each row, and no other
sub exact
{
	my ($table, $index, $name) = @_;
	my $rows = sql("SET enable_indexscan = off; SET enable_bitmapscan = off;
		SET enable_indexonlyscan = off; SET enable_seqscan = on; SELECT count(*) FROM $table");

	is(sql("SELECT entries || ' ' || heap_tuples FROM artidx_check('$index', true)"),
		"$rows $rows", $name);
	return $rows;
}

sql(q{
	CREATE TABLE full_page (id int, pad text) WITH (autovacuum_enabled = off);
	CREATE INDEX full_page_i ON full_page USING art (id);
	INSERT INTO full_page SELECT i, repeat('x', 100) FROM generate_series(1, 1000) i;
	CREATE TABLE hinted (id int, pad text) WITH (autovacuum_enabled = off, fillfactor = 50);
	CREATE INDEX hinted_i ON hinted USING art (id);
	INSERT INTO hinted SELECT i, repeat('x', 100) FROM generate_series(1, 100) i;
	CREATE TABLE uniq (id int, k int, v int) WITH (autovacuum_enabled = off);
	CREATE UNIQUE INDEX uniq_i ON uniq USING art (id);
	CREATE INDEX uniq_k ON uniq USING art (k);
	CREATE INDEX uniq_v ON uniq USING btree (v);
	INSERT INTO uniq SELECT i, i, 0 FROM generate_series(1, 20) i;
	CREATE TABLE added (id int) WITH (autovacuum_enabled = off);
	CREATE INDEX added_i ON added USING art (id);
	INSERT INTO added SELECT generate_series(1, 100);
	CREATE TABLE tailed (id bigserial, u text) WITH (autovacuum_enabled = off);
	CREATE INDEX tailed_i ON tailed USING art (id) WITH (tail_buffer = on);
	INSERT INTO tailed (u) SELECT 'x' FROM generate_series(1, 100);
	CREATE TABLE many (id int) WITH (autovacuum_enabled = off);
	CREATE INDEX many_i ON many USING art (id);
	INSERT INTO many SELECT generate_series(1, 100);
	CREATE TABLE built (id int, pad text) WITH (autovacuum_enabled = off);
	CREATE INDEX built_i ON built USING art (id);
	INSERT INTO built SELECT i, repeat('x', 100) FROM generate_series(1, 1000) i;
	CREATE TABLE cleaned (id int) WITH (autovacuum_enabled = off);
	CREATE INDEX cleaned_i ON cleaned USING art (id);
	INSERT INTO cleaned SELECT generate_series(1, 1000);
	CREATE TABLE made (id int) WITH (autovacuum_enabled = off);
	INSERT INTO made SELECT generate_series(1, 100);
	VACUUM;
	CHECKPOINT});
# all rows have hint bits, and every page is clean
sql("SELECT count(*) FROM $_ WHERE id > 0") for qw(full_page hinted uniq added tailed many built cleaned made);
flush_wal();
$writer = stop_wal_writer($node);

# ---- the WAL that VACUUM and builds flush ----

my $lsn = wal();
sql('DELETE FROM cleaned WHERE id BETWEEN 401 AND 410');
$lsn = wal();
ok(!is_flushed($lsn), 'an asynchronous DELETE is not flushed');
sql('VACUUM (INDEX_CLEANUP on) cleaned');
ok(is_flushed($lsn), 'VACUUM flushed it before it removed entries');
is(entries('cleaned_i'), 990, 'and they are gone');

sql('DELETE FROM built WHERE id BETWEEN 401 AND 500');
$lsn = wal();
ok(!is_flushed($lsn), 'the next DELETE is not flushed');
sql("SELECT artidx_unload('built_i'); SELECT artidx_build('built_i')");
ok(is_flushed($lsn), 'a build flushed it before others saw the structure');

# at the beginning of a page the insert position lies behind the page's header
SKIP:
{
	my $at;
	my $emit = "SELECT pg_logical_emit_message(false, '', repeat('x', %d))";
	my $over = 60;

	sql("SELECT artidx_unload('built_i')");
	for (1 .. 40)
	{
		my $from = sql("SELECT '" . wal() . "'::pg_lsn - '0/0'");
		my $rest = 8192 - $from % 8192;
		my $n = $rest > 1000 ? $rest - $over : 1000;
		sql(sprintf($emit, $n));
		$at = sql("SELECT pg_current_wal_insert_lsn() - '0/0'");
		last if $at % 8192 == 24;
		# within a page: the overhead is known now
		$over = $at - $from - $n if int($at / 8192) == int($from / 8192);
	}
	skip 'no position on a page boundary', 1 if $at % 8192 != 24;
	sql("SELECT artidx_build('built_i')");
	is(source('built_i'), 'ready rebuild', 'a build on a boundary of pages of WAL');
}
flush_wal();

# ---- nothing goes before its WAL ----

# first: a ring that overflows tells all whose older records it has
sql('INSERT INTO many SELECT generate_series(1, 20000)');

# line pointers that a prune of others makes dead, whose WAL is lost with the commit
sql('DELETE FROM full_page WHERE id BETWEEN 1 AND 10');
$lsn = wal();
sql('SELECT count(*) FROM full_page WHERE id <= 20') for 1 .. 3;
is(entries('full_page_i'), 1000, 'a scan kills no entry while the commit is not flushed');

# hint bits that a newer LSN of the page permits
sql('DELETE FROM hinted WHERE id BETWEEN 1 AND 10');
sql('UPDATE hinted SET pad = pad WHERE id = 12');
sql('SELECT count(*) FROM hinted WHERE id <= 20') for 1 .. 3;
is(entries('hinted_i'), 100, 'nor by hint bits');

# unchanged keys of an UPDATE that is not HOT
sql('UPDATE uniq SET v = v + 1 WHERE v >= 0 AND id = 7') for 1 .. 10;
is(entries('uniq_i'), 30, 'nor does the unique check');
is(entries('uniq_k'), 30, 'nor the removal of churned versions');
ok(!is_flushed($lsn), 'nobody has flushed meanwhile');

# ---- the crash ----

# sessions that are gone; each has one insert at least in its ring
sql('INSERT INTO added VALUES (' . (1000 + $_) . ')') for 1 .. 5;
sql('BEGIN; INSERT INTO added SELECT generate_series(2001, 2010); ROLLBACK');
sql("INSERT INTO tailed (u) SELECT 'y' FROM generate_series(1, 50)");
sql('CREATE INDEX made_i ON made USING art (id)');
ok(!is_flushed($lsn), 'nor before the crash');
is(entries('added_i'), 115, 'entries of rows that are lost soon');
my $log = crash();
like(slurp_file($node->logfile, $log), qr/art indexes after the crash: 8 kept, 2 given up/,
	'a structure that overflowed and one whose CREATE INDEX is lost are given up');
like(slurp_file($node->logfile, $log),
	qr/removed\. Given up: 1 whose building is lost, 1 with rows that are lost and were not written down\.\n/,
	'the log says why');

is(source($_), 'ready kept', "$_ is kept")
  for qw(full_page_i hinted_i uniq_i uniq_k added_i tailed_i built_i cleaned_i);
is(exact('full_page', 'full_page_i', 'the lost DELETE: the index finds the rows'), 1000, 'they are back');
is(exact('hinted', 'hinted_i', 'the same by hint bits'), 100, 'they are back');
is(exact('uniq', 'uniq_i', 'a unique index'), 20, 'its rows');
exact('uniq', 'uniq_k', 'the other');
is(exact('added', 'added_i', 'lost INSERTs left no entries'), 100, 'they are lost');
is(exact('tailed', 'tailed_i', 'nor in the tail buffer'), 100, 'they are lost');
isnt(sql("SELECT count(*) FROM artidx_indexes WHERE indexrelid = 'many_i'::regclass
		AND last_build_source = 'kept'"), 1, 'more than a ring holds: given up');
is(exact('many', 'many_i', 'and right'), 100, 'its rows are lost');
is(sql("SELECT count(*) FROM pg_class WHERE relname = 'made_i'"), 0, 'CREATE INDEX is lost');
is(sql("SELECT count(*) FROM artidx_indexes WHERE indexrelname LIKE 'made%'") // 0, 0, 'and its structure');
sql('CREATE INDEX made_j ON made USING art (id)');
exact('made', 'made_j', 'another one');

# ---- what is flushed survives ----

$writer = stop_wal_writer($node);
sql('INSERT INTO added SELECT generate_series(3001, 3005)');
sql('INSERT INTO many SELECT generate_series(101, 20000)');
sql('SELECT count(*) FROM full_page WHERE id <= 20');
flush_wal();
crash();
is(source($_), 'ready kept', "$_ is kept again") for qw(full_page_i added_i many_i made_j);
is(exact('added', 'added_i', 'rows that were flushed have their entries'), 105, 'all');
is(exact('many', 'many_i', 'also beyond the ring'), 20000, 'all');

# ---- what a session knows to be dead ----

$writer = stop_wal_writer($node);
sql(q{
	CREATE TABLE hot (id int, pad text) WITH (autovacuum_enabled = off);
	CREATE INDEX hot_i ON hot USING art (id);
	CREATE INDEX ON hot (pad);
	INSERT INTO hot SELECT i, repeat('x', 100) FROM generate_series(1, 200) i});
flush_wal();

# rows of a full page die, and a scan prunes it
my $die = q{
	DELETE FROM hot WHERE id BETWEEN %1$d AND %2$d;
	SELECT count(*) FROM hot WHERE id BETWEEN %1$d AND %2$d;
	SELECT count(*) FROM hot WHERE id BETWEEN %1$d AND %2$d;};
my $flush = q{SET synchronous_commit = on; SELECT pg_logical_emit_message(true, '', '');
	SET synchronous_commit = off;};
my $entries = q{SELECT 'entries ' || entries FROM artidx_indexes
	WHERE indexrelid = 'hot_i'::regclass;};

# another change follows the flush: the page's LSN is not flushed
my $out = sql(sprintf($die, 1, 10) . "$entries $flush
	UPDATE hot SET pad = pad || 'z' WHERE id = 12;
	SELECT count(*) FROM hot WHERE id <= 10; $entries");
like($out, qr/^entries 200$/m, 'ten wait for their WAL');
like($out, qr/^entries 191$/m, 'a flush lets go what was seen dead before it, on a hot page too');

# a TID that VACUUM gives to another row
$out = sql("SELECT ctid AS was FROM hot WHERE id = 101 \\gset\n" . sprintf($die, 101, 110) . "$entries
	VACUUM (INDEX_CLEANUP on) hot;
	INSERT INTO hot SELECT 101, repeat('v', 100) FROM generate_series(1, 40);
	SELECT count(*) || ' with ' || count(*) FILTER (WHERE ctid = :'was') FROM hot
		WHERE id BETWEEN 101 AND 110");
like($out, qr/^entries 191$/m, 'ten others wait');
like($out, qr/^40 with 1$/m, 'a row with the TID of one that was known to be dead is found');

# the same by TRUNCATE, which in such a transaction keeps the file
$out = sql(q{
	BEGIN;
	CREATE TABLE again (id int);
	CREATE UNIQUE INDEX again_i ON again USING art (id);
	SAVEPOINT a;
	INSERT INTO again SELECT generate_series(1, 10);
	ROLLBACK TO a;
	SELECT count(*) FROM again WHERE id <= 10;
	SELECT count(*) FROM again WHERE id <= 10;
	TRUNCATE again;
	INSERT INTO again SELECT generate_series(1, 10);
	SELECT count(*) || ' again' FROM again WHERE id <= 10;
	COMMIT});
like($out, qr/^10 again$/m, 'nor is one in a table that was truncated');

# ---- many that wait for their WAL are worth a flush ----

sql(q{CREATE PROCEDURE churn() LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. 1000 LOOP
			UPDATE uniq SET v = v + 1 WHERE id = 7;
			COMMIT;
		END LOOP;
	END $$});
sql('CALL churn()');
cmp_ok(entries('uniq_i'), '<', 300, 'versions of a row do not pile up under a unique index');
cmp_ok(entries('uniq_k'), '<', 300, 'nor under another');
sql('DELETE FROM full_page WHERE id BETWEEN 1 AND 40');
$lsn = wal();
sql('SELECT count(*) FROM full_page WHERE id <= 50; ' x 3);
ok(!is_flushed($lsn), 'three scans of forty dead entries are not worth a flush');
is(entries('full_page_i'), 1000, 'and they stay');
sql('SELECT count(*) FROM full_page WHERE id <= 50; ' x 300);
is(entries('full_page_i'), 960, 'scans that meet them often flush and remove them');
ok(is_flushed($lsn), 'in this order');
kill 'CONT', $writer;

# ---- without survive_crash nobody waits ----

$node->append_conf('postgresql.conf', 'artidx.survive_crash = off');
$node->restart;
sql("SELECT artidx_build('full_page_i')");
$writer = stop_wal_writer($node);
is(entries('full_page_i'), 960, 'another server');
sql('DELETE FROM full_page WHERE id BETWEEN 101 AND 110');
$lsn = wal();
sql('SELECT count(*) FROM full_page WHERE id BETWEEN 90 AND 120') for 1 .. 3;
ok(!is_flushed($lsn), 'nobody flushed');
is(entries('full_page_i'), 950, 'and the entries are gone');
kill 'CONT', $writer;

$node->stop;
done_testing();
