# Tables whose files are moved, copied and exchanged: what moved_files.pl and moved_files_crash.pl
# share.  m is the table, and c its copy.
package ArtMoves;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time sleep);
use ArtTest;

our @EXPORT = qw(moves_node moves_in sql fresh copy lock_both swap right state_of moves report);

my $node;
my $n;
my $db = 'postgres';
my @report;

# the server, and how many rows the tables have
sub moves_node
{
	(my $name, $n, my %settings) = @_;
	$node = PostgreSQL::Test::Cluster->new($name);
	$node->init(allows_streaming => 'logical');
	art_conf(
		$node,
		allow_in_place_tablespaces => 'on',
		max_prepared_transactions => 5,
		'artidx.memory' => $n > 100000 ? "'2GB'" : "'128MB'",
		%settings);
	$node->start;
	sql('CREATE EXTENSION artidx', "CREATE TABLESPACE ts LOCATION ''");
	return $node;
}

# The database that is worked in, from now on.
sub moves_in
{
	($db) = @_;
	return;
}

sub sql { return $node->safe_psql($db, join(';', @_)); }

# a table with a unique index, one of some rows, in another order, and one with a payload
sub table
{
	my ($name, $from) = @_;

	sql("CREATE TABLE $name (id int, v int, t varchar(20)) WITH (autovacuum_enabled = off)",
		"INSERT INTO $name $from",
		"CREATE UNIQUE INDEX ${name}_id ON $name USING art (id)",
		"CREATE INDEX ${name}_v ON $name USING art (v DESC, (abs(v))) WHERE abs(v) >= 0",
		"CREATE INDEX ${name}_t ON $name USING art (t) INCLUDE (v)");
	return;
}

sub fresh
{
	sql('DROP TABLE IF EXISTS m, c');
	table('m', "SELECT i, i % 1000, 't' || i FROM generate_series(1, $n) i");
	sql('DELETE FROM m WHERE id % 3 = 0', 'INSERT INTO m SELECT -id, v, t FROM m WHERE id % 7 = 0');
	return;
}

# what pg_repack does: a copy, whose rows lie elsewhere ...
sub copy
{
	fresh();
	table('c', 'SELECT * FROM m ORDER BY t');
	return;
}

# ... and an exchange of files
sub lock_both { return ('SET allow_system_table_mods = on', 'LOCK TABLE m, c IN ACCESS EXCLUSIVE MODE'); }

sub swap
{
	my @names = @_ ? @_ : ('', qw(_id _v _t));
	my $pairs = join(', ', map { ("('m$_', 'c$_')", "('c$_', 'm$_')") } @names);

	return "UPDATE pg_class x SET relfilenode = y.relfilenode FROM pg_class y
		WHERE (x.relname, y.relname) IN ($pairs)";
}

# The indexes give the rows of a sequential scan, and have an entry for each row and no other.
sub right
{
	my ($name, $where) = @_;
	my $queries = join(';', map { "SELECT $_" }
		'count(*), sum(id), sum(v) FROM m WHERE id BETWEEN -100000000 AND 100000000',
		'count(*), sum(id), sum(v) FROM m WHERE v BETWEEN 0 AND 1000000 AND abs(v) >= 0',
		q{count(*), sum(v) FROM m WHERE t >= 't'},
		q{string_agg(id || t, ' ' ORDER BY id) FROM m WHERE v = 77 AND abs(v) >= 0},
		'count(*) FROM m WHERE id IN (1, 5, 777777, 888888)');
	my @got;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	@got = split /^---\n/m, ($where // $node)->safe_psql($db, join(';',
		(map { "SELECT artidx_build('m_$_') IS NULL" } $where ? () : qw(id v t)),
		"SELECT '---'", 'SET enable_seqscan = off', $queries,
		"SELECT '---'", 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off', $queries,
		"SELECT '---'")) . "\n";
	is($got[1], $got[2], "$name: the rows");
	return if $where;
	sql('VACUUM (INDEX_CLEANUP ON) m');
	is(sql(join(' UNION ALL ', map { "SELECT (entries = heap_tuples)::text FROM artidx_check('m_$_', true)" } qw(id v t))),
		"true\ntrue\ntrue", "$name: artidx_check");
	return;
}

# "kept": in memory after the last command, and not built since $start.  "built": by a command,
# of a copy's index too.
sub state_of
{
	my ($session, $start) = @_;

	return split /\|/, $session->query_safe(qq{
		SELECT CASE WHEN count(*) <> 3 OR bool_or(state <> 'ready') THEN 'absent'
			WHEN max(last_build) < '$start' THEN 'kept'
			WHEN bool_and(last_build < '$start' OR last_build_source = 'create') THEN 'built'
			ELSE 'by a worker' END,
			string_agg(indexrelname || ' ' || state || ' ' || coalesce(reason, ''), ', ')
		FROM artidx_indexes WHERE indexrelname ~ '^m_'});
}

# kept; built (inside the command); absent (and then built with nobody asking)
sub moves
{
	my ($kind, $expected, $session, @commands) = @_;
	my $start = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
	my ($now, $first, $begin, $ms);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$session->query_safe($_) foreach @commands;
	$begin = time();
	for (;;)
	{
		($now, my $all) = state_of($session, $start);
		$first //= $now;
		last if $now ne 'absent';
		if (time() - $begin > $PostgreSQL::Test::Utils::timeout_default)
		{
			diag($all);
			last;
		}
		sleep 0.005;
	}
	$first = 'absent' if $first eq 'by a worker';
	$ms = $first ne 'absent' ? 'none' : $now eq 'absent' ? 'for ever' : int(1000 * (time() - $begin)) . ' ms';
	report(sprintf('%-48s %-7s %s', $kind, $first, $ms));
	like($first, qr/^(?:$expected)$/, "$kind: $first");
	isnt($now, 'absent', "$kind: and there without anybody asking");
	return;
}

# A line of what is printed at the end, by a call without one.
sub report
{
	push @report, @_;
	diag($_) foreach @_ ? () : @report;
	return;
}

1;
