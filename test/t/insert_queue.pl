# Entries of a statement's rows that wait: what other sessions do meanwhile, PREPARE, the
# end of the process.
#
# A function in the middle of the statement inserts rows in a subtransaction that is
# aborted, and then waits for an advisory lock.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node(
	'queue',
	max_prepared_transactions => 5,
	restart_after_crash => 'on',
	enable_seqscan => 'off');

sub sql { return $node->safe_psql('postgres', $_[0]); }

sql(q{
	CREATE TABLE t (k int, v int);
	CREATE INDEX t_k ON t USING art (k);
	CREATE INDEX t_v ON t USING art (v) WITH (structure = btree);
	CREATE FUNCTION waits(i int) RETURNS int LANGUAGE plpgsql AS $$
	BEGIN
		IF i <> 30 THEN
			RETURN i;
		END IF;
		BEGIN
			INSERT INTO t SELECT 1000 + g, 1 / (40 - g) FROM generate_series(1, 40) g;
		EXCEPTION WHEN division_by_zero THEN NULL;
		END;
		PERFORM pg_advisory_xact_lock(1);
		RETURN i;
	END $$});

my $holder = $node->background_psql('postgres');

# Start the statement, and wait until it waits.
sub start
{
	my ($name) = @_;
	my $s = $node->background_psql('postgres', on_error_stop => 0);

	$holder->query_safe('SELECT pg_advisory_lock(1)');
	$s->query_until(qr/begun/, "\\echo begun\nSET application_name = 'inserter';\n"
		. "INSERT INTO t SELECT i, waits(i) FROM generate_series(1, 60) i;\n\\echo ended\n");
	ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity
		WHERE application_name = 'inserter' AND wait_event = 'advisory'}), "$name: the statement waits");
	return $s;
}

sub finish
{
	my ($s) = @_;

	$holder->query_safe('SELECT pg_advisory_unlock(1)');
	$s->query_until(qr/ended/, '');
	$s->quit;
	return;
}

sub exact
{
	my ($name) = @_;

	check_clean($node, $_, "$name: $_") for qw(t_k t_v);
	is(sql('SELECT count(*) FROM t WHERE k BETWEEN 1 AND 60'), 60, "$name: the rows are found");
	check_exact($node, 't', $_) for qw(t_k t_v);
	return;
}

# The rows of the subtransaction are gone and others have their places, before the
# statement's entries go in.
my $s = start('others in the place of aborted rows');
is(sql('SELECT string_agg(entries::text, $$ $$) FROM unnest(ARRAY[$$t_k$$, $$t_v$$]) i, artidx_check(i::regclass)'),
	'6 6', 'of each three entries are in');
sql('VACUUM (INDEX_CLEANUP on) t');
sql('INSERT INTO t SELECT 5000 + g, 5000 + g FROM generate_series(1, 40) g');
is(sql('SELECT min(ctid) FROM t WHERE k > 5000'), '(0,30)', 'a row is where an aborted one was');
finish($s);
is(sql('SELECT count(*) FROM t WHERE k BETWEEN 1001 AND 1040'), 0, 'no aborted row is found');
exact('others in the place of aborted rows');

# The structure goes, or is built again, before they go in.
for my $then ('', q{SELECT artidx_build('t_k'), artidx_build('t_v')},
	q{SELECT artidx_build('t_k'); SELECT artidx_unload('t_k')})
{
	sql('TRUNCATE t');
	$s = start("unload; $then");
	sql(q{SELECT artidx_unload('t_k'), artidx_unload('t_v')});
	sql($then) if $then;
	finish($s);
	sql(q{SELECT artidx_build('t_k'), artidx_build('t_v')});
	exact("unload; $then");
}

# When a statement has ended nothing waits, though its transaction goes on.
sql('TRUNCATE t');
for my $statement ('INSERT INTO t SELECT i, i FROM generate_series(1, 60) i',
	q{COPY t FROM PROGRAM 'for i in 1 2 3 4 5 6 7 8 9 10; do echo "$i,$i"; done' (FORMAT csv)},
	'WITH w AS (INSERT INTO t SELECT i, i FROM generate_series(1, 20) i RETURNING k) SELECT count(*) FROM w')
{
	my $before = sql('SELECT entries FROM artidx_check($$t_k$$)');

	$s = $node->background_psql('postgres');
	$s->query_safe("BEGIN; $statement");
	is(sql('SELECT entries FROM artidx_check($$t_k$$)') - $before,
		$statement =~ /^COPY/ ? 10 : $statement =~ /60/ ? 60 : 20, "entries are in: $statement");
	$s->query_safe('COMMIT');
	$s->quit;
	check_clean($node, $_, "$statement: $_") for qw(t_k t_v);
}

# A transaction that is prepared: whoever commits it finds its rows.
sql('TRUNCATE t');
sql(q{BEGIN; INSERT INTO t SELECT i, i FROM generate_series(1, 60) i; PREPARE TRANSACTION 'p'});
is(sql('SELECT entries FROM artidx_check($$t_k$$)'), 60, 'the entries of a prepared transaction are in');
sql(q{COMMIT PREPARED 'p'});
exact('a prepared transaction');

# An error that is caught without a subtransaction leaves rows that live, and entries that
# wait, with no statement to put them in.
sql('TRUNCATE t');
sql("CREATE FUNCTION art_wild_catch(text) RETURNS bool AS '" . build_modules('art_wildtest')
	  . "/art_wildtest' LANGUAGE C STRICT");
is(sql(q{SELECT art_wild_catch('INSERT INTO t SELECT i, 100 / (61 - i) FROM generate_series(1, 70) i')}),
	't', 'the error is caught');
exact('an error that is caught without a subtransaction');

# The same in a subtransaction that ended well, within one that is rolled back: its entries are
# forgotten with the one around it.  Others have the places of its rows before the commit.
sql(q{TRUNCATE t; CREATE FUNCTION caught_within() RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		BEGIN
			PERFORM art_wild_catch('INSERT INTO t SELECT i, 100 / (61 - i) FROM generate_series(1, 70) i');
		EXCEPTION WHEN no_data_found THEN NULL;
		END;
		RAISE division_by_zero;
	EXCEPTION WHEN division_by_zero THEN NULL;
	END $$});
$s = $node->background_psql('postgres');
$s->query_safe('BEGIN; SELECT caught_within()');
sql('VACUUM (INDEX_CLEANUP on) t');
sql('INSERT INTO t SELECT 5000 + g, 5000 + g FROM generate_series(1, 60) g');
is(sql('SELECT min(ctid) FROM t'), '(0,1)', 'rows are where those were that were rolled back');
$s->query_safe('COMMIT');
$s->quit;
is(sql('SELECT count(*) FROM t WHERE k BETWEEN 1 AND 70'), 0, 'no row is found that was rolled back');
check_clean($node, $_, "a subtransaction within one that is rolled back: $_") for qw(t_k t_v);

# The process ends, and with it what waits.
for my $how (qw(cancel terminate KILL))
{
	sql('DELETE FROM t; VACUUM t');
	$s = start($how);
	my $pid = sql(q{SELECT pid FROM pg_stat_activity WHERE application_name = 'inserter'});
	if ($how eq 'KILL')
	{
		my $log = -s $node->logfile;
		kill 'KILL', $pid;
		$node->wait_for_log(qr/database system is ready/, $log);
		ok(comes_back($node), 'the server is back');
	}
	else
	{
		sql("SELECT pg_${how}_backend($pid)");
		ok($node->poll_query_until('postgres',
			"SELECT count(*) = 0 FROM pg_locks WHERE pid = $pid AND relation = 't'::regclass"), "$how: it ends");
		$holder->query_safe('SELECT pg_advisory_unlock(1)');
		is(sql('SELECT entries FROM artidx_check($$t_k$$)'), 6, "$how: what waited did not go in");
	}
	eval { $s->quit };
	sql('INSERT INTO t SELECT i, i FROM generate_series(1, 60) i');
	exact($how);
}

$node->stop;
done_testing();
