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

# A class NAME_ops of art and btree, with operators of that last two characters; what its functions say.
sub make_class
{
	my ($name, $type, $op, $cmp, $lt, $eq, $gt) = @_;
	my %says = (lt => $lt, eq => $eq, gt => $gt);

	sql("CREATE FUNCTION ${name}_cmp(a $type, b $type) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS 'BEGIN RETURN $cmp; END'");
	sql("CREATE FUNCTION ${name}_$_(a $type, b $type) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT $says{$_}'") foreach sort keys %says;
	sql("CREATE OPERATOR $_->[0]$op (LEFTARG = $type, RIGHTARG = $type, FUNCTION = ${name}_$_->[1])") foreach [ '<', 'lt' ], [ '=', 'eq' ], [ '>', 'gt' ];
	sql("CREATE OPERATOR CLASS ${name}_ops FOR TYPE $type USING $_ AS OPERATOR 1 <$op, OPERATOR 3 =$op, OPERATOR 5 >$op, FUNCTION 1 ${name}_cmp($type, $type)")
	  foreach qw(art btree);
}

# as in a game of hands: each is less than one and greater than another one
make_class('hand', 'int', '@@', 'CASE (a - b + 3000000) % 3 WHEN 0 THEN btint4cmp(a, b) WHEN 1 THEN 1 ELSE -1 END',
	map { "hand_cmp(a, b) $_ 0" } qw(< = >));
# nothing is found by it
make_class('below', 'int', '&&', '-1', 'true', 'false', 'false');
make_class('textbelow', 'text', '&&', '-1', 'true', 'false', 'false');

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

# One cursor, between the fetches of which rows come and go, and which turns round now and then.
sub by_chance
{
	my ($seed, $class, $order) = @_;
	srand($seed);
	my $one_of = sub { return $_[ int(rand(@_)) ] };
	my $rows = $one_of->(300, 3000, 6000);
	sql("DROP TABLE IF EXISTS t; CREATE TABLE t (id serial, k int) WITH (autovacuum_enabled = off, vacuum_truncate = off);
		INSERT INTO t (k) SELECT (i * 7919) % 2003 FROM generate_series(1, $rows) i;
		CREATE INDEX t_k ON t USING art (k $class) WITH (structure = btree, page_size = " . $one_of->(256, 1024) . ');
		DELETE FROM t WHERE ' . $one_of->('id % 2 <> 0', 'id % 3 <> 0', 'id % 10 <> 0', 'k / 40 % 3 <> 0'));
	my $want = sql('SELECT count(*) FROM t');
	my $s = $node->background_psql('postgres');
	my $turns = $one_of->(0, 0, 1);
	# the rows in their order, as far as they were seen; the cursor is at one of them, or before or behind all
	my (@ids, %seen, @did, @wrong);
	my ($pos, $k) = (-1, 0);

	$s->query_safe('SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off; BEGIN');
	$s->query_safe("DECLARE c SCROLL CURSOR FOR SELECT id, k FROM t ORDER BY k USING $order");
	my $fetch = sub {
		my ($way, $n) = @_;
		push @did, "FETCH $way $n";
		my @got = map { (my $id, $k) = split /\|/; $id } split /\n/, $s->query_safe("FETCH $way $n FROM c");
		$n = @got + 1 if $n eq 'ALL';
		my @known = $way eq 'FORWARD' ? @ids[ $pos + 1 .. $#ids ] : reverse @ids[ 0 .. $pos - 1 ];
		splice(@known, $n) if @known > $n;
		my @first = splice(@got, 0, scalar(@known));
		push @wrong, "step $#did: @first and not @known" if "@first" ne "@known";
		my @twice = $way eq 'FORWARD' ? grep { $seen{$_}++ } @got : @got;
		push @wrong, "step $#did: @twice, too" if @twice;
		push @ids, @got;
		if ($way eq 'FORWARD') { $pos = @first + @got < $n ? @ids : $pos + $n; }
		else { $pos = @first < $n ? -1 : $pos - $n; }
	};
	my $do = sub { push @did, @_; sql($_) foreach @_; };
	foreach (1 .. 15)
	{
		my $ahead = $order =~ /</ ? $k : $k - 100;
		my $back = sub { $fetch->('BACKWARD', $one_of->(1, 3, 20, 60)) if $turns and $one_of->(0, 1); };

		# what the cursor copies next is for the most part removed before it goes on
		if ($one_of->(0, 1))
		{
			$do->("BEGIN; INSERT INTO t (k) SELECT $ahead + i % 100 FROM generate_series(1, " . $one_of->(30, 100, 300) . ') i; ROLLBACK');
			$fetch->('FORWARD', $one_of->(1, 60, 250));
			$back->();
			$do->('VACUUM t');
			$back->();
			$fetch->('FORWARD', $one_of->(1, 250));
			next;
		}
		my $lo = $one_of->($ahead, int(rand(2003)));
		my $insert = "INSERT INTO t (k) SELECT $lo + i % " . $one_of->(1, 100, 2003) . ' FROM generate_series(1, ' . $one_of->(10, 300, 3000) . ') i';
		$do->($one_of->($insert, "BEGIN; $insert; ROLLBACK", 'VACUUM t'));
		$back->();
		$fetch->('FORWARD', $one_of->(1, 60, 250));
		last if @wrong;
	}
	$fetch->('FORWARD', 'ALL') if !@wrong;
	$s->query_safe('COMMIT');
	$s->quit;
	push @wrong, @ids . " rows of $want" if !@wrong && @ids != $want;
	is(join(', ', @wrong), '', "$class, $order, by chance, seed $seed") or diag(join('; ', @did));
}

# Steps of a cursor over rows 1, 2, .. in that order: "F 10", "B 3", or SQL.
sub steps
{
	my ($what, $class, $order, $n, $dead, $value, @steps) = @_;
	my $type = $class =~ /text/ ? 'text' : 'int';
	sql("DROP TABLE IF EXISTS t; CREATE TABLE t (id int, k $type) WITH (autovacuum_enabled = off, vacuum_truncate = off);
		CREATE INDEX t_k ON t USING art (k $class) WITH (structure = btree, page_size = " . ($type eq 'text' ? 1024 : 256) . ");
		INSERT INTO t SELECT i, $value FROM generate_series(1, $n) i; DELETE FROM t WHERE $dead");
	my @ids = split /\n/, sql('SELECT id FROM t ORDER BY id');
	@ids = reverse @ids if $order =~ />/;
	my $s = $node->background_psql('postgres');
	my $pos = -1;
	my (@got, @want);

	$s->query_safe('SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off; BEGIN');
	$s->query_safe("DECLARE c SCROLL CURSOR FOR SELECT id FROM t ORDER BY k USING $order");
	foreach my $step (@steps)
	{
		if ($step !~ /^([FB]) (\d+)$/)
		{
			sql($step);
			next;
		}
		my ($way, $rows) = ($1 eq 'F' ? 1 : -1, $2);

		foreach (1 .. $rows)
		{
			$pos += $way;
			last if $pos < 0 || $pos >= @ids;
			push @want, $ids[$pos];
		}
		push @got, split /\n/, $s->query_safe('FETCH ' . ($way > 0 ? 'FORWARD' : 'BACKWARD') . " $rows FROM c");
	}
	$s->query_safe('COMMIT');
	$s->quit;
	is("@got", "@want", "$what, $class: " . join(', ', @steps));
}

# it turns round where its entry is gone, and again
steps('the place is gone, two turns', $_->[0], $_->[1], 600, 'id BETWEEN 150 AND 170 OR id BETWEEN 175 AND 205 OR id BETWEEN 300 AND 560', 'i',
	'F 20', 'B 3', 'F 4', 'B 3', 'F 1', 'B 1', 'F 3', 'F 120', 'B 3', 'F 10', 'B 3', 'F 30', 'B 30', 'F 60', 'B 60')
  foreach [ 'below_ops', '<&&' ], [ 'below_ops', '>&&' ], [ 'own_ops', '<' ], [ 'own_ops', '>' ];
# .. with a row that does not fit the buffer
steps("a long row after a turn, $_", 'textbelow_ops', '<&&', 400, "id = $_", "CASE WHEN i IN (14, $_ - 1) THEN rpad(i::text, 130, 'x') ELSE i::text END",
	"F $_", 'VACUUM t', 'B 10')
  foreach 70 .. 85;
# .. in a leaf that has nothing left of what was there, but the rows of the next one
steps('another leaf was merged into it', $_->[0], $_->[1], 310, $_->[2], 'i', 'F 15', 'F 8', 'B 13', 'VACUUM t', 'F 20', 'B 30')
  foreach [ 'own_ops', '<', 'id BETWEEN 16 AND 30 OR id BETWEEN 35 AND 45' ], [ 'below_ops', '<&&', 'id BETWEEN 16 AND 30 OR id BETWEEN 35 AND 45' ],
  [ 'own_ops', '>', 'id BETWEEN 286 AND 295 OR id BETWEEN 271 AND 284' ], [ 'below_ops', '>&&', 'id BETWEEN 286 AND 295 OR id BETWEEN 271 AND 284' ],
  [ 'own_ops', '>', 'id BETWEEN 280 AND 295 OR id BETWEEN 256 AND 264' ];
steps('another leaf was merged into it by the scan', 'own_ops', '<', 300, 'id BETWEEN 16 AND 30 OR id BETWEEN 35 AND 45', 'i', 'F 15', 'F 8', 'B 13', 'F 20');

# meanwhile the tree has become higher by some levels
steps('the tree grows', $_->[0], $_->[1], 300, 'false', 'i', 'F 1', 'INSERT INTO t SELECT 1000 + i, i % 400 FROM generate_series(1, 20000) i', 'F 300')
  foreach [ 'own_ops', '<' ], [ 'own_ops', '>' ], [ 'below_ops', '<&&' ], [ 'below_ops', '>&&' ];

my $seed = $ENV{GONE_SEED} // 19;
foreach (1 .. $ENV{GONE_ROUNDS} // 8)
{
	by_chance($seed++, @$_) foreach [ 'own_ops', '<' ], [ 'own_ops', '>' ], [ 'hand_ops', '<@@' ], [ 'hand_ops', '>@@' ],
	  [ 'below_ops', '<&&' ], [ 'below_ops', '>&&' ];
}
# the leaf was merged into one that the scan had not come to
by_chance($_, 'own_ops', '>') foreach 703, 760;
# all is gone of the two leaves at an end, where it turns round
by_chance(90080, 'hand_ops', '<@@');
$node->stop;
done_testing();
