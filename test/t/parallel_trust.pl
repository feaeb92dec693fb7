# What one process believes of another.  A function that is labelled STABLE PARALLEL SAFE
# lies, and gives each participant of a parallel scan other scan keys: the answer is that of
# one process's keys, and nobody crashes.  Honest queries beside it still share their work.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = PostgreSQL::Test::Cluster->new('trust');
$node->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
art_conf($node, restart_after_crash => 'on', jit => 'off', log_line_prefix => $ArtTest::LOG_PREFIX,
	max_worker_processes => 24, max_parallel_workers => 16, 'artidx.build_workers' => 0);
$node->start;
my $offset = -s $node->logfile;

$node->safe_psql('postgres', q{
	CREATE EXTENSION artidx;
	-- the liar: 0 in the session's own process, 1 to 3 in its workers
	CREATE FUNCTION who() RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
	BEGIN
		-- a worker has the settings of its session.  pg_stat_activity would call it none until the
		-- postmaster has written its process ID down, and the liar would lie to itself
		IF pg_backend_pid()::text <> current_setting('lie.session', true) THEN
			RETURN 1 + pg_backend_pid() % 3;
		END IF;
		RETURN 0;
	END $$;
	-- each gives another answer for another w; arrays of 2, 1,500, 250, 40 elements, or of 60
	CREATE FUNCTION ints(w int, most int) RETURNS int[] LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
	BEGIN
		RETURN ARRAY(SELECT (i * 7 + w) % most FROM generate_series(1, (ARRAY[2, 1500, 250, 40])[w + 1]) i);
	END $$;
	CREATE FUNCTION same(w int, most int) RETURNS int[] LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
	BEGIN
		RETURN ARRAY(SELECT (i * 31 + w * 11) % most FROM generate_series(1, 60) i);
	END $$;
	CREATE FUNCTION texts(w int) RETURNS text[] LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
	BEGIN
		RETURN ARRAY(SELECT 't' || i FROM unnest(ints(w, 3000)) i);
	END $$;
	CREATE FUNCTION num(w int, n int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
	BEGIN
		RETURN n + w * 17;
	END $$;
	CREATE FUNCTION nothing(w int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
	BEGIN
		RETURN CASE w WHEN 0 THEN 17 WHEN 1 THEN NULL ELSE w END;
	END $$;
	-- called before the workers begin
	CREATE FUNCTION unloaded() RETURNS bool LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
	BEGIN
		PERFORM artidx_unload(indexrelid) FROM pg_stat_user_indexes WHERE relname = 't';
		RETURN true;
	END $$;
	-- whoever has a row for it sleeps, and lets another have the next ones
	CREATE FUNCTION slow(n int) RETURNS bool LANGUAGE plpgsql STABLE PARALLEL SAFE COST 10000 AS $$
	BEGIN
		IF n % 61 = 0 THEN PERFORM pg_sleep(0.004); END IF;
		RETURN true;
	END $$;

	CREATE TABLE t (n int, k int, a int, b int, d int, z int, x text COLLATE "C",
		c text COLLATE "und-x-icu", f text);
	INSERT INTO t SELECT i, i, i % 100, i / 100 % 50, i % 60, CASE WHEN i % 2 = 0 THEN i % 5 END,
		't' || i % 3000, 't' || i % 3000, repeat('f', 300) FROM generate_series(1, 12000) i;
	CREATE INDEX t_k ON t USING art (k) INCLUDE (n);
	CREATE INDEX t_ab ON t USING art (a, b);
	CREATE INDEX t_d ON t USING art (d, n) WITH (structure = btree);
	CREATE INDEX t_zb ON t USING art (z, b);
	CREATE INDEX t_x ON t USING art (x) WITH (structure = hydra);
	CREATE INDEX t_c ON t USING art (c);
	CREATE TABLE o (id int, n int, x text);
	INSERT INTO o SELECT i, i, repeat('o', 100) FROM generate_series(1, 12100) i;
	CREATE INDEX o_id ON o USING art (id);
	VACUUM (ANALYZE) t, o;
});

my $parallel = q{SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET max_parallel_workers_per_gather = 4;
	SET min_parallel_index_scan_size = 0; SET min_parallel_table_scan_size = 0; SET enable_seqscan = off;
	SET enable_sort = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; };
my $plain = 'SET enable_bitmapscan = off; ';
my $alone = 'SET max_parallel_workers_per_gather = 0; SET enable_seqscan = off; ';
my $sum = 'SELECT count(*), sum(n), sum(k), sum(d) FROM t WHERE slow(n) AND';
my $scan = 'Parallel Index Scan using';
my $build = q{SELECT artidx_build(indexrelid) FROM pg_stat_user_indexes WHERE relname IN ('t', 'o')};

# Each kind: its scan, and the query with W for who().
my %kinds = (
	'texts' => [ "$scan t_x", "$sum x = ANY (texts(W))" ],
	'two arrays' => [ "$scan t_ab", "$sum a = ANY (ints(W, 1500)) AND b = ANY (same(W, 50))" ],
	'one length differs' => [ "$scan t_ab", "$sum a = ANY (same(0, 100)) AND b = ANY (ints(W, 600))" ],
	'equal lengths' => [ "$scan t_ab", "$sum a = ANY (same(W, 1000)) AND b = ANY (same(W, 450))" ],
	'equal lengths, ranges' => [ "$scan t_d", "$sum d = ANY (same(W, 200)) AND n > 6000" ],
	'with NULLs' => [ "$scan t_zb", "$sum z IS NULL AND b = ANY (ints(W, 600) || NULL::int)" ],
	'a bound' => [ "$scan t_k", "$sum k > num(W * 100, 3000)" ],
	'two bounds' => [ "$scan t_k", "$sum k BETWEEN num(W * 40, 2000) AND num(W * 100, 4000)" ],
	'a point' => [ "$scan t_d", "$sum d = num(W, 2)" ],
	'a NULL' => [ "$scan t_d", "$sum d = nothing(W)" ],
	'rows' => [ "$scan t_k", "$sum (k, n) > (num(W * 100, 3000), 7)" ],
	'compared' => [ "$scan t_c", "$sum c = ANY (texts(W))" ],
	'a compared bound' => [ "$scan t_c", "$sum c > 't' || num(W * 10, 10)" ],
	'index only' => [ 'Parallel Index Only Scan using t_k',
		'SELECT count(*), sum(n), sum(k) FROM t WHERE slow(n) AND k = ANY (ints(W, 12000))' ],
	'index only, bounds' => [ 'Parallel Index Only Scan using t_k',
		'SELECT count(*), sum(n), sum(k) FROM t WHERE slow(n) AND k < num(W * 100, 3000)' ],
	'backward' => [ 'Parallel Index Only Scan Backward using t_k',
		'SELECT count(*), sum(n) FROM (SELECT n FROM t WHERE slow(n) AND k = ANY (ints(W, 12000)) ORDER BY k DESC OFFSET 0) s' ]);

# In one session: what each process would answer alone; the plan; what the liars answer
# together, so many times; and an honest query beside them.  "Before" comes when it is planned.
sub lies
{
	my ($what, $type, $query, %more) = @_;
	my $quiet = $query =~ s/slow\(.*?\)|unloaded\(\)/true/gr;
	my $script = join("\n", "SET statement_timeout = '1min';",
		q{SELECT set_config('lie.session', pg_backend_pid()::text, false) \g /dev/null}, $alone,
		(map { my $w = $_; $quiet =~ s/\bW\b/$w/gr . ';' } 0 .. 3),
		$parallel, $more{settings} // $plain,
		'PREPARE lie AS ' . $query =~ s/\bW\b/who()/gr . ';',
		'PREPARE honest AS ' . $query =~ s/\bW\b/2/gr . ';',
		'EXPLAIN EXECUTE lie \g /dev/null', $more{before} // '',
		'\echo =', 'EXPLAIN (COSTS OFF) EXECUTE lie;',
		'\echo =', 'EXECUTE lie;' x ($more{times} // 3), '\echo =', 'EXECUTE honest;');
	my ($rc, $out, $err) = $node->psql('postgres', $script);
	my ($answers, $plan, $lies, $honest) = split /^=\n?/m, $out // '';
	my @answers = split /\n/, $answers // '';
	my %is = map { $_ => 1 } @answers;
	my @lies = split /\n/, $lies // '';
	my $rows = $more{rows} // 1;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	like($plan, qr/$type/s, "$what: the plan");
	is($err, '', "$what: nobody errs");
	is(scalar @lies, ($more{times} // 3) * $rows, "$what: everybody lives")
	  or comes_back($node) && $node->safe_psql('postgres', $build);
	is(join("\n", grep { !$is{$_} } @lies), '', "$what: the answers are one process's") or diag("not of: @answers");
	is($honest, join("\n", @answers[2 * $rows .. 3 * $rows - 1]), "$what: an honest one beside it");
	return;
}

lies($_, "$kinds{$_}[0] ", $kinds{$_}[1]) for sort keys %kinds;
is(join("\n", server_crashes($node, $offset)), '', 'nothing has crashed');
lies("workers only: $_", "$kinds{$_}[0] ", $kinds{$_}[1], before => 'SET parallel_leader_participation = off;')
  for 'two arrays', 'a bound';

# ---- without a structure, begun again, and where nothing is shared ----

for my $name ('texts', 'equal lengths', 'a bound', 'a compared bound', 'index only, bounds')
{
	my $sealed = q{SELECT count(*) FROM artidx_indexes WHERE relname = 't' AND state <> 'ready'};

	lies("private: $name", "$kinds{$name}[0] ", "$kinds{$name}[1] AND (SELECT unloaded())", times => 1);
	is($node->safe_psql('postgres', $sealed), '6', "private: $name: there was no structure");
	$node->safe_psql('postgres', $build);
}

# the workers of a subquery are started anew for each row
lies("begun again: $_", "Nested Loop.*Gather.*$kinds{$_}[0]",
	"SELECT s.* FROM generate_series(1, 4) g LEFT JOIN ($kinds{$_}[1]) s ON true", times => 1, rows => 4)
  for 'index only', 'a bound';

# one process makes the bitmap for all, by its own keys
lies('bitmap', 'Parallel Bitmap Heap Scan.*Bitmap Index Scan on t_d', $kinds{'equal lengths, ranges'}[1],
	settings => 'SET enable_indexscan = off;');

# the inner side of a batched join is every process's own, and so are the values it looks for
# (19 prefers of two partial paths whose costs differ by less than a hundredth that which begins sooner)
$node->safe_psql('postgres', 'ALTER FUNCTION slow COST 1');
lies("batched: $_->[0]", 'Gather.*Batched.*Inner[^\n]*: o_id.*Parallel Index[\w ]* using t_k',
	"SELECT count(*) FROM t JOIN o ON o.id = t.n + $_->[1] WHERE slow(t.n) AND t.k > $_->[2]",
	settings => $plain . 'SET artidx.batched_joins = on;')
  for [ 'outer rows', '0', 'num(W * 100, 3000)' ], [ 'values', 'num(W, 0)', '3000' ];
$node->safe_psql('postgres', 'ALTER FUNCTION slow COST 10000');

# ---- honest participants do share ----

my $explained;
my $shared = 0;
for my $try (1 .. 20)
{
	$explained = $node->safe_psql('postgres', "$parallel$plain PREPARE p AS " . $kinds{texts}[1] =~ s/\bW\b/1/r
		  . "; EXPLAIN EXECUTE p \\g /dev/null\nSET parallel_leader_participation = off;"
		  . ' EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF) EXECUTE p;');
	my ($scan) = $explained =~ /(Parallel Index Scan using t_x.*)/s;
	$shared = () = ($scan // '') =~ /^ +Worker \d+: +actual rows=[1-9]/mg;
	last if $shared > 1;
}
cmp_ok($shared, '>', 1, 'several workers with the same keys have rows each') || diag($explained);

is(join("\n", server_crashes($node, $offset)), '', 'nothing has crashed');
$node->stop;
done_testing();
