# CLUSTER by an art index copies what the index scan returns, so what that
# misses would be lost.  Random histories, rows that only an old snapshot sees
# among them, and every state in which the index can be; beside a twin with a
# btree, which is clustered the same way.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $rounds = $ENV{CLUSTER_ROUNDS} // 6;
art_seed();
my $node = art_node('cluster',
	max_prepared_transactions => 5,
	log_line_prefix => $ArtTest::LOG_PREFIX);
my $offset = -s $node->logfile;

$node->safe_psql('postgres', q{
	CREATE TABLE bt (id int, k int, t text COLLATE "C", n int DEFAULT 0) WITH (fillfactor = 70);
	CREATE TABLE art (LIKE bt INCLUDING DEFAULTS) WITH (fillfactor = 70);
	CREATE INDEX bt_k ON bt (k DESC, t);
	CREATE INDEX art_k ON art USING art (k DESC, t);
	CREATE INDEX bt_x ON bt ((k % 7), id);
	CREATE INDEX art_x ON art USING art ((k % 7), id) WITH (structure = btree);
	CREATE UNIQUE INDEX bt_id ON bt (id) WHERE n >= 0;
	CREATE UNIQUE INDEX art_id ON art USING art (id) WHERE n >= 0;
	CREATE INDEX bt_c ON bt ((ARRAY[id]));
	CREATE INDEX art_c ON art USING art ((ARRAY[id]));
	CREATE TABLE other (k int);
	INSERT INTO bt SELECT i, i % 97, md5(i::text) FROM generate_series(1, 2000) i;
	INSERT INTO art SELECT * FROM bt;
	-- changes of every kind, the same to both, some of them undone; in this
	-- order a chain of versions comes to have dead, aborted and live members
	CREATE PROCEDURE churn(seed float8) LANGUAGE plpgsql AS $$
	DECLARE
		tab text;
		x int;
		p int;
	BEGIN
		FOREACH tab IN ARRAY ARRAY['bt', 'art'] LOOP
			PERFORM setseed(seed);
			FOR i IN 1..12 LOOP
				x := (random() * 96)::int;
				p := (random() * 5)::int;
				BEGIN
					IF p = 0 THEN
						EXECUTE format('UPDATE %s SET n = n + 1 WHERE k = %s', tab, x);
					ELSIF p = 1 THEN
						EXECUTE format('UPDATE %s SET k = %s WHERE id %% 97 = %s', tab, (x + 13) % 97, x);
					ELSIF p = 2 THEN
						EXECUTE format('DELETE FROM %s WHERE k = %s AND id %% 3 = 0', tab, x);
					ELSIF p = 3 THEN
						EXECUTE format('INSERT INTO %s SELECT (SELECT max(id) FROM %s) + i, %s, md5(i::text) FROM generate_series(1, 20) i', tab, tab, x);
					ELSIF p = 4 THEN
						EXECUTE format('UPDATE %s SET t = NULL WHERE k = %s AND id %% 4 = 0', tab, x);
					ELSE
						EXECUTE format('UPDATE %s SET n = n + 1 WHERE id %% 50 = %s', tab, x % 50);
						EXECUTE format('UPDATE %s SET n = n + 1 WHERE id %% 50 = %s', tab, x % 50);
					END IF;
					IF random() < 0.3 THEN
						RAISE EXCEPTION 'undone';
					END IF;
				EXCEPTION WHEN raise_exception THEN
					NULL;
				END;
			END LOOP;
		END LOOP;
	END $$;
});

# all rows
sub rows
{
	my ($tab) = @_;

	return "SELECT count(*) || ' ' || md5(string_agg(concat_ws(',', id, k, t, n), '/' ORDER BY id, k, t, n)) FROM $tab";
}

# the keys of an index in the order of the table (rows of equal keys may follow
# in any order: btree's CLUSTER may sort instead)
sub placed
{
	my ($tab, $index) = @_;
	my %keys = (k => q{concat_ws(',', k, t)}, x => q{concat_ws(',', k % 7, id)}, c => 'id::text');

	return "SELECT md5(string_agg($keys{$index}, '/' ORDER BY ctid)) FROM $tab";
}

my @states = (
	[ 'ready' => q{SELECT artidx_build('%s')} ],
	[ 'unloaded' => q{SELECT artidx_unload('%s')} ],
	[ 'sealed' => q{ALTER INDEX %s SET (max_memory = '64kB');
		SET client_min_messages = error; REINDEX INDEX %s;} ],
	[ 'small work_mem' => q{SELECT artidx_unload('%s'); SET work_mem = '64kB'} ],
	[ 'windows' => q{SELECT artidx_unload('%s'); SET work_mem = '64kB'; SET temp_file_limit = '10MB'} ],
	# read first: CLUSTER takes rows whose last UPDATE was undone, and which
	# nobody read since, to the end of the table, in any order (and 16 and later
	# may lose some)
	[ 'in the transaction' => q{BEGIN; CALL churn(0.123); SAVEPOINT s; CALL churn(0.2); ROLLBACK TO s;
		SELECT count(n) FROM bt; SELECT count(n) FROM art; SELECT artidx_unload('%s')} ],
	[ 'absent' => 'RESTART' ]);

for my $round (1 .. $rounds)
{
	my ($name, $prepare) = @{ $states[ ($round - 1) % @states ] };
	my $index = qw(k x c) [ $round % 3 ];
	my $what = "round $round, by _$index, $name";
	my $seed = rand();

	if ($prepare eq 'RESTART')
	{
		$node->append_conf('postgresql.conf', "artidx.build_workers = 0\nartidx.save_at_shutdown = off");
		$node->restart;
		$prepare = 'SELECT 1';
	}
	# the old snapshot is taken between two sets of changes, and has no lock
	# on the tables
	$node->safe_psql('postgres', "CALL churn($seed)");
	my $seen = $node->safe_psql('postgres', rows('art'));
	is($seen, $node->safe_psql('postgres', rows('bt')), "$what: twins");
	my $old = $node->background_psql('postgres');
	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM other');
	$node->safe_psql('postgres', "CALL churn($seed / 2)");

	my $end = $prepare =~ /^BEGIN/ ? 'COMMIT;' : '';
	my $before = $end ? '' : $node->safe_psql('postgres', rows('art'));
	(my $sql = $prepare) =~ s/%s/art_$index/g;
	$node->safe_psql('postgres', "$sql; CLUSTER bt USING bt_$index; CLUSTER art USING art_$index; $end");
	$node->safe_psql('postgres', "ALTER INDEX art_$index RESET (max_memory)");

	my $after = $node->safe_psql('postgres', rows('art'));
	is($after, $before, "$what: no row is lost, none doubled") unless $end;
	is($after, $node->safe_psql('postgres', rows('bt')), "$what: the rows of the twin");
	is($node->safe_psql('postgres', placed('art', $index)),
		$node->safe_psql('postgres', placed('bt', $index)), "$what: and their order");
	is($old->query_safe('SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; ' . rows('art')),
		$seen, "$what: the old snapshot sees what it saw");
	is($old->query_safe('RESET ALL; SET enable_seqscan = off; '
		  . 'SELECT count(*) FROM (SELECT id FROM art WHERE k BETWEEN -1 AND 200 ORDER BY k DESC) x'),
		(split / /, $seen)[0], "$what: and by an index, made again");
	$old->query_safe('COMMIT');
	$old->quit;
	check_clean($node, $_, "$what: $_") for qw(art_k art_x art_id art_c);
	$node->safe_psql('postgres', 'VACUUM bt, art') if $round % 2;
}

# Rows of a prepared transaction keep CLUSTER out until it is over.
$node->safe_psql('postgres', q{
	BEGIN;
	INSERT INTO bt SELECT 100000 + i, i, 'prepared' FROM generate_series(1, 20) i;
	INSERT INTO art SELECT 100000 + i, i, 'prepared' FROM generate_series(1, 20) i;
	UPDATE bt SET n = n + 1 WHERE k = 5; UPDATE art SET n = n + 1 WHERE k = 5;
	PREPARE TRANSACTION 'p'});
fails_with($node, q{SET lock_timeout = '200ms'; CLUSTER art USING art_k}, '55P03',
	qr/lock timeout/, 'a prepared transaction');
$node->restart;
$node->safe_psql('postgres', q{COMMIT PREPARED 'p'});
$node->safe_psql('postgres', 'CLUSTER bt USING bt_k; CLUSTER art USING art_k');
is($node->safe_psql('postgres', rows('art')),
	$node->safe_psql('postgres', rows('bt')), 'with what was prepared, over a restart');
is($node->safe_psql('postgres', placed('art', 'k')),
	$node->safe_psql('postgres', placed('bt', 'k')), 'and in the same order');

# A scan that loses its structure in the middle goes on behind the same row:
# one session clusters again and again while another takes the structure away.
# (CLUSTER has the index locked, so the taking is done by memory pressure.)
$node->append_conf('postgresql.conf', "artidx.memory = '16MB'\nartidx.build_workers = 2");
$node->restart;
my $seal = $node->background_psql('postgres', on_error_stop => 0);
$seal->query_safe(q{SET client_min_messages = error;
	CREATE UNLOGGED TABLE press (id int, t text COLLATE "C");
	CREATE UNIQUE INDEX press_t ON press USING art (t)});
for my $round (1 .. 3)
{
	$node->safe_psql('postgres', "CALL churn($round / 10.0); SELECT artidx_build('art_k')");
	my $before = $node->safe_psql('postgres', rows('art'));
	$seal->query_until(qr/pressing/, qq{\\echo pressing
		INSERT INTO press SELECT i, md5($round || ' ' || i) FROM generate_series(1, 350000) i;
		TRUNCATE press;\n});
	$node->safe_psql('postgres', 'SET client_min_messages = error; CLUSTER art USING art_k; CLUSTER art USING art_x');
	$node->safe_psql('postgres', 'CLUSTER bt USING bt_k; CLUSTER bt USING bt_x');
	is($node->safe_psql('postgres', rows('art')), $before, "pressed $round: no row is lost");
	is($node->safe_psql('postgres', placed('art', 'x')),
		$node->safe_psql('postgres', placed('bt', 'x')), "pressed $round: and their order");
}
$seal->quit;
like(slurp_file($node->logfile, $offset),
	qr/sealed index "postgres\.public\.art_[kx]" .* for index "postgres\.public\.press_t"/,
	'memory was taken from the index that is clustered by');

# not preloaded: a private scan as well
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\nartidx.memory = '16MB'");
$node->adjust_conf('postgresql.conf', 'artidx.memory', undef);
$node->adjust_conf('postgresql.conf', 'artidx.build_workers', undef);
$node->adjust_conf('postgresql.conf', 'artidx.save_at_shutdown', undef);
$node->restart;
my $before = $node->safe_psql('postgres', rows('art'));
$node->safe_psql('postgres', 'CLUSTER bt USING bt_k; CLUSTER art USING art_k');
is($node->safe_psql('postgres', rows('art')), $before, 'not preloaded: no row is lost');
is($node->safe_psql('postgres', placed('art', 'k')),
	$node->safe_psql('postgres', placed('bt', 'k')), 'not preloaded: and their order');
is_deeply([ server_errors($node, $offset, qr/^(55P03|57P0\d|53200)$/) ], [], 'no other error');
is(join('|', server_crashes($node, $offset)), '', 'no crash');

done_testing();
