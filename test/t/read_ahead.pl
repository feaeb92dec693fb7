# Index scans ask for blocks of the table ahead of their rows: how many, by
# effective_io_concurrency, under a LIMIT, where all is in memory, and that the rows are the same.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

# The server says nowhere what it asks for.  Each call of posix_fadvise(POSIX_FADV_WILLNEED)
# appends a byte to a file here, and does what it would do.
my $dir = PostgreSQL::Test::Utils::tempdir();
my $asked = "$dir/asked";

append_to_file("$dir/advise.c", <<'END');
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int
counted(const char *name, int fd, off_t offset, off_t len, int advice)
{
	int			(*real) (int, off_t, off_t, int) = dlsym(RTLD_NEXT, name);

	if (advice == POSIX_FADV_WILLNEED)
	{
		int			out = open(getenv("ASKED"), O_WRONLY | O_APPEND | O_CREAT, 0600);

		if (out < 0 || write(out, "x", 1) != 1)
			abort();
		close(out);
	}
	return real(fd, offset, len, advice);
}

int
posix_fadvise(int fd, off_t offset, off_t len, int advice)
{
	return counted("posix_fadvise", fd, offset, len, advice);
}

int
posix_fadvise64(int fd, off_t offset, off_t len, int advice)
{
	return counted("posix_fadvise64", fd, offset, len, advice);
}
END
system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-o', "$dir/advise.so", "$dir/advise.c", '-ldl');

my $node = art_node(
	'ahead',
	'artidx.memory' => "'64MB'",
	shared_buffers => "'2MB'",
	autovacuum => 'off',
	max_parallel_workers_per_gather => 0,
	enable_seqscan => 'off',
	enable_bitmapscan => 'off',
	fsync => 'off');

$node->stop;
{
	local $ENV{LD_PRELOAD} = "$dir/advise.so";
	local $ENV{ASKED} = $asked;
	$node->start;
}
$node->safe_psql('postgres', q{
	CREATE TABLE big AS SELECT i AS n, hashint8(i) AS h, repeat('x', 700) AS pad FROM generate_series(1, 30000) i;
	CREATE TABLE small AS SELECT i AS n, hashint8(i) AS h FROM generate_series(1, 3000) i;
	CREATE INDEX big_h ON big USING art (h);
	CREATE INDEX small_h ON small USING art (h);
	VACUUM ANALYZE big, small;
	DELETE FROM big WHERE n % 10 = 0;
});

# ask CONCURRENCY, STATEMENT...: what the last one says, and how many blocks all have asked for
sub ask
{
	my ($concurrency, @statements) = @_;

	truncate $asked, 0;
	my $answer = $node->safe_psql('postgres',
		join(";\n", "SET effective_io_concurrency = $concurrency", @statements));
	return ($answer, -s $asked // 0);
}

my $rows = 'SELECT count(*), sum(n), max(length(pad)) FROM (SELECT n, pad FROM big WHERE h > 0 ORDER BY h LIMIT 3000) s';
my ($right, $none) = ask(0, $rows);

like($node->safe_psql('postgres', "EXPLAIN $rows"), qr/Index Scan using big_h/, 'an index scan');
is($none, 0, 'effective_io_concurrency = 0: nothing is asked for');
for my $concurrency (1, 16, 200)
{
	my ($answer, $n) = ask($concurrency, $rows);

	is($answer, $right, "effective_io_concurrency = $concurrency: the same rows");
	# 2 MB of 30 are in memory; most rows have a block of their own
	cmp_ok($n, '>', 1500, "$n blocks are asked for");
	cmp_ok($n, '<', 3000 * 10 / 9 + 300, 'and hardly more than there are rows');
}

my ($backward, $n) = ask(16, $rows =~ s/> 0 ORDER BY h/< 0 ORDER BY h DESC/r);
is($backward, (ask(0, $rows =~ s/> 0 ORDER BY h/< 0 ORDER BY h DESC/r))[0], 'backward: the same rows');
cmp_ok($n, '>', 1500, "backward: $n blocks are asked for");

# ---- few rows are wanted
for my $limit (1, 3, 10)
{
	(undef, $n) = ask(200, "SELECT n, pad FROM big WHERE h > -1000000000 ORDER BY h LIMIT $limit");
	cmp_ok($n, '<=', 2 * $limit, "LIMIT $limit asks for $n blocks");
}

(undef, $n) = ask(2, 'SELECT n, pad FROM big WHERE h > -1000000000 ORDER BY h LIMIT 200');
cmp_ok($n, '<=', 210, "two blocks ahead of 200 rows: $n blocks");

# ---- all is in memory
ask(200, 'SELECT sum(n) FROM small WHERE h > 0');
(undef, $n) = ask(200, 'SELECT sum(n) FROM (SELECT n FROM small WHERE h > 0 ORDER BY h OFFSET 0) s');
is($n, 0, 'nothing is asked for where all is in memory');

# ---- rows in memory: pages are pinned ahead of core, which counts them once all the same
$node->safe_psql('postgres', 'CREATE INDEX small_b ON small USING btree (h)');
my $turns = join ";\n", 'BEGIN', 'SELECT count(*), sum(n) FROM (SELECT n FROM small WHERE h > -2000000000 ORDER BY h LIMIT 2900) s',
  'SELECT count(*), sum(n) FROM (SELECT n FROM small WHERE h < 2000000000 ORDER BY h DESC LIMIT 2900) s',
  'DECLARE c SCROLL CURSOR FOR SELECT n FROM small WHERE h > -1000000000 ORDER BY h',
  'MOVE 700 FROM c', 'MOVE BACKWARD 400 FROM c', 'FETCH 3 FROM c', 'MOVE 500 FROM c', 'FETCH BACKWARD 2 FROM c',
  q{SELECT pg_stat_get_xact_blocks_fetched('small'::regclass), pg_stat_get_xact_blocks_hit('small'::regclass)}, 'ROLLBACK';
my ($by_art) = ask(16, 'BEGIN', 'DROP INDEX small_b', $turns =~ s/^BEGIN;//r);
my ($by_btree) = ask(16, 'BEGIN', 'DROP INDEX small_h', $turns =~ s/^BEGIN;//r);
is($by_art, $by_btree, "rows in memory, and pages counted, as by btree");
like($by_btree, qr/^(\d{4,})\|\1$/m, 'all of them in memory');
$node->safe_psql('postgres', 'DROP INDEX small_b');

# ---- index-only scans read nothing of all-visible pages
$node->safe_psql('postgres', 'VACUUM big');
(undef, $n) = ask(200, 'SELECT count(h) FROM big WHERE h > 0');
is($n, 0, 'an index-only scan asks for nothing');

# ---- cursors that turn round, marks, dead entries, without a structure
my $cursor = join ";\n", 'BEGIN', 'DECLARE c SCROLL CURSOR FOR SELECT n, pad FROM big WHERE h BETWEEN 0 AND 500000000 ORDER BY h',
  'MOVE 700 FROM c', 'MOVE BACKWARD 400 FROM c', 'FETCH 3 FROM c', 'MOVE 500 FROM c', 'FETCH BACKWARD 2 FROM c', 'COMMIT';
is((ask(64, $cursor))[0], (ask(0, $cursor))[0], 'a cursor that turns round');
my $merge = 'SELECT count(*), sum(a.n), max(b.pad) FROM (SELECT h, n, pad FROM big WHERE h > 1000000000) a '
  . 'JOIN (SELECT h / 2 * 2 AS h, pad FROM big WHERE h > 1000000000) b USING (h)';
my @merge = ('SET enable_hashjoin = off', 'SET enable_nestloop = off', $merge);
is((ask(64, @merge))[0], (ask(0, @merge))[0], 'a merge join');
my $changed = join ";\n", 'BEGIN', 'UPDATE big SET n = n + 1 WHERE h BETWEEN 0 AND 300000000',
  'SELECT count(*), sum(n) FROM (SELECT n, pad FROM big WHERE h > 0 ORDER BY h LIMIT 2000) s', 'ROLLBACK';
is((ask(64, $changed))[0], (ask(0, $changed))[0], 'rows of this transaction');
my @absent = ("SELECT artidx_unload('big_h')", 'SET artidx.build_wait = off', $rows);
is(((ask(64, @absent))[0] =~ /([^\n]*)$/)[0], $right, 'without a structure');

# ---- a tablespace has its own
my $space = PostgreSQL::Test::Utils::tempdir();
$node->safe_psql('postgres', "CREATE TABLESPACE slow LOCATION '$space' WITH (effective_io_concurrency = 0)");
$node->safe_psql('postgres', 'ALTER TABLE big SET TABLESPACE slow; ' . "SELECT artidx_wait()");
my ($there, $m) = ask(200, $rows);
is($there, $right, 'in a tablespace: the same rows');
is($m, 0, "its effective_io_concurrency counts");

$node->stop;
done_testing();
