# A backend killed with -9 takes the shared memory with it; the indexes are
# derived data and come back from the heap.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('crash', restart_after_crash => 'on');

$node->safe_psql('postgres', q{
	CREATE TABLE t (id bigint, k int);
	CREATE UNIQUE INDEX t_id ON t USING art (id);
	CREATE INDEX t_k ON t USING art (k);
	INSERT INTO t SELECT i, i % 100 FROM generate_series(1, 10000) i;
	CREATE SEQUENCE s START 100000;
	ANALYZE t;
});

# writers that are at it when the axe falls
my $script = $node->basedir . '/write.sql';
append_to_file($script, q{\set r random(1, 10000)
INSERT INTO t VALUES (nextval('s'), :r);
UPDATE t SET k = k + 1 WHERE id = :r;
DELETE FROM t WHERE id = 100000 + :r;
});

for my $round (1 .. 3)
{
	my ($out, $err) = ('', '');
	my $h = do
	{
		local $ENV{PGAPPNAME} = 'writer';
		IPC::Run::start(
			[
				'pgbench', '-n', '-c', '8', '-T', '600', '-f', $script,
				'-h', $node->host, '-p', $node->port, 'postgres'
			],
			'>', \$out, '2>', \$err);
	};
	# all are there, and have written something
	my $writers = "FROM pg_stat_activity WHERE application_name = 'writer'";
	my $wrote = $node->safe_psql('postgres', 'SELECT last_value + 200 FROM s');
	$node->poll_query_until('postgres', "SELECT count(*) = 8 AND (SELECT last_value FROM s) > $wrote $writers")
	  or BAIL_OUT("nobody writes: $err");
	my $pid = $node->safe_psql('postgres', "SELECT pid $writers ORDER BY random() LIMIT 1");
	like($pid, qr/^\d+$/, "round $round: a writer to kill");
	kill 'KILL', $pid;
	$h->finish;
	ok(comes_back($node, $pid),
		"round $round: the server is back");

	same_answer($node, 'SELECT count(*) FROM t WHERE k BETWEEN 10 AND 20',
		"round $round: right answers at once");
	my $id = $node->safe_psql('postgres', 'SELECT max(id) FROM t');
	fails_with($node, "INSERT INTO t VALUES ($id, 0)",
		'23505', qr/"t_id"/, "round $round: still unique");
	request_and_wait($node, 't_id', 'SELECT k FROM t WHERE id = 5');
	request_and_wait($node, 't_k', 'SELECT id FROM t WHERE k = 5');
	check_exact($node, 't', 't_id');
	check_exact($node, 't', 't_k');
}

# the whole server at once
$node->safe_psql('postgres', 'INSERT INTO t VALUES (5000000, 1)');
$node->stop('immediate');
$node->start;
same_answer($node, 'SELECT count(*), sum(id) FROM t WHERE id > 50',
	'right answers after an immediate restart');
request_and_wait($node, 't_id', 'SELECT k FROM t WHERE id = 5');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; '
		  . 'SELECT k FROM t WHERE id = 5000000'), '1',
	'the last committed row is found');
check_exact($node, 't', 't_id');

my $log = slurp_file($node->logfile);
unlike($log, qr/PANIC|TRAP:/, 'no PANIC and no failed assertion');

$node->stop;
done_testing();
