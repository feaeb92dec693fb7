# A scan of a class that is no order goes on from where it was: behind an entry that VACUUM has
# removed meanwhile, in leaves that others have split many times over, and the other way.  It
# gives each row of its snapshot once.  A cursor stops at many places, so that some of them are
# at the end of what it has copied.  The same where all is dead that it has copied behind its place,
# and it or VACUUM removes that.
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
			sql('DROP TABLE IF EXISTS t; CREATE TABLE t (id serial, k int) WITH (autovacuum_enabled = off);
				INSERT INTO t (k) SELECT (i * 7919) % 2003 FROM generate_series(1, 2400) i;
				CREATE INDEX t_k ON t USING art (k below_ops) WITH (structure = btree, page_size = 256)');
			my @ids = split /\n/, sql("SET enable_seqscan = off; SET enable_sort = off; SELECT id FROM t ORDER BY k USING $order");
			sql('DELETE FROM t WHERE id IN (' . join(', ', @ids[ $first .. $first + 1299 ]) . ')');
			stops("$order, all is dead behind it" . (@$meanwhile ? ', VACUUM' : ''), $order, $first, $meanwhile, 'ALL', 1100);
		}
	}
}
$node->stop;
done_testing();
