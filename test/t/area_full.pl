# The area is full: a clear error, nothing lost, everything else goes on, and
# the memory comes back.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('memory', 'artidx.memory' => "'16MB'");

$node->safe_psql('postgres', q{
	CREATE TABLE small (k int);
	CREATE INDEX small_k ON small USING art (k);
	INSERT INTO small SELECT generate_series(1, 100);
	CREATE TABLE t (id bigint, pad text DEFAULT '');
	CREATE UNIQUE INDEX t_id ON t USING art (id);
});

# fill it
my $n = 0;
my $err = '';
my $step = 20000;
for my $i (0 .. 99)
{
	my $from = $i * $step;
	my ($rc, $out, $stderr) = $node->psql('postgres',
		"INSERT INTO t SELECT hashint8extended(i, 1) FROM "
		  . "generate_series($from, $from + $step - 1) i",
		extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	if ($rc != 0)
	{
		$err = $stderr;
		last;
	}
	$n += $step;
}
like($err, qr/ERROR:\s+53200:/, 'the area fills up: SQLSTATE 53200');
like($err, qr/artidx\.memory/, 'and the error names the setting');
cmp_ok($n, '>', 0, "some rows went in ($n)");

my $rows = 'SET enable_indexscan = off; SET enable_indexonlyscan = off; '
  . 'SET enable_bitmapscan = off; SELECT count(*) FROM t';
is($node->safe_psql('postgres', $rows), $n, 'nothing lost, nothing half done');
same_answer($node, 'SELECT count(*), sum(id::numeric) FROM t WHERE id > 0',
	'the index still answers');
check_clean($node, 't_id', 'and is clean');
is($node->safe_psql('postgres', 'SELECT count(*) FROM small WHERE k > 50'),
	'50', 'other indexes can be read');

# what frees memory may not fail for want of memory
my ($rc, $out, $stderr) =
  $node->psql('postgres', 'DELETE FROM t WHERE id % 4 = 0');
is($rc, 0, "DELETE works: $stderr");
($rc, $out, $stderr) = $node->psql('postgres',
	'DELETE FROM t WHERE id < 4611686018427387904');
is($rc, 0, "DELETE of a range works: $stderr");
($rc, $out, $stderr) = $node->psql('postgres', 'VACUUM t');
is($rc, 0, "VACUUM works: $stderr");
check_exact($node, 't', 't_id');
($rc, $out, $stderr) = $node->psql('postgres',
	'INSERT INTO t SELECT -1 - i FROM generate_series(1, 5000) i');
is($rc, 0, "and there is room for rows again: $stderr");

# CREATE INDEX beyond the area
$node->safe_psql('postgres', q{
	CREATE TABLE big (k bigint);
	INSERT INTO big SELECT hashint8extended(i, 2)
		FROM generate_series(1, 2000000) i;
});
($rc, $out, $stderr) = $node->psql('postgres',
	'CREATE INDEX big_k ON big USING art (k)');
is($rc, 0, "CREATE INDEX of too large an index works: $stderr");
like($stderr, qr/WARNING: .*"big_k" is valid but sealed.*artidx\.memory/s,
	'with a WARNING that names the setting');
is(index_state($node, 'big_k'), 'sealed', 'which leaves it sealed');
same_answer($node, 'SELECT count(*) FROM big WHERE k < 0', 'queries do without it');
is($node->safe_psql('postgres', 'SELECT count(*) FROM big'),
	'2000000', 'the table is as it was');

# a cap of one index
($rc, $out, $stderr) = $node->psql('postgres', q{
	CREATE INDEX big_cap ON big USING art (k) WITH (max_memory = '1MB')});
is($rc, 0, "CREATE INDEX of one beyond its own cap works: $stderr");
like($stderr, qr/WARNING: .*"big_cap" is valid but sealed.*(max_memory|artidx\.memory)/s,
	'with a WARNING that names what is full');

# memory returns after DROP: as much fits as fitted at first
$node->safe_psql('postgres', 'DROP TABLE t; DROP TABLE big');
my $free = 0;
for my $try (1 .. 60)
{
	$node->safe_psql('postgres',
		'INSERT INTO small SELECT generate_series(1, 20); '
		  . 'DELETE FROM small WHERE k <= 20; VACUUM small');
	$free = $node->safe_psql('postgres',
		'SELECT used_bytes FROM artidx_memory');
	last if $free < 1024 * 1024;
}
cmp_ok($free, '<', 1024 * 1024, 'memory returns after DROP TABLE');
$node->safe_psql('postgres', q{
	CREATE TABLE again (id bigint);
	CREATE UNIQUE INDEX again_id ON again USING art (id);
});
my $fit = int($n * 0.9);
($rc, $out, $stderr) = $node->psql('postgres',
	"INSERT INTO again SELECT hashint8extended(i, 1) FROM generate_series(0, $fit) i"
);
is($rc, 0, "as much fits again: $stderr");

# a rolled back CREATE INDEX and TRUNCATE give theirs back, too
$node->safe_psql('postgres', 'TRUNCATE again');
for my $try (1 .. 20)
{
	$node->safe_psql('postgres', q{
		BEGIN;
		INSERT INTO again SELECT generate_series(1, 50000);
		CREATE INDEX again_2 ON again USING art (id);
		ROLLBACK;
		VACUUM again;});
}
pass('20 times half the area, rolled back each time');
check_exact($node, 'again', 'again_id');

$node->stop;
done_testing();
