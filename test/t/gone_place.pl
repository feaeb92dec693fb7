# A scan of a class that is no order goes on from where it was: behind an entry that VACUUM has
# removed meanwhile, in leaves that others have split many times over, and the other way.  It
# gives each row of its snapshot once.  A cursor stops at many places, so that some of them are
# at the end of what it has copied.  The same where all is dead that it has copied behind its place,
# and it or VACUUM removes that.  And by chance (GONE_SEED, GONE_ROUNDS), of a class that is an
# order, too: rows come and go everywhere, so that leaves are cut into many, and are merged.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('gone', 'artidx.build_workers' => 0, jit => 'off');

sub sql { return $node->safe_psql('postgres', $_[0]); }

# as in a game of hands: each is less than one and greater than another one
sql(q{
	CREATE FUNCTION hand_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS
		'BEGIN RETURN CASE (a - b + 3000000) % 3 WHEN 0 THEN btint4cmp(a, b) WHEN 1 THEN 1 ELSE -1 END; END';
	CREATE FUNCTION hand_lt(a int, b int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT hand_cmp(a, b) < 0';
	CREATE FUNCTION hand_gt(a int, b int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT hand_cmp(a, b) > 0';
	CREATE FUNCTION hand_eq(a int, b int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT hand_cmp(a, b) = 0';
	CREATE OPERATOR =@@ (LEFTARG = int, RIGHTARG = int, FUNCTION = hand_eq);
	CREATE OPERATOR <@@ (LEFTARG = int, RIGHTARG = int, FUNCTION = hand_lt);
	CREATE OPERATOR >@@ (LEFTARG = int, RIGHTARG = int, FUNCTION = hand_gt);
	CREATE OPERATOR CLASS hand_ops FOR TYPE int USING art AS OPERATOR 1 <@@, OPERATOR 3 =@@, OPERATOR 5 >@@, FUNCTION 1 hand_cmp(int, int);
	CREATE OPERATOR CLASS hand_ops FOR TYPE int USING btree AS OPERATOR 1 <@@, OPERATOR 3 =@@, OPERATOR 5 >@@, FUNCTION 1 hand_cmp(int, int)});

# nothing is found by it
sql(q{
	CREATE FUNCTION below_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN -1; END';
	CREATE FUNCTION below_lt(a int, b int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT true';
	CREATE FUNCTION below_gt(a int, b int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT false';
	CREATE OPERATOR =&& (LEFTARG = int, RIGHTARG = int, FUNCTION = below_gt);
	CREATE OPERATOR <&& (LEFTARG = int, RIGHTARG = int, FUNCTION = below_lt);
	CREATE OPERATOR >&& (LEFTARG = int, RIGHTARG = int, FUNCTION = below_gt);
	CREATE OPERATOR CLASS below_ops FOR TYPE int USING art AS OPERATOR 1 <&&, OPERATOR 3 =&&, OPERATOR 5 >&&, FUNCTION 1 below_cmp(int, int);
	CREATE OPERATOR CLASS below_ops FOR TYPE int USING btree AS OPERATOR 1 <&&, OPERATOR 3 =&&, OPERATOR 5 >&&, FUNCTION 1 below_cmp(int, int)});

# What a cursor gives that stops after $first rows, where $meanwhile happens, and goes on.
sub stops
{
	my ($what, $order, $first, $meanwhile, $then, $want) = @_;
	my $s = $node->background_psql('postgres');

	$s->query_safe('SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off; BEGIN');
	$s->query_safe("DECLARE c SCROLL CURSOR FOR SELECT id FROM t ORDER BY k USING $order");
	my @got = split /\n/, $s->query_safe("FETCH $first FROM c");
	sql($_) foreach @$meanwhile;
	my @more = split /\n/, $s->query_safe("FETCH $then FROM c");
	$s->query_safe('COMMIT');
	$s->quit;

	my %seen;
	if ($then =~ /BACKWARD/)
	{
		is(join(' ', @more), join(' ', reverse @got[0 .. $#got - 1]), "$what, stopped at $first: the way back");
		return;
	}
	$seen{$_}++ foreach @got, @more;
	my @twice = grep { $seen{$_} > 1 } keys %seen;
	is(scalar(keys %seen) . ' rows, twice: ' . @twice, "$want rows, twice: 0", "$what, stopped at $first");
}

for my $order ('<@@', '>@@')
{
	for my $first (1, 30, 63, 64, 65, 100, 150, 200, 333, 600)
	{
		for my $case (0 .. 2)
		{
			sql('DROP TABLE IF EXISTS t; CREATE TABLE t (id serial, k int);
				INSERT INTO t (k) SELECT (i * 7919) % 2003 FROM generate_series(1, 2400) i;
				CREATE INDEX t_k ON t USING art (k hand_ops) WITH (structure = btree, page_size = 256);
				DELETE FROM t WHERE id % 3 <> 0');
			stops("$order, VACUUM", $order, $first, ['VACUUM t'], 'ALL', 800) if $case == 0;
			stops("$order, VACUUM", $order, $first, ['VACUUM t'], 'BACKWARD ALL', 800) if $case == 1;
			stops("$order, more rows and VACUUM", $order, $first, [
				'INSERT INTO t (k) SELECT (i * 7919) % 2003 FROM generate_series(1, 4000) i', 'VACUUM t'], 'ALL', 800)
			  if $case == 2;
		}
	}
}
# 1,300 rows behind the place are dead to all; a batch has 256 of them at most
for my $order ('<&&', '>&&')
{
	for my $first (1, 30, 100, 200)
	{
		for my $meanwhile ([], ['VACUUM t'])
		{
			sql('DROP TABLE IF EXISTS t; CREATE TABLE t (id serial, k int) WITH (autovacuum_enabled = off, vacuum_truncate = off);
				INSERT INTO t (k) SELECT (i * 7919) % 2003 FROM generate_series(1, 2400) i;
				CREATE INDEX t_k ON t USING art (k below_ops) WITH (structure = btree, page_size = 256)');
			my @ids = split /\n/, sql("SET enable_seqscan = off; SET enable_sort = off; SELECT id FROM t ORDER BY k USING $order");
			sql('DELETE FROM t WHERE id IN (' . join(', ', @ids[ $first .. $first + 1299 ]) . ')');
			stops("$order, all is dead behind it" . (@$meanwhile ? ', VACUUM' : ''), $order, $first, $meanwhile, 'ALL', 1100);
		}
	}
}

# an order, but of a function that is not core's: nothing is believed of it
sql(q{
	CREATE FUNCTION own_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN btint4cmp(a, b); END';
	CREATE OPERATOR CLASS own_ops FOR TYPE int USING art AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 own_cmp(int, int)});

# One cursor, forward or backward, between the fetches of which rows come and go.
sub by_chance
{
	my ($seed, $class, $order) = @_;
	srand($seed);
	my $one_of = sub { return $_[ int(rand(@_)) ] };
	my $rows = $one_of->(300, 3000, 6000);
	sql("DROP TABLE IF EXISTS t; CREATE TABLE t (id serial, k int) WITH (autovacuum_enabled = off, vacuum_truncate = off);
		INSERT INTO t (k) SELECT (i * 7919) % 2003 FROM generate_series(1, $rows) i;
		CREATE INDEX t_k ON t USING art (k $class) WITH (structure = btree, page_size = " . $one_of->(256, 1024) . ');
		DELETE FROM t WHERE id % ' . $one_of->(2, 3, 10) . ' <> 0');
	my $want = sql('SELECT count(*) FROM t');
	my $s = $node->background_psql('postgres');
	my (%seen, @did);
	my $k = 0;

	$s->query_safe('SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off; BEGIN');
	$s->query_safe("DECLARE c SCROLL CURSOR FOR SELECT id, k FROM t ORDER BY k USING $order");
	my $fetch = sub {
		push @did, "FETCH $_[0]";
		foreach (split /\n/, $s->query_safe("FETCH $_[0] FROM c"))
		{
			(my $id, $k) = split /\|/;
			$seen{$id}++;
		}
	};
	my $do = sub { push @did, @_; sql($_) foreach @_; };
	foreach (1 .. 15)
	{
		my $ahead = $order =~ /</ ? $k : $k - 100;

		# what the cursor copies next is for the most part removed before it goes on
		if ($one_of->(0, 1))
		{
			$do->("BEGIN; INSERT INTO t (k) SELECT $ahead + i % 100 FROM generate_series(1, " . $one_of->(30, 100, 300) . ') i; ROLLBACK');
			$fetch->($one_of->(1, 60, 250));
			$do->('VACUUM t');
			$fetch->($one_of->(1, 250));
			next;
		}
		my $lo = $one_of->($ahead, int(rand(2003)));
		my $insert = "INSERT INTO t (k) SELECT $lo + i % " . $one_of->(1, 100, 2003) . ' FROM generate_series(1, ' . $one_of->(10, 300, 3000) . ') i';
		$do->($one_of->($insert, "BEGIN; $insert; ROLLBACK", 'VACUUM t'));
		$fetch->($one_of->(1, 60, 250));
	}
	$fetch->('ALL');
	$s->query_safe('COMMIT');
	$s->quit;

	my @twice = grep { $seen{$_} > 1 } keys %seen;
	is(scalar(keys %seen) . ' rows, twice: ' . @twice, "$want rows, twice: 0", "$class, $order, by chance, seed $seed")
	  or diag(join('; ', @did));
}

# meanwhile the tree has become higher by some levels
foreach ([ 'own_ops', '<' ], [ 'own_ops', '>' ], [ 'hand_ops', '<@@' ], [ 'below_ops', '>&&' ])
{
	my ($class, $order) = @$_;

	sql("DROP TABLE t; CREATE TABLE t (id serial, k int) WITH (autovacuum_enabled = off);
		INSERT INTO t (k) SELECT i FROM generate_series(1, 300) i;
		CREATE INDEX t_k ON t USING art (k $class) WITH (structure = btree, page_size = 256);");
	stops("$class, $order, the tree grows", $order, 1, ['INSERT INTO t (k) SELECT i % 400 FROM generate_series(1, 20000) i'], 'ALL', 300);
}

my $seed = $ENV{GONE_SEED} // 19;
foreach (1 .. $ENV{GONE_ROUNDS} // 8)
{
	by_chance($seed++, @$_) foreach [ 'own_ops', '<' ], [ 'own_ops', '>' ], [ 'hand_ops', '<@@' ], [ 'hand_ops', '>@@' ],
	  [ 'below_ops', '<&&' ], [ 'below_ops', '>&&' ];
}
# the leaf was merged into one that the scan had not come to
by_chance(873, 'below_ops', '>&&');
$node->stop;
done_testing();
