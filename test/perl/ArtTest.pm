# What the TAP tests of artidx share.
package ArtTest;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter 'import';
use File::Basename qw(dirname);
use File::Copy qw(copy);
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(art_node art_conf same_answer check_clean check_exact check_followed
  request_and_wait fails_with times_out index_state plan_uses
  art_seed art_engines art_engine_options comes_back all_replayed make_held kill_and_recover all_ready
  stop_wal_writer crash_without_flush indexes_of memory_returns server_errors server_crashes
  beside_churn rows_beside_churn build_modules crash_often in_builder load_schema load_start load_running load_finish load_lies load_verify);

# For test/coverage.sh: the processes of a server that is stopped at once leave no counts.
if ($ENV{ART_COVERAGE})
{
	no warnings 'redefine';
	*PostgreSQL::Test::Cluster::teardown_node = sub {
		my ($node) = @_;
		$node->stop('fast', fail_ok => 1) || $node->stop('immediate', fail_ok => 1);
	};
}

# The settings that every node of these tests starts from.
sub art_conf
{
	my ($node, %settings) = @_;
	my %all = (
		shared_preload_libraries => "'artidx'",
		'artidx.memory' => "'128MB'",
		max_connections => 100,
		autovacuum => 'off',
		shared_buffers => "'64MB'",
		log_statement => 'none',
		%settings);

	# every test with another way of elision
	$all{'artidx.elision'} //= "'$ENV{ELISION}'" if $ENV{ELISION};
	if ($ENV{ELISION_PROVIDER})
	{
		$all{'art_elidetest.provider'} //= "'$ENV{ELISION_PROVIDER}'";
		$all{shared_preload_libraries} =~ s/artidx\b(?!.*art_elidetest)/artidx, $ENV{ELISION_MODULE}/;
	}
	delete $all{'artidx.memory'}
	  if $all{shared_preload_libraries} eq "''";
	$node->append_conf('postgresql.conf',
		join('', map { "$_ = $all{$_}\n" } sort keys %all));
	return;
}

# A running node with the extension in it.
sub art_node
{
	my ($name, %settings) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init;
	art_conf($node, %settings);
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION artidx');
	return $node;
}

# Settings for a node whose indexes outlive also a crash that comes soon after another one.
sub crash_often
{
	return (shared_preload_libraries => "'artidx, " . build_modules('art_insidetest') . "/art_insidetest'",
		'art_insidetest.crash_pause' => 0);
}

# SQL for a function NAME(k int), to index, that does something where a background
# builder calls it, and gives k back.  A background process has no client_port.  Its
# backend_type is unknown until the postmaster has written its process ID down.
sub in_builder
{
	my ($name, $what) = @_;

	return qq{
		CREATE FUNCTION $name(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS \$\$
		BEGIN
			IF (SELECT client_port IS NULL FROM pg_stat_get_activity(pg_backend_pid())) THEN
				$what
			END IF;
			RETURN k;
		END \$\$;};
}

# The modules of test/modules/NAME, in a directory that the test may write to,
# whose name is returned; they are loaded by their paths.
sub build_modules
{
	my ($name) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my $tree = abs_path(dirname(__FILE__) . '/../..');
	my $source = "$tree/test/modules/$name";

	foreach my $file (glob("$source/*.[ch]"), "$source/Makefile")
	{
		copy($file, $dir) or die "$file: $!";
	}
	my $out = `make -s -C '$dir' srcroot='$tree' all 2>&1`;
	is($?, 0, 'the modules are built') or BAIL_OUT($out);
	return $dir;
}

# The same query with whatever plan the planner takes and without any index;
# both must agree.  The query should return one value.
sub same_answer
{
	my ($node, $query, $name) = @_;
	my $off = join(' ', map { "SET enable_$_ = off;" }
		  qw(indexscan indexonlyscan bitmapscan));
	my $on = 'SET enable_seqscan = off;';
	my $with = $node->safe_psql('postgres', "$on $query");
	my $without = $node->safe_psql('postgres', "$off $query");

	return is($with, $without, $name);
}

# artidx_check finds nothing wrong.
sub check_clean
{
	my ($node, $index, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($rc, $out, $err) = $node->psql('postgres',
		"SELECT count(*) FROM artidx_check('$index', true)");

	return is("$rc|$out|$err", '0|1|', $name // "artidx_check of $index");
}

# make_held(primary): table h with an index at whose rows a follower waits for the advisory lock 44
sub make_held
{
	my ($primary) = @_;

	$primary->safe_psql('postgres', q{
	CREATE FUNCTION held(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		IF pg_is_in_recovery() THEN
			PERFORM pg_advisory_xact_lock_shared(44);
		END IF;
		RETURN k;
	END $$;
	CREATE TABLE h (k int);
	CREATE INDEX h_k ON h USING art (held(k))});
	return;
}

# The standbys have replayed all that this server has written.  VACUUM leaves its last records in the
# WAL's buffers, behind what wait_for_catchup() takes for the end; a commit brings them out.
sub all_replayed
{
	my ($node, @standbys) = @_;

	$node->safe_psql('postgres', q{SELECT pg_logical_emit_message(true, '', 'flush')});
	$node->wait_for_catchup($_) foreach @standbys;
	return;
}

# The same on a standby, of several.  The follower may have closed one just now, whose file
# is another, and may begin it again.
sub check_followed
{
	my ($node, $name, @indexes) = @_;
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;
	my $list = join(', ', map { "'$_'" } @indexes);
	my ($rc, $out, $err);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	for (;;)
	{
		($rc, $out, $err) = $node->psql('postgres',
			"SELECT count(*) FROM unnest(ARRAY[$list]) i, artidx_check(i::regclass, true)");
		last unless $err =~ /is not in memory on this standby/ && time() < $end;
		sleep 0.1;
	}
	return is("$rc|$out|$err", '0|' . @indexes . '|', "$name: artidx_check");
}

# As check_clean, and after VACUUM there is an entry for every row and no other.
# The table must be at rest and no old snapshot open.
sub check_exact
{
	my ($node, $table, $index) = @_;
	my ($rows, $entries);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	# VACUUM passes over a page that somebody reads just then, say a check in the background:
	# its dead rows keep their entries until the next VACUUM.  An entry that VACUUM ought to
	# have taken stays for ever, for its place in the heap is no longer dead.
	foreach (1 .. 20)
	{
		# with few dead rows VACUUM would leave their entries for the next time
		$node->safe_psql('postgres', "VACUUM (INDEX_CLEANUP ON) $table");
		$rows = $node->safe_psql('postgres',
			"SET enable_indexscan = off; SET enable_indexonlyscan = off; "
			  . "SET enable_bitmapscan = off; SELECT count(*) FROM $table");
		$node->psql('postgres', "SELECT entries FROM artidx_check('$index', true)",
			stdout => \$entries);
		last if $entries eq '' || $entries <= $rows;
		sleep 0.1;
	}
	check_clean($node, $index);
	return is($entries, $rows, "$index has an entry for every row of $table");
}

sub index_state
{
	my ($node, $index) = @_;

	return $node->safe_psql('postgres',
		"SELECT state FROM artidx_indexes WHERE indexrelname = '$index'");
}

sub plan_uses
{
	my ($node, $index, $query) = @_;
	my $plan = $node->safe_psql('postgres',
		"SET enable_seqscan = off; EXPLAIN (COSTS OFF) $query");

	return $plan =~ /\b\Q$index\E\b/ ? 1 : 0;
}

# Ask for an index that is not in memory by planning a query that could use it,
# and wait until it is there.
sub request_and_wait
{
	my ($node, $index, $query) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->safe_psql('postgres', "EXPLAIN $query");
	return ok(
		$node->poll_query_until(
			'postgres',
			"SELECT state = 'ready' FROM artidx_indexes "
			  . "WHERE indexrelname = '$index'"),
		"$index is built on demand");
}

# A statement fails with this SQLSTATE, and what it says matches.
sub fails_with
{
	my ($node, $sql, $sqlstate, $regex, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($rc, $out, $err) = $node->psql('postgres', $sql,
		extra_params => [ '-v', 'VERBOSITY=verbose' ]);

	like($err, qr/(ERROR|FATAL):\s+$sqlstate:/, "$name: SQLSTATE $sqlstate");
	return like($err, $regex, "$name: message");
}

# statement_timeout ends a statement, and what that says matches.  On a busy machine the time
# may be over before the statement comes to where it is to wait: then it gets more.
sub times_out
{
	my ($node, $sql, $regex, $name) = @_;
	my $err;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $ms (300, 3000, 30000)
	{
		$node->psql('postgres', "SET statement_timeout = $ms; $sql",
			stderr => \$err, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
		last if $err =~ $regex || $err !~ /57014/;
	}
	like($err, qr/ERROR:\s+57014:/, "$name: SQLSTATE 57014");
	return like($err, $regex, "$name: message");
}

# Random numbers that a failing run can be repeated with: SEED=...
sub art_seed
{
	my $seed = $ENV{SEED} // int(rand(2**31));

	srand($seed);
	diag("SEED=$seed");
	return $seed;
}

# beside_churn NODE, SETTING...: random statements of a script of test/*.sql, which compares each one's
# answer with that of a sequential scan of the same snapshot, while rows change, and VACUUM and
# DDL of the indexes run.
#
#	queries, seed		how many, of which AT_ONCE of one snapshot
#	schema, tables		the script's, whose tables are t1 to tTABLES, and maybe more
#	run, part			its function, a format of N and SEED, by whose count more than PART have the plan wanted
#	churn				PL/pgSQL that changes the table t, in the round n; at is a variable
sub beside_churn
{
	my ($node, %is) = @_;
	my $schema = $is{schema};
	my (%err, %run, @sum);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->safe_psql('postgres', qq{
		CREATE TABLE $schema.done (yes bool);
		CREATE PROCEDURE $schema.churn() LANGUAGE plpgsql AS \$\$
		DECLARE
			n bigint := 0;
			t text;
			at int;
		BEGIN
			WHILE NOT EXISTS (SELECT FROM $schema.done) LOOP
				t := '$schema.t' || 1 + n % $is{tables};
				$is{churn}
				n := n + 1;
				COMMIT;
			END LOOP;
			RAISE NOTICE 'rounds: %', n;
		END \$\$;
		CREATE PROCEDURE $schema.ddl() LANGUAGE plpgsql AS \$\$
		DECLARE
			n bigint := 0;
			i record;
		BEGIN
			WHILE NOT EXISTS (SELECT FROM $schema.done) LOOP
				SELECT c.oid::regclass AS name, pg_get_indexdef(c.oid) AS def INTO i FROM pg_class c JOIN pg_am a ON a.oid = relam
					WHERE amname = 'art' AND relkind = 'i' AND NOT relispartition AND relnamespace = '$schema'::regnamespace
					ORDER BY random() LIMIT 1;
				IF n % 4 = 0 THEN
					EXECUTE format('REINDEX INDEX %s', i.name);
				ELSIF n % 4 = 1 THEN
					EXECUTE format('DROP INDEX %s', i.name);
					EXECUTE i.def;
				ELSIF n % 4 = 2 AND i.def !~ 'page_size' THEN
					EXECUTE format('ALTER INDEX %s SET (structure = %s)', i.name, (ARRAY['art', 'btree', 'hydra'])[1 + floor(random() * 3)::int]);
				ELSE
					PERFORM artidx_unload(i.name);
					COMMIT;
					PERFORM artidx_build(i.name);
				END IF;
				n := n + 1;
				COMMIT;
				PERFORM pg_sleep(0.05);
			END LOOP;
			RAISE NOTICE 'rounds: %', n;
		END \$\$});
	my $url = $node->connstr('postgres');
	$run{$_} = IPC::Run::start([ 'psql', '-XAtqc', "CALL $schema.$_()", '-d', $url ], '2>', \$err{$_}) for qw(churn ddl);
	$run{vacuum} = IPC::Run::start([ 'sh', '-c', qq{n=0; while [ "\$(psql -XAtc "SELECT count(*) FROM $schema.done" -d "\$0")" = 0 ]; do }
		. 'psql -XAtq -d "$0" ' . join(' ', map { "-c 'VACUUM (INDEX_CLEANUP ON) $schema.t$_'" } 1 .. $is{tables})
		. ' || exit 1; n=$((n + 1)); done; echo "rounds: $n" >&2', $url ], '2>', \$err{vacuum});
	for (my $left = $is{queries}; $left > 0; $left -= $is{at_once})
	{
		my $n = $left < $is{at_once} ? $left : $is{at_once};
		my $s = (($is{seed} % 1999) * 7919 + $left) % 1000000 / 1000000;
		my @got = split /\|/, $node->safe_psql('postgres',
			'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM ' . sprintf($is{run}, $n, $s));

		is($got[3], 0, "$n statements, $left left, SEED=$is{seed}") if $got[3] ne '0';
		$sum[$_] += $got[$_] for 0 .. 3;
	}
	$node->safe_psql('postgres', "INSERT INTO $schema.done VALUES (true)");
	is("$sum[0]|$sum[3]", "$is{queries}|0", "$is{queries} random statements, each as a sequential scan of the same snapshot answers it");
	cmp_ok($sum[1], '>', $is{part} * $is{queries}, "$sum[1] of them by the plan that is wanted");
	cmp_ok($sum[2], '>', $is{queries}, 'they have rows');
	my %rounds;
	for my $what (qw(churn vacuum ddl))
	{
		ok($run{$what}->finish, "$what went on meanwhile") or diag($err{$what});
		$rounds{$what} = ($err{$what} =~ /rounds: (\d+)/)[0] // 0;
	}
	cmp_ok($rounds{churn}, '>', 10, 'rows changed');
	cmp_ok($rounds{$_}, '>', 0, "again and again: $_") for qw(vacuum ddl);
	all_ready($node, 'every index is in memory in the end');
	# test/run.sh writes this into the evidence
	diag("COUNTED: $sum[0] statements, $sum[1] by the plan that is wanted, $sum[3] different; $rounds{churn} transactions that changed rows, "
		. "$rounds{ddl} with DDL, VACUUM $rounds{vacuum} times of each table");
}

# rows_beside_churn NODE, N, SEED, PART, KIND: statements of test/rows.sql, of whose plans more
# than PART are of the KIND, or compare rows
sub rows_beside_churn
{
	my ($node, $queries, $seed, $part, $kind) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	beside_churn($node, schema => 'rows', tables => 16, queries => $queries, at_once => 100, seed => $seed, part => $part,
		run => 'rows.run(%d, %f' . (defined $kind ? ", '$kind')" : ')'), churn => q{
		EXECUTE format('UPDATE %s SET a = nullif((random() * 9)::int, 9), b = nullif((random() * 19)::int, 19),
			c = nullif((random() * 5)::int, 5), n = (random() * 8)::int / 2.0 WHERE id BETWEEN %s AND %2$s + 5', t, (random() * 3000)::int);});
}

# Every structure with every way of synchronizing it, as "art-olc": those of
# test/engines, or of ARTIDX_ENGINES.
sub art_engines
{
	my @all =
	  grep { /^\w/ }
	  map { split ' ' } $ENV{ARTIDX_ENGINES}
	  // split(/\n/, slurp_file(dirname(__FILE__) . '/../engines') =~ s/#.*//gr);

	die 'no engines' unless @all;
	return @all;
}

# The storage parameters of one of these.
sub art_engine_options
{
	my ($engine) = @_;
	my ($structure, $sync) = $engine =~ /^(\w+)-(\w+)$/ or die "no engine: $engine";

	return "structure = $structure, sync = $sync";
}

# Wait for a server that restarts after a crash.  Nothing is written to psql:
# one that is refused may be gone before it reads, and IPC::Run dies of that.  A process
# that was killed is there until the postmaster has asked for its end: before that a
# server that is about to crash still answers.
sub comes_back
{
	my ($node, $killed) = @_;
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;
	my ($out, $err) = ('', '');

	sleep 0.02 while $killed && kill(0, $killed) && time() < $end;
	while (time() < $end)
	{
		return 1
		  if IPC::Run::run(
			[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', 'SELECT true' ],
			'>', \$out, '2>', \$err);
		sleep 0.1;
	}
	return 0;
}

# Kill a process (with -9, or as told), and wait until the server has recovered.
sub kill_and_recover
{
	my ($node, $pid, $signal) = @_;
	my $offset = -s $node->logfile;
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;

	kill $signal // 'KILL', $pid;
	until (slurp_file($node->logfile, $offset) =~ /all server processes terminated; reinitializing/)
	{
		die 'the server does not crash' if time() > $end;
		sleep 0.1;
	}
	return comes_back($node) || die 'the server does not come back';
}

# Stop the WAL writer: nobody flushes behind the test's back.  Its pid is returned.
sub stop_wal_writer
{
	my ($node) = @_;
	my $pid = $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'");

	kill 'STOP', $pid;
	return $pid;
}

# The server crashes, and recovers.  The WAL writer goes on only when it is told to die.
sub crash_without_flush
{
	my ($node, $writer) = @_;
	my $victim = $node->background_psql('postgres');
	my $pid = $victim->query_safe('SELECT pg_backend_pid()');

	kill 'KILL', $pid;
	for (;;)
	{
		my $status = eval { slurp_file("/proc/$writer/status") } or last;
		my ($pending) = $status =~ /^ShdPnd:\s*([0-9a-f]+)/m;
		last if hex($pending) & (1 << 2);	# SIGQUIT
		sleep 0.02;
	}
	kill 'CONT', $writer;
	eval { $victim->{run}->finish };
	return comes_back($node) || die 'no recovery';
}

# Nobody asks; the server brings every index of the database back by itself.
sub all_ready
{
	my ($node, $name, $db) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	# a REINDEX CONCURRENTLY that died leaves indexes that nobody needs
	my $query = 'FROM artidx_indexes JOIN pg_index USING (indexrelid) '
	  . "WHERE state <> 'ready' AND indisvalid";
	my $ok = $node->poll_query_until($db // 'postgres',
		"SELECT count(*) = 0 $query");
	diag(
		$node->safe_psql($db // 'postgres',
			"SELECT indexrelname, state, reason $query")) unless $ok;
	return ok($ok, $name);
}

sub indexes_of
{
	my ($node, $table, $db) = @_;

	return split /\n/,
	  $node->safe_psql(
		$db // 'postgres',
		"SELECT i.indexrelid::regclass FROM pg_index i "
		  . "JOIN pg_class c ON c.oid = i.indexrelid "
		  . "JOIN pg_am a ON a.oid = c.relam AND a.amname = 'art' "
		  . "WHERE i.indrelid = '$table'::regclass ORDER BY 1::text");
}

# Bytes in use are back at what they were.  Memory that is retired comes back
# when somebody works on: two epochs must pass.
sub memory_returns
{
	my ($node, $before, $slack, $name) = @_;
	my $used;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	for my $try (1 .. 100)
	{
		$used = $node->safe_psql('postgres', q{
			CREATE TABLE artidx_stir (k int);
			CREATE INDEX ON artidx_stir USING art (k);
			INSERT INTO artidx_stir SELECT generate_series(1, 50);
			DELETE FROM artidx_stir;
			DROP TABLE artidx_stir;
			SELECT used_bytes FROM artidx_memory});
		last if $used <= $before + $slack;
		sleep 0.1;
	}
	return cmp_ok($used, '<=', $before + $slack,
		"$name (from $before to $used bytes)");
}

# What the server's log has of errors, from an offset on, whose SQLSTATE is not
# among those that the test allows.  The node must be configured with
# log_line_prefix as load_schema's users do: see %e below.
our $LOG_PREFIX = "'%m [%p] %e %q%a '";

# VACUUM beside an ALTER INDEX, of btree as well.  PostgreSQL ignores VACUUM's snapshots when it
# removes old rows, also of pg_class: systable_inplace_update_begin says that it may find none.
our $VANISHED = qr/pg_class entry for relid \d+ vanished during vacuuming/;

sub server_errors
{
	my ($node, $offset, $allowed) = @_;
	my @bad;

	for my $line (split /\n/, slurp_file($node->logfile, $offset))
	{
		next
		  unless $line =~
		  /^\S+ \S+ \S+ \[\d+\] (\w{5}) .*?(ERROR|FATAL|PANIC):  (.*)/;
		push @bad, "$1 $2: $3" if $2 eq 'PANIC' || $1 !~ $allowed && $3 !~ $VANISHED;
	}
	return @bad;
}

# Processes that died of something other than the test's own kill -9.
sub server_crashes
{
	my ($node, $offset) = @_;

	return grep { /TRAP:|PANIC|terminated by signal (?!9:)|exited with exit code (?![01]\b)/ }
	  split /\n/, slurp_file($node->logfile, $offset // 0);
}

# ---- a load whose clients know what they must be told ----
#
# Table w has rows 1 .. n that never change but for column n (so HOT updates,
# and now and then others, move them about), and rows above that come and go.
# Every script compares what it is told with what must be so and calls lie()
# if it is not.  Its indexes are of all structures, each run another of each.

sub load_schema
{
	my ($node, $n, $db) = @_;
	my @engines = art_engines();
	my $first = int(rand(@engines));
	my @with = map {
		'WITH (' . art_engine_options($engines[ ($first + $_) % @engines ]) . ')'
	} 0 .. 6;

	diag("w_id is of $engines[$first]");
	$node->safe_psql($db // 'postgres', qq{
	CREATE TABLE w (id bigint NOT NULL, k int, u uuid, t text COLLATE "C",
		payload bigint, v int, n int DEFAULT 0) WITH (fillfactor = 80);
	INSERT INTO w SELECT i, i % 100, md5(i::text)::uuid, 'key ' || i % 1000,
		i * 7 + 3, (i % 50 = 0)::int FROM generate_series(1, $n) i;
	CREATE UNIQUE INDEX w_id ON w USING art (id) $with[0];
	CREATE UNIQUE INDEX w_tid ON w USING art (t, id) $with[1];
	CREATE INDEX w_k ON w USING art (k) $with[2];
	CREATE INDEX w_kid ON w USING art (k DESC NULLS LAST, id) $with[3];
	CREATE INDEX w_u ON w USING art (u) $with[4];
	CREATE INDEX w_x ON w USING art ((payload / 7)) $with[5];
	CREATE INDEX w_part ON w USING art (k) $with[6] WHERE v = 1;
	CREATE SEQUENCE w_s START 10000000;
	CREATE FUNCTION lie(what text, got text) RETURNS void LANGUAGE plpgsql AS \$\$
	BEGIN
		RAISE EXCEPTION 'wrong answer: %: got %', what, got
			USING ERRCODE = 'XXLIE';
	END \$\$;
	ANALYZE w;
	});
	return;
}

my %LOAD = (
	point => [
		5, q{\set x random(1, :n)
SELECT payload AS p FROM w WHERE id = :x \gset
\if :p <> :x * 7 + 3
SELECT lie('point', :p || ' for ' || :x);
\endif
}
	],
	range => [
		3, q{\set x random(1, :n - 100)
SELECT count(*) AS c, coalesce(sum(payload), 0) AS s FROM w WHERE id BETWEEN :x AND :x + 99 \gset
\if :c <> 100 or :s <> 7 * (100 * :x + 4950) + 300
SELECT lie('range', :c || ' rows, sum ' || :s || ', from ' || :x);
\endif
}
	],
	order => [
		2, q{\set x random(21, :n - 100)
SELECT (array_agg(id) = ARRAY(SELECT generate_series(:x::bigint, :x::bigint + 19)))::int AS c FROM (SELECT id FROM w WHERE id >= :x ORDER BY id LIMIT 20) s \gset
\if :c <> 1
SELECT lie('order', 'from ' || :x);
\endif
SELECT (array_agg(id) = ARRAY(SELECT generate_series(:x::bigint, :x::bigint - 19, -1)))::int AS c FROM (SELECT id FROM w WHERE id <= :x ORDER BY id DESC LIMIT 20) s \gset
\if :c <> 1
SELECT lie('backward', 'from ' || :x);
\endif
}
	],
	count => [
		3, q{\set k random(0, 99)
SELECT count(*) AS c FROM w WHERE k = :k AND id <= :n \gset
\if :c <> :n / 100
SELECT lie('index-only count', :c || ' for ' || :k);
\endif
SELECT count(*) AS c FROM w WHERE k = 50 AND v = 1 AND id <= :n \gset
\if :c <> :n / 100
SELECT lie('partial', :c);
\endif
}
	],
	other => [
		3, q{\set x random(1, :n)
\set m random(0, 999)
SELECT coalesce(sum(id), 0) AS i FROM w WHERE u = md5(:x::text)::uuid \gset
\if :i <> :x
SELECT lie('uuid', :i || ' for ' || :x);
\endif
SELECT coalesce(sum(id), 0) AS i FROM w WHERE payload / 7 = :x::bigint \gset
\if :i <> :x
SELECT lie('expression', :i || ' for ' || :x);
\endif
SELECT count(*) AS c FROM w WHERE t = 'key ' || :m::int AND id <= :n \gset
\if :c <> :n / 1000
SELECT lie('text', :c || ' for ' || :m);
\endif
}
	],
	# no \if within another: pgbench 16.2 looks into it when the outer one is false
	write => [
		5, q{\set k random(0, 99)
\set d random(0, 2)
SELECT nextval('w_s') AS i \gset
INSERT INTO w VALUES (:i, :k, gen_random_uuid(), 'own ' || :i::bigint, -7, :k % 2);
SELECT count(*) AS c FROM w WHERE id = :i AND k = :k \gset
\if :c <> 1
SELECT lie('inserted', :c || ' rows for ' || :i);
\endif
UPDATE w SET k = 1000 + :k, t = 'moved ' || :i::bigint WHERE id = :i;
SELECT count(*) AS c FROM w WHERE t = 'moved ' || :i::bigint AND id = :i \gset
\if :c <> 1
SELECT lie('updated', :c || ' rows for ' || :i);
\endif
\set c 0
\if :d <> 0
DELETE FROM w WHERE id = :i;
SELECT count(*) AS c FROM w WHERE id = :i \gset
\endif
\if :c <> 0
SELECT lie('deleted', :c || ' rows for ' || :i);
\endif
}
	],
	unique => [
		2, q{\set x random(1, :n)
WITH i AS (INSERT INTO w (id, t) VALUES (:x, 'dup') ON CONFLICT DO NOTHING RETURNING 1) SELECT count(*) AS c FROM i \gset
\if :c <> 0
SELECT lie('duplicate accepted', :x);
\endif
}
	],
	hot => [
		4, q{\set x random(1, :n)
UPDATE w SET n = n + 1 WHERE id = :x;
}
	],
	back => [
		1, q{\set x random(1, :n)
BEGIN;
INSERT INTO w SELECT nextval('w_s'), :x % 100, gen_random_uuid(), 'gone', :x, 1 FROM generate_series(1, 5);
DELETE FROM w WHERE id = :x;
ROLLBACK;
}
	],
	# arrays: points, keys with many rows, two columns, both ways
	array => [
		0, q{\set x random(1, :n)
\set k random(0, 90)
SELECT count(*) AS c, coalesce(sum(payload - 7 * id), 0) AS s, (array_agg(id) = array_agg(id ORDER BY id))::int AS o FROM (SELECT id, payload FROM w WHERE id = ANY (ARRAY(SELECT (:x + i * 37) % :n + 1 FROM generate_series(1, 100) i)) ORDER BY id) s \gset
\if :c <> 100 or :s <> 300 or :o <> 1
SELECT lie('array', :c || ' rows, ' || :s || ', from ' || :x);
\endif
SELECT count(*) AS c, (array_agg(id) = array_agg(id ORDER BY k, id DESC))::int AS o FROM (SELECT k, id FROM w WHERE k = ANY (ARRAY[:k, NULL, :k + 9, :k + 3, :k]) AND id <= :n ORDER BY k, id DESC) s \gset
\if :c <> 3 * :n / 100 or :o <> 1
SELECT lie('array of keys', :c || ' for ' || :k);
\endif
SELECT count(*) - 2 - (:k > 1)::int AS c FROM w WHERE t = ANY (ARRAY['key 1', 'key ' || :k, 'none']) AND id = ANY (ARRAY[1, :k, :k + 1000, 0]) \gset
\if :c <> 0
SELECT lie('two arrays', :c || ' for ' || :k);
\endif
}
	],
	# with settings that make the plans parallel
	parallel => [
		0, q{\set x random(1, :n / 2)
\set k random(0, 90)
SELECT count(*) AS c, coalesce(sum(payload), 0) - 7 * sum(id) AS s FROM w WHERE id BETWEEN :x AND :x + :n / 2 - 1 \gset
\if :c <> :n / 2 or :s <> 3 * (:n / 2)
SELECT lie('parallel range', :c || ' rows, ' || :s || ', from ' || :x);
\endif
SELECT count(*) AS c FROM w WHERE k BETWEEN :k AND :k + 9 AND id <= :n \gset
\if :c <> :n / 10
SELECT lie('parallel index-only', :c || ' from ' || :k);
\endif
SELECT count(*) AS c FROM w WHERE k = ANY (ARRAY[:k, :k + 1, NULL, :k + 9]) AND id <= :n \gset
\if :c <> 3 * :n / 100
SELECT lie('parallel array', :c || ' for ' || :k);
\endif
SELECT count(*) AS c, (array_agg(id) = array_agg(id ORDER BY id DESC))::int AS o FROM (SELECT id FROM w WHERE id <= :x ORDER BY id DESC) s \gset
\if :c <> :x or :o <> 1
SELECT lie('parallel backward', :c || ' to ' || :x);
\endif
}
	],
	# with settings that make the plan a merge join
	merge => [
		0, q{\set k random(0, 90)
SELECT count(*) AS c FROM w a JOIN w b ON a.k = b.k WHERE a.k = ANY (ARRAY[:k, :k + 5]) AND a.id <= 1000 AND b.id <= :n \gset
\if :c <> 20 * :n / 100
SELECT lie('merge join', :c || ' for ' || :k);
\endif
}
	],
	# what an administrator may do at any time
	unload => [
		0, q{SELECT artidx_unload('w_id');
\sleep 100 ms
SELECT artidx_build('w_id');
\sleep 100 ms
SELECT artidx_unload('w_kid'), artidx_unload('w_k');
\sleep 100 ms
SELECT artidx_build('w_k'), artidx_build('w_kid');
VACUUM w;
\sleep 100 ms
}
	],
	# by one client only: two would rightly deadlock
	upkeep => [
		0, q{VACUUM w;
\sleep 50 ms
REINDEX INDEX CONCURRENTLY w_k;
\sleep 50 ms
REINDEX INDEX w_u;
VACUUM (INDEX_CLEANUP ON) w;
\sleep 50 ms
REINDEX INDEX CONCURRENTLY w_id;
REINDEX INDEX w_kid;
\sleep 50 ms
REINDEX TABLE CONCURRENTLY w;
}
	],
	# without CONCURRENTLY, whose end a query on a standby does not survive
	# with any access method ("could not open relation with OID ...")
	upkeep_locked => [
		0, q{VACUUM w;
\sleep 100 ms
REINDEX INDEX w_u;
\sleep 100 ms
VACUUM (INDEX_CLEANUP ON) w;
\sleep 100 ms
REINDEX INDEX w_id;
\sleep 100 ms
REINDEX TABLE w;
}
	],);

# load_start($node, n =>, clients =>, threads =>, seconds =>, scripts => [...], mode =>,
# options =>, db =>): pgbench in the background.
sub load_start
{
	my ($node, %o) = @_;
	my @names = @{ $o{scripts} // [ grep { $LOAD{$_}[0] } sort keys %LOAD ] };
	my @args;
	my %l = (out => '', err => '', node => $node);

	for my $name (@names)
	{
		my $file = $node->basedir . "/load-$name.sql";

		append_to_file($file, $LOAD{$name}[1]) unless -e $file;
		push @args, '-f', "$file\@" . ($LOAD{$name}[0] || 1);
	}
	local $ENV{PGAPPNAME} = 'pgbench';
	local $ENV{PGOPTIONS} = $o{options}
	  // '-c enable_seqscan=off -c jit=off';
	$l{h} = IPC::Run::start(
		[
			'pgbench', '-n', '-c', $o{clients} // 8, '-j', $o{threads} // 1,
			'-M', $o{mode} // 'prepared', '-T', $o{seconds} // 600,
			'-D', "n=$o{n}", '--random-seed=' . int(rand(2**31)),
			@args, '-h', $node->host, '-p', $node->port,
			$o{db} // 'postgres'
		],
		'<', \undef, '>', \$l{out}, '2>', \$l{err});
	return \%l;
}

sub load_running
{
	my ($l) = @_;

	$l->{h}->pump_nb if $l->{h}->pumpable;
	return $l->{h}->pumpable;
}

# To its end, which stop => 1 brings about now.
sub load_finish
{
	my ($l, %o) = @_;

	$l->{h}->signal('TERM') if $o{stop} && load_running($l);
	$l->{h}->finish;
	return $l;
}

# What pgbench complained of that is not the loss of its connection, nor
# matches $allowed.
sub load_lies
{
	my ($l, $allowed) = @_;
	my @bad;

	for my $line (split /\n/, $l->{err})
	{
		next if $line =~ /^pgbench: setting random seed to/;
		# left behind by a REINDEX CONCURRENTLY that died; the second is 17's
		next if $line =~ /cannot reindex invalid index ".*_cc(new|old)\d*" concurrently/;
		next if $line =~ /skipping reindex of invalid index ".*_cc(new|old)\d*"/;
		next if $line =~ /^\s*$/ || $line =~ /^\s+(This probably|before or|Is the server)/;
		# pgbench's own threads may cut each other's lines
		next if $line =~ /(; |error: )(perhaps the backend died while processing|SQL command send failed)|while receiving the transaction status/;
		# it was ended between the two parts of a line
		next if $line =~ /^pgbench: error: $/;
		# of an error whose own line is looked at; a statement there may have several lines
		next if $line =~ /^(CONTEXT|DETAIL|HINT|QUERY|LINE \d+): / || $line =~ /^(\s+\^$|\t)/;
		next if $line =~ /Run was aborted; the above results are incomplete/;
		next if $line =~ /could not create connection for (client|setup)/;
		next if $line =~ /connection to server .* failed: FATAL:  the database system is/;
		next if $line =~ /connection to server .* failed: (No such file|Connection refused|FATAL:  terminating)/;
		next if $line =~ /server closed the connection unexpectedly/;
		next if $line =~ /^(WARNING:  terminating connection (because of crash|due to immediate shutdown))/;
		next if $line =~ /^(FATAL:  terminating connection|could not (send|receive) data|no connection to the server)/;
		next if $line =~ $VANISHED || defined $allowed && $line =~ $allowed;
		push @bad, $line;
	}
	return @bad;
}

# The table against its indexes when the load has ended.
sub load_verify
{
	my ($node, $n, $what, $db) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$db //= 'postgres';
	# left behind by a REINDEX CONCURRENTLY that died
	for my $index (
		split /\n/,
		$node->safe_psql(
			$db,
			'SELECT indexrelid::regclass FROM pg_index '
			  . "WHERE indrelid = 'w'::regclass AND NOT indisvalid"))
	{
		$node->safe_psql($db, "DROP INDEX $index");
	}
	# A pgbench that was ended leaves sessions that are still at their last statements, and
	# autovacuum that was turned off may be at its last table: VACUUM removes nothing
	# that they may see.  (Its launcher goes when it has heard of that.)
	$node->poll_query_until($db, q{SELECT count(*) = 0 FROM pg_stat_activity
		WHERE application_name = 'pgbench' OR backend_type LIKE 'autovacuum%' AND
			NOT (SELECT setting::bool FROM pg_file_settings WHERE name = 'autovacuum' ORDER BY seqno DESC LIMIT 1)})
	  or die 'the load does not end';
	my $off = 'SET enable_indexscan = off; SET enable_indexonlyscan = off; '
	  . 'SET enable_bitmapscan = off; SET jit = off; ';
	my $on = 'SET enable_seqscan = off; SET jit = off; ';
	for my $index (indexes_of($node, 'w', $db))
	{
		my $where = $index eq 'w_part' ? 'v = 1' : 'true';
		my ($rc, $out, $err, $rows);

		# once more where somebody read a page just then (check_exact says why)
		foreach (1 .. 20)
		{
			$node->safe_psql($db, 'VACUUM (INDEX_CLEANUP ON) w');
			($rc, $out, $err) = $node->psql($db,
				"SELECT entries FROM artidx_check('$index', true)");
			$rows = $node->safe_psql($db,
				"$off SELECT count(*) FROM w WHERE $where");
			last if $rc != 0 || $out <= $rows;
			sleep 0.1;
		}
		is("$rc|$out|$err", "0|$rows|", "$what: $index is clean and exact");
	}
	is( $node->safe_psql(
			$db,
			"$off SELECT count(*), sum(payload), count(DISTINCT id) FROM w WHERE id <= $n"
		),
		"$n|" . (7 * $n * ($n + 1) / 2 + 3 * $n) . "|$n",
		"$what: the rows that never change are all there");
	is( $node->safe_psql($db,
			"$off SELECT count(*) FROM (SELECT id FROM w GROUP BY id HAVING count(*) > 1) d"
		),
		'0', "$what: no duplicate");
	for my $q (
		'SELECT count(*), sum(id) FROM w WHERE id > 0',
		'SELECT count(*), sum(id) FROM w WHERE k >= 0',
		"SELECT count(*), sum(id) FROM w WHERE t > 'a'",
		"SELECT count(*), sum(id) FROM w WHERE u > '00000000-0000-0000-0000-000000000000'",
		'SELECT count(*), sum(id) FROM w WHERE payload / 7 > 0',
		'SELECT count(*), sum(id) FROM w WHERE k < 60 AND v = 1',
		"SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM w ORDER BY k DESC NULLS LAST, id) s")
	{
		is($node->safe_psql($db, "$on $q"),
			$node->safe_psql($db, "$off $q"), "$what: $q");
	}
	return;
}

1;
