# A structure follows its file.  Commands and tools give a table or an index another file:
# some by a copy, some by an exchange, some by a build.  For each: the answers, whether the
# structure is there at once or is built again, and for how long it is absent if nobody asks.
#
# With MOVES_ROWS=300000 the times are worth reading, and what is undone is left out.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time sleep);
use ArtMoves;
use ArtTest;

my $n = $ENV{MOVES_ROWS} // 5000;
my $node = moves_node('moves', $n);
my $version = int(sql('SHOW server_version_num') / 10000);
my $s = $node->background_psql('postgres');

# ---- the kinds ----

fresh();
moves('VACUUM FULL', 'built', $s, 'VACUUM FULL m');
moves('CLUSTER', 'built', $s, 'CLUSTER m USING m_id');
moves('REINDEX', 'built', $s, 'REINDEX TABLE m');
moves('REINDEX CONCURRENTLY', 'built', $s, 'REINDEX TABLE CONCURRENTLY m');
moves('ALTER TABLE SET UNLOGGED', 'built', $s, 'ALTER TABLE m SET UNLOGGED');
moves('ALTER TABLE SET LOGGED', 'built', $s, 'ALTER TABLE m SET LOGGED');
moves('ALTER COLUMN TYPE, rewrite', 'built', $s, 'ALTER TABLE m ALTER v TYPE bigint');
right('rewritten');
moves('ALTER COLUMN TYPE, no rewrite', 'kept', $s, 'ALTER TABLE m ALTER t TYPE varchar(30)');
right('ALTER COLUMN TYPE');
moves('ALTER TABLE SET TABLESPACE', 'kept', $s, 'ALTER TABLE m SET TABLESPACE ts');
right('ALTER TABLE SET TABLESPACE');
moves('ALTER INDEX SET TABLESPACE', 'kept', $s, map { "ALTER INDEX m_$_ SET TABLESPACE ts" } qw(id v t));
right('ALTER INDEX SET TABLESPACE');
moves('ALTER INDEX ALL IN TABLESPACE', 'kept', $s, 'ALTER INDEX ALL IN TABLESPACE ts SET TABLESPACE pg_default');
right('ALTER INDEX ALL IN TABLESPACE');

copy();
moves('exchange of all files (pg_repack)', 'kept', $s, 'BEGIN', lock_both(), swap(), 'COMMIT');
is(sql(q{SELECT count(*) FROM artidx_indexes WHERE relname = 'c' AND state = 'ready'}), 3, 'the copy has the old ones');
is($node->psql('postgres', "INSERT INTO m VALUES (1, 1, 'x')"), 3, 'unique');
sql('INSERT INTO m VALUES (3, 3, 3)', 'DELETE FROM m WHERE id = 5', 'DROP TABLE c');
right('exchange');
copy();
moves('exchange, and the copy dropped (pg_squeeze)', 'kept', $s, 'BEGIN', lock_both(), swap(), 'DROP TABLE c', 'COMMIT');
sql('INSERT INTO m VALUES (3, 3, 3)', 'DELETE FROM m WHERE id = 5');
right('exchange and drop');
fresh();
sql('CREATE UNIQUE INDEX c_id ON m USING art (id)');
moves('exchange of an index (pg_repack -x)', 'kept', $s, 'BEGIN', (lock_both())[0], 'LOCK TABLE m', swap('_id'), 'COMMIT');
sql('DROP INDEX c_id');
right('exchange of an index');

SKIP:
{
	skip 'REPACK came with 19', 6 if $version < 19;
	moves('REPACK', 'built', $s, 'REPACK m');
	sql('ALTER TABLE m ALTER id SET NOT NULL', 'ALTER TABLE m REPLICA IDENTITY USING INDEX m_id');
	moves('REPACK (CONCURRENTLY)', 'built', $s, 'REPACK (CONCURRENTLY) m');
	right('REPACK (CONCURRENTLY)');
}

# ---- databases ----

sql('CREATE DATABASE tpl');
moves_in('tpl');
sql('CREATE EXTENSION artidx');
fresh();
moves_in('postgres');
foreach my $strategy (qw(wal_log file_copy))
{
	my $what = "CREATE DATABASE, $strategy";
	my $begin;
	my $in;

	sql('DROP DATABASE IF EXISTS copied', "CREATE DATABASE copied STRATEGY $strategy TEMPLATE tpl");
	$begin = time();
	moves_in('copied');
	$in = $node->background_psql('copied');
	sleep 0.005 while (state_of($in, 'infinity'))[0] eq 'absent' && time() - $begin < 60;
	report(sprintf('%-48s %-7s %d ms', $what, 'absent', 1000 * (time() - $begin)));
	$in->quit;
	is(sql(q{SELECT count(*) FROM artidx_indexes WHERE state = 'ready'}), 3, "$what: built with nobody asking");
	right($what);
	moves_in('postgres');
}
my $start = sql('SELECT clock_timestamp()');
sql('ALTER DATABASE copied SET TABLESPACE ts');
moves_in('copied');
my $in = $node->background_psql('copied');
moves('ALTER DATABASE SET TABLESPACE', 'kept', $in);
is((state_of($in, $start))[0], 'kept', 'ALTER DATABASE SET TABLESPACE: not built since');
$in->quit;
sql('INSERT INTO m VALUES (888888, 8, 8)');
right('ALTER DATABASE SET TABLESPACE');
sql('ALTER TABLE m SET TABLESPACE pg_default', 'ALTER INDEX m_t SET TABLESPACE pg_default');
right('and out of it');

moves_in('postgres');
if ($ENV{MOVES_ROWS})
{
	report("$n rows, three indexes");
	report();
	done_testing();
	exit;
}

my $row = 'INSERT INTO m VALUES (888888, 8, 8)';

# ---- undone ----

sub undone
{
	my ($kind, @commands) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	moves($kind, 'kept', $s, @commands);
	sql('INSERT INTO m VALUES (777777, 7, 7)', 'DELETE FROM m WHERE id = 777777');
	right($kind);
	return;
}

my @tablespace = map { "ALTER INDEX m_$_ SET TABLESPACE ts" } qw(id v t);

copy();
undone('exchange, ROLLBACK', 'BEGIN', lock_both(), swap(), 'ROLLBACK');
undone('exchange, DROP, ROLLBACK', 'BEGIN', lock_both(), swap(), 'DROP TABLE c', 'ROLLBACK');
undone('exchange, ROLLBACK TO', 'BEGIN', lock_both(), 'SAVEPOINT s', swap(), 'DROP TABLE c', 'ROLLBACK TO s', 'COMMIT');
undone('exchange and back', 'BEGIN', lock_both(), swap(), 'SAVEPOINT s', swap(), 'RELEASE s', 'COMMIT');
undone('SET TABLESPACE, rows, ROLLBACK', 'BEGIN', @tablespace, $row, 'ROLLBACK');
undone('SET TABLESPACE, rows, ROLLBACK TO', 'BEGIN', 'SAVEPOINT s', @tablespace, $row, 'ROLLBACK TO s', 'COMMIT');
undone('SET TABLESPACE, exchange, ROLLBACK', 'BEGIN', lock_both(), @tablespace, swap(), 'ROLLBACK');
moves('SET TABLESPACE and rows', 'kept', $s, 'BEGIN', @tablespace, $row, 'SAVEPOINT s',
	'INSERT INTO m VALUES (777777, 7, 7)', 'ROLLBACK TO s', 'COMMIT');
right('SET TABLESPACE and rows');

# What a process remembers of dead rows is of one generation of deletions.  After a move and a
# VACUUM their places are those of other rows.
$s->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off');
foreach my $round (1 .. 3)
{
	my @rows = map { "UPDATE m SET t = t || 'x' WHERE id BETWEEN 1 AND 60" } 1 .. 2;
	my $look = q{SELECT count(*), sum(length(t)) FROM m WHERE id BETWEEN 1 AND 60};

	sql(@rows);
	$s->query_safe($look) foreach 1 .. 3;
	sql('ALTER INDEX m_id SET TABLESPACE ' . ($round % 2 ? 'pg_default' : 'ts'), 'VACUUM (INDEX_CLEANUP ON) m');
	sql('INSERT INTO m SELECT i + 2000000, i, i FROM generate_series(1, 300) i',
		"UPDATE m SET t = t || 'y' WHERE id BETWEEN 1 AND 60");
	is($s->query_safe($look), sql($look), "move and VACUUM, round $round");
	sql('DELETE FROM m WHERE id > 2000000');
}
right('moves and VACUUM');

# ---- what cannot go with its file ----

# its time is limited
$s->quit;
$s = $node->background_psql('postgres');

sub not_kept
{
	my ($kind, @commands) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	moves($kind, 'absent', $s, @commands);
	sql('DROP TABLE IF EXISTS c');
	right($kind);
	return;
}

copy();
not_kept('exchange, and rows of this transaction', 'BEGIN', lock_both(), swap(), $row, 'COMMIT');
copy();
sql('DROP INDEX c_v', 'CREATE INDEX c_v ON c USING art (v, (abs(v))) WHERE abs(v) >= 0');
not_kept('exchange with another order', 'BEGIN', lock_both(), swap(), 'COMMIT');
copy();
sql('DROP INDEX c_v', 'CREATE INDEX c_v ON c USING art (v DESC, (abs(v))) WHERE abs(v) >= 1');
not_kept('exchange with another predicate', 'BEGIN', lock_both(), swap(), 'COMMIT');
copy();
sql('DROP INDEX c_v', 'CREATE INDEX c_v ON c USING art (v DESC, (abs(v + 1))) WHERE abs(v) >= 0');
not_kept('exchange with another expression', 'BEGIN', lock_both(), swap(), 'COMMIT');
copy();
sql('DROP INDEX c_t', 'CREATE INDEX c_t ON c USING art (t varchar_pattern_ops) INCLUDE (v)');
not_kept('exchange with another operator class', 'BEGIN', lock_both(), swap(), 'COMMIT');
copy();
not_kept('exchange of the indexes alone', 'BEGIN', lock_both(), swap(qw(_id _v _t)), 'COMMIT');
copy();
{
	# a reader of the copy
	my $reader = $node->background_psql('postgres');

	$reader->query_safe($_) foreach 'SET enable_seqscan = off', 'BEGIN', 'SELECT * FROM c WHERE id = 1';
	not_kept('exchange beside a reader of the copy', 'BEGIN', (lock_both())[0], 'LOCK TABLE m', swap(), 'COMMIT;
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state ~ \'idle in\'');
	eval { $reader->quit };
}
foreach my $end (qw(COMMIT ROLLBACK))
{
	foreach my $kind (qw(exchange tablespace))
	{
		copy();
		not_kept("$kind, prepared, $end", 'BEGIN', $kind eq 'exchange' ? (lock_both(), swap()) : @tablespace,
			"PREPARE TRANSACTION 'p'", "$end PREPARED 'p'");
	}
}
# another structure in the copy: the index has its own option, and gets its own structure
copy();
sql('DROP INDEX c_v', 'CREATE INDEX c_v ON c USING art (v DESC, (abs(v))) WITH (structure = btree) WHERE abs(v) >= 0');
$s->query_safe($_) foreach 'BEGIN', lock_both(), swap(), 'COMMIT';
sql('DROP TABLE c', 'SELECT count(*) FROM m WHERE v = 7 AND abs(v) >= 0');
all_ready($node, 'exchange with another structure: ready');
isnt(sql(q{SELECT structure FROM artidx_indexes WHERE indexrelname = 'm_v'}), 'btree', 'its own structure');
right('exchange with another structure');

# artidx_wait asks for what nobody has asked for
sql('BEGIN', 'ALTER TABLE m SET TABLESPACE ts', 'ROLLBACK');
is(sql(q{SELECT artidx_wait('1min')}), 't', 'artidx_wait after a rollback');
$s->quit;

report("$n rows, three indexes");
report();
done_testing();
