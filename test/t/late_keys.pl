# Scan keys whose arguments change after index_rescan and before the first fetch, as
# pg_squeeze does it: each structure answers as btree does.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('latekeys', 'artidx.build_workers' => 0);
my $dir = build_modules('art_latekeys');

sub sql { return $node->safe_psql('postgres', $_[0]); }

sql("CREATE FUNCTION art_late_keys(regclass, int, int, int, text) RETURNS int[]
	AS '$dir/art_latekeys' LANGUAGE C STRICT;
	CREATE TABLE t (id int);
	INSERT INTO t SELECT i % 200 FROM generate_series(1, 1000) i;
	CREATE INDEX bt ON t USING btree (id);");
my @indexes;
foreach my $engine (art_engines())
{
	my $name = "a_$engine" =~ s/\W/_/gr;

	sql("CREATE INDEX $name ON t USING art (id) WITH (" . art_engine_options($engine) . ')');
	push @indexes, $name;
}
# keys that are compared, by a function that is core's and by one that is not
sql(q{
	CREATE FUNCTION own_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS
		$$ BEGIN RETURN btint4cmp(a, b); END $$;
	CREATE OPERATOR CLASS own_ops FOR TYPE int USING art AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,
		OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 own_cmp(int, int);
	CREATE INDEX a_own ON t USING art (id own_ops);
});

foreach my $name (@indexes, 'a_own', 'a_private')
{
	if ($name eq 'a_private')
	{
		sql('CREATE INDEX a_private ON t USING art (id); SELECT artidx_unload(\'a_private\')');
	}
	my @wrong;
	foreach my $way (qw(forward backward bitmap again))
	{
		foreach my $strategy (1 .. 5)
		{
			# a private scan and a structure read the rows of one key in the order of their TIDs, as btree
			my $bt = sql("SELECT art_late_keys('bt', $strategy, 5, 190, '$way')");
			my $art = sql("SELECT art_late_keys('$name', $strategy, 5, 190, '$way')");

			push @wrong, "$way $strategy" if $bt ne $art;
			push @wrong, "$way $strategy: nothing" if $bt eq '{}';
		}
	}
	is("@wrong", '', "$name: the keys are those at the first fetch");
}

done_testing();
