# VACUUM waits for a process that relies on the entry of a row that it removes.  No statement can
# be stopped there, so a function takes the part of the scan.  A process that waits for VACUUM
# meanwhile is a deadlock, and VACUUM finds it.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $module = build_modules('art_insidetest') . '/art_insidetest';
my $node = art_node('interlock', 'artidx.memory' => "'16MB'", deadlock_timeout => "'200ms'", enable_indexscan => 'off',
	enable_bitmapscan => 'off', enable_indexonlyscan => 'off');

sub sql { return $node->safe_psql('postgres', $_[0]); }

sql(qq{CREATE FUNCTION hold(regclass, tid, places int DEFAULT 0) RETURNS bool AS '$module', 'art_inside_hold' LANGUAGE C STRICT;
	CREATE TABLE t (k int);
	CREATE TABLE other (k int);
	INSERT INTO t SELECT generate_series(1, 100);
	INSERT INTO other SELECT generate_series(1, 100);
	CREATE INDEX t_k ON t USING art (k);
	CREATE INDEX other_k ON other USING art (k);
	VACUUM t, other;
});

my $scan = $node->background_psql('postgres', on_error_stop => 0);
my $vacuum = $node->background_psql('postgres', on_error_stop => 0);
$scan->query_safe(q{SET lock_timeout = '30s'; SET statement_timeout = '60s'});
my $pid = $vacuum->query_safe('SELECT pg_backend_pid()');

# The scan relies on an entry, and VACUUM begins, when the row of k is dead to everybody.  Is
# VACUUM waiting then, or has it ended?
sub begins
{
	my ($index, $tid, $k, $places) = @_;
	my $hold = join(', ', map { "hold('$_', '$tid', " . ($places // 0) . ')' } split(' ', $index));

	sql("DELETE FROM t WHERE k = $k");
	like($scan->query_safe("BEGIN; SELECT $hold"), qr/^t(\|t)*$/, "$k: an entry is relied on");
	$vacuum->query_until(qr/begun/, "\\echo begun\nVACUUM (INDEX_CLEANUP ON) t;\n");
	$node->poll_query_until('postgres', qq{SELECT state = 'idle' OR wait_event_type = 'Extension'
		FROM pg_stat_activity WHERE pid = $pid AND query LIKE 'VACUUM%'}) or die 'VACUUM does neither';
	return sql("SELECT state FROM pg_stat_activity WHERE pid = $pid") eq 'active' ? 'waits' : 'has ended';
}

sub tid_of { return sql("SELECT ctid FROM t WHERE k = $_[0]"); }

my $tid = tid_of(5);
is(begins('t_k', $tid, 5), 'waits', 'VACUUM waits for the entry that it removes');
sql('INSERT INTO t VALUES (1000)');
isnt(tid_of(1000), $tid, 'no row takes its place meanwhile');
$scan->query_safe('COMMIT');
$vacuum->query_safe('SELECT 1');
is(sql("SELECT entries FROM artidx_check('t_k', true)"), 100, 'it ends when nobody relies on the entry');

is(begins('other_k', tid_of(7), 7), 'has ended', 'VACUUM does not wait for the same place of another table');
$scan->query_safe('COMMIT');
$vacuum->query_safe('SELECT 1');

is(begins('t_k', tid_of(10), 9), 'has ended', 'nor for a row that stays');
$scan->query_safe('COMMIT');
$vacuum->query_safe('SELECT 1');

# ---- a deadlock that the lock manager cannot see ----
$vacuum->{stderr} = '';
is(begins('t_k', tid_of(11), 11), 'waits', 'VACUUM waits again');
is($scan->query('LOCK TABLE t IN SHARE MODE; SELECT 1'), 1, 'a lock that VACUUM has is got');
$vacuum->query('SELECT 1');
like($vacuum->{stderr}, qr/ERROR:  deadlock detected\s+DETAIL:  Process \d+ waits for process \d+ to leave a row of index "t_k"/,
	'for VACUUM ends with the error');
$vacuum->{stderr} = '';
$scan->query_safe('COMMIT');
sql('VACUUM (INDEX_CLEANUP ON) t');
is(sql("SELECT entries || ' ' || heap_tuples FROM artidx_check('t_k', true)"), '97 97', 'the next one removes the row');

# ---- no memory is left to say which row is relied on: then it may be any row of the index ----
my $all = 16 * 1024 * 1024 / 64;
is(begins('other_k', tid_of(20), 20, $all), 'has ended', 'without memory: VACUUM does not wait for another table');
is(sql("SELECT free_bytes FROM artidx_memory"), 0, 'there is none');
$scan->query_safe('COMMIT');
$vacuum->query_safe('SELECT 1');
is(begins('t_k', tid_of(21), 22, $all), 'waits', 'but for any row of the index');
$scan->query_safe('COMMIT');
$vacuum->query_safe('SELECT 1');
is(begins('t_k other_k', tid_of(23), 24, $all), 'waits', 'also where one process relies on rows of two');
$scan->query_safe('COMMIT');
$vacuum->query_safe('SELECT 1');
is(begins('t_k', tid_of(25), 26, $all), 'waits', 'without memory: VACUUM waits once more');
sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%hold(%' AND pid <> pg_backend_pid()});
$vacuum->query_safe('SELECT 1');
is(sql("SELECT entries || ' ' || heap_tuples FROM artidx_check('t_k', true)"), '93 93',
	'it ends when the process does, and each time the rows were removed');
$scan->{run}->finish;

$vacuum->quit;
$node->stop;
done_testing();
