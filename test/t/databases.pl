# Databases that are copied, moved and dropped, tablespaces, and prepared
# transactions over restarts: what is in memory belongs to one physical index
# of one database, never to another that looks like it.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $n = $ENV{DATABASE_ROWS} // 2000;
my $node = art_node(
	'database',
	max_prepared_transactions => 10,
	allow_in_place_tablespaces => 'on',
	log_line_prefix => $ArtTest::LOG_PREFIX);
my $offset = -s $node->logfile;
my $used = $node->safe_psql('postgres', 'SELECT used_bytes FROM artidx_memory');
my $scan = 'SET enable_seqscan = off; SET jit = off; ';

# ---- CREATE DATABASE ... TEMPLATE ----
$node->safe_psql('postgres', 'CREATE DATABASE tpl');
$node->safe_psql('tpl', 'CREATE EXTENSION artidx');
load_schema($node, $n, 'tpl');
# not yet ready ones are copied as well as ready ones
all_ready($node, 'the template is ready', 'tpl');
# a DROP that is refused drops nothing
my $inside = $node->background_psql('tpl');
my $builds = q{SELECT string_agg(indexrelname || ' ' || state || ' ' || builds, ', ' ORDER BY indexrelname) FROM artidx_indexes};
my $before = $inside->query_safe($builds);
my ($drc, $dout, $derr) = $node->psql('postgres', 'DROP DATABASE tpl');
like($derr, qr/is being accessed by other users/, 'DROP DATABASE is refused');
is($inside->query_safe($builds), $before, 'and its indexes are there as before');
$inside->quit;
my $numbers = q{SELECT string_agg(relname || ' ' || oid || ' ' || relfilenode, ', ' ORDER BY relname)
	FROM pg_class WHERE relname LIKE 'w\_%' AND relkind = 'i'};
my $of_template = $node->safe_psql('tpl', $numbers);

for my $round (1, 2)
{
	for my $strategy (qw(wal_log file_copy))
	{
		my $db = "copy_$strategy";
		my $what = "round $round, $strategy";

		$node->safe_psql('postgres',
			"CREATE DATABASE $db TEMPLATE tpl STRATEGY $strategy");
		# another truth in each, at the same places of the same relfilenumbers
		$node->safe_psql($db, 'UPDATE w SET payload = -payload WHERE id = 5; DELETE FROM w WHERE id = 6; INSERT INTO w (id, payload) VALUES (7000001, 1)');
		is($node->safe_psql($db, $numbers),
			$of_template, "$what: the very OIDs and relfilenumbers of the template");
		is( $node->safe_psql($db, $scan
				  . 'SELECT string_agg(id || \':\' || payload, \' \' ORDER BY id) FROM w WHERE id IN (4, 5, 6, 7000001)'),
			'4:31 5:-38 7000001:1', "$what: used at once, right answers");
		fails_with2($db, 'INSERT INTO w (id) VALUES (4)', "$what: unique at once");
		is( $node->safe_psql('tpl', $scan
				  . 'SELECT string_agg(id || \':\' || payload, \' \' ORDER BY id) FROM w WHERE id IN (4, 5, 6, 7000001)'),
			'4:31 5:38 6:45', "$what: the template has its own");
		$node->safe_psql($db, 'SELECT count(artidx_build(indexrelid)) FROM artidx_indexes');
		all_ready($node, "$what: ready in the copy", $db);
		is( $node->safe_psql($db, $scan
				  . 'SELECT string_agg(id || \':\' || payload, \' \' ORDER BY id) FROM w WHERE id IN (4, 5, 6, 7000001)'),
			'4:31 5:-38 7000001:1', "$what: and right through the index");
		for my $index (indexes_of($node, 'w', $db))
		{
			my ($rc, $out, $err) = $node->psql($db,
				"SELECT count(*) FROM artidx_check('$index', true)");
			is("$rc|$out|$err", '0|1|', "$what: $index is clean");
		}
	}
	my $both = $node->safe_psql('postgres', 'SELECT used_bytes FROM artidx_memory');
	$node->safe_psql('postgres', "DROP DATABASE copy_$_") for qw(wal_log file_copy);
	memory_returns($node, $both / 2, 0, "round $round: DROP DATABASE frees the memory");
}

# the SQLSTATE of a duplicate in a database of its own
sub fails_with2
{
	my ($db, $sql, $name) = @_;
	my ($rc, $out, $err) = $node->psql($db, $sql,
		extra_params => [ '-v', 'VERBOSITY=verbose' ]);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return like($err, qr/ERROR:\s+23505:/, $name);
}

# ---- tablespaces ----
$node->safe_psql('postgres', "CREATE TABLESPACE $_ LOCATION ''") for qw(ts1 ts2);
$node->safe_psql('postgres', 'ALTER DATABASE tpl SET TABLESPACE ts1');
is( $node->safe_psql('tpl', $scan . 'SELECT payload FROM w WHERE id = 9'), '66',
	'ALTER DATABASE SET TABLESPACE: right at once');
$node->safe_psql('tpl', 'SELECT count(artidx_build(indexrelid)) FROM artidx_indexes');
load_verify($node, $n, 'ALTER DATABASE SET TABLESPACE', 'tpl');
$node->safe_psql('tpl', 'ALTER INDEX w_id SET TABLESPACE ts2; ALTER INDEX w_k SET TABLESPACE pg_default');
$node->safe_psql('tpl', 'INSERT INTO w (id, k, payload, t) VALUES (7000002, 3, -7, \'ts\')');
is( $node->safe_psql('tpl', $scan . 'SELECT payload FROM w WHERE id = 7000002'), '-7',
	'ALTER INDEX SET TABLESPACE: right at once');
fails_with2('tpl', 'INSERT INTO w (id) VALUES (7000002)', 'ALTER INDEX SET TABLESPACE: unique at once');
load_verify($node, $n, 'ALTER INDEX SET TABLESPACE', 'tpl');
$node->safe_psql('tpl', 'ALTER TABLE w SET TABLESPACE ts2');
is( $node->safe_psql('tpl', $scan . 'SELECT payload FROM w WHERE id = 7000002'), '-7',
	'ALTER TABLE SET TABLESPACE: right at once');
$node->safe_psql('tpl', 'BEGIN; ALTER INDEX w_id SET TABLESPACE ts1; INSERT INTO w (id, payload) VALUES (7000003, -7); ROLLBACK');
is( $node->safe_psql('tpl', $scan . 'SELECT count(*) FROM w WHERE id = 7000003'), '0',
	'rolled back SET TABLESPACE');
load_verify($node, $n, 'ALTER TABLE SET TABLESPACE', 'tpl');

$node->safe_psql('postgres', 'DROP DATABASE tpl');
memory_returns($node, $used, 512 * 1024, 'all databases dropped: the memory is back');
$node->safe_psql('postgres', "DROP TABLESPACE $_") for qw(ts1 ts2);

# ---- a prepared transaction over restarts ----
$node->safe_psql('postgres', q{
	CREATE TABLE p (id bigint, k int);
	INSERT INTO p SELECT i, i % 10 FROM generate_series(1, 1000) i;
	CREATE UNIQUE INDEX p_id ON p USING art (id);
	CREATE INDEX p_k ON p USING art (k);
	ANALYZE p;
});
for my $mode (qw(fast immediate))
{
	for my $end (qw(COMMIT ROLLBACK))
	{
		my $what = "$mode, $end PREPARED";
		my $id = 2000 + int(rand(1000000)) * 10;
		my $gone = $node->safe_psql('postgres', 'SELECT min(id) FROM p WHERE id < 1000');
		my $moved = $gone + 1;

		$node->safe_psql('postgres', qq{
			BEGIN;
			INSERT INTO p VALUES ($id, 77);
			DELETE FROM p WHERE id = $gone;
			UPDATE p SET k = 78 WHERE id = $moved;
			PREPARE TRANSACTION 'x';});
		$node->stop($mode);
		$node->start;
		my $q = "SELECT (SELECT count(*) FROM p WHERE id = $id), (SELECT count(*) FROM p WHERE id = $gone), (SELECT count(*) FROM p WHERE k = 77), (SELECT count(*) FROM p WHERE k = 78 AND id = $moved)";
		is($node->safe_psql('postgres', "$scan $q"), '0|1|0|0', "$what: not yet, before the build");
		# someone who inserts the same key must wait for its end
		my ($rc, $out, $err) = $node->psql('postgres',
			"SET lock_timeout = '200ms'; INSERT INTO p VALUES ($id, 1)",
			extra_params => [ '-v', 'VERBOSITY=verbose' ]);
		like($err, qr/ERROR:\s+55P03:/, "$what: the same key waits for it");
		$node->safe_psql('postgres', 'SELECT count(artidx_build(indexrelid)) FROM artidx_indexes');
		is($node->safe_psql('postgres', "$scan $q"), '0|1|0|0', "$what: not yet, after the build");
		$node->safe_psql('postgres', 'VACUUM p');
		check_clean($node, $_, "$what: $_ before the end") for qw(p_id p_k);
		$node->safe_psql('postgres', "$end PREPARED 'x'");
		is( $node->safe_psql('postgres', "$scan $q"),
			$end eq 'COMMIT' ? '1|0|1|1' : '0|1|0|0',
			"$what: found, and not found, through the index");
		$node->safe_psql('postgres', "DELETE FROM p WHERE k IN (77, 78)");
		check_exact($node, 'p', $_) for qw(p_id p_k);
	}
}

# DDL in a prepared transaction: dropped by its end, also after a restart
for my $mode ('', 'fast', 'immediate')
{
	for my $end (qw(COMMIT ROLLBACK))
	{
		my $what = 'DDL, ' . ($mode || 'no') . " restart, $end PREPARED";

		$node->safe_psql('postgres', q{
			CREATE TABLE d (id int);
			INSERT INTO d SELECT generate_series(1, 20000);
			CREATE INDEX d_id ON d USING art (id);
			BEGIN;
			CREATE TABLE d2 (id int);
			INSERT INTO d2 SELECT generate_series(1, 20000);
			CREATE UNIQUE INDEX d2_id ON d2 USING art (id);
			DROP TABLE d;
			PREPARE TRANSACTION 'y';});
		if ($mode)
		{
			$node->stop($mode);
			$node->start;
		}
		$node->safe_psql('postgres', "$end PREPARED 'y'");
		my $table = $end eq 'COMMIT' ? 'd2' : 'd';
		is($node->safe_psql('postgres', "$scan SELECT count(*) FROM $table WHERE id > 100"),
			'19900', "$what: right");
		check_exact($node, $table, "${table}_id");
		$node->safe_psql('postgres', "DROP TABLE $table");
	}
}
$node->safe_psql('postgres', 'DROP TABLE p');
memory_returns($node, $used, 512 * 1024, 'nothing of all this is left in memory');

is( join("\n",
		grep { !/lock timeout|being accessed by other users/ }
		  server_errors($node, $offset, qr/^(23505|57P0[123]|08\w{3})$/)),
	'', 'the log has no error that was not asked for');
is(join("\n", server_crashes($node, $offset)), '', 'and nothing crashed');
$node->stop;
done_testing();
