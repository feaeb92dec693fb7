# Every type (test/perl/ArtTypes.pm), with random and awkward values: a table
# with art indexes answers as its twin with btree indexes does.  What the two
# may differ in is the order of rows that are equal, and which one of them
# stands for all (1.0 or 1.00), so answers are compared by classes of equal
# values, and what is printed by how often.
# TYPE_ROWS (2000) rows, TYPES="numeric icu" only these, TYPE_ROUNDS (1) with
# other values each, SEED.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;
use ArtTwin;
use ArtTypes;

my $rows = $ENV{TYPE_ROWS} // 2000;
my $rounds = $ENV{TYPE_ROUNDS} // 1;
my $probes = 120;
my @engines = art_engines();

art_seed();
my $node = PostgreSQL::Test::Cluster->new('types');
$node->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
art_conf(
	$node,
	jit => 'off',
	'artidx.memory' => "'512MB'",
	shared_buffers => "'256MB'",
	fsync => 'off');
$node->start;

# ---- one script a type: both sides, every query marked ----

# What is asked of each side: name, columns (k: a value of the type, n: exactly
# so), whether what is printed must be so too, and the query.
sub queries
{
	my ($t, $cross) = @_;
	my @lit = map { type_literal($t, $_) } @{ $t->[4] };
	my $some = sub { my ($n) = @_; join(', ', map { $lit[ rand @lit ] } 1 .. $n) };
	my ($lo, $hi) = ($lit[ rand @lit ], $lit[ rand @lit ]);
	my %op = type_operators($t);
	my ($asc, $desc) = ("USING $op{'<'}", "USING $op{'>'}");
	my $plain = $op{'<'} !~ /[~*]/;
	my @q = (
		[ 'asc', 'k', 1, "SELECT k FROM t ORDER BY k $asc" ],
		[ 'desc', 'k', 1, "SELECT k FROM t ORDER BY k $desc" ],
		[ 'ascheap', 'kn', 0, "SELECT k, pad IS NULL FROM t ORDER BY k $asc LIMIT 500" ],
		[ 'order', 'nn', 1, "SELECT count(*), md5(string_agg(id::text, ',')) FROM (SELECT id FROM t ORDER BY k $asc, id) s" ],
		[ 'reverse', 'nn', 1, "SELECT count(*), md5(string_agg(id::text, ',')) FROM (SELECT id FROM t ORDER BY k $desc, id DESC) s" ],
		[ 'group', 'nn', 1, "SELECT count(*), md5(string_agg(id::text, ',')) FROM (SELECT id FROM t WHERE g = 3 ORDER BY k $desc NULLS LAST, id) s" ],
		[ 'groupback', 'nn', 1, "SELECT count(*), md5(string_agg(id::text, ',')) FROM (SELECT id FROM t ORDER BY g DESC, k $asc NULLS FIRST, id DESC) s" ],
		[ 'groups', 'nn', 1, "SELECT p.n, (SELECT string_agg(id::text, ',' ORDER BY id) FROM t WHERE t.g = p.n % 6 AND t.k $op{'='} p.k) FROM p" ],
		[ 'groupnull', 'nn', 1, 'SELECT count(*), sum(id) FROM t WHERE g = 2 AND k IS NULL' ],
		[ 'equal', 'nn', 1, "SELECT p.n, (SELECT string_agg(id::text, ',' ORDER BY id) FROM t WHERE t.k $op{'='} p.k) FROM p" ],
		[ 'equalonly', 'nk', 2, "SELECT p.n, x.k FROM p, LATERAL (SELECT k FROM t WHERE t.k $op{'='} p.k) x WHERE p.n < 60" ],
		[ 'between', 'nnn', 1, "SELECT a.n, (SELECT count(*) FROM t WHERE k $op{'>='} a.k AND k $op{'<='} b.k), (SELECT sum(id) FROM t WHERE k $op{'>'} a.k AND k $op{'<'} b.k) FROM p a JOIN p b ON b.n = a.n + 1 WHERE a.n <= 30" ],
		[ 'null', 'nn', 1, 'SELECT count(*), sum(id) FROM t WHERE k IS NULL' ],
		[ 'notnull', 'nn', 1, 'SELECT count(*), sum(id) FROM t WHERE k IS NOT NULL' ],
		[ 'page', 'k', 0, "SELECT k FROM t ORDER BY k $asc OFFSET " . int(rand($rows)) . ' LIMIT 20' ],
		[ 'pageback', 'k', 0, "SELECT k FROM t ORDER BY k $desc OFFSET " . int(rand($rows)) . ' LIMIT 20' ],
		[ 'range', 'k', 1, "SELECT k FROM t WHERE k $op{'>='} $lo ORDER BY k $desc" ],
		[ 'bitmap', 'nn', 1, "SELECT count(*), sum(id) FROM t WHERE k $op{'>='} $lo AND k $op{'<'} $hi", 'enable_bitmapscan = on', 'indexscan', 'indexonlyscan' ],);
	for my $o (qw(< <= > >=))
	{
		my $dir = $o =~ /</ ? $desc : $asc;

		push @q, [ "near$o", 'nk', 0, "SELECT p.n, x.k FROM p LEFT JOIN LATERAL (SELECT k FROM t WHERE t.k $op{$o} p.k ORDER BY k $dir LIMIT 2) x ON true" ];
		push @q, [ "count$o", 'nn', 1, "SELECT p.n, (SELECT count(*) FROM t WHERE t.k $op{$o} p.k) FROM p WHERE n <= 8" ];
	}
	for my $other (@$cross)
	{
		for my $o (qw(< <= > >=))
		{
			my $dir = $o =~ /</ ? $desc : $asc;

			push @q, [ "near$o$other", 'nk', 0, "SELECT p.n, x.k FROM gen.v_$other p LEFT JOIN LATERAL (SELECT k FROM t WHERE t.k $o p.k ORDER BY k $dir LIMIT 2) x ON true WHERE p.n <= 100" ];
		}
		push @q, [ "equal$other", 'nn', 1, "SELECT p.n, (SELECT string_agg(id::text, ',' ORDER BY id) FROM t WHERE t.k = p.k) FROM gen.v_$other p WHERE p.n <= 100" ];
	}
	# these go by the type's default class
	if ($plain)
	{
		push @q,
		  [ 'in', 'k', 1, 'SELECT k FROM t WHERE k IN (' . $some->(6) . ', NULL) ORDER BY k' ],
		  [ 'inback', 'kn', 0, 'SELECT k, count(*) FROM t WHERE k IN (' . $some->(3) . ') GROUP BY k ORDER BY k DESC' ],
		  [ 'inid', 'nn', 1, 'SELECT count(*), md5(string_agg(id::text, \',\')) FROM (SELECT id FROM t WHERE k IN (' . $some->(4) . ') ORDER BY k, id) s' ],
		  [ 'minmax', 'kk', 0, 'SELECT min(k), max(k) FROM t' ],
		  [ 'maxbelow', 'kk', 0, "SELECT max(k), min(k) FROM t WHERE k < $lo" ],
		  [ 'distinct', 'k', 0, 'SELECT DISTINCT k FROM t ORDER BY k' ],
		  [ 'counts', 'kn', 0, 'SELECT k, count(*) FROM t GROUP BY k ORDER BY k' ],
		  $t->[0] eq 'hstore' ? () : [ 'row', 'nk', 0, "SELECT id, k FROM t WHERE (ROW(k, id)) > (ROW($lo, 500)) ORDER BY k, id LIMIT 50" ],
		  $t->[0] eq 'hstore' ? () : [ 'rowback', 'nk', 0, "SELECT id, k FROM t WHERE (ROW(k, id)) <= (ROW($hi, 5000)) ORDER BY k DESC, id DESC LIMIT 50" ],
		  [ 'merge', 'nnn', 1, "SELECT count(*), sum(t.id), sum(p.n) FROM t JOIN p USING (k)", 'hashjoin', 'nestloop' ],
		  [ 'mergeself', 'nn', 1, "SELECT count(*), sum(a.id) FROM t a LEFT JOIN t b ON a.k = b.k AND a.id = b.id WHERE a.g < 2", 'hashjoin', 'nestloop' ],
		  [ 'exists', 'nn', 1, 'SELECT count(*), sum(n) FROM p WHERE EXISTS (SELECT FROM t WHERE t.k = p.k)' ];
	}
	push @q, [ 'like', 'nn', 1, q{SELECT count(*), sum(id) FROM t WHERE k LIKE 'a%'} ],
	  [ 'likeesc', 'nn', 1, q{SELECT count(*), sum(id) FROM t WHERE k LIKE 'a\_%'} ]
	  if $t->[1] =~ /^(text|varchar|name)\b(?!\[)/ && $t->[0] !~ /icu(case|accent|shift)/;
	my $turn = 0;
	push @q, [ 'scroll', '', 0, "BEGIN; DECLARE c SCROLL CURSOR FOR SELECT k FROM t WHERE k $op{'<='} $hi ORDER BY k $asc" ],
	  map({ [ 'fetch' . $turn++, 'k', 0, "FETCH $_ FROM c" ] }
		('25', 'BACKWARD 20', 'LAST', 'BACKWARD 30', '10', 'FIRST', 'ABSOLUTE 77')),
	  [ 'commit', '', 0, 'COMMIT' ];
	return @q;
}

# (some of it once more when the index was built from the table)
sub asked
{
	my ($pass, @q) = @_;

	return $pass == 1 ? @q : grep { $_->[0] =~ /^(asc|desc|order|group|groups|equal|near[<>]=?|in|minmax|between)$/ } @q;
}

# as the session's defaults, to which RESET goes back
my %settings = (
	(map { ("enable_$_" => 'off') } qw(seqscan bitmapscan sort incremental_sort hashagg)),
	client_min_messages => 'warning',
	$ENV{TYPE_SLOW} ? (log_min_duration_statement => $ENV{TYPE_SLOW}) : ());

sub script
{
	my ($t, $cross) = @_;
	my ($name, $type, $class, undef, undef, undef, $hook) = @$t;
	my ($n, $first) = ($rows, int($rows * 0.6));
	my @q = queries($t, $cross);
	my @more = map { type_literal($t, $_) } @{ $t->[4] };
	my $with = 'WITH (' . art_engine_options($engines[ rand @engines ]) . ')';
	my $out = '';

	for my $side (qw(bt art))
	{
		my $using = $side eq 'bt' ? 'btree' : 'art';
		# 'a' and 'a ' are equal and of unlike bytes, which btree's operator
		# classes deny: a server with assertions stops at a split between them.
		# btree does not rely on it in an index with INCLUDE.
		# (The key once more, so that it covers no more queries than art's.)
		my $inc = $side eq 'bt' && $type =~ /^bpchar(?!\()/ ? ' INCLUDE (k)' : '';

		# what is compared takes no structure
		$out .= qq{
			DROP SCHEMA IF EXISTS ${side}_$name CASCADE;
			CREATE SCHEMA ${side}_$name;
			SET search_path = ${side}_$name, gen, public;
			CREATE TABLE t (id int, k $type, g smallint, pad text);
			CREATE TABLE p (n int, k $type);
		} =~ s/^\t+//gmr;
		$out .= "CREATE INDEX t_k ON t USING $using (k $class)$inc " . ($side eq 'art' ? "$with;\n\\if :ERROR\n"
			. twin_marked("$side.1.create", "CREATE INDEX t_k ON t USING $using (k $class)") . "\\endif\n" : ";\n");
		$out .= "SET client_min_messages = warning;\n";
		$out .= twin_marked("$side.1.$_->[0]", $_->[1])
		  for [ create2 => "CREATE INDEX t_kid ON t USING $using (k $class, id)$inc" ],
		  [ create3 => "CREATE INDEX t_gk ON t USING $using (g, k $class DESC NULLS LAST, id)$inc" ],
		  [ create4 => "CREATE INDEX p_k ON p USING $using (k $class)$inc" ],
		  [ insert => "INSERT INTO t SELECT n, k, n % 6, repeat('p', n % 9) FROM gen.v_$name WHERE n <= $first ORDER BY n" ],
		  [ probes => "INSERT INTO p SELECT n - $n, k FROM gen.v_$name WHERE n > $n ORDER BY n" ],
		  [ delete => 'DELETE FROM t WHERE id % 5 = 0' ],
		  [ update => "UPDATE t SET k = v.k FROM gen.v_$name v WHERE t.id % 7 = 0 AND v.n = t.id + 1" ],
		  [ vacuum => 'VACUUM (INDEX_CLEANUP ON) t' ],
		  [ again => "INSERT INTO t SELECT n, k, n % 6, '' FROM gen.v_$name WHERE n <= $n AND (n > $first OR n % 5 = 0) ORDER BY n DESC" ],
		  [ analyze => 'VACUUM ANALYZE t' ];
	}
	for my $pass (1, 2)
	{
		$out .= twin_marked('hook', $hook) if $hook && $pass == 2;
		for my $side (qw(bt art))
		{
			$out .= "SET search_path = ${side}_$name, gen, public;\n";
			if ($pass == 2)
			{
				# built from the heap now, and then some of what came new
				$out .= twin_marked("$side.2.reindex", 'REINDEX TABLE t');
				$out .= twin_marked("$side.2.more", 'INSERT INTO t VALUES ' . join(', ', map { "(-$_, $more[$_], 3, '')" } 0 .. $#more)) unless $hook;
				$out .= twin_marked("$side.2.more", "INSERT INTO t SELECT $n + i, $t->[3], i % 6, '' FROM generate_series(1, 1000) i",
					'seed = 0.25') if $hook;
				$out .= "ANALYZE t;\n";
			}
			$out .= twin_marked("$side.$pass.$_->[0]", @$_[ 3 .. $#$_ ]) for asked($pass, @q);
			next unless $side eq 'art';
			# what it was done with
			$out .= twin_marked("plan.$pass", "EXPLAIN (COSTS OFF) $q[0][3]");
			$out .= twin_marked("check.$pass.$_", "SELECT count(*) FROM artidx_check('$_', true)") for qw(t_k t_kid t_gk);
		}
	}
	# the classes of equal values, without an index
	my $asc = $class =~ /pattern/ ? 'USING ~<~' : $class =~ /image/ ? 'USING *<' : '';
	$out .= "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_seqscan = on; SET enable_sort = on;\n";
	$out .= twin_marked('classes', "SELECT dense_rank() OVER (ORDER BY k $asc), k FROM (SELECT k FROM bt_$name.t UNION ALL SELECT k FROM gen.v_$name) v");
	$out .= twin_marked('opclasses', 'SELECT DISTINCT o.opcname FROM pg_index i, unnest(i.indclass) c JOIN pg_opclass o ON o.oid = c '
		  . "WHERE i.indrelid = 'bt_$name.t'::regclass");
	$out .= "DROP SCHEMA bt_$name, art_$name CASCADE;\n" unless $ENV{KEEP};
	$out .= twin_marked('end', 'SELECT 1');
	return ($out, \@q);
}

# ---- the comparison ----

# One query, both sides: undef, or what is different.
sub difference
{
	my ($spec, $exact, $b, $a, $class) = @_;
	my @classes = map { $_ eq 'k' ? $class : undef } split //, $spec;

	return "btree: $b->[0]; art: $a->[0]" if $a->[0] ne $b->[0];
	my ($rb, $ra) = ($b->[1], $a->[1]);
	return sprintf('btree has %d rows, art %d', scalar(@$rb), scalar(@$ra))
	  if @$rb != @$ra;
	for my $i ($exact == 2 ? () : 0 .. $#$rb)
	{
		next if $rb->[$i] eq $ra->[$i]
		  || twin_normal($rb->[$i], \@classes) eq twin_normal($ra->[$i], \@classes);
		return sprintf('row %d of %d: btree %s, art %s', $i + 1, scalar(@$rb), twin_shown($rb->[$i]), twin_shown($ra->[$i]));
	}
	return $exact && $spec =~ /k/ ? twin_miscount($rb, $ra) : undef;
}

my (%plans, %classes_used, $asked);

sub finish_type
{
	my ($run) = @_;
	my ($t, $q) = @$run{qw(type queries)};
	my $got = twin_answers($run);
	my %class = map { (split /<f>/, $_, 2)[ 1, 0 ] } @{ $got->{classes}[1] // [] };
	my @bad;

	push @bad, "$_: $got->{$_}[0]" for grep { !/^(bt|art)\.\d\./ && $got->{$_}[0] } sort keys %$got;
	for my $pass (1, 2)
	{
		push @bad, "$_: $got->{$_}[0]"
		  for grep { /^(bt|art)\.$pass\.(create|insert|probes|delete|update|vacuum|again|analyze|more|reindex)/ && $got->{$_}[0] } sort keys %$got;
		for my $query (asked($pass, @$q))
		{
			my ($name, $spec, $exact, $sql) = @$query;
			my ($b, $a) = map { $got->{"$_.$pass.$name"} // [ 'not asked', [] ] } qw(bt art);
			my $d = difference($spec, $exact, $b, $a, \%class);

			$asked++;
			push @bad, "pass $pass: $name: $d\n    $sql" if defined $d;
			push @bad, "pass $pass: $name: $b->[0]\n    $sql"
			  if !defined $d && $b->[0] && $b->[0] !~ /^42883 .*(min|max)\(|^42P22/;
		}
		my $plan = join("\n", @{ $got->{"plan.$pass"}[1] // [] });
		push @bad, "not by the index: $plan" unless $plan =~ /^\s*Index (Only )?Scan using t_k/;
		push @{ $plans{ $1 ? 'index-only' : 'index' } }, $t->[0] if $plan =~ /Index (Only )?Scan/ && $pass == 1;
	}
	$classes_used{$_} = 1 for @{ $got->{opclasses}[1] // [] };
	is(join("\n", @bad > 6 ? (@bad[ 0 .. 5 ], '... ' . @bad . ' in all') : @bad),
		'', "$t->[0]: " . (asked(1, @$q) + asked(2, @$q)) . ' queries, as btree answers them');
	return;
}

# ---- all of them ----

$node->safe_psql('postgres', 'CREATE EXTENSION artidx');
my ($types, $missing) = type_setup($node, 'postgres');
note "not on this server: @$missing" if @$missing;
# what an extension brought
$node->safe_psql('postgres', q{SELECT artidx_mirror_opclass('gen.' || opcname) FROM pg_opclass
	WHERE opcmethod = 403 AND opcnamespace = 'gen'::regnamespace});
my %wanted = map { $_ => 1 } split ' ', $ENV{TYPES} // '';
my @types = grep { !%wanted || $wanted{ $_->[0] } } @$types;

for my $round (1 .. $rounds)
{
	# the values, of all types, since one asks with those of another
	my $sql = sprintf("SELECT setseed(%.9f);\n", rand(2) - 1);
	for my $t (@$types)
	{
		my $cast = $t->[1] =~ s/ COLLATE .*//r;
		my $specials = @{ $t->[4] };

		$sql .= "DROP TABLE IF EXISTS gen.v_$t->[0]; CREATE TABLE gen.v_$t->[0] (n int, k $t->[1]);\n";
		# (an array of specials would not do: of arrays it is another thing)
		$sql .= "CREATE TEMP TABLE s (i serial, k $t->[1]);\nINSERT INTO s (k) VALUES "
		  . join(', ', map { '(' . type_literal($t, $_) . ')' } @{ $t->[4] }) . ";\n";
		$sql .= "INSERT INTO gen.v_$t->[0] SELECT n, CASE WHEN c < 0.04 THEN NULL WHEN c < 0.18 THEN (SELECT k FROM s WHERE i = 1 + x) "
		  . "ELSE ($t->[3])::$cast END FROM (SELECT n, random() AS c, floor(random() * $specials)::int AS x FROM generate_series(1, "
		  . ($rows + $probes) . ") n OFFSET 0) r;\nDROP TABLE s;\n";
	}
	$node->safe_psql('postgres', "SET client_min_messages = warning; $sql");
	my %cross;
	my %of_type;
	push @{ $of_type{$_->[0]} }, $_->[1] for map { [ split /\|/ ] } split /\n/, $node->safe_psql('postgres', q{
		SELECT atttypid, substr(relname, 3) FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
		WHERE relnamespace = 'gen'::regnamespace AND relname LIKE 'v\_%' AND relname !~ 'icu|libc' AND attname = 'k' ORDER BY 2});
	for my $pair (split /\n/, $node->safe_psql('postgres', q{
		SELECT amoplefttype, amoprighttype FROM pg_amop JOIN pg_opfamily f ON f.oid = amopfamily
		WHERE f.opfmethod = 403 AND amopstrategy = 3 AND amoplefttype <> amoprighttype}))
	{
		my ($l, $r) = map { $of_type{$_} } split /\|/, $pair;

		for my $name (@{ $l // [] })
		{
			push @{ $cross{$name} }, $r->[0] if $r;
		}
	}
	my @running;
	for my $t (@types, undef, undef)
	{
		if (@running && (!$t || @running >= 2))
		{
			finish_type(shift @running);
		}
		next unless $t;
		# a class of its own compares with nothing else
		my ($script, $q) = script($t, $t->[2] ? [] : $cross{ $t->[0] } // []);
		my $run = twin_start($node, 'postgres', $t->[0], $script, %settings);
		@$run{qw(type queries)} = ($t, $q);
		push @running, $run;
	}
}
note "$asked queries on both sides";
note "ORDER BY by an $_ scan: @{ $plans{$_} }" for sort keys %plans;

# no operator class of btree's was forgotten
is( join(' ', grep { !$classes_used{$_} } split /\n/, $node->safe_psql('postgres', q{SELECT opcname FROM pg_opclass
	WHERE opcmethod = 403 AND opcnamespace = 'pg_catalog'::regnamespace ORDER BY 1})),
	'', 'every operator class') unless %wanted || @$missing;
is(join("\n", grep { !/terminated by signal 9/ } server_crashes($node, 0)), '', 'no crash');
$node->stop;
done_testing();
