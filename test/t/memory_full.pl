# The memory is full, all of it or an index's own cap: no wrong answer, no
# error but that of a unique insert, every table and every other index goes on;
# what gave way says so, once, and comes back.
use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;
use Time::HiRes qw(sleep time);

sub run_sql
{
	my ($node, $sql) = @_;

	return $node->psql('postgres', $sql,
		extra_params => [ '-v', 'VERBOSITY=verbose' ]);
}

# It succeeds, and what it says on the way matches (undef: says nothing).
sub works
{
	my ($node, $sql, $says, $name) = @_;
	my ($rc, $out, $err) = run_sql($node, $sql);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($rc, 0, $name) or diag($err);
	return defined $says ? like($err, $says, "$name: it says so") :
	  is($err, '', "$name: silently");
}

sub rows
{
	my ($node, $table, $what) = @_;

	$what //= 'count(*)';
	return $node->safe_psql('postgres',
		'SET enable_indexscan = off; SET enable_indexonlyscan = off; '
		  . "SET enable_bitmapscan = off; SELECT $what FROM $table");
}

sub warnings_of
{
	my ($node, $regex) = @_;
	my @all = slurp_file($node->logfile) =~ /(?:WARNING: |LOG:  artidx: )[^\n]*$regex/g;

	return scalar @all;
}

my $sealed = qr/WARNING:\s+53200: art index "\w+" was sealed because its memory is full/;
my $unbuilt = qr/WARNING:\s+53200: art index "\w+" is valid but sealed/;
my $setting = qr/artidx\.memory/;

# a column that makes long keys, so that few rows fill the memory
my $pad = q{p text COLLATE "C" GENERATED ALWAYS AS (md5(k::text) || md5('x' || k)) STORED};

# ---- an index nobody uses gives way to one that is in use; it takes a minute
# to become idle, so this begins here and goes on at the end

my $evict = art_node('evict', 'artidx.memory' => "'24MB'");
$evict->safe_psql('postgres', qq{
	CREATE TABLE idle (k bigint, $pad);
	INSERT INTO idle SELECT hashint8extended(i, 1) FROM generate_series(1, 100000) i;
	CREATE INDEX idle_k ON idle USING art (k, p);
	CREATE TABLE busy (k bigint, $pad);
	CREATE INDEX busy_k ON busy USING art (k, p);
	CREATE TABLE shut (k bigint, $pad);
	INSERT INTO shut SELECT hashint8extended(i, 5) FROM generate_series(1, 50000) i;
	CREATE UNIQUE INDEX shut_k ON shut USING art (k, p);
	VACUUM ANALYZE;
});
my $idle_since = time;

# ---- one index fills the area

my $node = art_node('full', 'artidx.memory' => "'24MB'");
$node->safe_psql('postgres', qq{
	CREATE TABLE t (k bigint, n int DEFAULT 0, $pad) WITH (fillfactor = 80);
	CREATE INDEX t_k ON t USING art (k, p);
	CREATE TABLE s (k int, u int);
	CREATE INDEX s_k ON s USING art (k);
	CREATE UNIQUE INDEX s_u ON s USING art (u);
	INSERT INTO s SELECT i % 100, i FROM generate_series(1, 5000) i;
	INSERT INTO t SELECT hashint8extended(i, 1) FROM generate_series(1, 30000) i;
	VACUUM ANALYZE;
});
my $off = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; ';
my $plan = $node->background_psql('postgres');
$plan->query_safe("$off SET plan_cache_mode = force_generic_plan; "
	  . 'PREPARE q(bigint) AS SELECT count(*) FROM t WHERE k = $1');
my $key = $node->safe_psql('postgres', 'SELECT hashint8extended(77, 1)');
is($plan->query_safe("EXECUTE q($key)"), '1', 'a prepared statement uses it');
my $cursor = $node->background_psql('postgres');
$cursor->query_safe("$off BEGIN; DECLARE c SCROLL CURSOR FOR SELECT k FROM t ORDER BY k");
my @fetched = split /\n/, $cursor->query_safe('FETCH 1000 FROM c');

my $n = 30000;
my $said = '';
for my $i (1 .. 30)
{
	my ($from, $to) = ($n + 1, $n + 30000);
	my ($rc, $out, $err) = run_sql($node,
		"INSERT INTO t SELECT hashint8extended(i, 1) FROM generate_series($from, $to) i");

	is($rc, 0, "insert number $i") or diag($err);
	$n = $to;
	$said .= $err;
	last if index_state($node, 't_k') ne 'ready';
}
like($said, $sealed, 'an insert seals its index, with a WARNING');
like($said, $setting, 'which names the setting');
is(index_state($node, 't_k'), 'sealed', 'artidx_indexes says so');
is( $node->safe_psql('postgres',
		q{SELECT reason, seals, entries, bytes FROM artidx_indexes WHERE indexrelname = 't_k'}),
	'memory full|1|0|0', 'and why');
is($node->safe_psql('postgres', 'SELECT sealed FROM artidx_memory'),
	'1', 'artidx_memory counts it');
works($node,
	'INSERT INTO t SELECT hashint8extended(i, 2) FROM generate_series(1, 1000) i',
	undef, 'inserts go on');
$n += 1000;
is(warnings_of($node, 'sealed'), 1, 'there was one WARNING');
is(rows($node, 't'), $n, 'every row is there');
is($plan->query_safe("EXECUTE q($key)"), '1', 'the prepared statement goes on');
is(plan_uses($node, 't_k', "SELECT * FROM t WHERE k = $key"), 0,
	'plans do without the index');
same_answer($node, "SELECT count(*) FROM t WHERE k < $key", 'queries');
push @fetched, split /\n/, $cursor->query_safe('FETCH ALL FROM c');
is(scalar(@fetched), 30000, 'the cursor that was open goes on: every row of its snapshot');
is( join(',', @fetched),
	join(',', sort { $a <=> $b } @fetched),
	'in order');
is($cursor->query_safe('FETCH BACKWARD 2 FROM c'),
	"$fetched[29999]\n$fetched[29998]", 'and backward');
$cursor->query_safe('COMMIT');
$cursor->quit;
$plan->quit;
works($node, 'UPDATE t SET n = 1 WHERE k % 7 = 0', undef, 'updates');
works($node, 'UPDATE t SET k = k + 1 WHERE k % 1000 = 0', undef, 'of the key, too');
works($node, 'DELETE FROM t WHERE k % 11 = 0', undef, 'deletes');
works($node, 'VACUUM t', undef, 'VACUUM');
works($node, q{
	INSERT INTO s SELECT i % 100, i FROM generate_series(5001, 8000) i;
	UPDATE s SET k = k + 1, u = u + 100000 WHERE u % 3 = 0;
	DELETE FROM s WHERE u % 5 = 0;
	VACUUM s;}, undef, 'other tables');
check_exact($node, 's', 's_k');
check_exact($node, 's', 's_u');
fails_with($node, 'INSERT INTO s VALUES (1, 1)', '23505', qr/s_u/,
	'their unique index');

# by hand: no room, then there is
$node->safe_psql('postgres',
	'INSERT INTO t SELECT hashint8extended(i, 9) FROM generate_series(1, 250000) i');
fails_with($node, q{SELECT artidx_build('t_k')}, '53200', $setting,
	'artidx_build without room');
is(index_state($node, 't_k'), 'sealed', 'which leaves it sealed');
$node->safe_psql('postgres', 'DELETE FROM t WHERE k > 0 OR k % 4 = 0; VACUUM t');
works($node, q{SELECT artidx_build('t_k')}, undef, 'artidx_build with room');
is(index_state($node, 't_k'), 'ready', 'it is back');
check_exact($node, 't', 't_k');
is(plan_uses($node, 't_k', "SELECT * FROM t WHERE k = $key"), 1, 'in plans, too');

# unloading
works($node, q{SELECT artidx_unload('t_k')}, undef, 'artidx_unload');
is( $node->safe_psql('postgres',
		q{SELECT state, reason, bytes FROM artidx_indexes WHERE indexrelname = 't_k'}),
	'absent|unloaded|0', 'it is out');
$node->safe_psql('postgres', "EXPLAIN SELECT * FROM t WHERE k = $key");
works($node, 'INSERT INTO t VALUES (1), (2)', undef, 'inserts do without it');
same_answer($node, 'SELECT count(*) FROM t WHERE k = 1', 'queries, too');
sleep 1.5;
is(index_state($node, 't_k'), 'absent', 'and it stays out');
works($node, q{SELECT artidx_build('t_k')}, undef, 'until artidx_build');
check_exact($node, 't', 't_k');
works($node, q{SELECT artidx_unload('s_u')}, undef, 'a unique one');
fails_with($node, 'INSERT INTO s VALUES (1, 1)', '23505', qr/s_u/,
	'comes back with the first insert, which finds the duplicate');
is(index_state($node, 's_u'), 'ready', 'so it does');
for my $f ('artidx_build', 'artidx_unload')
{
	fails_with($node,
		"CREATE ROLE someone_$f; SET ROLE someone_$f; SELECT $f('s_u')",
		'42501', qr/permission denied/, "$f is not for everybody");
}
$node->safe_psql('postgres', 'DROP TABLE t');

# ---- a unique index fills the area

$node->safe_psql('postgres', qq{
	CREATE TABLE u (k bigint, n int DEFAULT 0, $pad) WITH (fillfactor = 70);
	CREATE UNIQUE INDEX u_k ON u USING art (k, p);
});
my ($nu, $err) = (0, '');
for my $i (1 .. 100)
{
	my ($from, $to) = ($nu + 1, $nu + 20000);
	my ($rc, $out);

	($rc, $out, $err) = run_sql($node,
		"INSERT INTO u (k) SELECT hashint8extended(i, 3) FROM generate_series($from, $to) i");
	last if $rc != 0;
	$nu = $to;
}
like($err, qr/ERROR:\s+53200: .*"u_k"/, 'a unique index refuses the row');
like($err, $setting, 'and names the setting');
is(index_state($node, 'u_k'), 'ready', 'it stays');
is(rows($node, 'u'), $nu, 'nothing lost, nothing half done');
is(index_state($node, 's_k'), 'sealed', 'a smaller index gave way before');
works($node, 'INSERT INTO s SELECT 1, 200000', undef, 'whose table goes on');
$key = $node->safe_psql('postgres', 'SELECT hashint8extended(77, 3)');
fails_with($node, "INSERT INTO u VALUES ($key)", '23505', qr/u_k/,
	'it still finds a duplicate');
works($node, "UPDATE u SET n = n + 1 WHERE k = $key", undef, 'HOT updates work');
works($node, "DELETE FROM u WHERE k % 100 = 0 AND k <> $key", undef, 'deletes');
works($node, 'BEGIN; DELETE FROM u WHERE k % 50 = 1; ROLLBACK', undef, 'rollback');
is(index_state($node, 's_u'), 'ready', 'another unique index is left alone');

# ---- DDL without memory never fails for it

my $full = $node->safe_psql('postgres', 'SELECT free_bytes < 2000000 FROM artidx_memory');
is($full, 't', 'the area is full');
$node->safe_psql('postgres', q{
	CREATE TABLE big (k bigint, j int, t text COLLATE "C");
	INSERT INTO big SELECT i, i % 1000, 'x' || i FROM generate_series(1, 150000) i;
	CREATE TABLE nulls (k int, j int);
	INSERT INTO nulls SELECT nullif(i, 7), i % 2 FROM generate_series(1, 100) i;
	INSERT INTO nulls VALUES (NULL, 1), (NULL, 1);
});
works($node, 'CREATE INDEX big_jt ON big USING art (j, t)', $unbuilt, 'CREATE INDEX');
works($node, 'CREATE UNIQUE INDEX big_t ON big USING art (t)', $unbuilt, 'CREATE UNIQUE INDEX');
is( $node->safe_psql('postgres',
		q{SELECT string_agg(indexrelname || ' ' || state || ' ' || indisvalid, ', ' ORDER BY indexrelname)
		FROM artidx_indexes JOIN pg_index USING (indexrelid) WHERE relname = 'big'}),
	'big_jt sealed true, big_t sealed true', 'valid, and sealed');
same_answer($node, "SELECT count(*) FROM big WHERE t = 'x77'", 'queries do without');
fails_with($node, "INSERT INTO big VALUES (1, 1, 'x77')", '53200', $setting,
	'an insert into the unique one');
works($node, 'DELETE FROM big WHERE k = 4', undef, 'deletes');
works($node, 'REINDEX INDEX big_t', $unbuilt, 'REINDEX');
works($node, 'VACUUM FULL big', $unbuilt, 'VACUUM FULL');
works($node, 'ALTER TABLE big ALTER k TYPE numeric', $unbuilt, 'ALTER TABLE of another column');
works($node, q{ALTER TABLE big ALTER t TYPE text COLLATE "C" USING t || 'y'},
	$unbuilt, 'ALTER TABLE of the key');
fails_with($node, q{ALTER TABLE big ALTER t TYPE text COLLATE "C" USING left(t, 3)},
	'23505', qr/could not create unique index "big_t".*Key \(t\)=\(x\d+\) is duplicated/s,
	'one that makes duplicates');
is(rows($node, "big WHERE t = 'x77y'"), 1, 'which leaves the table as it was');
fails_with($node, 'CREATE UNIQUE INDEX big_j ON big USING art (j)', '23505',
	qr/Key \(j\)=\(\d+\) is duplicated/, 'CREATE UNIQUE INDEX of duplicates');
$node->safe_psql('postgres', q{UPDATE nulls SET j = 3 WHERE k IS NULL});
fails_with($node, 'CREATE INDEX big_e ON big USING art ((1000 / (j - 7)))', '22012',
	qr/division by zero/, 'an expression that errs');

# a table of one index that the area has no page for
$node->safe_psql('postgres', q{
	CREATE TABLE few (k int);
	INSERT INTO few VALUES (1), (2), (NULL), (NULL);
});
{
	# take the last pages
	$node->safe_psql('postgres', q{
		DO $$ BEGIN
			FOR i IN 1 .. 5000 LOOP
				BEGIN
					INSERT INTO u (k) VALUES (hashint8extended(i, 4));
				EXCEPTION WHEN out_of_memory THEN
					EXIT WHEN i % 10 = 0;
				END;
			END LOOP;
		END $$});
	works($node, 'CREATE UNIQUE INDEX few_k ON few USING art (k)',
		qr/^$|sealed/, 'CREATE UNIQUE INDEX of a small table');
	fails_with($node, 'INSERT INTO few VALUES (1)', '(23505|53200)', qr/few_k/,
		'never lets a duplicate in');
}

# dead rows are not compared
my $old = $node->background_psql('postgres');
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$node->safe_psql('postgres', q{DELETE FROM big WHERE k > 1000 OR k = 0});
works($node, 'CREATE UNIQUE INDEX big_j ON big USING art (j)',
	qr/^$|sealed/, 'rows that are dead but seen by others are no duplicates');
$old->query_safe('COMMIT');
$old->quit;
$node->safe_psql('postgres', 'DROP TABLE big');

# nor NULLs, unless they are to be
works($node, 'CREATE UNIQUE INDEX nulls_k ON nulls USING art (k)', qr/^$|sealed/,
	'NULLs are distinct');
fails_with($node,
	'CREATE UNIQUE INDEX nulls_kn ON nulls USING art (k) NULLS NOT DISTINCT',
	'23505', qr/Key \(k\)=\(null\) is duplicated/, 'or not, as it is said');
$node->safe_psql('postgres', 'DROP TABLE nulls, few');

# CONCURRENTLY, and an exclusion constraint: its check goes to the table
works($node, q{
	CREATE TABLE x (k int, EXCLUDE USING art (k WITH =));
	INSERT INTO x SELECT generate_series(1, 300);
	SELECT artidx_unload('x_k_excl')}, qr/^$|sealed/, 'an exclusion constraint');
works($node, 'CREATE TABLE cc (k bigint, p text COLLATE "C"); '
	  . q{INSERT INTO cc SELECT i, md5(i::text) || md5('x' || i) FROM generate_series(1, 40000) i},
	undef, 'a table');
works($node, 'CREATE INDEX CONCURRENTLY cc_p ON cc USING art (p)', qr/sealed/,
	'CREATE INDEX CONCURRENTLY');
works($node, 'REINDEX INDEX CONCURRENTLY cc_p', qr/sealed/, 'REINDEX CONCURRENTLY');
same_answer($node, q{SELECT count(*) FROM cc WHERE p > 'f'}, 'both valid, both right');
fails_with($node, 'CREATE UNIQUE INDEX CONCURRENTLY cc_u ON cc USING art (p, k)',
	'53200', qr/cc_u.*DROP INDEX/s,
	'CREATE UNIQUE INDEX CONCURRENTLY, whose second phase needs the index');
$node->safe_psql('postgres', 'DROP TABLE cc');
works($node, 'INSERT INTO x VALUES (1000)', qr/^$|sealed/,
	'an exclusion constraint that is not in memory lets rows in');
fails_with($node, 'INSERT INTO x VALUES (1000)', '23P01', qr/x_k_excl/, 'but no other');
fails_with($node, 'UPDATE x SET k = 5 WHERE k = 6', '23P01', qr/x_k_excl/, 'nor by UPDATE');
works($node, 'REINDEX TABLE x', qr/^$|sealed/, 'and can be made anew');
$node->safe_psql('postgres', 'DROP TABLE x');

# the index that fills the area, made anew: the old one goes first
works($node, 'REINDEX INDEX u_k', undef, 'REINDEX of the one that fills the area');
$node->safe_psql('postgres', "DELETE FROM u WHERE k % 3 = 0 AND k <> $key; VACUUM u");
is(index_state($node, 'u_k'), 'ready', 'needs no second area');
check_exact($node, 'u', 'u_k');
works($node, 'BEGIN; REINDEX INDEX u_k; ROLLBACK', undef, 'and rolled back');
fails_with($node, "INSERT INTO u VALUES ($key)", '23505', qr/u_k/,
	'the next insert has the old one again');
check_exact($node, 'u', 'u_k');
works($node, 'BEGIN; TRUNCATE u; INSERT INTO u VALUES (1); ROLLBACK', undef,
	'TRUNCATE rolled back');
fails_with($node, "INSERT INTO u VALUES ($key)", '23505', qr/u_k/, 'as well');
check_exact($node, 'u', 'u_k');

# ---- a restart with less memory

$node->append_conf('postgresql.conf', "artidx.memory = '16MB'\n");
$node->restart;
same_answer($node, 'SELECT count(*), sum(k::numeric) FROM u WHERE k > 0',
	'less memory after a restart: queries');
fails_with($node, "INSERT INTO u VALUES ($key)", '(53200|23505)', qr/u_k/,
	'a unique insert');
works($node, "UPDATE u SET n = n + 1 WHERE k = $key", undef, 'a HOT update');
works($node, 'DELETE FROM u WHERE k % 2 = 0', undef, 'deletes');
works($node, 'VACUUM u', undef, 'VACUUM');
works($node, 'INSERT INTO s VALUES (1, 300000)', undef, 'other tables');
is(server_crashes($node) + 0, 0, 'the server never stumbled');
works($node, 'TRUNCATE u', undef, 'TRUNCATE makes room');
works($node, 'INSERT INTO u VALUES (1)', undef, 'for rows again');
$node->safe_psql('postgres', 'DROP TABLE u');

# ---- a cap

$node->safe_psql('postgres', q{
	CREATE TABLE c (k bigint, u bigint);
	CREATE INDEX c_k ON c USING art (k) WITH (max_memory = '1MB');
	CREATE TABLE d (k bigint, u bigint);
	CREATE UNIQUE INDEX d_u ON d USING art (u) WITH (max_memory = '1MB');
	CREATE TABLE e (k bigint);
	INSERT INTO e SELECT hashint8extended(i, 6) FROM generate_series(1, 100000) i;
});
works($node, 'INSERT INTO c SELECT hashint8extended(i, 1), i FROM generate_series(1, 100000) i',
	$sealed, 'an index at its cap is sealed');
like(slurp_file($node->logfile), qr/Increase the storage parameter "max_memory" of the index/,
	'and the hint names the cap');
is(rows($node, 'c'), 100000, 'no row is lost');
sleep 2.5;
is(index_state($node, 'c_k'), 'sealed', 'it is not tried again and again');
works($node, q{ALTER INDEX c_k SET (max_memory = '8MB')}, undef, 'ALTER INDEX');
ok( $node->poll_query_until('postgres',
		q{SELECT state = 'ready' FROM artidx_indexes WHERE indexrelname = 'c_k'}),
	'has it built again, by itself');
check_exact($node, 'c', 'c_k');
is( $node->safe_psql('postgres',
		q{SELECT seals, max_memory FROM artidx_indexes WHERE indexrelname = 'c_k'}),
	'1|8388608', 'its history is kept');

$err = '';
my $nd = 0;
for my $i (1 .. 40)
{
	my ($rc, $out);

	($rc, $out, $err) = run_sql($node,
		"INSERT INTO d SELECT i, hashint8extended(i, 1) FROM generate_series($nd + 1, $nd + 5000) i");
	last if $rc != 0;
	$nd += 5000;
}
like($err, qr/ERROR:\s+53200: .*"d_u"/, 'a unique index at its cap refuses the row');
like($err, qr/max_memory/, 'and names the cap');
is(rows($node, 'd'), $nd, 'nothing lost');
$node->safe_psql('postgres', q{BEGIN; ALTER INDEX d_u SET (max_memory = '8MB'); ROLLBACK});
fails_with($node,
	'INSERT INTO d SELECT i, hashint8extended(i, 2) FROM generate_series(1, 50000) i',
	'53200', qr/max_memory/, 'a cap raised and rolled back');
$node->safe_psql('postgres', q{
	BEGIN; ALTER INDEX d_u SET (max_memory = '8MB');
	INSERT INTO d SELECT i, hashint8extended(i, 7) FROM generate_series(1, 10) i;
	ROLLBACK});
fails_with($node,
	'INSERT INTO d SELECT i, hashint8extended(i, 2) FROM generate_series(1, 50000) i',
	'53200', qr/max_memory/, 'also when it was made use of');
works($node, q{ALTER INDEX d_u SET (max_memory = '4MB')}, undef, 'a cap that is raised');
works($node, 'INSERT INTO d SELECT i, hashint8extended(i, 2) FROM generate_series(1, 5000) i',
	undef, 'lets inserts go on');
is( $node->safe_psql('postgres',
		q{SELECT state, builds FROM artidx_indexes WHERE indexrelname = 'd_u'}),
	'ready|1', 'in the same structure');
check_exact($node, 'd', 'd_u');
# a cap that somebody else lowered, met and rolled back
my $other = $node->background_psql('postgres');
$other->query_safe('INSERT INTO d VALUES (1, -1)');
fails_with($node, q{BEGIN; ALTER INDEX d_u SET (max_memory = '512kB'); INSERT INTO d VALUES (2, -2)},
	'53200', qr/max_memory/, 'a lower cap in its own transaction');
$other->query_safe('INSERT INTO d VALUES (3, -3)');
pass('is nothing to others after its rollback');
$other->quit;
works($node, q{CREATE INDEX e_cap ON e USING art (k) WITH (max_memory = '1MB')},
	$unbuilt, 'CREATE INDEX beyond its cap');
fails_with($node, 'INSERT INTO e SELECT k FROM e LIMIT 1; '
	  . q{CREATE UNIQUE INDEX e_ucap ON e USING art (k) WITH (max_memory = '1MB')},
	'23505', qr/is duplicated/, 'a unique one that has a duplicate');
$node->safe_psql('postgres', 'DROP TABLE c, d, e');

# ---- CREATE UNIQUE INDEX CONCURRENTLY, its structure gone between its phases

for my $between ('nothing', 'unload', 'unload and build')
{
	$node->safe_psql('postgres', q{
		DROP TABLE IF EXISTS ci;
		CREATE TABLE ci (k int);
		CREATE OR REPLACE FUNCTION ci_wait(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
		$$ BEGIN
			IF k = 13 THEN
				PERFORM pg_advisory_lock(4711);
				PERFORM pg_advisory_unlock(4711);
			END IF;
			RETURN k;
		END $$;
		INSERT INTO ci SELECT generate_series(1, 1000);
	});
	my $gate = $node->background_psql('postgres');
	my $other = $node->background_psql('postgres');
	$gate->query_safe('SELECT pg_advisory_lock(4711)');

	my ($out, $cerr) = ('', '');
	my $h = IPC::Run::start(
		[
			'psql', '-XAtq', '-v', 'VERBOSITY=verbose', '-d',
			$node->connstr('postgres'), '-c',
			'CREATE UNIQUE INDEX CONCURRENTLY ci_k ON ci USING art (ci_wait(k))'
		],
		'<', \undef, '>', \$out, '2>', \$cerr);
	$node->poll_query_until('postgres',
		q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'
		AND query LIKE 'CREATE UNIQUE INDEX CONCURRENTLY%'});

	# a duplicate that the first phase does not see, and the second waits for
	$other->query_safe('BEGIN; INSERT INTO ci VALUES (500)');
	$gate->query_safe('SELECT pg_advisory_unlock(4711)');
	$node->poll_query_until('postgres',
		q{SELECT indisready FROM pg_index WHERE indexrelid = 'ci_k'::regclass});
	if ($between ne 'nothing')
	{
		works($node, q{SELECT artidx_unload('ci_k')}, undef, "CONCURRENTLY: $between");
		works($node, q{SELECT artidx_build('ci_k')}, undef, 'CONCURRENTLY: built again')
		  if $between =~ /build/;
	}
	$other->query_safe('COMMIT');
	$h->finish;
	like($cerr, qr/ERROR:\s+23505: .*"ci_k"/,
		"CREATE UNIQUE INDEX CONCURRENTLY finds the duplicate ($between)");
	is( $node->safe_psql('postgres',
			q{SELECT indisvalid FROM pg_index WHERE indexrelid = 'ci_k'::regclass}),
		'f', 'and the index is not valid');
	$gate->quit;
	$other->quit;
}
$node->safe_psql('postgres', 'DROP TABLE ci');

# ---- what an expression says of a row is for those who may read the rows

$node->safe_psql('postgres', q{
	CREATE TABLE secret (k text);
	CREATE FUNCTION tell(k text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
	$$ BEGIN
		IF current_setting('art.tell', true) = 'on' THEN RAISE EXCEPTION 'key is %', k; END IF;
		RETURN 1;
	END $$;
	INSERT INTO secret VALUES ('swordfish');
	CREATE INDEX secret_k ON secret USING art (tell(k));
	SELECT artidx_unload('secret_k');
	CREATE ROLE watcher; GRANT pg_monitor TO watcher;
});
fails_with($node, q{SET art.tell = on; SELECT artidx_build('secret_k')}, 'P0001',
	qr/swordfish/, 'an expression that errs when the index is built');
my $reason = q{SELECT reason FROM artidx_indexes WHERE indexrelname = 'secret_k'};
like($node->safe_psql('postgres', "SET ROLE watcher; $reason"), qr/^error: (?!.*swordfish)/,
	'a monitor sees that it failed, but not the key');
$node->safe_psql('postgres', 'DROP TABLE secret');

# ---- many clients in a full area

$node->safe_psql('postgres', q{
	CREATE TABLE hog (k bigint, p text COLLATE "C");
	INSERT INTO hog SELECT i, md5(i::text) || md5('x' || i) FROM generate_series(1, 140000) i;
	CREATE UNIQUE INDEX hog_k ON hog USING art (p);
	CREATE TABLE m1 (a bigint, b text COLLATE "C");
	CREATE TABLE m2 (a bigint, b text COLLATE "C");
	CREATE TABLE m3 (a bigint, b text COLLATE "C");
	CREATE INDEX m1_a ON m1 USING art (a);
	CREATE INDEX m1_b ON m1 USING art (b);
	CREATE INDEX m2_a ON m2 USING art (a);
	CREATE INDEX m2_b ON m2 USING art (b, a);
	CREATE UNIQUE INDEX m3_a ON m3 USING art (a);
	CREATE INDEX m3_b ON m3 USING art (b);
	CREATE SEQUENCE m_s;
	CREATE FUNCTION m3_ins(x bigint) RETURNS int LANGUAGE plpgsql AS
	$$ BEGIN
		INSERT INTO m3 SELECT hashint8extended(x, i), 'b' || x || i FROM generate_series(1, 50) i;
		RETURN 0;
	EXCEPTION WHEN out_of_memory THEN
		RETURN 1;
	END $$;
});
is(index_state($node, 'hog_k'), 'ready', 'most of the area is taken');
my $script = $node->basedir . '/full.sql';
append_to_file($script, q{\set r random(1, 1000000)
INSERT INTO m1 SELECT hashint8extended(:r, i), 'b' || :r || i FROM generate_series(1, 50) i;
INSERT INTO m2 SELECT hashint8extended(:r, i), 'b' || :r || i FROM generate_series(1, 50) i;
SELECT m3_ins(nextval('m_s'));
SELECT count(*) FROM m1 WHERE a = hashint8extended(:r, 7);
DELETE FROM m2 WHERE a = hashint8extended(:r, 9);
DELETE FROM m3 WHERE b = 'b' || :r::int || 9;
});
{
	local $ENV{PGOPTIONS} = '-c client_min_messages=error -c enable_seqscan=off -c statement_timeout=60s';
	my ($out, $perr) = ('', '');
	my $rc;

	# until the memory is full, however slow they are
	for (1 .. 20)
	{
		my $h = IPC::Run::start(
			[
				'pgbench', '-n', '-c', 8, '-j', 1, '-T', $ENV{STRESS_FULL} // 8,
				'-f', $script, '-h', $node->host, '-p', $node->port, 'postgres'
			],
			'<', \undef, '>', \$out, '2>', \$perr);
		$h->finish;
		$rc = $h->result(0);
		last if $rc != 0 || warnings_of($node, 'sealed.*m\d_[ab]') > 0;
	}
	is($rc, 0, 'eight clients insert for a while, and nothing fails')
	  or diag($perr);
	unlike($perr, qr/error|abort/i, 'no client is thrown out');
}
cmp_ok(warnings_of($node, 'sealed.*m\d_[ab]'), '>', 0, 'indexes were sealed meanwhile');
$node->safe_psql('postgres', 'DROP TABLE hog');
is(server_crashes($node) + 0, 0, 'the server never stumbled');
my @indexes = map { indexes_of($node, $_) } qw(m1 m2 m3);
is(scalar(@indexes), 6, 'six indexes to look at');
for my $i (@indexes)
{
	my ($table) = $i =~ /^(m\d)/;

	$node->safe_psql('postgres', "SELECT artidx_unload('$_')") for @indexes;
	works($node, "SELECT artidx_build('$i')", undef, "$i is built alone");
	check_exact($node, $table, $i);
}
is( $node->safe_psql('postgres',
		'SELECT count(*) FROM (SELECT a FROM m3 GROUP BY a HAVING count(*) > 1) d'),
	'0', 'no duplicate');
$node->stop;

# ---- the idle index and the busy one

my $wait = $idle_since + 61.5 - time;
sleep $wait if $wait > 0;
$key = $evict->safe_psql('postgres', 'SELECT hashint8extended(1, 2)');
$n = 0;
$said = '';
for my $i (1 .. 30)
{
	$evict->safe_psql('postgres',
		"SET enable_seqscan = off; SELECT count(*) FROM busy WHERE k = $key");
	my ($rc, $out, $e) = run_sql($evict,
		"INSERT INTO busy SELECT hashint8extended(i, 2) FROM generate_series($n + 1, $n + 20000) i");

	is($rc, 0, "evict: insert number $i") or diag($e);
	$n += 20000;
	$said .= $e;
	last if $said ne '';
}
like($said,
	qr/WARNING:\s+53200: art index "idle_k" was sealed to make room for index "busy_k"/,
	'an idle index gives way to a busy one');
is( $evict->safe_psql('postgres',
		q{SELECT string_agg(indexrelname || ' ' || state, ', ' ORDER BY indexrelname) FROM artidx_indexes}),
	'busy_k ready, idle_k sealed, shut_k ready',
	'and a unique one, though idle, does not');
check_exact($evict, 'busy', 'busy_k');
same_answer($evict, 'SELECT count(*) FROM idle WHERE k > 0', 'its table can be queried');

# room comes, and it comes back by itself
$evict->safe_psql('postgres', 'DROP TABLE busy');
ok( $evict->poll_query_until('postgres',
		q{SELECT state = 'ready' FROM artidx_indexes WHERE indexrelname = 'idle_k'}),
	'the sealed index comes back by itself when there is room');
check_exact($evict, 'idle', 'idle_k');

$evict->stop;
done_testing();
