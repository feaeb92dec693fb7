# A build reads pages that are all-visible in another way than the rest: whatever
# mixture of pages a table has, each row gets its entry, under its root.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

# a small buffer pool: scans begin where another one was, and use a ring
my $node = art_node(
	'buildscan',
	jit => 'off',
	autovacuum => 'off',
	shared_buffers => '2MB',
	'artidx.build_workers' => 0,
	max_worker_processes => 16,
	max_parallel_workers => 8);

sub sql
{
	return $node->safe_psql('postgres', join(' ', @_));
}

# how many of the table's pages are all-visible, by the estimate that VACUUM keeps
sub visible
{
	my ($table) = @_;

	return sql("SELECT relallvisible || ' of ' || relpages FROM pg_class WHERE relname = '$table'");
}

# Every row by way of the index: built by one process, by several, and after an eviction.
sub build_all_ways
{
	my ($table, $what) = @_;
	my $all = "SELECT count(*), sum(k), sum(hashtext(t)::bigint) FROM $table";
	my $seq = sql("SET enable_indexscan = off; SET enable_bitmapscan = off; $all");

	foreach my $way (0, 2, 'again')
	{
		if ($way eq 'again')
		{
			sql("SELECT artidx_unload('${table}_k'), artidx_unload('${table}_t')");
			sql("SELECT artidx_build('${table}_k'), artidx_build('${table}_t')");
			all_ready($node, "$what: built again");
		}
		else
		{
			# the hint that the next scan begins at
			sql("SELECT 1 FROM $table OFFSET 3000 LIMIT 1");
			sql("SET max_parallel_maintenance_workers = $way; DROP INDEX IF EXISTS ${table}_k, ${table}_t;",
				"CREATE UNIQUE INDEX ${table}_k ON $table USING art (k);",
				"CREATE INDEX ${table}_t ON $table USING art (t COLLATE \"C\")");
		}
		foreach my $column ('k', 't')
		{
			check_clean($node, "${table}_$column");
			is(sql("SET enable_seqscan = off; SET enable_bitmapscan = off; $all WHERE $column IS NOT NULL"),
				$seq, "$what, $way: every row by way of $column");
		}
	}
	return;
}

foreach my $table ('v', 'd', 'm')
{
	sql("CREATE TABLE $table (k int, n int, t text) WITH (fillfactor = 60, parallel_workers = 2);",
		"INSERT INTO $table SELECT i, i, md5(i::text) FROM generate_series(1, 20000) i");
}

# ---- no page is all-visible; all are, with chains and holes; a mixture ----
build_all_ways('d', 'as inserted');
foreach my $table ('v', 'm')
{
	sql("UPDATE $table SET n = -n WHERE k % 3 = 0; DELETE FROM $table WHERE k % 7 = 0 OR k BETWEEN 15000 AND 16000");
	sql("VACUUM (FREEZE, INDEX_CLEANUP ON) $table");
	like(visible($table), qr/^(\d+) of \1$/, "every page of $table is all-visible");
	cmp_ok(sql("SELECT count(*) FROM $table WHERE n < 0 AND ctid IN (SELECT ctid FROM $table WHERE k % 3 = 0)"),
		'>', 1000, "rows of $table that were updated");
}
build_all_ways('v', 'all-visible');

# every tenth stretch of keys: updated in place, deleted, inserted, and seen by an old snapshot
my $old = $node->background_psql('postgres');
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class');
sql('UPDATE m SET n = n + 1 WHERE k % 1000 < 30; DELETE FROM m WHERE k % 1000 BETWEEN 500 AND 530');
sql('INSERT INTO m SELECT i, i, md5(i::text) FROM generate_series(20001, 20100) i');
build_all_ways('m', 'a mixture');
$old->query_safe('COMMIT');
$old->quit;
check_exact($node, 'm', 'm_k');
sql('VACUUM m; UPDATE m SET t = t || t WHERE k % 500 = 1');
build_all_ways('m', 'another');

# ---- duplicates, between the two kinds of page and within one ----
sql('DROP INDEX v_k, v_t; INSERT INTO v SELECT k, 0, t FROM v WHERE k = 4243');
foreach my $pages ('of two kinds', 'all-visible')
{
	foreach my $workers (0, 2)
	{
		fails_with($node,
			"SET max_parallel_maintenance_workers = $workers; CREATE UNIQUE INDEX v_k ON v USING art (k)",
			'23505', qr/\(k\)=\(4243\) is duplicated/, "a duplicate in pages $pages, $workers workers");
	}
	sql('VACUUM v');
}
done_testing();
