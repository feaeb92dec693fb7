# A build in the background does not keep VACUUM from what was deleted since it
# began, in any table; and renewing its snapshot loses nothing: not rows that an old
# snapshot sees, nor what their TOAST pointers lead to.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('horizon', 'artidx.build_workers' => 1, 'artidx.save_at_shutdown' => 'off', jit => 'off');

# a builder stops at two keys, each until its advisory lock is free
$node->safe_psql('postgres', in_builder('stops', q{
	IF k IN (10, 15000) THEN
		PERFORM pg_advisory_lock_shared(k);
		PERFORM pg_advisory_unlock_shared(k);
	END IF;}) . q{
	CREATE TABLE t (k int, big text, pad text DEFAULT repeat('p', 150));
	ALTER TABLE t ALTER big SET STORAGE EXTERNAL;
	INSERT INTO t SELECT i, CASE WHEN i % 50 = 0 THEN repeat(md5(i::text), 100) ELSE 'x' END
		FROM generate_series(1, 20000) i;
	CREATE INDEX t_k ON t USING art (stops(k), md5(big));
	CREATE TABLE o (x int);
	INSERT INTO o SELECT generate_series(1, 1000);
});
my $toast = $node->safe_psql('postgres',
	q{SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 't'});

my $keeper = $node->background_psql('postgres');

sub stopped
{
	my ($key) = @_;

	return ok($node->poll_query_until('postgres', qq{
		SELECT count(*) = 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE l.locktype = 'advisory' AND NOT l.granted AND l.objid = $key
			AND a.backend_type = 'artidx builder'}), "a worker builds, and stops at $key");
}

sub xmin
{
	return $node->safe_psql('postgres',
		q{SELECT backend_xmin FROM pg_stat_activity WHERE backend_type = 'artidx builder'});
}

# what VACUUM of a table removes
sub removed
{
	my ($table) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "VACUUM (VERBOSE) $table");

	return $err =~ /tuples: (\d+) removed, \d+ remain, (\d+) are dead but not yet removable/ ? "$1 $2" : $err;
}

# the lock of the keeper outlives a session's end only here
sub locks
{
	$keeper->query_safe('SELECT pg_advisory_unlock_all(); SELECT pg_advisory_lock(10); SELECT pg_advisory_lock(15000)');
	return;
}

my $offset;
for my $old ('', 'an old snapshot')
{
	my $reader;

	locks();
	if ($old)
	{
		# sees all, and is used when the index is there again
		$reader = $node->background_psql('postgres');
		$reader->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off');
		$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class');
	}
	$offset = -s $node->logfile;
	$node->safe_psql('postgres', 'ALTER INDEX t_k SET (structure = ' . ($old ? 'art' : 'btree') . ')');
	stopped(10);
	my $before = xmin();

	# gone in the part that is not read yet, and elsewhere
	$node->safe_psql('postgres', q{DELETE FROM o WHERE x % 2 = 0});
	$node->safe_psql('postgres', q{DELETE FROM t WHERE k > 16000 AND k % 100 = 50});
	like(removed('o'), qr/^0 /, 'what is deleted while a page is read waits') unless $old;
	$keeper->query_safe('SELECT pg_advisory_unlock(10)');
	stopped(15000);
	cmp_ok(xmin(), '>', $before, 'the worker sees anew in the middle of its build') unless $old;
	like(removed('o'), qr/^[1-9]\d* 0$/, 'and VACUUM removes what was deleted since the build began') unless $old;
	$node->safe_psql('postgres', "VACUUM $toast");
	$keeper->query_safe('SELECT pg_advisory_unlock(15000)');
	all_ready($node, 'it is ready');
	unlike(slurp_file($node->logfile, $offset), qr/ERROR/, 'the build met nothing that is gone');
	is( $node->safe_psql('postgres', q{SELECT last_build_source FROM artidx_indexes WHERE indexrelname = 't_k'}),
		'alter', 'built in the background');
	if ($reader)
	{
		is($reader->query_safe('SELECT count(*) FROM t WHERE stops(k) BETWEEN 16001 AND 20000'), '4000',
			'the old snapshot finds its rows by the new structure');
		$reader->query_safe('COMMIT');
		$reader->quit;
	}
	check_exact($node, 't', 't_k');
	$node->safe_psql('postgres', q{INSERT INTO t SELECT i, repeat(md5(i::text), 100) FROM generate_series(16050, 20000, 100) i;
		INSERT INTO o SELECT generate_series(2, 1000, 2)});
}
$keeper->quit;
$node->stop;
done_testing();
