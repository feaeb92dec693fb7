# More processes than the reserve of the memory has pages, all of which come when it
# is full: each gets a plain answer, a row or 53200, and VACUUM gets on.  None of them
# runs at full speed without getting anywhere.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;
use Time::HiRes qw(sleep time);

my $clients = 200;    # 16 MB have a reserve of 128 pages
my $node = art_node(
	'crowd',
	'artidx.memory' => "'16MB'",
	'max_connections' => $clients + 20,
	'autovacuum' => 'off');

# tries(c): 40 rows of client c, each by itself; what became of them
$node->safe_psql(
	'postgres', q{
	CREATE TABLE u (k bigint, p text COLLATE "C" GENERATED ALWAYS AS (md5(k::text) || md5('x' || k)) STORED);
	CREATE UNIQUE INDEX u_k ON u USING art (k, p);
	CREATE TABLE seen (client int, state text, n bigint);
	CREATE PROCEDURE fill() LANGUAGE plpgsql AS $$
	DECLARE i bigint := 0;
	BEGIN
		LOOP
			BEGIN
				INSERT INTO u SELECT hashint8extended(j, 1) FROM generate_series(i, i + 999) j;
				i := i + 1000;
			EXCEPTION WHEN out_of_memory THEN
				EXIT;
			END;
			COMMIT;
		END LOOP;
	END $$;
	CREATE FUNCTION tries(c int) RETURNS SETOF text LANGUAGE plpgsql AS $$
	BEGIN
		FOR j IN 1 .. 40 LOOP
			BEGIN
				INSERT INTO u VALUES (hashint8extended(c * 1000 + j, 2));
				RETURN NEXT 'row';
			EXCEPTION WHEN out_of_memory THEN
				RETURN NEXT '53200';
			END;
		END LOOP;
	END $$});
my $full = $node->safe_psql('postgres', 'CALL fill(); SELECT count(*) FROM u');
cmp_ok($full, '>', 10000, "full at $full rows");

# all of them are there, attached to the memory, before the first inserts
my $gate = $node->background_psql('postgres');
$gate->query_safe('SELECT pg_advisory_lock(1)');
my $script = $node->basedir . '/crowd.sql';
append_to_file(
	$script, q{
SET enable_seqscan = off;
SELECT count(*) FROM u WHERE k = :client_id;
SELECT pg_advisory_lock_shared(1);
SET statement_timeout = '120s';
INSERT INTO seen SELECT :client_id, t, count(*) FROM tries(:client_id) t GROUP BY t;
SET statement_timeout = 0;
\sleep 900 s
});
my ($out, $err) = ('', '');
my $bench = IPC::Run::start(
	[
		'pgbench', '-n', '-c', $clients, '-j', 2, '-t', 1, '-f', $script,
		'-h', $node->host, '-p', $node->port, 'postgres'
	],
	'>', \$out,
	'2>', \$err);
ok( $node->poll_query_until(
		'postgres', "SELECT count(*) = $clients FROM pg_locks WHERE NOT granted AND locktype = 'advisory'"),
	"$clients sessions are there");
$gate->query_safe('SELECT pg_advisory_unlock(1)');
ok( $node->poll_query_until('postgres', "SELECT count(DISTINCT client) = $clients FROM seen"),
	'all of them are through')
  or diag($err);
is( $node->safe_psql('postgres', 'SELECT sum(n), count(DISTINCT client) FROM seen'),
	(40 * $clients) . "|$clients",
	'every row got an answer');
is( $node->safe_psql('postgres', q{SELECT string_agg(DISTINCT state, ' ' ORDER BY state) FROM seen}),
	'53200 row',
	'some went into the holes, the rest was refused');

# and now what removes; all sessions are still there
$node->safe_psql('postgres', 'DELETE FROM u');
$node->safe_psql('postgres', "SET statement_timeout = '120s'; VACUUM u");
check_clean($node, 'u_k', 'VACUUM got on, the index is sound');
$node->safe_psql('postgres', 'INSERT INTO u SELECT hashint8extended(j, 3) FROM generate_series(1, 1000) j');
$gate->quit;
$bench->kill_kill;
is($err =~ /ERROR|FATAL/ ? $err : '', '', 'no session met an error');
$node->stop;
done_testing();
