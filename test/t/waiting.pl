# Who waits for an index, what it is told, and for whom nobody should wait: time-outs
# and their context, errors about other people's rows, a damaged structure, an index
# that is invalid, no worker, another device, old_snapshot_threshold.
use strict;
use warnings;

use File::Temp;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('waiting',
	'artidx.build_workers' => 0,
	'artidx.save_at_shutdown' => 'on',
	deadlock_timeout => "'10s'",
	jit => 'off');

# A build that stops at key 3, in whatever process, until advisory lock 1 is free.
$node->safe_psql('postgres', q{
	CREATE FUNCTION slow(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		IF k = 3 THEN
			PERFORM pg_advisory_lock_shared(1);
			PERFORM pg_advisory_unlock_shared(1);
		END IF;
		RETURN k;
	END $$;
	CREATE TABLE w (k int);
	INSERT INTO w SELECT generate_series(1, 100);
	CREATE UNIQUE INDEX w_k ON w USING art (slow(k));
	CREATE ROLE bob LOGIN;
	GRANT ALL ON w TO bob;
});

# ---- time-outs ----
my $keeper = $node->background_psql('postgres');
my $builder = $node->background_psql('postgres');
$keeper->query_safe('SELECT pg_advisory_lock(1)');
$node->safe_psql('postgres', q{SELECT artidx_unload('w_k')});
$builder->query_until(qr/begun/, "\\echo begun\nSELECT artidx_build('w_k');\n");
$node->poll_query_until('postgres',
	"SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory'");

my $context = qr/(CONTEXT:  |\n\s*)while waiting for art index "w_k" to be built/;
my $insert = 'INSERT INTO w VALUES (200)';
fails_with($node, "SET lock_timeout = '100ms'; SET statement_timeout = '60s'; $insert",
	'55P03', $context, 'lock_timeout');
times_out($node, $insert, $context, 'statement_timeout');
{
	# VACUUM waits for a build, too
	local $ENV{PGOPTIONS} = '-c lock_timeout=100ms -c statement_timeout=60s';
	$node->safe_psql('postgres', 'DELETE FROM w WHERE k = 50');
	fails_with($node, 'VACUUM (INDEX_CLEANUP ON) w', '55P03', $context, 'lock_timeout: VACUUM');
}
$keeper->query_safe('SELECT pg_advisory_unlock(1)');
$builder->query_safe('SELECT 1');
is(index_state($node, 'w_k'), 'ready', 'the build went on');
$node->safe_psql('postgres', "SET lock_timeout = '1ms'; INSERT INTO w VALUES (200)");

# its own build is work, and takes the time it takes; its context says so
$node->safe_psql('postgres', q{SELECT artidx_unload('w_k')});
$keeper->query_safe('SELECT pg_advisory_lock(1)');
times_out($node, 'INSERT INTO w VALUES (201)',
	qr/CONTEXT:.*while building art index "w_k"/s, 'cancelled in its own build');
$keeper->query_safe('SELECT pg_advisory_unlock(1)');

# ---- errors about other people's rows ----
$node->safe_psql('postgres', q{
	CREATE FUNCTION strict_len(t text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		IF t LIKE 'secret%' AND current_setting('my.bad', true) = 'on' THEN
			RAISE EXCEPTION 'bad value %', t USING ERRCODE = '22023', DETAIL = 'detail of ' || t;
		END IF;
		RETURN length(t);
	END $$;
	CREATE TABLE r (id int, t text);
	INSERT INTO r VALUES (1, 'secret of alice');
	CREATE UNIQUE INDEX r_t ON r USING art (strict_len(t), id);
	GRANT ALL ON r TO bob;
	ALTER TABLE r ENABLE ROW LEVEL SECURITY;
	CREATE POLICY own ON r TO bob USING (id > 1);
	ANALYZE r;
	ALTER DATABASE postgres SET my.bad = on;
	SELECT artidx_unload('r_t');
});
# bob's session does not evaluate alice's code: a worker does, and errs
$node->append_conf('postgresql.conf', "artidx.build_workers = 2\n");
$node->reload;
$node->poll_query_until('postgres', q{SELECT current_setting('artidx.build_workers') = '2'}) or die;
my $secret = qr/secret of alice|detail of/;
my $offset = -s $node->logfile;
for my $sql (q{INSERT INTO r VALUES (2, 'mine')},
	'SELECT count(*) FROM r WHERE strict_len(t) = 4')
{
	my ($rc, $out, $err) = $node->psql('postgres',
		"SET SESSION AUTHORIZATION bob; SET enable_seqscan = off; $sql",
		extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	unlike($err, $secret, "bob does not see the row: $sql");
	like($err, qr/ERROR:  55000: art index "r_t" is not in memory.*ended with an error: SQLSTATE 22023/s, 'but the SQLSTATE')
	  if $sql =~ /INSERT/;
}
like(slurp_file($node->logfile, $offset),
	qr/ERROR:  bad value secret of alice/,
	'the log has it');
fails_with($node, q{SELECT artidx_build('r_t')}, '22023',
	qr/bad value secret of alice/, 'its owner sees it');
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET my.bad');
$node->append_conf('postgresql.conf', "artidx.build_workers = 0\n");
$node->reload;
$node->poll_query_until('postgres', q{SELECT current_setting('artidx.build_workers') = '0'}) or die;

# a scan that reads the table in place of the structure: the plan was made before
my $bob = $node->background_psql('postgres', on_error_stop => 0);
$node->safe_psql('postgres', q{SELECT artidx_build('r_t')});
$bob->query_safe(q{SET SESSION AUTHORIZATION bob; SET enable_seqscan = off; SET enable_bitmapscan = off;
	SET plan_cache_mode = force_generic_plan});
$bob->query_safe('PREPARE p AS SELECT id FROM r WHERE strict_len(t) > 1 AND strict_len(t) < 9');
$bob->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT id FROM r WHERE strict_len(t) > 1; FETCH 1 FROM c');
$node->safe_psql('postgres', q{SELECT artidx_unload('r_t')});
$bob->query_safe('SET my.bad = on');
my $out = $bob->query('FETCH 5 FROM c; MOVE BACKWARD ALL FROM c; FETCH 5 FROM c');
unlike($bob->{stderr}, $secret, 'a private scan does not show it, either');
$bob->{stderr} = '';
$bob->quit;

# ---- a status that cannot be ----
$node->safe_psql('postgres', q{CREATE FUNCTION damage(regclass) RETURNS void AS '} . build_modules('art_insidetest')
	  . q{/art_insidetest', 'art_inside_damage' LANGUAGE C STRICT;
	CREATE TABLE d (k int);
	INSERT INTO d SELECT generate_series(1, 1000);
	CREATE UNIQUE INDEX d_k ON d USING art (k);
});
my $started = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
my $crashes = () = slurp_file($node->logfile) =~ /PANIC/g;
my $other = $node->background_psql('postgres');
$other->query_safe('SELECT 1');
fails_with($node, q{SELECT damage('d_k')}, 'XX002', qr/art index "d_k" is damaged/, 'a damaged structure');
is($node->safe_psql('postgres', q{SELECT state, reason FROM artidx_indexes WHERE indexrelname = 'd_k'}),
	'absent|error: its structure was damaged', 'it is dropped');
is($other->query_safe('SELECT 17'), '17', 'no other session noticed');
$node->safe_psql('postgres', 'INSERT INTO d VALUES (1001)');
check_exact($node, 'd', 'd_k');
is(scalar(() = slurp_file($node->logfile) =~ /PANIC/g), $crashes, 'nothing panicked');

# ---- keys of another kind than the structure's ----
SKIP:
{
	$node->safe_psql('postgres', "CREATE DATABASE u ENCODING 'UTF8' TEMPLATE template0");
	my $icu = $node->safe_psql('u', "SELECT oid FROM pg_collation WHERE collname = 'en-x-icu'");
	skip 'no ICU', 3 if $icu eq '';
	$node->safe_psql('u', q{
		CREATE EXTENSION artidx;
		CREATE TABLE kind (a text COLLATE "C");
		INSERT INTO kind SELECT md5(i::text) FROM generate_series(1, 2000) i;
		CREATE INDEX kind_a ON kind USING art (a);
		VACUUM ANALYZE kind;
	});
	# by no command; what would make the relation cache and the structure differ
	$node->safe_psql('u', qq{
		UPDATE pg_index SET indcollation = '$icu' WHERE indexrelid = 'kind_a'::regclass});
	$offset = -s $node->logfile;
	$node->safe_psql('u', q{INSERT INTO kind VALUES ('zz')});
	like(slurp_file($node->logfile, $offset), qr/art index "kind_a" was dropped from memory, since its keys are no longer encoded/,
		'the structure was dropped');
	my $query = q{SELECT count(*) FROM kind WHERE a COLLATE "en-x-icu" > 'f'};
	is($node->safe_psql('u', "SELECT artidx_build('kind_a'); SET enable_seqscan = off; $query"),
		"\n" . $node->safe_psql('u', $query), 'the answer is right');
	is($node->safe_psql('u', "VACUUM kind; SELECT entries FROM artidx_check('kind_a', true)"),
		'2001', 'and the structure');
}

# ---- an index that is invalid, and that nobody makes ----
$node->safe_psql('postgres', q{
	CREATE TABLE inv (k int, p text);
	INSERT INTO inv SELECT i, repeat(md5(i::text), 30) FROM generate_series(1, 30000) i;
});
# cancelled in its last phase: others insert into it already
my $old = $node->background_psql('postgres');
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM inv');
my $cic = $node->background_psql('postgres', on_error_stop => 0);
$cic->query_until(qr/begun/, "\\echo begun\nCREATE UNIQUE INDEX CONCURRENTLY inv_p ON inv USING art (p, k);\n");
$node->poll_query_until('postgres',
	q{SELECT count(*) = 1 FROM pg_index WHERE indexrelid = to_regclass('inv_p') AND indisready})
  or die;
$node->poll_query_until('postgres',
	"SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'virtualxid'");
$node->safe_psql('postgres',
	"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'CREATE UNIQUE%' AND pid <> pg_backend_pid()");
$cic->query('SELECT 1');
$old->quit;
is($node->safe_psql('postgres', "SELECT indisready, indisvalid FROM pg_index WHERE indexrelid = 'inv_p'::regclass"),
	't|f', 'an invalid index that takes inserts');
fails_with($node, q{INSERT INTO inv SELECT * FROM inv WHERE k = 7}, '23505', qr/"inv_p"/,
	'and refuses duplicates, as a btree does, while it is in memory');
$node->append_conf('postgresql.conf', "artidx.memory = '16MB'\nartidx.build_workers = 2\nartidx.save_at_shutdown = off\n");
$node->restart;
$node->safe_psql('postgres', q{INSERT INTO inv VALUES (-1, 'new')});
pass('nobody has to wait for it, or be refused, when it is not');
$node->safe_psql('postgres', 'DROP INDEX inv_p');

fails_with($node, 'CREATE UNIQUE INDEX CONCURRENTLY inv_p ON inv USING art (p, k)', '53200',
	qr/HINT:  The index is invalid, and nothing uses it\.  Drop it with DROP INDEX, or call REINDEX/,
	'no memory for a unique index that is made concurrently');
$node->safe_psql('postgres', q{INSERT INTO inv VALUES (-2, 'new'); VACUUM inv});
is($node->safe_psql('postgres', "SELECT indisready, indisvalid FROM pg_index WHERE indexrelid = 'inv_p'::regclass"),
	'f|f', 'it blocks nobody');
$node->safe_psql('postgres', 'DROP TABLE inv');
$node->append_conf('postgresql.conf', "artidx.memory = '128MB'\nartidx.build_workers = 0\nartidx.save_at_shutdown = on\n");
$node->restart;

# ---- a boot gives the disk another number ----
SKIP:
{
	my $shim = File::Temp->newdir;
	open my $fh, '>', "$shim/dev.c" or die;
	print $fh <<'C';
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>
int fstat(int fd, struct stat *st)
{
	int (*real)(int, struct stat *) = dlsym(RTLD_NEXT, "fstat");
	int rc = real(fd, st);
	st->st_dev += 7;
	return rc;
}
C
	close $fh;
	skip 'no compiler', 2 if system("cc -shared -fPIC -o $shim/dev.so $shim/dev.c -ldl 2>/dev/null") != 0;
	chmod 0755, $shim;
	$node->safe_psql('postgres', q{SELECT artidx_build('d_k')});
	$node->stop;
	ok(-e $node->data_dir . '/pg_stat/artidx.saved', 'saved');
	{
		local $ENV{LD_PRELOAD} = "$shim/dev.so";
		$node->start;
	}
	$node->poll_query_until('postgres',
		"SELECT state <> 'building' FROM artidx_indexes WHERE indexrelname = 'd_k'");
	is($node->safe_psql('postgres',
			q{SELECT state, last_build_source FROM artidx_indexes WHERE indexrelname = 'd_k'}),
		'ready|load', 'and loaded from a device of another number');
}

# ---- no background worker ----
$node->append_conf('postgresql.conf', "max_worker_processes = 1\nartidx.build_workers = 2\n");
$offset = -s $node->logfile;
$node->restart;
is($node->safe_psql('postgres', q{SELECT state, reason FROM artidx_indexes WHERE indexrelname = 'd_k'}),
	'absent|no worker', 'without a worker nothing pretends to be built');
like(slurp_file($node->logfile, $offset),
	qr/WARNING:  no background worker is left to build art indexes/, 'the log warns');
like(slurp_file($node->logfile, $offset),
	qr/file "pg_stat\/artidx.saved" is not used: no background worker can load it/, 'and says why nothing was loaded');
$node->safe_psql('postgres', 'INSERT INTO d VALUES (5000)');
is(index_state($node, 'd_k'), 'ready', 'a statement builds what it needs');

# the launcher has a place, its workers have none, nor has the loader of what was saved
$node->append_conf('postgresql.conf', "max_worker_processes = 2\n");
$node->restart;
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'artidx launcher'}),
	'1', 'of all workers it is the launcher that has the only place');
$node->append_conf('postgresql.conf', "artidx.save_at_shutdown = off\n");
$node->stop('immediate');
$offset = -s $node->logfile;
$node->start;
ok($node->poll_query_until('postgres',
		q{SELECT state = 'absent' AND reason = 'no worker' FROM artidx_indexes WHERE indexrelname = 'd_k'}),
	'the same when no worker can be started');
like(slurp_file($node->logfile, $offset),
	qr/WARNING:  no background worker is free to build art indexes/, 'the log warns');
$node->append_conf('postgresql.conf', "max_worker_processes = 8\n");
$node->restart;
all_ready($node, 'with workers all come back');

# ---- the checks of a foreign key: each would read the table that is referenced ----
my $references = $node->pg_version >= 18 ? 'REFERENCES parent (id)' : '';
$node->safe_psql('postgres', qq{
	CREATE TABLE parent (id int);
	INSERT INTO parent SELECT generate_series(1, 5000);
	CREATE UNIQUE INDEX parent_id ON parent USING art (id);
	CREATE TABLE child (id int $references);
});
$node->append_conf('postgresql.conf', "artidx.build_workers = 0\n");
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT count(*) FROM parent WHERE id = 4000'), '1', 'who reads once reads the table');
is(index_state($node, 'parent_id'), 'absent', 'and builds nothing');
# up to 17 what a foreign key would ask
$node->safe_psql('postgres', $references ? 'INSERT INTO child SELECT generate_series(1, 5000)' :
	'SELECT 1 FROM ONLY parent x WHERE id = 4000 FOR KEY SHARE OF x');
is(index_state($node, 'parent_id'), 'ready', 'a foreign key builds what it looks into');

# ---- old_snapshot_threshold ----
SKIP:
{
	skip 'gone in 17', 1 if $node->pg_version >= 17;
	$node->safe_psql('postgres', q{
		CREATE TABLE old (k int);
		INSERT INTO old SELECT generate_series(1, 100);
		CREATE UNIQUE INDEX old_k ON old USING art (k);
		ALTER TABLE old ADD CONSTRAINT old_excl EXCLUDE USING art ((CASE WHEN k BETWEEN 500 AND 599 THEN k / 100 END) WITH =);
	});
	$node->append_conf('postgresql.conf', "old_snapshot_threshold = '1h'\nartidx.build_workers = 2\n");
	$node->restart;
	is($node->safe_psql('postgres', q{SELECT state, reason FROM artidx_indexes WHERE indexrelname = 'd_k'}),
		'absent|old_snapshot_threshold', 'the reason is the setting');

	# no snapshot is asked by a key's check: it goes on, and nothing else does
	$node->safe_psql('postgres', q{INSERT INTO old VALUES (201), (202) ON CONFLICT DO NOTHING; UPDATE old SET k = k + 1000 WHERE k < 10});
	is(index_state($node, 'old_k'), 'ready', 'the first insert built the unique index');
	fails_with($node, 'INSERT INTO old VALUES (1005)', '23505', qr/old_k/, 'which finds duplicates');
	fails_with($node, 'INSERT INTO old VALUES (500), (550)', '23P01', qr/old_excl/, 'and so does an exclusion constraint');
	is(index_state($node, 'old_excl'), 'ready', 'whose index is in memory, too');
	like($node->safe_psql('postgres', 'SET enable_seqscan = off; EXPLAIN SELECT * FROM old WHERE k = 20'),
		qr/Seq Scan/, 'no plan uses it');
	is(index_state($node, 'w_k'), 'absent', 'other indexes are not built');
	fails_with($node, "SET SESSION AUTHORIZATION bob; INSERT INTO w VALUES (7)", '23505', qr/w_k/,
		'a worker builds for who may not run the index\'s functions');
	$node->safe_psql('postgres', q{INSERT INTO old VALUES (2000)});
	is($node->safe_psql('postgres', q{SELECT heap_tuples FROM artidx_check('old_k', true)}), '103', 'the index is right');
}
$node->stop;
done_testing();
