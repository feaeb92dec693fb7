# Art indexes on a standby: the follower keeps them as replay goes on.  The same
# questions, through art and by reading the table, at the same position, after
# every kind of change; and what a scan does when the follower stands still.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use File::Copy qw(copy);
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $dir = build_modules('art_wildtest');
my $primary = PostgreSQL::Test::Cluster->new('primary');
# ICU wants an encoding that it knows
$primary->init(allows_streaming => 1, extra => [ '--no-locale', '--encoding=UTF8' ]);
# without hints in WAL the first record of a prune after a checkpoint has an image only
art_conf($primary, shared_preload_libraries => "'artidx, $dir/art_slowcmp'", wal_log_hints => 'off', max_standby_streaming_delay => -1,
	wal_receiver_status_interval => 1, max_prepared_transactions => 5, allow_in_place_tablespaces => 'on',
	autovacuum => 'off');
$primary->start;
$primary->safe_psql('postgres', "CREATE TABLESPACE other LOCATION ''");
$primary->safe_psql('postgres', q{
	CREATE EXTENSION artidx;
	CREATE TABLE t (id bigint, k int, t text COLLATE "C", v int DEFAULT 0)
		WITH (fillfactor = 70);
	CREATE UNIQUE INDEX t_id ON t USING art (id);
	CREATE INDEX t_k ON t USING art (k);
	CREATE INDEX t_t ON t USING art (t, id) WITH (structure = btree);
	-- compared by ICU, by the C library, by what may be somebody's code
	CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	CREATE COLLATION libc (provider = libc, locale = 'C.utf8');
	CREATE UNIQUE INDEX t_icu ON t USING art (t COLLATE "de-x-icu", id);
	CREATE INDEX t_libc ON t USING art (t COLLATE libc DESC) INCLUDE (k);
	CREATE INDEX t_case ON t USING art (t COLLATE nocase, k);
	-- evaluated
	CREATE FUNCTION shout(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		RETURN (SELECT upper(t) || '!');
	END $$;
	CREATE INDEX t_shout ON t USING art (shout(t) COLLATE "C");
	CREATE INDEX t_seven ON t USING art (id) WHERE k % 1000 = 7;
	CREATE INDEX t_part ON t USING art ((id / 10), k) WHERE shout(t) COLLATE "C" < 'ROW 5';
	INSERT INTO t SELECT i, i % 50, 'row ' || i FROM generate_series(1, 5000) i;
	CREATE UNLOGGED TABLE u (id int);
	CREATE UNIQUE INDEX u_id ON u USING art (id);
	INSERT INTO u SELECT generate_series(1, 100);
	ANALYZE t;
});
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->start;

my @kept = qw(t_id t_k t_t t_icu t_libc t_case t_shout t_seven t_part);
my $n = @kept;
my $names = join(', ', map { "'$_'" } @kept);
my $on = 'SET enable_seqscan = off;';
my $off = 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;';

# The query says true some time.  It never will when the follower has long gone on taking records,
# one look at the catalog after the other, and builds nothing.
sub becomes
{
	my ($query, $name) = @_;
	my $begin = time();
	my $idle = 0;
	my $out = '';

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	while ($idle < 15 && time() < $begin + $PostgreSQL::Test::Utils::timeout_default)
	{
		$standby->psql('postgres', $query, stdout => \$out);
		last if $out eq 't';
		sleep 0.1;
		next if time() < $begin + 3;
		my $lsn = $primary->safe_psql('postgres', q{SELECT pg_logical_emit_message(true, '', 'now')});
		$standby->poll_query_until('postgres',
			"SELECT coalesce(min(follower_lsn) >= '$lsn', true) FROM artidx_standby WHERE database = 'postgres'");
		$idle = $standby->safe_psql('postgres',
			q{SELECT count(*) FROM artidx_indexes WHERE state = 'building'}) eq '0' ? $idle + 1 : 0;
		sleep 0.7;
	}
	return ok($out eq 't', $name) ||
	  diag($standby->safe_psql('postgres', 'SELECT indexrelname, state, reason FROM artidx_indexes'));
}

sub ready
{
	my ($name, $n) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return becomes("SELECT count(*) = $n FROM artidx_indexes WHERE state = 'ready'", $name);
}

# every index, in order, and look-ups; through art and through the table
my @questions = (
	'SELECT count(*), sum(id), sum(k) FROM (SELECT id, k FROM t WHERE id > 0 ORDER BY id) s',
	'SELECT count(*), sum(id) FROM t WHERE k BETWEEN 0 AND 100000',
	'SELECT count(*), sum(v) FROM t WHERE t > \'\'',
	'SELECT count(*), sum(id), min(t), max(t) FROM t WHERE k = 7',
	'SELECT k, t FROM t WHERE id = 4001',
	'SELECT md5(string_agg(t, \',\')) FROM (SELECT t FROM t WHERE t > \'row 2\' ORDER BY t LIMIT 1000) s',
	'SELECT md5(string_agg(t || id, \',\')) FROM (SELECT t, id FROM t ORDER BY t COLLATE "de-x-icu", id) s',
	'SELECT count(*), sum(id) FROM t WHERE t COLLATE "de-x-icu" BETWEEN \'n\' AND \'Row 3\'',
	'SELECT md5(string_agg(t, \',\')) FROM (SELECT t FROM t ORDER BY t COLLATE libc DESC) s',
	'SELECT count(*), sum(k) FROM t WHERE t COLLATE libc < \'row 3\'',
	'SELECT count(*), sum(id) FROM t WHERE t COLLATE nocase IN (\'NEW 30007\', \'ROW 71\', \'Gone\', \'CUT 50009\')',
	'SELECT count(*), sum(id), max(shout(t)) FROM t WHERE shout(t) COLLATE "C" >= \'ROW 3\'',
	'SELECT count(*), sum(id), sum(k) FROM t WHERE id > 0 AND k % 1000 = 7',
	'SELECT count(*), sum(id), sum(v) FROM t WHERE id / 10 > 20 AND shout(t) COLLATE "C" < \'ROW 5\'');

sub agree
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	all_replayed($primary, $standby);
	both_ways($name);
	return check_followed($standby, $name, @kept);
}

sub both_ways
{
	my ($name) = @_;
	my $ask = join('; ', @questions);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($standby->safe_psql('postgres', "$on $ask"),
		$standby->safe_psql('postgres', "$off $ask"), "$name: through art as through the table");
}

# Plans do without the index while the follower is behind, which it may be for a moment.
sub plans_use
{
	my ($index, $query, $name) = @_;
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	until (plan_uses($standby, $index, $query))
	{
		return ok(0, $name) if time() > $end;
		sleep 0.1;
	}
	return ok(1, $name);
}

# A session whose plan of "EXECUTE p (id)" goes through art.
sub prepared
{
	my $s = $standby->background_psql('postgres');
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$s->query_safe("$on PREPARE p (bigint) AS SELECT count(*), min(t) FROM t WHERE id = \$1");
	$s->query_safe('SET plan_cache_mode = force_generic_plan');
	until ($s->query_safe('EXPLAIN (COSTS OFF) EXECUTE p (1)') =~ /t_id/)
	{
		die 'no plan through art' if time() > $end;
		$s->query_safe('DISCARD PLANS');
		sleep 0.1;
	}
	return $s;
}

# Stop the follower; its pid.  It must hold nothing then that others wait for.
sub stop_follower
{
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;

	while (time() < $end)
	{
		my $pid = $standby->safe_psql('postgres', q{
			SELECT pid FROM artidx_standby JOIN pg_stat_activity ON pid = follower_pid
			WHERE database = 'postgres' AND lag_bytes = 0 AND wait_event_type = 'Extension'});

		if ($pid ne '')
		{
			kill 'STOP', $pid;
			return $pid
			  if $standby->safe_psql('postgres',
				"SELECT count(*) FROM pg_locks WHERE pid = $pid AND locktype = 'relation'") eq '0';
			kill 'CONT', $pid;
		}
		sleep 0.1;
	}
	die 'the follower is never idle';
}

is($standby->safe_psql('postgres', q{SELECT artidx_wait('60 s')}), 't',
	'artidx_wait waits for the follower to begin, and not for an unlogged table');
ready('the follower builds them beside replay', $n);
plans_use('t_id', 'SELECT k FROM t WHERE id = 4000', 'plans use them');
plans_use('t_k', 'SELECT count(*) FROM t WHERE k = 7', 'by bitmap, too');
unlike($standby->safe_psql('postgres', "$on SET enable_indexscan = off; SET enable_bitmapscan = off; EXPLAIN (COSTS OFF) SELECT id FROM t WHERE id = 4000"),
	qr/Index Only/, 'but not index-only');
unlike($standby->safe_psql('postgres', 'EXPLAIN (COSTS OFF) SELECT count(*) FROM t'),
	qr/Index Only/, 'nor to count the rows');
my $gen = $standby->safe_psql('postgres',
	"SELECT string_agg(builds || ' ' || last_build, ',' ORDER BY indexrelname) FROM artidx_indexes");
agree('built');

for my $c (
	[ 'INSERT', q{INSERT INTO t SELECT i, i % 50, 'row ' || i FROM generate_series(5001, 7000) i} ],
	[ 'COPY', q{COPY t FROM PROGRAM 'seq 20001 20500 | sed "s/.*/&	3	copied &	1/"'} ],
	[ 'HOT updates', 'UPDATE t SET v = v + 1 WHERE id % 3 = 0' ],
	[ 'cold updates', 'UPDATE t SET k = k + 1000 WHERE id % 5 = 0' ],
	[ 'DELETE', 'DELETE FROM t WHERE id % 4 = 0' ],
	[ 'ROLLBACK', q{BEGIN; INSERT INTO t SELECT i, 7, 'gone' FROM generate_series(90001, 90500) i; ROLLBACK} ],
	[ 'VACUUM', 'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) t' ],
	[ 'rows in recycled places', q{INSERT INTO t SELECT i, 7, 'new ' || i FROM generate_series(30001, 33000) i} ],
	[ 'a savepoint', q{BEGIN; SAVEPOINT s; INSERT INTO t VALUES (91000, 7, 'x'); ROLLBACK TO s; INSERT INTO t VALUES (91001, 7, 'y'); COMMIT} ],
	[ 'a checkpoint, then updates, DELETE and VACUUM', 'CHECKPOINT; UPDATE t SET k = 8 WHERE id % 7 = 1; DELETE FROM t WHERE id % 7 = 2; VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) t' ],
	[ 'after a checkpoint, recycled again', q{CHECKPOINT; INSERT INTO t SELECT i, 9, 'again ' || i FROM generate_series(40001, 42000) i} ],
	[ 'VACUUM whose records have images of the pages only', 'DELETE FROM t WHERE id % 9 = 1; CHECKPOINT; VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) t' ],
	[ 'recycled after that', q{INSERT INTO t SELECT i, 10, 'image ' || i FROM generate_series(43001, 45000) i} ],
	[ 'VACUUM that truncates', q{DELETE FROM t WHERE ctid > (SELECT format('(%s,1)', pg_relation_size('t') / 8192 / 2)::tid); VACUUM (INDEX_CLEANUP ON, TRUNCATE ON) t} ],
	[ 'rows behind the cut', q{INSERT INTO t SELECT i, i % 50, 'cut ' || i FROM generate_series(50001, 54000) i} ],
	[ 'FREEZE', 'VACUUM (FREEZE, INDEX_CLEANUP ON) t' ])
{
	# each statement by itself: VACUUM runs in no block
	$primary->safe_psql('postgres', $_) foreach ($c->[1] =~ /^BEGIN/ ? $c->[1] : split(/; /, $c->[1]));
	agree($c->[0]);
}
is( $standby->safe_psql('postgres',
		"SELECT string_agg(builds || ' ' || last_build, ',' ORDER BY indexrelname) FROM artidx_indexes"),
	$gen, 'and no index was built again for it');

# ---- the table's lock is not to be had ----
# Replay waits for the lock, so the follower does not get it.  It passes records whose rows it
# has not put in.  A session that has the table locked must not miss them.
my $s = prepared();
$s->query_safe('BEGIN');
is($s->query_safe('EXECUTE p (1)'), $primary->safe_psql('postgres', 'SELECT count(*), min(t) FROM t WHERE id = 1'),
	'a session has the table locked');
my $pid = stop_follower();
$primary->safe_psql('postgres', q{INSERT INTO t VALUES (71001, 7, 'behind')});
all_replayed($primary, $standby);
my $locker = $primary->background_psql('postgres');
$locker->query_safe('BEGIN; LOCK TABLE t');
$primary->safe_psql('postgres', q{SELECT pg_logical_emit_message(true, '', 'flush')});
ok( $standby->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks
		WHERE relation = 't'::regclass AND mode = 'AccessExclusiveLock' AND NOT granted}),
	'replay waits');
kill 'CONT', $pid;
ok( $standby->poll_query_until('postgres',
		q{SELECT lag_bytes = 0 FROM artidx_standby WHERE database = 'postgres'}),
	'the follower goes on');
is($s->query_safe('EXECUTE p (71001)'), '1|behind', 'what it has passed and not put in is not missed');
$s->query_safe('COMMIT');
$s->quit;
$locker->query_safe('COMMIT');
$locker->quit;
agree('behind');

# ---- prepared transactions ----
$primary->safe_psql('postgres', q{
	BEGIN;
	INSERT INTO t VALUES (92001, 7, 'prepared');
	UPDATE t SET k = 7 WHERE id = 30001;
	DELETE FROM t WHERE id = 30002;
	PREPARE TRANSACTION 'rows';});
agree('prepared');
is($standby->safe_psql('postgres', "$on SELECT count(*) FROM t WHERE id = 92001"), '0', 'not seen');
$primary->safe_psql('postgres', "COMMIT PREPARED 'rows'");
agree('committed');
is($standby->safe_psql('postgres', "$on SELECT count(*) FROM t WHERE id = 92001"), '1', 'seen');

# ---- DDL ----
$primary->safe_psql('postgres', q{
	BEGIN;
	CREATE INDEX t_kid ON t USING art (k, id);
	PREPARE TRANSACTION 'index';});
$primary->safe_psql('postgres', q{INSERT INTO u VALUES (1) ON CONFLICT DO NOTHING});
all_replayed($primary, $standby);
$primary->safe_psql('postgres', "COMMIT PREPARED 'index'");
ready('a new index comes, from a prepared transaction', $n + 1);
agree('a new index');
$primary->safe_psql('postgres', 'REINDEX INDEX t_k; DROP INDEX t_kid');
$primary->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY t_t');
all_replayed($primary, $standby);
ready('REINDEX, also concurrently, and DROP', $n);
agree('REINDEX');
$primary->safe_psql('postgres', 'TRUNCATE t');
$primary->safe_psql('postgres', q{INSERT INTO t SELECT i, i % 50, 'row ' || i FROM generate_series(1, 3000) i});
all_replayed($primary, $standby);
ready('TRUNCATE', $n);
agree('TRUNCATE');
$primary->safe_psql('postgres', 'VACUUM FULL t');
all_replayed($primary, $standby);
ready('VACUUM FULL', $n);
agree('VACUUM FULL');
$primary->safe_psql('postgres', 'ALTER INDEX t_k SET (structure = btree)');
$primary->safe_psql('postgres', q{INSERT INTO t VALUES (60000, 7, 'after ALTER')});
all_replayed($primary, $standby);
becomes("SELECT state = 'ready' AND structure = 'btree' FROM artidx_indexes WHERE indexrelname = 't_k'",
	'ALTER INDEX makes it another structure');
agree('ALTER INDEX');

$primary->safe_psql('postgres', 'ALTER TABLE t SET TABLESPACE other');
$primary->safe_psql('postgres', q{INSERT INTO t SELECT i, 7, 'moved ' || i FROM generate_series(61001, 61100) i});
all_replayed($primary, $standby);
is($standby->safe_psql('postgres', "$on SELECT count(*) FROM t WHERE id = 61077"), '1', 'a table that has moved');
$primary->safe_psql('postgres', 'VACUUM t');
becomes(q{SELECT count(*) = 1 FROM artidx_check('t_id', true)},
	'ALTER TABLE ... SET TABLESPACE');
ready('moved', $n);
agree('moved');

# The same just after the follower has looked at the catalog, which it does not do again for a
# while: it passes the row, of a file that it does not know.
$s = prepared();
my $mover = $primary->background_psql('postgres');
foreach my $m (1 .. 3)
{
	my $where = $m % 2 ? 'pg_default' : 'other';

	$mover->query_safe('CREATE TABLE looked (i int); DROP TABLE looked');
	sleep 0.1;
	my $lsn = $mover->query_safe("ALTER TABLE t SET TABLESPACE $where; INSERT INTO t VALUES (61200 + $m, 7, 'at once');
		SELECT pg_current_wal_insert_lsn()");
	sleep 0.01 until $s->query_safe("SELECT pg_last_wal_replay_lsn() >= '$lsn'") eq 't';
	is($s->query_safe("EXECUTE p (6120$m)"), '1|at once', "the row that came to $where is not missed");
	ready("moved to $where", $n);
}
$_->quit foreach $s, $mover;
agree('moved again');

# ---- an order that is another one there ----
# as of a collation whose library has another version: btree's pages have the primary's order
$primary->safe_psql('postgres', q{
	CREATE FUNCTION turn_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
	BEGIN
		PERFORM count(*) FROM pg_class WHERE oid = a;
		RETURN CASE WHEN pg_is_in_recovery() THEN btint4cmp(b, a) ELSE btint4cmp(a, b) END;
	END $$;
	CREATE FUNCTION turn_less(a int, b int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT turn_cmp(a, b) < 0';
	CREATE FUNCTION turn_more(a int, b int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT turn_cmp(a, b) > 0';
	CREATE OPERATOR <@ (LEFTARG = int, RIGHTARG = int, FUNCTION = turn_less);
	CREATE OPERATOR @> (LEFTARG = int, RIGHTARG = int, FUNCTION = turn_more);
	CREATE OPERATOR CLASS turn_ops FOR TYPE int USING btree AS
		OPERATOR 1 <@, OPERATOR 3 =, OPERATOR 5 @>, FUNCTION 1 turn_cmp(int, int);
	CREATE OPERATOR CLASS turn_ops FOR TYPE int USING art AS
		OPERATOR 1 <@, OPERATOR 3 =, OPERATOR 5 @>, FUNCTION 1 turn_cmp(int, int);
	CREATE TABLE w_art (a int, b int);
	CREATE INDEX w_a ON w_art USING art (a turn_ops);
	INSERT INTO w_art SELECT i, i FROM generate_series(1, 2000) i;
	CREATE TABLE w_bt AS SELECT * FROM w_art;
	CREATE INDEX w_b ON w_bt USING btree (a turn_ops);});
all_replayed($primary, $standby);
ready('compared by a function, whose order is another one on the standby', $n + 1);
$primary->safe_psql('postgres', $_)
  foreach 'INSERT INTO w_art SELECT i, i FROM generate_series(2001, 2500) i',
  'UPDATE w_art SET a = a + 5000 WHERE a % 10 = 3', 'DELETE FROM w_art WHERE a % 10 = 4',
  'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) w_art',
  'INSERT INTO w_art SELECT i, i FROM generate_series(8001, 8300) i';
all_replayed($primary, $standby);
plans_use('w_a', 'SELECT b FROM w_art WHERE a = 1771', 'plans use it');
my $found = 'SELECT count(*) FROM generate_series(1, 9000, 7) i, LATERAL (SELECT 1 FROM %s WHERE a = i OFFSET 0) s';
is($standby->safe_psql('postgres', "$on SET enable_hashjoin = off; SET enable_mergejoin = off; " . sprintf($found, 'w_art')),
	$primary->safe_psql('postgres', sprintf($found, 'w_art')), 'art finds every key');
isnt($standby->safe_psql('postgres', "$on SET enable_hashjoin = off; SET enable_mergejoin = off; " . sprintf($found, 'w_bt')),
	$primary->safe_psql('postgres', sprintf($found, 'w_bt')), 'btree, whose pages came from the primary, does not');
check_followed($standby, 'another order', 'w_a');
$primary->safe_psql('postgres', 'DROP TABLE w_art, w_bt');

# ---- keys that are evaluated, as the table's owner ----
$primary->safe_psql('postgres', q{
	CREATE ROLE owner;
	GRANT ALL ON SCHEMA public TO owner;
	SET ROLE owner;
	CREATE FUNCTION owners_one() RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		IF current_user <> 'owner' THEN
			RAISE EXCEPTION 'run as %', current_user;
		END IF;
		RETURN 1;
	END $$;
	CREATE FUNCTION owners(id bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		RETURN CASE WHEN current_user = 'owner' THEN id ELSE id + 1000000 END;
	END $$;
	CREATE TABLE o (id bigint);
	CREATE INDEX o_one ON o USING art ((id + owners_one()));
	CREATE INDEX o_key ON o USING art (owners(id));
	CREATE INDEX o_few ON o USING art (id) WHERE owners(id) < 100;
	INSERT INTO o SELECT generate_series(1, 500);});
all_replayed($primary, $standby);
ready('expressions and a predicate with functions', $n + 3);
$primary->safe_psql('postgres', 'SET ROLE owner; INSERT INTO o SELECT i % 200 FROM generate_series(501, 900) i; UPDATE o SET id = id + 50 WHERE id > 300');
all_replayed($primary, $standby);
check_followed($standby, 'as the owner', qw(o_one o_key o_few));
is($standby->safe_psql('postgres', "SET ROLE owner; $on SELECT count(*) FROM o WHERE id + owners_one() = 8; SELECT count(*) FROM o WHERE owners(id) = 77; SELECT count(*) FROM o WHERE id > 0 AND owners(id) < 100"),
	"3\n3\n297", 'he finds his rows by them');
$primary->safe_psql('postgres', 'DROP TABLE o');

# one whose function writes is not to be had there, and says why
$primary->safe_psql('postgres', q{
	CREATE TABLE written (id int);
	CREATE FUNCTION writes(id int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.written VALUES (id); END $$;
	CREATE FUNCTION hides(id int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.writes(id); RETURN id; END $$;
	CREATE TABLE wr (id int);
	INSERT INTO wr SELECT generate_series(1, 10);
	CREATE INDEX wr_id ON wr USING art (hides(id));});
all_replayed($primary, $standby);
becomes(q{SELECT state = 'absent' AND reason LIKE '%writes, SQLSTATE 25006' FROM artidx_indexes WHERE indexrelname = 'wr_id'},
	'a function that writes: absent, and the view says why');
is($standby->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM wr WHERE id = 7'), '1', 'its table is read');
$primary->safe_psql('postgres', 'DROP TABLE wr');

# ---- a comparison whose library is not there ----
$primary->append_conf('postgresql.conf', "dynamic_library_path = '" . $primary->basedir . ":\$libdir'");
$primary->reload;
copy($primary->safe_psql('postgres', q{SELECT setting || '/citext.so' FROM pg_config WHERE name = 'PKGLIBDIR'}),
	$primary->basedir . '/primarys_citext.so') or die $!;
$primary->poll_query_until('postgres', q{SELECT current_setting('dynamic_library_path') <> '$libdir'});
$pid = $standby->safe_psql('postgres', q{SELECT follower_pid FROM artidx_standby WHERE database = 'postgres'});
$primary->safe_psql('postgres', q{
	CREATE EXTENSION citext;
	CREATE OR REPLACE FUNCTION citext_cmp(citext, citext) RETURNS int AS 'primarys_citext'
		LANGUAGE c STRICT IMMUTABLE PARALLEL SAFE;
	SELECT artidx_mirror_opclass('citext_ops');
	CREATE TABLE c (id int, n citext);
	INSERT INTO c SELECT i, 'Name ' || i FROM generate_series(1, 100) i;
	CREATE INDEX c_n ON c USING art (n);
	CREATE INDEX c_id ON c USING art (id);});
all_replayed($primary, $standby);
becomes(q{SELECT state = 'absent' AND reason LIKE 'recovery: SQLSTATE 58P01%' FROM artidx_indexes WHERE indexrelname = 'c_n'},
	'a comparison whose library is not there: absent, and the view says why');
ready('the others are there', $n + 1);
is($standby->safe_psql('postgres', q{SELECT follower_pid FROM artidx_standby WHERE database = 'postgres'}), $pid,
	'by the same follower');
is($standby->safe_psql('postgres', "$on SELECT id FROM c WHERE id = 77"), '77', 'a query of another column wants no such library');
$standby->append_conf('postgresql.conf', "dynamic_library_path = '" . $primary->basedir . ":\$libdir'");
$standby->reload;
ready('with the library, and a reload, it comes', $n + 2);
check_followed($standby, 'compared by that library', qw(c_n c_id));
is($standby->safe_psql('postgres', "$on SELECT id FROM c WHERE n = 'NAME 77'"), '77', 'and finds its rows');
$primary->safe_psql('postgres', 'DROP TABLE c; DROP EXTENSION citext CASCADE');

# ---- rows whose key errs there ----
# on the standby, and while somebody has the lock
$primary->safe_psql('postgres', q{
	CREATE FUNCTION touchy(d int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		IF d = 0 AND pg_is_in_recovery() AND NOT pg_try_advisory_xact_lock_shared(43) THEN
			RAISE division_by_zero;
		END IF;
		RETURN d;
	END $$;
	-- some pages, which one step of a build reads
	CREATE TABLE e (id int, d int) WITH (fillfactor = 10);
	CREATE INDEX e_d ON e USING art (touchy(d), id);
	INSERT INTO e SELECT i, 1 FROM generate_series(1, 100) i;});
all_replayed($primary, $standby);
ready('a touchy index', $n + 1);
my $touchy = q{SELECT state || ' ' || builds FROM artidx_indexes WHERE indexrelname = 'e_d'};
my $zeros = "$on SELECT string_agg(id::text, ',' ORDER BY id) FROM e WHERE touchy(d) = 0";

# A row in progress, whose key errs; the primary's session, and the one that makes it err.
sub doubtful_row
{
	my ($id) = @_;
	my $lock = $standby->background_psql('postgres');
	my $row = $primary->background_psql('postgres');

	$lock->query_safe('SELECT pg_advisory_lock(43)');
	$row->query_safe("BEGIN; INSERT INTO e VALUES ($id, 0)");
	$primary->safe_psql('postgres', q{INSERT INTO e SELECT 0, 2});
	all_replayed($primary, $standby);
	becomes(q{SELECT lag_bytes = 0 FROM artidx_standby WHERE database = 'postgres'}, "row $id: the follower gets by");
	return ($lock, $row);
}

sub unlock
{
	my ($session, $lock) = @_;

	$session->query_safe("SELECT pg_advisory_unlock($lock)");
	$session->quit;
	return;
}

sub ends
{
	my ($session, $statement) = @_;

	$session->query_safe($statement);
	$session->quit;
	all_replayed($primary, $standby);
	return;
}

my ($lock, $row) = doubtful_row(101);
is($standby->safe_psql('postgres', $touchy), 'ready 1', 'a row in progress whose key errs does no harm');
# its commit is seen before it is replayed
unlike($standby->safe_psql('postgres', "$on EXPLAIN SELECT count(*) FROM e WHERE touchy(d) = 2"), qr/e_d/, 'but no plan has the index');
is($standby->safe_psql('postgres', "$on SELECT count(*) FROM e WHERE touchy(d) = 2"), '1', 'nor hides another');
ends($row, 'ROLLBACK');
check_followed($standby, 'it was rolled back', 'e_d');
unlock($lock, 43);
($lock, $row) = doubtful_row(102);
unlock($lock, 43);
ends($row, 'COMMIT');
is($standby->safe_psql('postgres', $zeros), '102', 'one that errs no longer is there once it is committed');
check_followed($standby, 'committed', 'e_d');
is($standby->safe_psql('postgres', $touchy), 'ready 1', 'all that in one structure');
$pid = $standby->safe_psql('postgres', q{SELECT follower_pid FROM artidx_standby WHERE database = 'postgres'});
# dead to all: a build must not err on it
$primary->safe_psql('postgres', 'DELETE FROM e WHERE id = 102');
($lock, $row) = doubtful_row(103);
$standby->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
ready('built beside such a row', $n + 1);
unlock($lock, 43);
ends($row, 'COMMIT');
is($standby->safe_psql('postgres', $zeros), '103', 'which is there once it is committed');
check_followed($standby, 'after the build', 'e_d');
($lock, $row) = doubtful_row(104);
ends($row, 'COMMIT');
becomes(q{SELECT state = 'absent' AND reason LIKE '%SQLSTATE 22012%' FROM artidx_indexes WHERE indexrelname = 'e_d'},
	'one that still errs then: absent, and the view says why');
is($standby->safe_psql('postgres', "$on SELECT count(*) FROM e WHERE id = 104"), '1', 'and the row is found');
unlock($lock, 43);
$primary->safe_psql('postgres', 'DROP TABLE e');

# ---- the table is cut off, and grows again, before a build comes there ----
$lock = $standby->background_psql('postgres');
$lock->query_safe('SELECT pg_advisory_lock(46)');
$primary->safe_psql('postgres', q{
	CREATE FUNCTION halts(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		IF i = 300 AND pg_is_in_recovery() THEN
			PERFORM pg_advisory_xact_lock_shared(46);
		ELSIF i BETWEEN 301 AND 330 AND pg_is_in_recovery() THEN
			-- steps of a row each, between which the lock is replayed
			PERFORM pg_sleep(0.02);
		END IF;
		RETURN i;
	END $$;
	CREATE TABLE g (id int, pad text) WITH (autovacuum_enabled = off);
	ALTER TABLE g ALTER pad SET STORAGE PLAIN;
	INSERT INTO g SELECT i, repeat('x', 2400) FROM generate_series(1, 900) i;
	CREATE UNIQUE INDEX g_i ON g USING art (halts(id));});
all_replayed($primary, $standby);
ok($standby->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 46 AND NOT granted}),
	'a build is in the middle');
$primary->safe_psql('postgres', $_)
  foreach 'DELETE FROM g WHERE id > 450', 'VACUUM (INDEX_CLEANUP ON, TRUNCATE ON) g',
  q{INSERT INTO g SELECT i, repeat('y', 2400) FROM generate_series(10001, 10400) i};
is($primary->safe_psql('postgres', q{SELECT pg_relation_size('g') / 8192 > 280}), 't', 'the table is cut off, and grows again');
unlock($lock, 46);
all_replayed($primary, $standby);
ready('the build ends', $n + 1);
is($standby->safe_psql('postgres', "$on SELECT count(*), sum(id) FROM g WHERE halts(id) > 0"),
	$primary->safe_psql('postgres', 'SELECT count(*), sum(id) FROM g'), 'and has the rows that came then');
check_followed($standby, 'after that build', 'g_i');
$primary->safe_psql('postgres', 'DROP TABLE g');

# ---- TOASTed keys ----
$primary->safe_psql('postgres', q{
	CREATE TABLE x (id int, t text COLLATE "C", w text COLLATE "de-x-icu", v int DEFAULT 0) WITH (fillfactor = 50);
	ALTER TABLE x ALTER t SET STORAGE EXTERNAL, ALTER w SET STORAGE EXTERNAL;
	CREATE INDEX x_t ON x USING art (t);
	CREATE INDEX x_w ON x USING art (w, id);
	CREATE INDEX x_id ON x USING art (id) INCLUDE (t);
	INSERT INTO x SELECT i, repeat(md5(i::text), 100), repeat(md5(i::text), 90) FROM generate_series(1, 60) i;});
all_replayed($primary, $standby);
ready('TOASTed keys', $n + 3);
check_followed($standby, 'built of TOASTed keys', qw(x_t x_w x_id));
$primary->safe_psql('postgres', $_)
  foreach q{INSERT INTO x SELECT i, CASE i % 2 WHEN 0 THEN repeat(md5(i::text), 100) ELSE 'short ' || i END, repeat(md5(i::text), 90) FROM generate_series(61, 120) i},
  'UPDATE x SET v = 1 WHERE id % 3 = 0', q{UPDATE x SET t = t || 'more' WHERE id % 5 = 0},
  'DELETE FROM x WHERE id % 7 = 0', 'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) x',
  q{BEGIN; INSERT INTO x SELECT i, repeat(md5(i::text), 100), 'gone' FROM generate_series(200, 220) i; ROLLBACK},
  q{INSERT INTO x SELECT i, repeat(md5(i::text), 100), repeat(md5(i::text), 90) FROM generate_series(121, 150) i};
all_replayed($primary, $standby);
check_followed($standby, 'TOASTed keys that came and went', qw(x_t x_w x_id));
my $toasted = q{SELECT count(*), sum(id) FROM x WHERE t = repeat(md5('142'), 100); SELECT count(*), sum(id) FROM x WHERE w = repeat(md5('82'), 90);
	SELECT md5(string_agg(t, ',' ORDER BY id)) FROM x WHERE id > 0};
is($standby->safe_psql('postgres', "$on $toasted"), $primary->safe_psql('postgres', "$off $toasted"), 'are found');
is($standby->safe_psql('postgres', q{SELECT string_agg(builds::text, ' ') FROM artidx_indexes WHERE indexrelname ~ '^x_'}),
	'1 1 1', 'in the structures that were built first');
$primary->safe_psql('postgres', 'DROP TABLE x');

# The value is gone between the two looks: at the row, and at that.  The first row's inserter is in progress
# at the first look, and aborts.  The second row is seen by an old snapshot, which ends.
$primary->safe_psql('postgres', q{
	CREATE FUNCTION long(t text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		IF pg_is_in_recovery() THEN
			PERFORM pg_advisory_xact_lock_shared(44);
		END IF;
		RETURN length(t);
	END $$;
	CREATE TABLE y (id int, t text);
	ALTER TABLE y ALTER t SET STORAGE EXTERNAL;
	CREATE INDEX y_long ON y USING art (long(t));
	INSERT INTO y VALUES (1, repeat(md5('1'), 200));});
all_replayed($primary, $standby);
ready('what reads TOASTed values', $n + 1);
my $at_row = q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 44 AND NOT granted};
my $vacuum = 'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) y';
$lock = $standby->background_psql('postgres');
$lock->query_safe('SELECT pg_advisory_lock(44)');
$row = $primary->background_psql('postgres');
$row->query_safe(q{BEGIN; INSERT INTO y VALUES (2, repeat(md5('2'), 200))});
$primary->safe_psql('postgres', q{SELECT pg_logical_emit_message(true, '', 'flush')});
$standby->poll_query_until('postgres', $at_row) or die 'the follower does not come to the row';
ends($row, 'ROLLBACK');
$primary->safe_psql('postgres', $vacuum);
all_replayed($primary, $standby);
my $log = -s $standby->logfile;
$lock->query_safe('SELECT pg_advisory_unlock(44)');
check_followed($standby, 'the value of an aborted row was gone', 'y_long');
is($standby->safe_psql('postgres', q{SELECT state || ' ' || builds FROM artidx_indexes WHERE indexrelname = 'y_long'}),
	'ready 1', 'which is nothing');
# replay wants what the step's snapshot sees: the step gives way, and is no error, however often
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = '200ms'");
$standby->reload;
$lock->query_safe('SELECT pg_advisory_lock(44)');
$primary->safe_psql('postgres', q{INSERT INTO y SELECT i, 'short' FROM generate_series(3, 5) i});
foreach my $id (4, 5)
{
	$standby->poll_query_until('postgres', $at_row) or die 'the follower does not come to the row';
	$primary->safe_psql('postgres', $_) foreach "DELETE FROM y WHERE id = $id", $vacuum;
	all_replayed($primary, $standby);
}
is($standby->safe_psql('postgres', "$on SELECT count(*) FROM y WHERE id = 3"), '1', 'replay goes on');
$lock->query_safe('SELECT pg_advisory_unlock(44)');
check_followed($standby, 'after steps that gave way', 'y_long');
is($standby->safe_psql('postgres', q{SELECT state || ' ' || builds FROM artidx_indexes WHERE indexrelname = 'y_long'}),
	'ready 1', 'in the same structure');
ok($standby->poll_query_until('postgres', q{SELECT confl_snapshot >= 2 FROM pg_stat_database_conflicts WHERE datname = 'postgres'}),
	'that was so');
$standby->append_conf('postgresql.conf', 'max_standby_streaming_delay = -1');
$standby->reload;
$s = $standby->background_psql('postgres');
$s->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_am');
$primary->safe_psql('postgres', 'DELETE FROM y WHERE id = 1');
all_replayed($primary, $standby);
becomes(q{SELECT lag_bytes = 0 FROM artidx_standby WHERE database = 'postgres'}, 'the follower has come there');
$lock->query_safe('SELECT pg_advisory_lock(44)');
$standby->safe_psql('postgres', q{SELECT pg_terminate_backend(follower_pid) FROM artidx_standby WHERE database = 'postgres'});
$standby->poll_query_until('postgres', $at_row) or die 'the follower does not come to the row';
$s->quit;
$primary->safe_psql('postgres', $vacuum);
all_replayed($primary, $standby);
unlock($lock, 44);
ready('the value of a row that has died meanwhile was gone', $n + 1);
unlike(slurp_file($standby->logfile, $log), qr/missing chunk|SQLSTATE/, 'nor is that an error');
# one that is slow holds all up, until somebody takes it out
$lock = $standby->background_psql('postgres');
$lock->query_safe('SELECT pg_advisory_lock(44)');
$primary->safe_psql('postgres', q{INSERT INTO y VALUES (6, 'slow'); INSERT INTO t VALUES (72001, 7, 'held up')});
$standby->poll_query_until('postgres', $at_row) or die 'the follower does not come to the row';
all_replayed($primary, $standby);
is($standby->safe_psql('postgres', "$on SELECT t FROM t WHERE id = 72001"), 'held up', 'a slow expression: the tables are read');
$standby->safe_psql('postgres', q{SELECT artidx_unload('y_long')});
$standby->safe_psql('postgres', q{SELECT pg_cancel_backend(follower_pid) FROM artidx_standby WHERE database = 'postgres'});
becomes(q{SELECT lag_bytes = 0 FROM artidx_standby WHERE database = 'postgres'}, 'without it the follower gets on');
is($standby->safe_psql('postgres', q{SELECT state || ' ' || reason FROM artidx_indexes WHERE indexrelname = 'y_long'}), 'absent unloaded', 'which is out');
unlock($lock, 44);
$primary->safe_psql('postgres', 'DROP TABLE y');

# The horizon of a standby counts the transactions of all databases, and VACUUM those of its own.  So the values
# of a row are gone that is not dead to the follower yet.
$primary->safe_psql('postgres', q{
	CREATE FUNCTION corrupt(doc jsonb) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		IF pg_is_in_recovery() THEN
			RAISE data_corrupted;
		END IF;
		RETURN 1;
	END $$;
	CREATE TABLE d (id int, doc jsonb);
	ALTER TABLE d ALTER doc SET STORAGE EXTERNAL;
	INSERT INTO d SELECT i, jsonb_build_object('id', i, 'x', repeat(md5(i::text), 200)) FROM generate_series(1, 100) i;
	CREATE INDEX d_doc ON d USING art ((doc->>'id'));
	CREATE INDEX d_bad ON d USING art (corrupt(doc));});
all_replayed($primary, $standby);
ready('an index whose input is TOASTed', $n + 1);
my $corrupted = q{SELECT state = 'absent' AND reason LIKE '%SQLSTATE XX001%' FROM artidx_indexes WHERE indexrelname = 'd_bad'};
becomes($corrupted, 'a live row that is corrupted: absent, and the view says so');
$row = $primary->background_psql('template1');
$row->query_safe(q{BEGIN; SELECT pg_logical_emit_message(true, '', 'open')});
my $toast = $primary->safe_psql('postgres', q{SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 'd'::regclass});
my $size = $primary->safe_psql('postgres', "SELECT pg_relation_size('$toast')");
$primary->safe_psql('postgres', $_) foreach 'DELETE FROM d WHERE id > 50', "VACUUM $toast";
cmp_ok($primary->safe_psql('postgres', "SELECT pg_relation_size('$toast')"), '<', $size, 'values are gone');
all_replayed($primary, $standby);
$log = -s $standby->logfile;
$standby->safe_psql('postgres', q{SELECT pg_terminate_backend(follower_pid) FROM artidx_standby WHERE database = 'postgres'});
becomes($corrupted, 'built anew: it is said again');
ready('and rows whose values are gone are left out', $n + 1);
check_followed($standby, 'without them', 'd_doc');
is($standby->safe_psql('postgres', "$on SELECT id FROM d WHERE doc->>'id' IN ('7', '77')"), '7', 'the others are found');
# the same in a page that is read again
my $of_d = $standby->safe_psql('postgres', q{SELECT builds FROM artidx_indexes WHERE indexrelname = 'd_doc'});
$pid = stop_follower();
$primary->safe_psql('postgres', $_)
  foreach q{INSERT INTO d SELECT i, jsonb_build_object('id', i, 'x', repeat(md5(i::text), 200)) FROM generate_series(101, 130) i},
  'DELETE FROM d WHERE id BETWEEN 111 AND 130', "VACUUM $toast";
all_replayed($primary, $standby);
kill 'CONT', $pid;
check_followed($standby, 'rows that came and went', 'd_doc');
is($standby->safe_psql('postgres', "$on SELECT id FROM d WHERE doc->>'id' IN ('105', '115')"), '105', 'which are left out, too');
is($standby->safe_psql('postgres', q{SELECT state || ' ' || builds FROM artidx_indexes WHERE indexrelname = 'd_doc'}),
	"ready $of_d", 'in the same structure');
unlike(slurp_file($standby->logfile, $log), qr/missing chunk/, 'and nothing is said of them');
ends($row, 'COMMIT');
$primary->safe_psql('postgres', 'DROP TABLE d');

is($standby->safe_psql('postgres',
		q{SELECT count(*) FROM artidx_indexes WHERE indexrelname = 'u_id' AND state <> 'absent'}),
	'0', 'an unlogged table has no rows there, and its index no structure');
fails_with($standby, 'SELECT * FROM u WHERE id = 1', '0A000', qr/unlogged relations/, 'it cannot be read, as without artidx');

# With it the primary prunes nothing that a snapshot of the standby sees, and replay does not
# wait for that.
sub feedback
{
	my ($value) = @_;

	$standby->append_conf('postgresql.conf', "hot_standby_feedback = $value");
	$standby->reload;
	return $primary->poll_query_until('postgres',
		'SELECT backend_xmin IS NOT NULL FROM pg_stat_replication', $value eq 'on' ? 't' : 'f')
	  || die 'no feedback';
}

# ---- a snapshot that is older than the index ----
# a HOT chain that is older than the index: CONCURRENTLY waits for the primary's snapshots only
feedback('on');
$primary->safe_psql('postgres', 'CREATE TABLE h (id int, v int); INSERT INTO h VALUES (1, 1)');
all_replayed($primary, $standby);
$s = $standby->background_psql('postgres');
$s->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
is($s->query_safe('SELECT v FROM h'), '1', 'an old snapshot');
$primary->safe_psql('postgres', $_)
  foreach 'UPDATE h SET v = 2', 'CREATE INDEX CONCURRENTLY h_v ON h USING art (v)';
all_replayed($primary, $standby);
ready('CREATE INDEX CONCURRENTLY', $n + 1);
plans_use('h_v', 'SELECT id FROM h WHERE v = 2', 'new plans use it');
$s->query_safe($on);
is($s->query_safe('SELECT count(*) FROM h WHERE v = 1'), '1', 'the old snapshot has its row');
is($s->query_safe('SELECT count(*) FROM h WHERE v = 2'), '0', 'and no other');
$s->quit;
feedback('off');
$primary->safe_psql('postgres', 'DROP TABLE h');

# ---- the follower stands still ----
like($standby->safe_psql('postgres', q{SELECT follower_pid FROM artidx_standby WHERE database = 'postgres'}),
	qr/^\d+$/, 'one follower');
$s = prepared();
$pid = stop_follower();
$primary->safe_psql('postgres', q{INSERT INTO t VALUES (70001, 7, 'while it stands')});
all_replayed($primary, $standby);
is($s->query_safe('EXECUTE p (70001)'), '1|while it stands',
	'a scan does not take what the follower has not read for what there is');
$primary->safe_psql('postgres', 'DELETE FROM t WHERE id BETWEEN 1 AND 500');
$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) t');
$primary->safe_psql('postgres', q{INSERT INTO t SELECT i, 7, 'recycled' FROM generate_series(80001, 80500) i});
all_replayed($primary, $standby);
is($s->query_safe('EXECUTE p (77)'), '0|', 'nor a recycled place for the row that was there');
# one wait in vain is enough, while it does not move
my $waits = q{SELECT waits FROM artidx_standby WHERE database = 'postgres'};
my $before = $standby->safe_psql('postgres', $waits);
$s->query_safe('EXECUTE p (70001)') foreach 1 .. 20;
is($standby->safe_psql('postgres', $waits), $before, 'nobody else waits for one that stands still');
kill 'CONT', $pid;
agree('it goes on');
is($s->query_safe('EXECUTE p (77)'), '0|', 'the old key leads nowhere');
is($s->query_safe('EXECUTE p (80077)'), '1|recycled', 'and the new one to its row');
cmp_ok($standby->safe_psql('postgres', q{SELECT given_up FROM artidx_standby WHERE database = 'postgres'}), '>=', 1,
	'the view counts the waits that were given up');
$s->quit;

# ---- replay goes first ----
# At once it cancels whoever has a snapshot, a pin or a lock in its way: also the follower, which
# tries again.
$standby->append_conf('postgresql.conf', 'max_standby_streaming_delay = 0');
$standby->reload;
my $built = 'SELECT string_agg(concat(indexrelname, builds), chr(32) ORDER BY 1) FROM artidx_indexes';
$before = $standby->safe_psql('postgres', $built);
$primary->safe_psql('postgres', join("\n", map {
	"UPDATE t SET k = k + 1 WHERE id % 20 = $_ % 20; DELETE FROM t WHERE id = 80100 + $_; VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) t;" } 1 .. 100));
all_replayed($primary, $standby);
is($standby->safe_psql('postgres', $built), $before, 'no index is begun again because replay went first');
$standby->append_conf('postgresql.conf', 'max_standby_streaming_delay = -1');
$standby->reload;
agree('replay went first');

# ---- a sweep in slices ----
# The follower compares under a lock that somebody has (art_slowcmp).  So it stands in the midst of a slice, whose
# step ends with the lock, and the next slice's wants it again.
$primary->safe_psql('postgres', q{
	CREATE FUNCTION slow_cmp(int, int) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'btint4cmp';
	CREATE FUNCTION slow_less(a int, b int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT slow_cmp(a, b) < 0';
	CREATE FUNCTION slow_more(a int, b int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT slow_cmp(a, b) > 0';
	CREATE OPERATOR <<| (LEFTARG = int, RIGHTARG = int, FUNCTION = slow_less);
	CREATE OPERATOR |>> (LEFTARG = int, RIGHTARG = int, FUNCTION = slow_more);
	CREATE OPERATOR CLASS slow_ops FOR TYPE int USING art AS
		OPERATOR 1 <<|, OPERATOR 3 =, OPERATOR 5 |>>, FUNCTION 1 slow_cmp(int, int);
	CREATE TABLE z (a int, v int);
	CREATE INDEX z_v ON z USING art (v);
	CREATE INDEX z_a ON z USING art (a slow_ops);
	INSERT INTO z SELECT i, i FROM generate_series(1, 2000) i;});
all_replayed($primary, $standby);
ready('an index that is slow to sweep', $n + 2);
plans_use('z_v', 'SELECT a FROM z WHERE v = 78', 'and another of its table');
my $in_slice = q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 45 AND NOT granted};
my $sweep_all = 'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) z';
my $sweeper = $standby->background_psql('postgres');

# The follower stands in the second slice of a sweep of the first rows, and has not taken what freed the others.
# Their entries lie before the place where the sweep is.
sub half_swept
{
	my ($first, $second) = @_;

	$primary->safe_psql('postgres', $_) foreach "DELETE FROM z WHERE a BETWEEN 201 AND 2000 AND $first", $sweep_all, "DELETE FROM z WHERE a <= 200 AND $second";
	$standby->poll_query_until('postgres', $in_slice) or die 'no slice';
	all_replayed($primary, $standby);
	# replay may wait for the snapshot of this slice, but not for that of the next one
	$primary->safe_psql('postgres', $sweep_all);
	$sweeper->query_safe('SELECT pg_advisory_unlock(45), pg_advisory_lock(45)');
	$standby->poll_query_until('postgres', $in_slice) or die 'no second slice';
	all_replayed($primary, $standby);
	return;
}

# Its position is behind the records that freed the rows.  Look-ups go on; a check waits.
$pid = stop_follower();
$sweeper->query_safe('SELECT pg_advisory_lock(45)');
$primary->safe_psql('postgres', $_) foreach 'DELETE FROM z WHERE a > 200 AND a % 4 = 1', $sweep_all;
all_replayed($primary, $standby);
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
$standby->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused'});
kill 'CONT', $pid;
$standby->poll_query_until('postgres', $in_slice) or die 'no slice';
$before = $standby->safe_psql('postgres', "SELECT waits || ' ' || given_up FROM artidx_standby WHERE database = 'postgres'");
plans_use('z_v', 'SELECT a FROM z WHERE v = 78', 'plans use an index whose sweep goes on');
is($standby->safe_psql('postgres', "$on SELECT a FROM z WHERE v = 78; SELECT count(*) FROM z WHERE v = 301"),
	"78\n0", 'look-ups go on');
is($standby->safe_psql('postgres', "SELECT waits || ' ' || given_up FROM artidx_standby WHERE database = 'postgres'"),
	$before, 'and wait for nothing');
is($standby->safe_psql('postgres', q{SELECT dead_waiting >= 450 FROM artidx_standby WHERE database = 'postgres'}), 't', 'while its rows are dead');
fails_with($standby, q{SET statement_timeout = '0.3s'; SELECT * FROM artidx_check('z_v', true)}, '57014', qr/timeout/, 'a check waits for the sweep');
# a slice that is cancelled in its midst: the sweep begins anew
my $since = $standby->safe_psql('postgres', q{SELECT waitstart FROM pg_locks WHERE locktype = 'advisory' AND objid = 45 AND NOT granted});
$standby->safe_psql('postgres', q{SELECT pg_cancel_backend(follower_pid) FROM artidx_standby WHERE database = 'postgres'});
$standby->poll_query_until('postgres', "$in_slice AND waitstart > '$since'") or die 'no slice after that';
# rows come to such places, and must not be swept
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
$primary->safe_psql('postgres', 'INSERT INTO z SELECT i, i FROM generate_series(10001, 10300) i');
all_replayed($primary, $standby);
$sweeper->query_safe('SELECT pg_advisory_unlock(45)');
check_followed($standby, 'swept', qw(z_v z_a));
# what died meanwhile is swept after that
$sweeper->query_safe('SELECT pg_advisory_lock(45)');
half_swept('a % 4 = 2', 'a % 2 = 0');
$sweeper->query_safe('SELECT pg_advisory_unlock(45)');
all_replayed($primary, $standby);
check_followed($standby, 'swept again', qw(z_v z_a));
# rows come to the places of both sweeps
$sweeper->query_safe('SELECT pg_advisory_lock(45)');
half_swept('a % 4 = 3', 'a % 2 = 1');
$primary->safe_psql('postgres', q{INSERT INTO z SELECT i, i FROM generate_series(10301, 11500) i});
is($primary->safe_psql('postgres', q{SELECT pg_relation_size('z') / 8192}), '9', 'the places are used again');
all_replayed($primary, $standby);
$sweeper->query_safe('SELECT pg_advisory_unlock(45)');
check_followed($standby, 'after that', qw(z_v z_a));
is($standby->safe_psql('postgres', "$on SELECT count(*) FROM z WHERE v > 0"), '1950', 'all rows are found');
$sweeper->quit;
$primary->safe_psql('postgres', 'DROP TABLE z');

# ---- the setting ----
$standby->append_conf('postgresql.conf', 'artidx.build_workers = 0');
$standby->reload;
ready('artidx.build_workers = 0: none', 0);
both_ways('off');
$standby->append_conf('postgresql.conf', 'artidx.build_workers = 2');
$standby->reload;
ready('and on: all come back', $n);
agree('on again');

# ---- less memory than the primary ----
# the index that finds none is given up there, and no other
$primary->safe_psql('postgres', q{
	CREATE TABLE m (id int, t text COLLATE "C");
	CREATE INDEX m_t ON m USING art (t);
	INSERT INTO m SELECT i, repeat(md5(i::text), 8) FROM generate_series(1, 10000) i;});
$primary->backup('m');
my $small = PostgreSQL::Test::Cluster->new('small');
$small->init_from_backup($primary, 'm', has_streaming => 1);
$small->append_conf('postgresql.conf', "artidx.memory = '16MB'");
$small->start;
ok($small->poll_query_until('postgres', "SELECT count(*) = $n + 1 FROM artidx_indexes WHERE state = 'ready'"),
	'a standby with less memory has them all');
$primary->safe_psql('postgres', q{INSERT INTO m SELECT i, repeat(md5(i::text), 8) FROM generate_series(10001, 80000) i});
all_replayed($primary, $standby, $small);
is($small->safe_psql('postgres', q{SET enable_seqscan = off; SELECT min(id), count(*) FROM m WHERE t = repeat(md5('70001'), 8)}),
	'70001|1', 'until there is no more');
ok($small->poll_query_until('postgres', q{SELECT state = 'absent' AND reason LIKE '%memory%' FROM artidx_indexes WHERE indexrelname = 'm_t'}),
	'then it is absent, and the view says why')
  || diag($small->safe_psql('postgres', 'SELECT indexrelname, state, reason FROM artidx_indexes'));
is($small->safe_psql('postgres', q{SET enable_seqscan = off; SELECT min(id), count(*) FROM m WHERE t = repeat(md5('70001'), 8)}),
	'70001|1', 'and its table is read');
is($small->safe_psql('postgres', "$on " . join('; ', @questions)),
	$primary->safe_psql('postgres', "$off " . join('; ', @questions)), 'the others answer as before');
check_followed($small, 'of little memory', @kept);
is($primary->safe_psql('postgres', q{SELECT string_agg(state, ',') FROM artidx_indexes WHERE indexrelname = 'm_t'}),
	'ready', 'the primary knows nothing of it');
check_clean($primary, 'm_t');
check_followed($standby, 'of as much memory', 'm_t');
$primary->safe_psql('postgres', $_) foreach 'DELETE FROM m WHERE id > 10000', 'VACUUM (INDEX_CLEANUP ON) m';
all_replayed($primary, $standby, $small);
ok($small->poll_query_until('postgres', "SELECT count(*) = $n + 1 FROM artidx_indexes WHERE state = 'ready'"),
	'with fewer rows it is kept again');
$primary->safe_psql('postgres', q{
	DROP TABLE m;
	CREATE TABLE m (id int, t text COLLATE "C");
	CREATE INDEX m_t ON m USING art (t);
	INSERT INTO m VALUES (1, 'small');});
all_replayed($primary, $standby, $small);
ok($small->poll_query_until('postgres', "SELECT count(*) = $n + 1 FROM artidx_indexes WHERE state = 'ready'"),
	'a smaller one in its place is kept');
$small->stop;
$primary->safe_psql('postgres', 'DROP TABLE m');

# ---- promotion ----
$primary->safe_psql('postgres', q{
	CREATE TABLE q (k int);
	CREATE INDEX q_k ON q USING art (k);
	INSERT INTO q SELECT generate_series(1, 3000);
	CREATE TABLE dead (k int) WITH (autovacuum_enabled = off);
	CREATE INDEX dead_k ON dead USING art (k);
	INSERT INTO dead SELECT generate_series(1, 3000);
	CREATE TABLE moved (k int);
	CREATE INDEX moved_k ON moved USING art (k);
	INSERT INTO moved SELECT generate_series(1, 3000);
	CREATE TABLE held (t text);
	CREATE INDEX held_long ON held USING art (long(t));});
all_replayed($primary, $standby);
ready('four more', $n + 4);
# a file whose records the follower does not know of, and the new primary makes it the table's
$primary->safe_psql('postgres', q{BEGIN; ALTER TABLE moved SET TABLESPACE other;
	INSERT INTO moved VALUES (4000), (4001); PREPARE TRANSACTION 'moved'});
my $builds = $standby->safe_psql('postgres',
	"SELECT sum(builds) FROM artidx_indexes WHERE indexrelname IN ($names, 'q_k', 'dead_k')");
$s = prepared();
is($s->query_safe('EXECUTE p (80077)'), '1|recycled', 'before the promotion');
$primary->safe_psql('postgres', 'DELETE FROM t WHERE id BETWEEN 501 AND 900');
$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) t');
$primary->safe_psql('postgres', $_)
  foreach 'DELETE FROM dead WHERE k <= 2000', 'VACUUM (INDEX_CLEANUP OFF, TRUNCATE OFF) dead';
all_replayed($primary, $standby);
# The last records are left for after recovery, behind a row at which the follower waits.  It does not stop, since
# a promotion asks every process for an answer from 19 on.  Its snapshot sees what VACUUM will free: replay goes on.
$primary->safe_psql('postgres', 'DELETE FROM q WHERE k <= 2000');
all_replayed($primary, $standby);
$lock = $standby->background_psql('postgres');
$lock->query_safe('SELECT pg_advisory_lock(44)');
$primary->safe_psql('postgres', q{INSERT INTO held VALUES ('a row')});
$standby->poll_query_until('postgres', $at_row) or die 'the follower does not come to the row';
$primary->safe_psql('postgres', $_)
  foreach q{INSERT INTO t SELECT i, 7, 'last' FROM generate_series(95001, 95100) i},
  'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) q';
all_replayed($primary, $standby);
$standby->promote;
# rows in places whose old entries the follower has not swept: it would sweep theirs
my $writer = $standby->background_psql('postgres');
$writer->query_until(qr/begun/, "\\echo begun\nINSERT INTO q SELECT generate_series(5001, 7000);\n");
my $insert = q{FROM pg_stat_activity WHERE query LIKE 'INSERT INTO q %'};
$standby->poll_query_until('postgres',
	"SELECT count(*) = 1 $insert AND (state = 'idle' OR wait_event_type = 'Extension')");
is($standby->safe_psql('postgres', "SELECT state $insert"), 'active',
	'an insert waits for the follower to be done');
unlock($lock, 44);
is($s->query_safe('EXECUTE p (95050)'), '1|last', 'the last record is in the index that was handed over');
is($s->query_safe('EXECUTE p (80078)'), '1|recycled', 'right after it');
$writer->quit;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
fails_with($standby, q{INSERT INTO t VALUES (80077, 1, 'twice')}, '23505', qr/"t_id"/, 'unique from the first insert on');
$standby->safe_psql('postgres', q{INSERT INTO t SELECT i, 7, 'promoted' FROM generate_series(100001, 101000) i});
is( $standby->safe_psql('postgres',
		"SELECT sum(builds) FROM artidx_indexes WHERE indexrelname IN ($names, 'q_k', 'dead_k') AND state = 'ready'"),
	$builds, 'and not one was built for the promotion');
$standby->safe_psql('postgres', q{COMMIT PREPARED 'moved'});
$standby->safe_psql('postgres', 'INSERT INTO moved VALUES (4002)');
is($standby->safe_psql('postgres', "$on SELECT count(*) FROM moved WHERE k > 3000"), '3',
	'rows of a file that came with a prepared transaction are in the index');
$standby->safe_psql('postgres', 'INSERT INTO u SELECT generate_series(1, 50)');
fails_with($standby, 'INSERT INTO u VALUES (7)', '23505', qr/"u_id"/, 'the unlogged table is new');
# two of them are partial
check_exact($standby, 't', $_) foreach grep { !/^t_(seven|part)$/ } @kept;
check_clean($standby, $_) foreach qw(t_seven t_part);
check_exact($standby, 'q', 'q_k');
check_exact($standby, 'moved', 'moved_k');
check_exact($standby, 'held', 'held_long');
# line pointers that were dead and not freed are those of the new primary's VACUUM
my $entries = q{SELECT entries FROM artidx_indexes WHERE indexrelname = 'dead_k'};
is($standby->safe_psql('postgres', $entries), '3000', 'a promotion sweeps nothing that it need not');
check_clean($standby, 'dead_k');
is($standby->safe_psql('postgres', "$on SELECT count(*) FROM dead WHERE k > 0"), '1000', 'none of it is found');
$standby->safe_psql('postgres', $_)
  foreach 'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) dead', 'INSERT INTO dead SELECT generate_series(5001, 7000)';
check_exact($standby, 'dead', 'dead_k');
all_ready($standby, 'the others are built');
is($s->query_safe('EXECUTE p (100500)'), '1|promoted', 'the old session goes on');
$s->quit;

for my $node ($primary, $standby)
{
	unlike(slurp_file($node->logfile), qr/PANIC|TRAP:|terminated by signal/,
		'nothing bad in the log of the ' . $node->name);
}
$standby->stop;
$primary->stop;
done_testing();
