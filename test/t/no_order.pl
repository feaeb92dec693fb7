# Operator classes that are no order.  btree loses look-ups by them, but it returns no row
# that does not match, and whole scans and VACUUM are complete.  So it is here: cube with
# NaN and several dimensions, and functions that lie on purpose.
#
# For each: whole scans give every row once, both ways, index-only too, to and fro by a
# cursor, without a structure, by parallel workers, beside writers and VACUUM.  What a
# condition returns satisfies it.  VACUUM leaves no entry of a dead row.  All ends.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $seconds = $ENV{ORDER_SECONDS} // 4;
my $node = PostgreSQL::Test::Cluster->new('order');
$node->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
art_conf($node, jit => 'off', max_worker_processes => 24, log_line_prefix => $ArtTest::LOG_PREFIX,
	statement_timeout => '120s', 'own.rate' => 0, 'artidx.build_workers' => 0);
$node->start;

# as few plans as there are ways to read an index
my $whole = "SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off;\n";
my $plain = "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;\n";

sub sql { return $node->safe_psql('postgres', $_[0]); }

sub error_of
{
	my (undef, undef, $stderr) = $node->psql('postgres', $_[0]);
	return $stderr;
}

# name, operators' last character, body of the function; the last two err, by chance
my @classes = (
	[ 'chance', '#', 'IF random() < 0.33 THEN RETURN (random() * 2)::int - 1; END IF; RETURN btint4cmp(a, b);' ],
	[ 'hand', '@', 'RETURN CASE (a - b + 3000000) % 3 WHEN 0 THEN btint4cmp(a, b) WHEN 1 THEN 1 ELSE -1 END;' ],
	[ 'below', '&', 'RETURN -1;' ],
	[ 'nothing', '|', 'IF random() < current_setting(\'own.rate\')::float8 THEN RETURN NULL; END IF; RETURN btint4cmp(a, b);' ],
	[ 'raises', '~', 'IF random() < current_setting(\'own.rate\')::float8 THEN RAISE EXCEPTION \'not compared\'; END IF; RETURN btint4cmp(b, a);' ]);

sub make_class
{
	my ($name, $op, $body) = @_;
	my @ops = map { "$_$op" } ('<', '<=', '=', '>=', '>');
	my @is = ('<', '<=', '=', '>=', '>');
	my $text = "CREATE FUNCTION ${name}_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
		AS \$\$ BEGIN $body END \$\$;\n";

	foreach my $i (0 .. 4)
	{
		$text .= "CREATE FUNCTION ${name}_$i(a int, b int) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
			AS \$\$ BEGIN RETURN ${name}_cmp(a, b) $is[$i] 0; END \$\$;
			CREATE OPERATOR $ops[$i] (LEFTARG = int, RIGHTARG = int, FUNCTION = ${name}_$i);\n";
	}
	foreach my $am (qw(art btree))
	{
		$text .= "CREATE OPERATOR CLASS ${name}_ops FOR TYPE int USING $am AS "
		  . join(', ', map { 'OPERATOR ' . ($_ + 1) . " $ops[$_]" } 0 .. 4)
		  . ", FUNCTION 1 ${name}_cmp(int, int);\n";
	}
	sql($text);
}

# Rows by an ordered scan, in the order of the operator, and how many of them differ.
sub by_order
{
	my ($cols, $using, $set) = @_;
	return sql("$whole" . ($set // '') . "SELECT count(*) || ' ' || count(DISTINCT id) FROM
		(SELECT $cols FROM t ORDER BY k USING $using OFFSET 0) x");
}

# Every row once, whichever way the whole index is read.
sub whole_scans
{
	my ($what, $lt, $gt) = @_;
	my $n = sql($plain . 'SELECT count(*) FROM t');
	my $all = "$n $n";

	is(by_order('id', $lt), $all, "$what: forward");
	is(by_order('id', $gt), $all, "$what: backward");
	my $fetch = join "\n", map { "MOVE $_ IN c;" }
	  qw(700), 'BACKWARD 650', 900, 'BACKWARD 100', 'ALL';
	is(sql("BEGIN; $whole DECLARE c SCROLL CURSOR FOR SELECT id, k FROM t ORDER BY k USING $lt; $fetch
		CREATE TEMP TABLE got (n int) ON COMMIT DROP;
		DO \$\$ DECLARE c refcursor := 'c'; r record; i int := 0; BEGIN
			LOOP FETCH BACKWARD FROM c INTO r; EXIT WHEN NOT FOUND; i := i + 1; END LOOP;
			INSERT INTO got VALUES (i); END \$\$;
		SELECT n FROM got; COMMIT"), $n, "$what: a cursor, to and fro");
}

# All of it, for a class of an index t_k on t (id, k).  $of: how the rows begin.
sub no_order
{
	my ($name, $op, $class, $type, $value, $options) = @_;
	my ($lt, $eq, $gt) = map { $op eq '' ? $_ : "OPERATOR(public.$_$op)" } qw(< = >);
	my $what = "$name" . ($options ? " ($options)" : '');
	my $value_of = sub { $value =~ s/\bi\b/$_[0]/gr };
	my $c = $value_of->(57);
	my $c2 = $value_of->(1900);

	sql("DROP TABLE IF EXISTS t; CREATE TABLE t (id serial, k $type);
		INSERT INTO t (k) SELECT $value FROM generate_series(1, 2500) i;
		CREATE INDEX t_k ON t USING art (k $class) INCLUDE (id) $options; ANALYZE t");
	whole_scans("$what, built", $lt, $gt);
	sql("INSERT INTO t (k) SELECT $value FROM generate_series(1500, 3000) i");
	whole_scans("$what, with more", $lt, $gt);
	is(by_order('id', $lt, 'SET max_parallel_workers_per_gather = 3; SET parallel_setup_cost = 0;
		SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0; SET min_parallel_table_scan_size = 0;'),
		by_order('id', $lt), "$what: by workers");

	# the answers of functions that answer twice the same
	if ($name !~ /chance/)
	{
		foreach my $cond ("k $eq $c", "k $gt $c", "k $lt $c", "k $gt $c AND k $lt $c2", "k $eq ANY (ARRAY[$c, $c2])")
		{
			is(sql($whole . "SELECT count(*) FROM (SELECT id, k FROM t WHERE $cond OFFSET 0) x WHERE NOT ($cond)"),
				0, "$what: what matches $cond");
			is(sql($whole . "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = on;
				SELECT count(*) FROM (SELECT id, k FROM t WHERE $cond OFFSET 0) x WHERE NOT ($cond)"),
				0, "$what: by a bitmap, $cond");
		}
	}
	sql("DELETE FROM t WHERE id % 3 <> 0");
	is(by_order('id', $lt), sql($plain . "SELECT count(*) || ' ' || count(*) FROM t"), "$what: dead entries are killed");
	sql('VACUUM t');
	is(sql("SELECT entries FROM artidx_check('t_k')"), sql($plain . 'SELECT count(*) FROM t'), "$what: VACUUM has removed all");
	sql("INSERT INTO t (k) SELECT $value FROM generate_series(1, 2000) i");
	whole_scans("$what, after VACUUM", $lt, $gt);

	# unique: an end, and no crash; what conflicts is what the function says
	my $error = error_of("CREATE TABLE u (id serial, k $type); CREATE UNIQUE INDEX u_k ON u USING art (k $class) $options;
		INSERT INTO u (k) SELECT $value FROM generate_series(1, 300) i ON CONFLICT DO NOTHING;
		INSERT INTO u (k) SELECT $value FROM generate_series(1, 300) i ON CONFLICT DO NOTHING;
		DELETE FROM u WHERE id % 2 = 0; VACUUM u; DROP TABLE u");
	is($error, '', "$what: unique");

	# without a structure
	sql('DROP INDEX t_k');
	sql("CREATE INDEX t_k ON t USING art (k $class) INCLUDE (id) $options");
	{
		my $n = sql($plain . 'SELECT count(*) FROM t');

		is(sql("SET artidx.build_wait = 0; SELECT artidx_unload('t_k'); BEGIN; SET LOCAL lock_timeout = 0; $whole
			SET work_mem = '64kB';
			SELECT count(*) || ' ' || count(DISTINCT id) FROM (SELECT id FROM t ORDER BY k USING $lt OFFSET 0) x; COMMIT")
			=~ s/^t?\n//r, "$n $n", "$what: after it was unloaded");
	}
	sql("DELETE FROM t; VACUUM t");
	is(sql("SELECT entries FROM artidx_check('t_k')"), 0, "$what: nothing is left");
}

sql('CREATE EXTENSION artidx');
my $cube = $node->psql('postgres', 'CREATE EXTENSION cube') == 0;
SKIP:
{
	skip 'contrib has no cube here', 1 unless $cube;
	sql("SELECT artidx_mirror_opclass('cube_ops')");
	my $value = q{CASE WHEN i % 7 = 0 THEN cube('NaN'::float8) WHEN i % 11 = 0 THEN cube(ARRAY['NaN'::float8, i % 13])
		WHEN i % 3 = 0 THEN cube(ARRAY[(i * 7919) % 5000, i % 5]::float8[]) ELSE cube(((i * 7919) % 5000)::float8) END};

	no_order('cube', '', '', 'cube', $value, $_) foreach '', 'WITH (structure = btree, page_size = 256)';

	# the check says whose fault it is, and shows it
	sql("DROP TABLE t; CREATE TABLE t (id int, k cube); INSERT INTO t SELECT i, $value FROM generate_series(1, 500) i;
		CREATE INDEX t_k ON t USING art (k);");
	like(error_of("SELECT * FROM artidx_check('t_k', true)"),
		qr/operator class "cube_ops" of index "t_k" is not an order\n.*Its comparison function says: \(k\)=.*NaN.*REINDEX does not help/s,
		'the check shows three cubes');
	sql("CREATE ROLE other; GRANT SELECT (id) ON t TO other; GRANT EXECUTE ON FUNCTION artidx_check(regclass, boolean) TO other");
	unlike(error_of("SET ROLE other; SELECT * FROM artidx_check('t_k', true)"), qr/NaN/, 'but not to everybody');

	# those without NaN and of one dimension are in order
	sql("DELETE FROM t; VACUUM t; INSERT INTO t SELECT i, cube(i) FROM generate_series(1, 500) i");
	is(sql("SELECT heap_tuples FROM artidx_check('t_k', true)"), 500, 'values that are in order are');
}

foreach my $c (@classes)
{
	my ($name, $op) = @$c;

	make_class(@$c);
	no_order($name, $op, "${name}_ops", 'int', '(i * 7919) % 2003', $_)
	  foreach '', 'WITH (structure = btree, page_size = 256)';
}

# the check of those that lie
foreach my $c (@classes[0 .. 2])
{
	my ($name) = @$c;

	sql("DROP TABLE t; CREATE TABLE t (id int, k int); INSERT INTO t SELECT i, i FROM generate_series(1, 900) i;
		CREATE INDEX t_k ON t USING art (k ${name}_ops)");
	like(error_of("SELECT * FROM artidx_check('t_k', true)"),
		qr/operator class "${name}_ops" of index "t_k" is not an order|is not found by comparing|is out of order/, "$name: the check says so");
}

# errors now and then: they are the function's, and leave nothing behind
foreach my $c (@classes[3, 4])
{
	my ($name, $op) = @$c;
	my %met;

	sql("DROP TABLE t; CREATE TABLE t (id serial, k int); INSERT INTO t (k) SELECT i % 2003 FROM generate_series(1, 2000) i;
		CREATE INDEX t_k ON t USING art (k ${name}_ops) WITH (structure = btree, page_size = 256); ANALYZE t");
	foreach my $i (1 .. 60)
	{
		my $lo = $i * 30;
		my $error = error_of("SET own.rate = 0.01; $whole " . (
				"INSERT INTO t (k) VALUES ($i)", "SELECT count(id) FROM t WHERE k OPERATOR(public.=$op) $i",
				"DELETE FROM t WHERE id BETWEEN $lo AND $lo + 20", 'VACUUM t',
				"SELECT count(id) FROM t WHERE k OPERATOR(public.<$op) $lo")[ $i % 5 ]);

		$met{ $error =~ /returned NULL|not compared/ ? 'its own' : $error }++ if $error ne '';
	}
	is(join(', ', keys %met), 'its own', "$name: no errors but the function's");
	whole_scans("$name, after errors", "OPERATOR(public.<$op)", "OPERATOR(public.>$op)");
}

# beside writers and VACUUM: each whole scan gives what its snapshot has
sql(q{
	CREATE FUNCTION same(lt text, gt text) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		n bigint;
		d bigint;
		s bigint;
		q text;
	BEGIN
		PERFORM set_config('enable_indexscan', 'off', true), set_config('enable_indexonlyscan', 'off', true),
			set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'on', true);
		EXECUTE 'SELECT count(*) FROM t' INTO s;
		PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_indexonlyscan', 'on', true),
			set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true);
		FOREACH q IN ARRAY ARRAY['id', 'k'] LOOP
			FOREACH lt IN ARRAY ARRAY[lt, gt] LOOP
				EXECUTE format('SELECT count(*) FROM (SELECT %s FROM t ORDER BY k USING %s OFFSET 0) x', q, lt) INTO n;
				IF n <> s THEN
					RAISE EXCEPTION '% rows of % by % %', n, s, q, lt;
				END IF;
			END LOOP;
			EXECUTE format('SELECT count(DISTINCT id) FROM (SELECT id FROM t ORDER BY k USING %s OFFSET 0) x', lt) INTO d;
			IF d <> s THEN
				RAISE EXCEPTION '% rows of % are different', d, s;
			END IF;
		END LOOP;
	END $$;
});
foreach my $c (@classes[0 .. 2])
{
	my ($name, $op) = @$c;

	sql("DROP TABLE t; CREATE TABLE t (id serial, k int); INSERT INTO t (k) SELECT (i * 7919) % 2003 FROM generate_series(1, 2500) i;
		CREATE INDEX t_k ON t USING art (k ${name}_ops) WITH (structure = btree, page_size = 256); ANALYZE t");
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my %script = (
		insert => "\\set k random(1, 3000)\nINSERT INTO t (k) SELECT :k + i FROM generate_series(1, 5) i;\n",
		delete => "DELETE FROM t WHERE ctid = ANY (ARRAY(SELECT ctid FROM t TABLESAMPLE bernoulli(0.2)));\n",
		scan => "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT same('OPERATOR(public.<$op)', 'OPERATOR(public.>$op)');\nCOMMIT;\n",
		vacuum => "VACUUM t;\n");
	my @bench;
	foreach my $s (sort keys %script)
	{
		append_to_file("$dir/$s.sql", $script{$s});
	}
	foreach my $run ([ 2, "-f$dir/insert.sql\@10", "-f$dir/delete.sql\@6" ], [ 1, "-f$dir/vacuum.sql" ], [ 2, "-f$dir/scan.sql" ])
	{
		my ($clients, @files) = @$run;
		my %b = (out => '', err => '');

		$b{h} = IPC::Run::start([ 'pgbench', '-n', '-T', $seconds, '-c', $clients, @files, '-h', $node->host,
				'-p', $node->port, 'postgres' ], '>', \$b{out}, '2>', \$b{err});
		push @bench, \%b;
	}
	$_->{h}->finish foreach @bench;
	is(join('', map { grep { /ERROR|abort/ } split /^/, $_->{err} } @bench), '', "$name: whole scans beside writers and VACUUM");
	sql('VACUUM t');
	is(sql("SELECT entries FROM artidx_check('t_k')"), sql($plain . 'SELECT count(*) FROM t'), "$name: and no entry is left over");
}

is(join("\n", server_crashes($node)), '', 'nobody crashed');
done_testing();
