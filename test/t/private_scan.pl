# The private scan: a scan that has lost its structure, or never had one, reads
# the table and answers as the index would have: in order, both ways, from
# wherever it stands, under every kind of snapshot, with little memory too.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time sleep);
use ArtTest;

my $node = art_node('private', 'artidx.build_workers' => 0, max_connections => 30,
	wal_level => 'logical', max_wal_senders => 4, max_replication_slots => 4);

my $plain = 'SET enable_indexscan = off; SET enable_indexonlyscan = off; '
  . 'SET enable_bitmapscan = off; ';

# wait until that many sessions of this application wait for a lock of the type
sub waits_for
{
	my ($event, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(
		$node->poll_query_until('postgres',
			"SELECT count(*) > 0 FROM pg_stat_activity "
			  . "WHERE wait_event_type = 'Lock' AND wait_event = '$event'"),
		$name);
}

sub unload
{
	$node->safe_psql('postgres',
		join(' ', map { "SELECT artidx_unload('$_');" } @_));
	return;
}

sub build
{
	$node->safe_psql('postgres',
		join(' ', map { "SELECT artidx_build('$_');" } @_));
	return;
}

# All rows that way; by pieces, for a FETCH keeps its own result in a temporary
# file if it is large, and that is limited, too.
sub fetch_all
{
	my ($s, $way, $piece) = @_;
	my @rows;

	for (;;)
	{
		my @some = split /\n/,
		  $s->query_safe("FETCH $way " . ($piece // 'ALL') . ' FROM c');

		push @rows, @some;
		return @rows if !defined $piece || @some < $piece;
	}
}

$node->safe_psql('postgres', q{
	CREATE TABLE p (id bigint, a int, b text COLLATE "C", c int, pad text);
	INSERT INTO p
		SELECT i, nullif(i % 7, 0), CASE WHEN i % 11 > 0 THEN md5((i % 900)::text) END,
			i % 5, repeat('x', 40)
		FROM generate_series(1, 6000) i ORDER BY (i * 7919) % 12007;
	UPDATE p SET pad = 'y' WHERE id % 10 = 3;
	UPDATE p SET id = id + 20000 WHERE id % 100 = 7;
	DELETE FROM p WHERE id % 50 = 11;
	CREATE INDEX p_id ON p USING art (id);
	CREATE INDEX p_ab ON p USING art (a, b DESC NULLS LAST);
	CREATE INDEX p_b ON p USING art (b);
	CREATE INDEX p_expr ON p USING art ((id % 1000), a);
	CREATE INDEX p_part ON p USING art (b, id) WHERE c = 2;
	CREATE TABLE o (x bigint);
	INSERT INTO o SELECT (i * 37) % 13000 FROM generate_series(1, 400) i;
	VACUUM ANALYZE p;
	ANALYZE o;
});
# dead rows and rows of a transaction that is still open, which no reader sees
$node->safe_psql('postgres',
	'DELETE FROM p WHERE id % 50 = 13; BEGIN; '
	  . 'INSERT INTO p SELECT i, 1, $$zz$$, 2 FROM generate_series(1, 500) i; ROLLBACK');
my $open = $node->background_psql('postgres');
$open->query_safe(
	'BEGIN; INSERT INTO p SELECT i, 1, $$yy$$, 2 FROM generate_series(1, 500) i');

# ---- long keys that are compared: the separators of its blocks are whole keys ----

{
	$node->safe_psql('postgres', q{
		CREATE TABLE lng (k text[]); ALTER TABLE lng ALTER k SET STORAGE EXTERNAL;
		INSERT INTO lng SELECT ARRAY[lpad((i * 37 % 300)::text, 100000, 'x')] FROM generate_series(1, 300) i;
		CREATE INDEX lng_k ON lng USING art (k)});
	my $s = $node->background_psql('postgres');
	$s->query_safe("SET enable_seqscan = off; SET enable_bitmapscan = off; SET work_mem = '64kB'; "
		  . 'BEGIN; DECLARE c SCROLL CURSOR FOR SELECT right(k[1], 3) FROM lng ORDER BY k');
	my @first = ($s->query_safe('FETCH 1 FROM c'));
	unload('lng_k');
	push @first, split(/\n/, $s->query_safe('FETCH 20 FROM c'));
	my $bytes = $s->query_safe(q{SELECT sum(used_bytes) FROM pg_backend_memory_contexts WHERE name = 'art store entries'});
	cmp_ok($bytes, '<', 8e6, "long keys: of 30 MB of entries $bytes bytes are in memory");
	cmp_ok($bytes, '>', 100000, 'long keys: and some are');
	push @first, fetch_all($s, 'FORWARD', 50);
	my @back = fetch_all($s, 'BACKWARD', 50);
	is(join(',', @first), join(',', split(/\n/,
		$node->safe_psql('postgres', "$plain SELECT right(k[1], 3) FROM lng ORDER BY k"))), 'long keys: in order');
	is(join(',', reverse @back), join(',', @first), 'long keys: and backward');
	$s->query_safe('COMMIT');
	$s->quit;
	$node->safe_psql('postgres', 'DROP TABLE lng');
}

# ---- cursors that lose the structure under way ----

# name, index, query, settings, scroll
my @queries = (
	[ 'forward', 'p_id',
		'SELECT id, pad FROM p WHERE id BETWEEN 10 AND 5500 ORDER BY id', '', 1 ],
	[ 'backward', 'p_id',
		'SELECT id, pad FROM p WHERE id BETWEEN 10 AND 5500 ORDER BY id DESC', '', 1 ],
	[ 'the whole index', 'p_id', 'SELECT id, pad FROM p ORDER BY id', '', 1 ],
	[ 'index-only', 'p_id', 'SELECT id FROM p WHERE id > 500 ORDER BY id', '', 1 ],
	[ 'index-only, backward', 'p_id',
		'SELECT id FROM p WHERE id > 500 ORDER BY id DESC', '', 1 ],
	[ 'an empty range', 'p_id', 'SELECT id FROM p WHERE id > 1000000 ORDER BY id', '', 1 ],
	[ 'one row', 'p_id', 'SELECT id, pad FROM p WHERE id = 4000', '', 1 ],
	[ 'two columns with NULLs', 'p_ab',
		'SELECT a, b FROM p ORDER BY a, b DESC NULLS LAST', '', 1 ],
	[ 'two columns, backward', 'p_ab',
		'SELECT a, b FROM p ORDER BY a DESC NULLS FIRST, b NULLS FIRST', '', 1 ],
	[ 'IS NULL', 'p_ab',
		'SELECT a, b FROM p WHERE a IS NULL ORDER BY a, b DESC NULLS LAST', '', 1 ],
	[ 'a residual condition', 'p_ab',
		"SELECT a, b FROM p WHERE a > 2 AND b > 'a' ORDER BY a, b DESC NULLS LAST", '', 1 ],
	[ 'equal keys', 'p_ab', 'SELECT a, pad FROM p WHERE a = 4', '', 1, 'a' ],
	[ 'text', 'p_b', "SELECT b FROM p WHERE b BETWEEN '3' AND 'c' ORDER BY b", '', 1 ],
	[ 'equal texts, residual', 'p_part',
		'SELECT b, id FROM p WHERE c = 2 AND id > 100 ORDER BY b, id', '', 1 ],
	[ 'partial, backward', 'p_part',
		"SELECT b, id FROM p WHERE c = 2 AND b < 'd' ORDER BY b DESC, id DESC", '', 1 ],
	[ 'an expression', 'p_expr',
		'SELECT id % 1000, a, pad IS NULL FROM p WHERE id % 1000 > 300 ORDER BY id % 1000, a',
		'', 1 ],
	[ 'LIMIT', 'p_id', 'SELECT id, pad FROM p WHERE id > 77 ORDER BY id DESC LIMIT 40', '', 1 ],
	[ 'an IN list', 'p_id',
		'SELECT id FROM p WHERE id IN (SELECT x FROM o WHERE x < 300) OR id IN (5, 9, 5000) ORDER BY id',
		'', 0 ],
	[ 'a bitmap', 'p_id',
		'SELECT count(*), sum(id) FROM p WHERE id BETWEEN 100 AND 3000',
		'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = on;', 0 ],
	[ 'bitmaps of an IN list', 'p_id',
		'SELECT count(*), sum(id), min(pad) FROM p WHERE id IN (1, 100, 4000, 10000, 20007)',
		'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = on;', 0 ],
	[ 'the inner side of a nested loop', 'p_id',
		'SELECT x, id, pad FROM o JOIN p ON id = x',
		'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off; '
		  . 'SET enable_material = off;', 0, 'x' ],
	[ 'a lateral range', 'p_id',
		'SELECT x, i FROM o, LATERAL (SELECT array_agg(id ORDER BY id) i FROM (SELECT id FROM p WHERE id > x ORDER BY id LIMIT 3) s) l',
		'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off;', 0, 'x' ],
	[ 'a prefix', 'p_ab', "SELECT a, b FROM p WHERE a = 3 AND b >= '7' ORDER BY a, b DESC NULLS LAST",
		'', 1 ]);

my %expected;

for my $memory (
	[ 'in memory', "SET work_mem = '4MB';" ],
	[ 'spilled', "SET work_mem = '64kB';" ],
	[ 'in windows', "SET work_mem = '64kB'; SET temp_file_limit = '64kB';", 150 ])
{
	my $s = $node->background_psql('postgres');
	my $offset = -s $node->logfile;

	for my $q (@queries)
	{
		my ($name, $index, $query, $settings, $scroll, $sort) = @$q;

		for my $first ($scroll ? (1, 0) : (0))
		{
			my $what = "$memory->[0], $name"
			  . ($first ? ', after the first row' : '');

			build($index);
			$s->query_safe("RESET ALL; $memory->[1] SET log_temp_files = 0; SET enable_seqscan = off; "
				  . "SET enable_bitmapscan = off; SET enable_sort = off; $settings BEGIN");
			# rows of equal keys come in no order that the query has asked for
			my $want = $expected{$query} //=
			  $node->safe_psql('postgres', "$plain $query");
			my $plan = $s->query_safe("EXPLAIN (COSTS OFF) $query");

			like($plan, qr/\b$index\b/, "$what: the plan uses the index");
			$s->query_safe('DECLARE c ' . ($scroll ? 'SCROLL ' : '')
				  . "CURSOR FOR $query");
			my @all = $first ? split(/\n/, $s->query_safe('FETCH c')) : ();
			unload($index);
			push @all, fetch_all($s, 'FORWARD', $memory->[2]);

			my @want = split /\n/, $want;
			my @got = @all;

			if ($sort)
			{
				@got = sort @got;
				@want = sort @want;
			}
			is(join("\n", @got), join("\n", @want),
				"$what: the same rows in the same order");

			if ($scroll)
			{
				my @back = reverse fetch_all($s, 'BACKWARD', $memory->[2]);

				is(join("\n", @back), join("\n", @all), "$what: and backward");
				my $at = int(@all / 3);
				is($s->query_safe("FETCH ABSOLUTE $at FROM c"),
					$at > 0 ? $all[ $at - 1 ] : '', "$what: row $at");
				is($s->query_safe('FETCH ABSOLUTE -1 FROM c'),
					@all ? $all[-1] : '', "$what: the last row");
			}
			$s->query_safe('COMMIT');
			isnt(index_state($node, $index), 'ready',
				"$what: nobody built the index for it");
		}
	}
	$s->quit;
	my $files = () = slurp_file($node->logfile, $offset) =~ /temporary file: path/g;
	if ($memory->[0] eq 'spilled')
	{
		cmp_ok($files, '>', 30, "$memory->[0]: temporary files are used ($files)");
	}
	else
	{
		is($files, 0, "$memory->[0]: no temporary file");
	}
}

# ---- at random, against an array ----

{
	my $seed = art_seed();
	my $until = time + ($ENV{PRIVATE_SECONDS} // 5);
	my $rounds = 0;
	my $wrong = '';

	while (($rounds < 4 || time < $until) && $wrong eq '')
	{
		my $lo = int(rand(6000));
		my $hi = $lo + int(rand(2) ? rand(200) : rand(6000));
		my $dir = rand(2) < 1 ? '' : 'DESC';
		my $cols = rand(2) < 1 ? 'id' : 'id, left(pad, 1)';
		my $mem = (
			"SET work_mem = '4MB'; SET temp_file_limit = -1;",
			"SET work_mem = '64kB'; SET temp_file_limit = -1;",
			"SET work_mem = '64kB'; SET temp_file_limit = '64kB';")[ int(rand(3)) ];
		my $query = "SELECT $cols FROM p WHERE id BETWEEN $lo AND $hi "
		  . 'AND id % ' . (1 + int(rand(3))) . " = 0 ORDER BY id $dir";
		my @rows = split /\n/, $node->safe_psql('postgres', "$plain $query");
		my $s = $node->background_psql('postgres');
		my $at = 0;				# 0: before the first row

		build('p_id');
		$s->query_safe("$mem SET enable_seqscan = off; SET enable_bitmapscan = off; "
			  . "SET enable_sort = off; BEGIN; DECLARE c SCROLL CURSOR FOR $query");
		my $lost = int(rand(6));

		for my $step (0 .. 25)
		{
			my $n = int(rand(2) ? rand(8) : rand(700)) + 1;
			my $what = int(rand(4));
			my ($sql, @want);

			unload('p_id') if $step == $lost;
			if ($what < 2)
			{
				$sql = "FETCH FORWARD $n FROM c";
				for (my $i = $at; $i < @rows && $i < $at + $n; $i++)
				{
					push @want, $rows[$i];
				}
				$at = $at + $n > @rows ? @rows + 1 : $at + $n;
			}
			elsif ($what == 2)
			{
				$sql = "FETCH BACKWARD $n FROM c";
				for (my $i = $at - 1; $i > 0 && $i > $at - 1 - $n; $i--)
				{
					push @want, $rows[ $i - 1 ];
				}
				$at = $at - $n < 1 ? 0 : $at - $n;
			}
			else
			{
				my $to = int(rand(@rows + 2));

				$sql = "FETCH ABSOLUTE $to FROM c";
				@want = ($rows[ $to - 1 ]) if $to >= 1 && $to <= @rows;
				$at = $to > @rows ? @rows + 1 : $to;
			}
			my $got = $s->query_safe($sql);
			my $want = join("\n", @want);

			if ($got ne $want)
			{
				$wrong = "$query; lost before step $lost; step $step: $sql: got '$got', not '$want'";
				last;
			}
		}
		$s->query_safe('COMMIT');
		$s->quit;
		$rounds++;
	}
	is($wrong, '', "cursors at random (seed $seed)");
	cmp_ok($rounds, '>', 3, "several of them ($rounds)");
}
$open->query_safe('ROLLBACK');
$open->quit;

# ---- what the snapshot sees stays, whatever VACUUM and others do ----
{
	my $s = $node->background_psql('postgres');
	my $sum = 'SELECT count(*), sum(id), md5(string_agg(id::text, $$,$$ ORDER BY id)) FROM p';
	my $want = $node->safe_psql('postgres', "$plain $sum");

	build('p_id');
	$s->query_safe("SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; "
		  . 'BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id FROM p ORDER BY id; '
		  . 'DECLARE d SCROLL CURSOR FOR SELECT id FROM p ORDER BY id DESC');
	$s->query_safe('FETCH 100 FROM c');
	unload('p_id');
	$s->query_safe('FETCH 1000 FROM c');
	$node->safe_psql('postgres',
		'DELETE FROM p WHERE id % 3 = 0; UPDATE p SET id = id + 50000 WHERE id % 7 = 1; VACUUM p; '
		  . 'INSERT INTO p SELECT i, 1, $$n$$, 2 FROM generate_series(1, 3000) i; VACUUM p;');
	for my $c ('c', 'd')
	{
		$s->query_safe("MOVE ABSOLUTE 0 IN $c");
		my @ids = split /\n/, $s->query_safe("FETCH ALL FROM $c");
		@ids = reverse @ids if $c eq 'd';
		my $total = 0;
		$total += $_ for @ids;
		my ($count, $all, $md5) = split /\|/, $want;
		is(scalar(@ids) . "|$total", "$count|$all", "cursor $c: its snapshot's rows, after VACUUM");
	}
	$s->query_safe('COMMIT');
	$s->quit;
	build('p_id');
	check_exact($node, 'p', 'p_id');
}

# ---- serializable transactions ----
$node->safe_psql('postgres', q{
	CREATE TABLE ser (k int, v int);
	INSERT INTO ser SELECT i % 10, i FROM generate_series(1, 1000) i;
	CREATE INDEX ser_k ON ser USING art (k);
	CREATE TABLE other (x int);
	ANALYZE ser;
});
my $index_plans = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; ';

# each reads what the other one writes; both scans are private
{
	my @s = map { $node->background_psql('postgres', on_error_stop => 0) } (1, 2);

	build('ser_k');
	for my $i (0, 1)
	{
		$s[$i]->query_safe("$index_plans BEGIN ISOLATION LEVEL SERIALIZABLE; "
			  . "DECLARE c CURSOR FOR SELECT v FROM ser WHERE k = $i");
	}
	unload('ser_k');
	for my $i (0, 1)
	{
		is(scalar(split /\n/, $s[$i]->query_safe('FETCH ALL FROM c')),
			100, "write skew: transaction $i reads");
	}
	for my $i (0, 1)
	{
		$s[$i]->query_safe('INSERT INTO ser VALUES (' . (1 - $i) . ', 0)');
	}
	$s[0]->query_safe('COMMIT');
	$s[1]->query('COMMIT');
	like($s[1]->{stderr}, qr/could not serialize access/, 'write skew is found');
	$_->quit for @s;
}

# a row that was written before the private scan reads its page, by a
# transaction that its snapshot does not see
{
	my $s = $node->background_psql('postgres', on_error_stop => 0);

	build('ser_k');
	$s->query_safe("$index_plans BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT 1");
	$node->safe_psql('postgres',
		'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM other; '
		  . 'INSERT INTO ser VALUES (5, 7777); COMMIT');
	$s->query_safe('DECLARE c CURSOR FOR SELECT v FROM ser WHERE k = 5');
	unload('ser_k');
	unlike($s->query_safe('FETCH ALL FROM c'), qr/7777/,
		'a private scan does not see what its snapshot does not see');
	$s->query('INSERT INTO other VALUES (1)');
	$s->query('COMMIT');
	like($s->{stderr}, qr/could not serialize access/,
		'and the conflict with its writer is found');
	$s->quit;
}
$node->safe_psql('postgres', 'DROP TABLE ser, other');

# ---- a dirty scan, and a TID that is recycled while it reads the table ----

# The expression of row -1 waits for an advisory lock in sessions that ask for
# it, so the scan stops in the middle of the table.
$node->safe_psql('postgres', q{
	CREATE FUNCTION stop_at(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		IF k = -1 AND current_setting('t.stop', true) = 'on' THEN
			PERFORM pg_advisory_xact_lock_shared(42);
		END IF;
		RETURN k;
	END $$;
	CREATE TABLE e (k int, pad text, EXCLUDE USING art (stop_at(k) WITH =));
	INSERT INTO e SELECT i, repeat('x', 1500) FROM generate_series(1, 40) i;
	INSERT INTO e VALUES (-1, repeat('x', 1500));
});
{
	my ($index) = indexes_of($node, 'e');
	my $old = $node->background_psql('postgres');
	my $lock = $node->background_psql('postgres');
	my $s = $node->background_psql('postgres', on_error_stop => 0);

	# row 3 is dead, but not to this snapshot
	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM e');
	my $tid = $node->safe_psql('postgres', "$plain SELECT ctid FROM e WHERE k = 3");
	$node->safe_psql('postgres', "$plain DELETE FROM e WHERE k = 3");
	unload($index);
	$lock->query_safe('SELECT pg_advisory_lock(42)');
	$s->query_safe("SET t.stop = on");
	$s->query_until(qr/sent/,
		"\\echo sent\nINSERT INTO e VALUES (3, repeat('x', 1500));\n\\echo done\n");
	waits_for('advisory', 'an exclusion check stands in the middle of the table');

	# it has passed row 3; nobody needs that any more
	$old->query_safe('COMMIT');
	$node->safe_psql('postgres', 'VACUUM e');
	$node->safe_psql('postgres', "INSERT INTO e VALUES (103, repeat('y', 1500))");
	is($node->safe_psql('postgres', "$plain SELECT ctid FROM e WHERE k = 103"),
		$tid, 'its line pointer has become that of another row');
	isnt(index_state($node, $index), 'ready', 'the index is still out');
	$lock->query_safe('SELECT pg_advisory_unlock(42)');
	$s->query_until(qr/done/, '');
	unlike($s->{stderr}, qr/ERROR/, 'no row is taken for what was there before it');
	is($node->safe_psql('postgres', "$plain SELECT count(*) FROM e WHERE k IN (3, 103)"),
		'2', 'both rows are there');
	fails_with($node, "INSERT INTO e VALUES (103, '')",
		'23P01', qr/conflicting key value/, 'a real conflict, private');
	fails_with($node, "UPDATE e SET k = 5 WHERE k = 7",
		'23P01', qr/conflicting key value/, 'a real conflict of an update, private');
	is( $node->safe_psql('postgres',
			"INSERT INTO e VALUES (103, '') ON CONFLICT DO NOTHING RETURNING 1"),
		'', 'ON CONFLICT DO NOTHING finds it, too');
	$_->quit for ($old, $lock, $s);
	build($index);
	check_exact($node, 'e', $index);
}

# ---- logical replication looks for rows by dirty scans ----
$node->safe_psql('postgres', 'CREATE DATABASE pub');
$node->safe_psql('pub', q{
	CREATE TABLE r (id int PRIMARY KEY, v int);
	INSERT INTO r SELECT i, 0 FROM generate_series(1, 2000) i;
	CREATE PUBLICATION r_pub FOR TABLE r;
});
$node->safe_psql('pub',
	"SELECT pg_create_logical_replication_slot('r_slot', 'pgoutput')");
$node->safe_psql('postgres', q{
	CREATE TABLE r (id int NOT NULL, v int) WITH (fillfactor = 50);
	CREATE UNIQUE INDEX r_id ON r USING art (id);
	ALTER TABLE r REPLICA IDENTITY USING INDEX r_id;
	INSERT INTO r SELECT i, 0 FROM generate_series(1, 2000) i;
});
$node->safe_psql('postgres',
	"CREATE SUBSCRIPTION r_sub CONNECTION 'dbname=pub port="
	  . $node->port . ' host=' . $node->host
	  . "' PUBLICATION r_pub WITH (create_slot = false, slot_name = 'r_slot', copy_data = false)");
unload('r_id');

# HOT updates and deletes: what goes into a unique index must have it
sub replicates
{
	my ($v, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
  SKIP:
	{
		# its apply worker knows the "=" of btree and hash only
		skip "$name: not in 17", 1 if $node->pg_version >= 17 && $node->pg_version < 18;
		$node->safe_psql('pub',
			"UPDATE r SET v = $v WHERE id % 100 = $v; DELETE FROM r WHERE id % 100 = 50 + $v");
		my $sum = 'SELECT count(*), sum(id), sum(v) FROM r';
		my $want = $node->safe_psql('pub', $sum);
		ok($node->poll_query_until('postgres', $sum, $want), $name);
	}
	return;
}
replicates(1, 'logical replication applies updates and deletes, private');
isnt(index_state($node, 'r_id'), 'ready', 'and has not built the index');

# ---- not preloaded ----
$node->safe_psql('postgres', q{
	CREATE TABLE x (k int, v int, EXCLUDE USING art (k WITH =));
	INSERT INTO x SELECT i, 0 FROM generate_series(1, 500) i;
});
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->adjust_conf('postgresql.conf', 'artidx.build_workers', undef);
$node->restart;

replicates(2, 'not preloaded: logical replication applies updates and deletes');
fails_with($node, 'INSERT INTO x VALUES (7, 1)', '23P01',
	qr/conflicting key value/, 'not preloaded: an exclusion constraint holds');
fails_with($node, 'INSERT INTO x VALUES (1000, 1), (1000, 2)', '23P01',
	qr/conflicting key value/, 'not preloaded: within a statement');
is( $node->safe_psql('postgres',
		'INSERT INTO x VALUES (7, 1), (2000, 1) ON CONFLICT DO NOTHING RETURNING k'),
	'2000', 'not preloaded: ON CONFLICT DO NOTHING');
is( $node->safe_psql('postgres',
		'UPDATE x SET v = 9 WHERE k = 2000 RETURNING v'),
	'9', 'not preloaded: update of something else');
{
	my $s = $node->background_psql('postgres');

	# the other one's row is not committed: wait for it
	$s->query_safe('BEGIN; INSERT INTO x VALUES (3000, 1)');
	fails_with($node, "SET lock_timeout = '200ms'; INSERT INTO x VALUES (3000, 2)",
		'55P03', qr/lock timeout/, 'not preloaded: waits for the other inserter');
	my $t = $node->background_psql('postgres', on_error_stop => 0);
	$t->query_until(qr/sent/,
		"\\echo sent\nINSERT INTO x VALUES (3000, 3);\n\\echo done\n");
	waits_for('transactionid', 'not preloaded: one waits for the other');
	$s->query_safe('COMMIT');
	$t->query_until(qr/done/, '');
	like($t->{stderr}, qr/conflicting key value/, 'not preloaded: and fails');
	$t->{stderr} = '';
	$s->query_safe('BEGIN; INSERT INTO x VALUES (4000, 1)');
	$t->query_until(qr/sent/,
		"\\echo sent\nINSERT INTO x VALUES (4000, 3);\n\\echo done\n");
	waits_for('transactionid', 'not preloaded: again');
	$s->query_safe('ROLLBACK');
	$t->query_until(qr/done/, '');
	is($t->{stderr}, '', 'not preloaded: and succeeds, when the first one gives up');
	$_->quit for ($s, $t);
}

# VACUUM and a dirty scan that has read a row
{
	my $old = $node->background_psql('postgres');
	my $lock = $node->background_psql('postgres');
	my $s = $node->background_psql('postgres', on_error_stop => 0);
	my $v = $node->background_psql('postgres', on_error_stop => 0);

	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM e');
	$node->safe_psql('postgres', "DELETE FROM e WHERE k = 4");
	$lock->query_safe('SELECT pg_advisory_lock(42)');
	$s->query_safe('SET t.stop = on');
	$s->query_until(qr/sent/,
		"\\echo sent\nINSERT INTO e VALUES (4, repeat('x', 1500));\n\\echo done\n");
	waits_for('advisory', 'not preloaded: a check stands in the middle of the table');
	$old->query_safe('COMMIT');
	# few dead rows: without it VACUUM would not go to the indexes
	$v->query_until(qr/sent/, "\\echo sent\nVACUUM (INDEX_CLEANUP ON) e;\n\\echo done\n");
	waits_for('tuple', 'not preloaded: VACUUM waits for the check');
	$lock->query_safe('SELECT pg_advisory_unlock(42)');
	$s->query_until(qr/done/, '');
	$v->query_until(qr/done/, '');
	is($s->{stderr} . $v->{stderr}, '', 'not preloaded: both come to their end');
	is($node->safe_psql('postgres', "SELECT count(*) FROM e WHERE k = 4"), '1',
		'not preloaded: the row is there');
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE locktype = 'tuple'"),
		'0', 'not preloaded: no lock is left');
	$_->quit for ($old, $lock, $s, $v);
	$node->safe_psql('postgres', 'VACUUM (FULL, ANALYZE) p; VACUUM x');
}

$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'artidx'");
$node->restart;
replicates(3, 'preloaded again: logical replication goes on');
for my $table ('p', 'e', 'x', 'r')
{
	for my $index (indexes_of($node, $table))
	{
		build($index);
		next if $index eq 'p_part';
		check_exact($node, $table, $index);
	}
}

my $log = slurp_file($node->logfile);
unlike($log, qr/PANIC|TRAP:|terminated by signal|WARNING:.*(leak|lock)/,
	'nothing bad in the log');

$node->safe_psql('postgres', 'DROP SUBSCRIPTION r_sub');
$node->stop;
done_testing();
