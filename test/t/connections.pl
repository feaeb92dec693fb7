# Connections that each insert, update and delete and go away: what they
# retired comes back, and nothing leaks.  CONNS says how many.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $conns = $ENV{CONNS} // 500;
my $clients = 8;
my $node = art_node('connections');
$node->safe_psql('postgres', 'CREATE EXTENSION artidx_debug');

$node->safe_psql('postgres', q{
	CREATE TABLE t (id bigint, k int);
	CREATE UNIQUE INDEX t_id ON t USING art (id);
	CREATE INDEX t_k ON t USING art (k);
	INSERT INTO t SELECT i, i FROM generate_series(1, 20000) i;
	CREATE SEQUENCE s START 1000000;
	ANALYZE t;
});

# one connection: rows come, move and go
my $script = $node->basedir . '/conn.sql';
append_to_file($script, q{\set k random(1, 20000)
INSERT INTO t SELECT nextval('s'), :k + i FROM generate_series(1, 20) i;
UPDATE t SET k = 100000 + k WHERE id BETWEEN :k AND :k + 3;
UPDATE t SET k = k - 100000 WHERE id BETWEEN :k AND :k + 3 AND k > 100000;
DELETE FROM t WHERE id >= 1000000 AND k BETWEEN :k AND :k + 20;
});

sub run_connections
{
	my ($n) = @_;
	my ($out, $err) = ('', '');
	my $per = int(($n + $clients - 1) / $clients);
	my $ok = IPC::Run::run(
		[
			'pgbench', '-n', '-C', '-c', $clients, '-j', '2', '-t', $per,
			'-f', $script, '-h', $node->host, '-p', $node->port, 'postgres'
		],
		'>', \$out, '2>', \$err);

	unlike($err, qr/ERROR|FATAL|PANIC/, "$n connections: no error");
	ok($ok, "$n connections: all ran");
	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE "
		  . "backend_type = 'client backend' AND pid <> pg_backend_pid()"
	);
	$node->safe_psql('postgres',
		'DELETE FROM t WHERE id >= 1000000; VACUUM t');
	return;
}

# Retired memory comes back once somebody works on: two epochs must pass.
sub retired_after_work
{
	my $left;

	for my $try (1 .. 60)
	{
		$node->safe_psql('postgres', q{
			INSERT INTO t SELECT 2000000 + i, i FROM generate_series(1, 50) i;
			DELETE FROM t WHERE id >= 2000000;
			VACUUM t;});
		$left = $node->safe_psql('postgres',
			'SELECT retired_bytes FROM artidx_memory');
		last if $left < 65536;
	}
	return $left;
}

sub used
{
	return $node->safe_psql('postgres',
		'SELECT used_bytes FROM artidx_memory');
}

# the first half warms up: spans that the indexes grew to are theirs
run_connections($conns / 2);
cmp_ok(retired_after_work(), '<', 65536, 'retired bytes come back');
my $first = used();
run_connections($conns / 2);
cmp_ok(retired_after_work(), '<', 65536, 'retired bytes come back again');
my $second = used();
cmp_ok($second, '<=', $first * 1.25 + 1024 * 1024,
	"memory does not grow with connections (from $first to $second bytes)");

is( $node->safe_psql('postgres', q{
		SELECT count(*) FROM artidx_epochs e
		WHERE pid <> 0 AND pid <> pg_backend_pid()
		  AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = e.pid)}),
	'0', 'no slot belongs to a process that is gone');
is( $node->safe_psql('postgres',
		'SELECT count(*) FROM artidx_epochs WHERE pinned_epoch IS NOT NULL'),
	'0', 'nobody is inside an epoch');

check_exact($node, 't', 't_id');
check_exact($node, 't', 't_k');
same_answer($node, 'SELECT count(*), sum(k) FROM t WHERE id > 0',
	'the table is as it was');

# and all of it comes back with the indexes
$node->safe_psql('postgres', 'DROP TABLE t');
$node->safe_psql('postgres', q{
	CREATE TABLE u (k int);
	CREATE INDEX u_k ON u USING art (k);});
my $rest;
for my $try (1 .. 60)
{
	$node->safe_psql('postgres',
		'INSERT INTO u SELECT generate_series(1, 50); DELETE FROM u');
	$rest = used();
	last if $rest < 1024 * 1024;
}
cmp_ok($rest, '<', 1024 * 1024, 'DROP TABLE gives the memory back');

$node->stop;
done_testing();
