# The tail buffer under several processes: what keys taken from a sequence get,
# a unique index of which exactly one of two inserters of a key wins, readers of
# what was just inserted, ALTER INDEX under load, what is buffered when the server
# is shut down, crashes, or a session ends or waits in its transaction.
# RACES: keys of the race (40000); TAIL_SECONDS: of each load.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $races = $ENV{RACES} // 40000;
my $seconds = $ENV{TAIL_SECONDS} // 2;
my @engines = art_engines();

art_seed();
my $node = art_node(
	'tail',
	max_prepared_transactions => 5,
	# what a longer load makes must fit
	'artidx.memory' => sprintf("'%dMB'", 256 + 40 * ($seconds > 3 ? $seconds - 3 : 0) + $races / 20000),
	fsync => 'off',
	max_wal_size => "'4GB'",
	restart_after_crash => 'on',
	jit => 'off',
	log_line_prefix => $ArtTest::LOG_PREFIX);

sub sql
{
	return $node->safe_psql('postgres', join(' ', @_));
}

# tail_mode, and how much of its inserts an index's buffer took (in per cent)
sub mode_of
{
	my ($index) = @_;

	return sql("SELECT tail_mode FROM artidx_contention WHERE indexrelname = '$index'");
}

sub share_of
{
	my ($index) = @_;

	return sql("SELECT round(100.0 * tail_inserts / greatest(entries, 1)) FROM artidx_contention",
		"JOIN artidx_indexes USING (indexrelid) WHERE artidx_contention.indexrelname = '$index'");
}

my $nfile = 0;

# Scripts by clients: [ clients, script ]...; the time in seconds.  True when no
# client erred.
sub load
{
	my ($name, $t, @scripts) = @_;
	my @h;
	my @bad;

	for my $s (@scripts)
	{
		my $file = $node->basedir . '/load' . $nfile++ . '.sql';

		append_to_file($file, $s->[1]);
		my $out = "$file.log";
		push @h,
		  [
			$out,
			IPC::Run::start(
				[
					'pgbench', '-n', '-c', $s->[0], '-j', 1, '-T', $t, '-M', 'prepared',
					'-f', $file, '-h', $node->host, '-p', $node->port, 'postgres'
				],
				'<', \undef, '>', $out, '2>&1'),
			$s->[1] =~ /^VACUUM/
		  ];
	}
	for my $h (@h)
	{
		$h->[1]->finish;
		my $log = slurp_file($h->[0]);
		next if $h->[2] && $log =~ /$ArtTest::VANISHED|could not open relation with OID/;
		next if $log =~ /actually processed: [1-9]/ && $log !~ /ERROR|FATAL|PANIC|aborted/;
		push @bad, $log =~ /(.*(?:ERROR|FATAL|PANIC|aborted).*)/ ? $1 : 'nothing was processed';
	}
	return is(join('; ', @bad), '', $name);
}

# ---- several processes, one sequence ----

# What is inserted, and in which modes its index may end: several processes
# that take keys one by one, in pieces of 50 (CACHE), with times, UUIDs of
# version 7, and that are at random.  (Times that are as often out of order as
# those of several processes can be between two buffers when they are looked at.)
sql(q{CREATE FUNCTION uuid7() RETURNS uuid VOLATILE LANGUAGE sql AS $$
	SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
		|| '7' || substr(md5(random()::text), 1, 19))::uuid $$});
my %kinds = (
	one => [ 'bigint', "nextval('s1')", 'window' ],
	small => [ 'int', "nextval('s2')", 'window' ],
	gaps => [ 'bigint', "nextval('s3') * 8 + (random() * 7)::int", 'window' ],
	cache => [ 'bigint', "nextval('s50')", 'window' ],
	stamp => [ 'timestamptz', 'clock_timestamp()', 'window|append|off' ],
	same => [ 'timestamptz', 'now()', 'window|append' ],
	uuid7 => [ 'uuid', 'uuid7()', 'append' ],
	word => [ 'text COLLATE "C"', "'order ' || lpad(nextval('s4')::text, 12, '0')", 'append' ],
	random => [ 'bigint', '(random() * 1e15)::bigint', 'off' ],
	uuid4 => [ 'uuid', 'gen_random_uuid()', 'off' ],
	falling => [ 'bigint', "- nextval('s5')", 'off' ]);

for my $e ($engines[0], $engines[-2])
{
	sql('DROP TABLE IF EXISTS k; DROP SEQUENCE IF EXISTS s1, s2, s3, s4, s5, s50;',
		map { "CREATE SEQUENCE s$_;" } 1 .. 5);
	sql('CREATE SEQUENCE s50 CACHE 50');
	sql('CREATE TABLE k (', join(', ', map { "$_ $kinds{$_}[0]" } sort keys %kinds), ')');
	sql("CREATE INDEX k_$_ ON k USING art ($_) WITH (", art_engine_options($e), ')') for sort keys %kinds;
	my $values = join(', ', map { $kinds{$_}[1] } sort keys %kinds);
	my $one = "INSERT INTO k VALUES ($values);\n";
	my $many = "INSERT INTO k SELECT $values FROM generate_series(1, 40);\n";

	load("$e: sixteen clients insert keys of every kind", $seconds,
		[ 8, $one ], [ 8, $many ],
		[ 1, "SELECT one FROM k WHERE one > (SELECT last_value - 100 FROM s1) ORDER BY one DESC;\n"
			. "SELECT count(*) FROM (SELECT word FROM k ORDER BY word DESC LIMIT 50) w;\n" ],
		[ 1, "DELETE FROM k WHERE one BETWEEN (SELECT last_value - 30 FROM s1) AND (SELECT last_value - 10 FROM s1);\n"
			. "VACUUM (INDEX_CLEANUP ON) k;\n\\sleep 100 ms\n" ]);
	for my $k (sort keys %kinds)
	{
		like(mode_of("k_$k"), qr/^($kinds{$k}[2])$/, "$e: the mode of $k");
		if ($kinds{$k}[2] eq 'off')
		{
			cmp_ok(share_of("k_$k"), '<=', 5, "$e: next to none of $k are buffered");
		}
		else
		{
			cmp_ok(share_of("k_$k"), '>=', 50, "$e: most of $k are buffered");
		}
	}
	check_clean($node, "k_$_") for sort keys %kinds;
	check_exact($node, 'k', "k_$_") for sort keys %kinds;
}

# ---- exactly one of two wins ----

# Both take numbers from one sequence; two that follow each other are one key.
# Every third time the loser hears of it by an error, else by ON CONFLICT; every
# tenth insert is in a transaction with the next one, so that the other has to
# wait; sometimes one of them pauses.
sql('CREATE TABLE won (who int, n bigint);');
sql(q{CREATE PROCEDURE race(who int, upto bigint) LANGUAGE plpgsql AS $$
DECLARE
	i bigint;
	k bigint;
	n int;
	won bigint := 0;
BEGIN
	LOOP
		i := nextval('r_s');
		k := i / 2;
		EXIT WHEN k >= upto;
		IF i % 3 = 0 THEN
			BEGIN
				INSERT INTO r VALUES (k, who);
				won := won + 1;
			EXCEPTION WHEN unique_violation THEN
				NULL;
			END;
		ELSE
			INSERT INTO r VALUES (k, who) ON CONFLICT DO NOTHING;
			GET DIAGNOSTICS n = ROW_COUNT;
			won := won + n;
		END IF;
		IF random() < 0.01 THEN
			PERFORM pg_sleep(random() / 2000);
		END IF;
		IF i % 10 <> 0 THEN
			COMMIT;
		END IF;
	END LOOP;
	INSERT INTO won VALUES (who, won);
	COMMIT;
END $$});

sub race
{
	my ($e, $n) = @_;

	sql('DROP TABLE IF EXISTS r; DROP SEQUENCE IF EXISTS r_s; DELETE FROM won;',
		'CREATE TABLE r (k bigint, who int); CREATE SEQUENCE r_s MINVALUE 0 START 0;',
		'CREATE UNIQUE INDEX r_k ON r USING art (k) WITH (tail_buffer = on,', art_engine_options($e), ')');
	my @h = map {
		IPC::Run::start(
			[
				'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-c',
				"SET synchronous_commit = off", '-c', "CALL race($_, $n)"
			],
			'<', \undef)
	} 1, 2;
	my $ok = 1;
	$ok &= $_->finish for @h;
	ok($ok, "$e: both came to the end");
	is(sql('SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;',
			'SELECT count(*), count(DISTINCT k), min(k), max(k) FROM r'),
		"$n|$n|0|" . ($n - 1), "$e: every key is there once");
	is(sql('SELECT sum(n) FROM won'), $n, "$e: and exactly one of two has won each of $n");
	cmp_ok(sql('SELECT min(c) FROM (SELECT count(*) AS c FROM r GROUP BY who) w'), '>', $n / 100,
		"$e: both have won some");
	cmp_ok(share_of('r_k'), '>', 50, "$e: most by way of the buffer");
	check_exact($node, 'r', 'r_k');
	return;
}

race($engines[0], $races);
race($_, $races > 10000 ? 10000 : $races) for @engines[ 1 .. $#engines ];

# ---- readers of what was just inserted, VACUUM, and ALTER INDEX, under load ----

for my $e (@engines)
{
	sql('DROP TABLE IF EXISTS l; DROP SEQUENCE IF EXISTS l_s;',
		'CREATE TABLE l (id bigint, at timestamptz, w text COLLATE "C"); CREATE SEQUENCE l_s;',
		'CREATE UNIQUE INDEX l_id ON l USING art (id) WITH (tail_buffer = on,', art_engine_options($e), ');',
		'CREATE INDEX l_at ON l USING art (at) WITH (tail_buffer = on,', art_engine_options($e), ');',
		'CREATE INDEX l_w ON l USING art (w) WITH (tail_buffer = on,', art_engine_options($e), ');');
	# 1 / 0 when the answer is not what it must be
	my $insert = q{SELECT nextval('l_s') AS i \gset
INSERT INTO l VALUES (:i, clock_timestamp(), 'w' || lpad(:i::text, 10, '0'));
SELECT 1 / count(*) FROM l WHERE id = :i;
SELECT 1 / count(*) FROM l WHERE w = 'w' || lpad(:i::text, 10, '0');
SELECT 1 / count(*) FROM (SELECT id FROM l WHERE id BETWEEN :i AND :i + 5 ORDER BY id) s WHERE id = :i;
SELECT 1 / count(*) FROM (SELECT id FROM l WHERE id <= :i ORDER BY id DESC LIMIT 1) s WHERE id = :i;
DELETE FROM l WHERE id = :i AND :i % 5 = 0;
};
	my $compare = q{SELECT last_value AS i FROM l_s \gset
BEGIN ISOLATION LEVEL REPEATABLE READ;
SET LOCAL enable_seqscan = off;
SELECT count(*) AS c, coalesce(sum(id), 0) AS s FROM (SELECT id FROM l WHERE id > :i - 200 ORDER BY id) s \gset
SELECT count(*) AS d, coalesce(sum(length(w)), 0) AS u FROM (SELECT w FROM l WHERE w > 'w' || lpad((:i - 200)::text, 10, '0') ORDER BY w DESC) s \gset
SELECT count(*) AS f FROM (SELECT at FROM l ORDER BY at) s \gset
SET LOCAL enable_seqscan = on;
SET LOCAL enable_indexscan = off;
SET LOCAL enable_indexonlyscan = off;
SET LOCAL enable_bitmapscan = off;
SELECT 1 / (count(*) = :c AND coalesce(sum(id), 0) = :s AND count(*) = :d)::int FROM l WHERE id > :i - 200;
SELECT 1 / (count(*) = :f)::int FROM l;
COMMIT;
};
	# each client deletes its own rows: one that is off its processor for long
	# would not find what another had deleted
	my $remove = q{VACUUM (INDEX_CLEANUP ON) l;
};
	my $alter = q{\set n random(1, 3)
SET lock_timeout = '120s';
ALTER INDEX l_id SET (tail_buffer = off);
\sleep 50 ms
ALTER INDEX l_id SET (tail_buffer = on);
\sleep 100 ms
};
	load("$e: readers find what was inserted", $seconds, [ 4, $insert ], [ 2, $compare ], [ 1, $remove ],
		[ 1, $alter ]);
	check_clean($node, $_) for qw(l_id l_at l_w);
	check_exact($node, 'l', $_) for qw(l_id l_at l_w);
	is(mode_of('l_w'), 'append', "$e: words are appended");
	# altered: told at once, and what it had goes into the tree
	sql('ALTER INDEX l_w SET (tail_buffer = off); ALTER INDEX l_id SET (tail_buffer = off)');
	sql("INSERT INTO l VALUES (nextval('l_s'), now(), 'x')");
	is(mode_of('l_w'), 'off', "$e: off");
	is(mode_of('l_id'), 'off', "$e: off");
	check_exact($node, 'l', $_) for qw(l_id l_at l_w);
}

# ---- a session that stopped, or went ----

sql('CREATE TABLE q (k bigint, who int); CREATE SEQUENCE q_s;',
	'CREATE UNIQUE INDEX q_k ON q USING art (k) WITH (tail_buffer = on);');
my $idle = $node->background_psql('postgres');
$idle->query_safe("BEGIN; INSERT INTO q SELECT nextval('q_s'), 1 FROM generate_series(1, 30)");
sql("INSERT INTO q SELECT nextval('q_s'), 2 FROM generate_series(1, 100000)");
is(sql('SET enable_seqscan = off; SELECT count(*) FROM q WHERE k > 50'), 99980,
	'others go on beside a session that is idle in its transaction');
my ($rc, $out, $err) = $node->psql('postgres', "SET lock_timeout = '200ms'; INSERT INTO q VALUES (7, 3)");
like($err, qr/lock timeout/, 'who inserts what it has inserted waits');
$idle->query_safe('ROLLBACK');
sql('INSERT INTO q VALUES (7, 3)');
check_exact($node, 'q', 'q_k');
$idle->query_safe("INSERT INTO q SELECT nextval('q_s'), 1 FROM generate_series(1, 30)");
sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle' AND query LIKE 'INSERT INTO q%'");
sql("INSERT INTO q SELECT nextval('q_s'), 2 FROM generate_series(1, 20000)");
check_exact($node, 'q', 'q_k');
eval { $idle->quit };

# ---- shut down with something in the buffer: saved and loaded ----

sql("INSERT INTO q SELECT nextval('q_s'), 5 FROM generate_series(1, 300)");
my $rows = sql('SELECT count(*) FROM q');
$node->restart;
all_ready($node, 'all indexes are there');
is(sql("SELECT last_build_source FROM artidx_indexes WHERE indexrelname = 'q_k'"), 'load', 'loaded');
is(sql('SET enable_seqscan = off; SELECT count(*) FROM q WHERE k > 0'), $rows, 'with all its entries');
sql("INSERT INTO q SELECT nextval('q_s'), 6 FROM generate_series(1, 2000)");
is(sql("SELECT tail_buffer FROM artidx_indexes WHERE indexrelname = 'q_k'"), 'on', 'its option is known');
is(mode_of('q_k'), 'window', 'and it has a buffer again');
check_exact($node, 'q', 'q_k');

# ---- a crash with something in the buffer ----

for my $how ('immediate', 'kill')
{
	sql("INSERT INTO q SELECT nextval('q_s'), 7 FROM generate_series(1, 300)");
	$rows = sql('SELECT count(*) FROM q');
	if ($how eq 'immediate')
	{
		$node->stop('immediate');
		$node->start;
	}
	else
	{
		# somebody who is about to insert
		my $s = IPC::Run::start(
			[
				'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c',
				"SET application_name = 'victim'", '-c',
				"INSERT INTO q SELECT nextval('q_s'), 8 FROM generate_series(1, 100000000)"
			],
			'<', \undef, '>', \my $o, '2>', \my $x);
		$node->poll_query_until('postgres',
			"SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'victim' AND state = 'active'");
		sleep 0.5;
		my $pid = sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'victim'");
		kill 'KILL', $pid;
		$s->finish;
		ok(comes_back($node, $pid), 'the server comes back after a kill -9');
	}
	all_ready($node, "$how: all indexes are there");
	is(sql('SET enable_seqscan = off; SELECT count(*) FROM q WHERE k > 0'), $rows, "$how: nothing is lost");
	check_exact($node, 'q', 'q_k');
}

# ---- prepared: by a commit after a restart, too ----

for my $restart (0, 1)
{
	sql("BEGIN; ALTER INDEX q_k SET (tail_buffer = off); PREPARE TRANSACTION 'p'");
	$node->restart if $restart;
	($rc, $out, $err) = $node->psql('postgres', "SET lock_timeout = '200ms'; INSERT INTO q VALUES (-1, 9)");
	like($err, qr/lock timeout/, 'nobody uses an index whose options a prepared transaction altered');
	sql("COMMIT PREPARED 'p'");
	ok($node->poll_query_until('postgres',
			"SELECT tail_buffer = 'off' FROM artidx_indexes WHERE indexrelname = 'q_k'"),
		'and then it is told');
	sql("INSERT INTO q SELECT nextval('q_s'), 10 FROM generate_series(1, 1000)");
	is(mode_of('q_k'), 'off', 'it has no buffer');
	sql('ALTER INDEX q_k SET (tail_buffer = on)');
	sql("INSERT INTO q SELECT nextval('q_s'), 10 FROM generate_series(1, 1000)");
	is(mode_of('q_k'), 'window', 'and has one when told so');
}
check_exact($node, 'q', 'q_k');

# ---- a private scan, a parallel one, a build beside inserts ----

sql("SELECT artidx_unload('q_k')");
is(sql('SET enable_seqscan = off; SELECT count(*) FROM q WHERE k > 0'),
	sql('SELECT count(*) FROM q WHERE k + 0 > 0'), 'absent');
sql("SELECT artidx_build('q_k')");
sql("INSERT INTO q SELECT nextval('q_s'), 11 FROM generate_series(1, 2000)");
is(sql(q{SET enable_seqscan = off; SET enable_bitmapscan = off; SET parallel_setup_cost = 0;
	SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0; SET min_parallel_table_scan_size = 0;
	SELECT count(*), sum(k) FROM q WHERE k > 100}),
	sql('SELECT count(*), sum(k) FROM q WHERE k + 0 > 100'), 'a parallel scan');
for my $e (@engines)
{
	sql('DROP TABLE IF EXISTS b; CREATE TABLE b (k bigint); INSERT INTO b SELECT -i FROM generate_series(1, 30000) i;',
		'CREATE INDEX b_k ON b USING art (k) WITH (tail_buffer = on,', art_engine_options($e), ')');
	load("$e: rebuilt while others insert", $seconds,
		[ 3, "INSERT INTO b SELECT nextval('q_s') FROM generate_series(1, 20);\n" ],
		[ 1, "SELECT artidx_unload('b_k');\nSELECT artidx_build('b_k');\n\\sleep 20 ms\nREINDEX INDEX CONCURRENTLY b_k;\n" ]);
	check_clean($node, 'b_k');
	check_exact($node, 'b', 'b_k');
}

# ---- a buffer is not why an index is full: at the cap its memory is the tree's ----

my %fit;
for my $tail ('off', 'on')
{
	sql("DROP TABLE IF EXISTS m; CREATE TABLE m (k text)",
		"; CREATE UNIQUE INDEX m_k ON m USING art (k) WITH (tail_buffer = $tail, max_memory = '4MB')");
	for (my $i = 0; $i < 1000000; $i += 1000)
	{
		my ($rc) = $node->psql('postgres',
			"INSERT INTO m SELECT 'event ' || lpad(i::text, 9, '0') FROM generate_series($i, $i + 999) i");
		last if $rc;
		$fit{$tail} = $i;
	}
	check_clean($node, 'm_k');
}
cmp_ok($fit{on}, '>', 0.8 * $fit{off}, 'about as many rows fit with a buffer') or diag("$fit{on} of $fit{off}");
cmp_ok(sql("SELECT tail_inserts FROM artidx_contention WHERE indexrelname = 'm_k'"), '>', 1000,
	'which there was');
is(mode_of('m_k'), 'off', 'and was given up');
cmp_ok(sql("SELECT artidx_index_size('m_k')"), '<=', 4 * 1024 * 1024 * 9 / 8,
	'beyond max_memory by no more than what its buffer had');

my @crashes = server_crashes($node);
is(scalar(@crashes), 0, 'no process died of anything else') or diag(join("\n", @crashes));
$node->stop;
done_testing();
