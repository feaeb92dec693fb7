# Random tables, indexes, changes and queries, to a side with btree indexes and
# to one with art indexes: the same answers, and the same as without an index.
# A round starts from fresh tables; one that shows a difference is repeated
# with less and less of it, and what is left is printed as a script.
# First undisturbed, then with too little memory, builders that are ended,
# autovacuum, and more sessions at a time.
# DIFF_SECONDS (12) in all, SEED; ROUND=n runs that round alone.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;
use ArtTwin;
use ArtTypes;

my $seconds = $ENV{DIFF_SECONDS} // 12;
my $seed = art_seed();
my @engines = art_engines();

my $node = PostgreSQL::Test::Cluster->new('differential');
$node->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
art_conf(
	$node,
	jit => 'off',
	'artidx.memory' => "'128MB'",
	fsync => 'off',
	max_worker_processes => 16,
	max_parallel_workers => 8,
	log_line_prefix => $ArtTest::LOG_PREFIX);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION artidx');
my ($types) = type_setup($node, 'postgres');
# Before 15.20 and the releases of that day, btree's index-only scans by bpchar_pattern_ops give
# the trailing spaces of other rows, and btree's own assertions fail for bpchar, too (seen on 15.18).
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');
my $btree_errs = $version < ({ 15 => 150020, 16 => 160016, 17 => 170012, 18 => 180006 }->{ int($version / 10000) } // 0);
# (its operators have names of their own, which some of the below does not know)
my $of_btree = !$btree_errs ? 'none' : $node->safe_psql('postgres', 'SHOW debug_assertions') eq 'on' ? 'bpcharpat|bpcharany' : 'bpcharpat';
my @types = grep { $_->[0] !~ /^(hstore|image|$of_btree)$/ } @$types;
$node->safe_psql('postgres', q{SELECT artidx_mirror_opclass('gen.' || opcname) FROM pg_opclass
	WHERE opcmethod = 403 AND opcnamespace = 'gen'::regnamespace});

# ---- what the server can do, by trying ----

my %can;

sub can
{
	my ($what, $sql) = @_;
	my ($rc) = $node->psql('postgres', "BEGIN; CREATE TABLE probe (a int, b int); $sql; ROLLBACK", on_error_stop => 1);

	return $can{$what} = $rc == 0;
}
can(include => 'CREATE INDEX ON probe USING art (a) INCLUDE (b)');
can(unlogged => 'CREATE UNLOGGED TABLE u (a int); CREATE INDEX ON u USING art (a)');
can(temp => 'CREATE TEMP TABLE u (a int); CREATE INDEX ON u USING art (a)');
can(nulls => 'CREATE UNIQUE INDEX ON probe USING art (a) NULLS NOT DISTINCT');
can(exclude => 'ALTER TABLE probe ADD EXCLUDE USING art (a WITH =)');
can(deferrable => 'ALTER TABLE probe ADD EXCLUDE USING art (a WITH =) DEFERRABLE INITIALLY DEFERRED');
can(cluster => 'CREATE INDEX i ON probe USING art (a); CLUSTER probe USING i');
note 'art takes: ' . join(' ', grep { $can{$_} } sort keys %can);

# ---- a pool of values of each type, few enough to meet again ----

my $db = 'postgres';
my (%pool, %class, %has_min);
{
	my $sql = sprintf("SELECT setseed(%.9f);\n", ($seed % 1999) / 2000);

	for my $t (@types)
	{
		my $cast = $t->[1] =~ s/ COLLATE .*//r;
		my @special = sort { rand() <=> 0.5 } @{ $t->[4] };

		splice(@special, 14) if @special > 14;
		$sql .= "CREATE TABLE gen.pool_$t->[0] (i serial, k $t->[1]);\nINSERT INTO gen.pool_$t->[0] (k) VALUES "
		  . join(', ', map { '(' . type_literal($t, $_) . ')' } @special) . ";\n"
		  . "INSERT INTO gen.pool_$t->[0] (k) SELECT ($t->[3])::$cast FROM generate_series(1, 14) n;\n";
	}
	$node->safe_psql($db, "SET client_min_messages = warning; $sql");
	my $script = '';
	for my $t (@types)
	{
		my $by = $t->[2] =~ /pattern/ ? 'USING ~<~' : '';

		$script .= twin_marked($t->[0], "SELECT dense_rank() OVER (ORDER BY k $by), k FROM gen.pool_$t->[0]");
		$script .= twin_marked("min_$t->[0]", "SELECT min(k) IS NULL FROM gen.pool_$t->[0]");
	}
	my $got = twin_answers(twin_start($node, $db, 'pools', $script . twin_marked('end', 'SELECT 1')));
	for my $t (@types)
	{
		for my $row (@{ $got->{ $t->[0] }[1] })
		{
			my ($c, $text) = split /<f>/, $row, 2;

			$class{ $t->[0] }{$text} = "#$c";
			push @{ $pool{ $t->[0] } }, $text;
		}
		$has_min{ $t->[0] } = !$got->{"min_$t->[0]"}[0];
	}
}

# ---- a round: statements for both sides ----
#
# {AM}, {WITH} and, before the statement, who runs it: "art" for one that only
# art understands.  A query says what its columns are: the name of a type, or
# '' for what must be the same to the letter; which of them it is ordered by;
# and whether the order or a LIMIT leave the rows open.

my (@table, @stmt, $pressure, $prepared);

sub pick { return $_[ rand @_ ]; }
sub chance { return rand() < $_[0]; }
sub type_of { my ($n) = @_; return (grep { $_->[0] eq $n } @types)[0]; }

sub literal
{
	my ($t, $nulls) = @_;

	return 'NULL::' . ($t->[1] =~ s/ COLLATE .*//r) if chance($nulls // 0.06);
	return type_literal($t, pick(@{ $pool{ $t->[0] } }));
}

sub stmt { my ($sql, %o) = @_; push @stmt, { sql => $sql, %o }; return; }

my @encoded = qw(bool int2 int4 int8 oid text textd textpat bytea uuid date timestamp timestamptz name);

# A key column: [expression as in a query, its type or '', class, text of the column]
sub key_column
{
	my ($table) = @_;
	my $c = pick(@{ $table->{cols} });
	my $t = $c->{type};
	my $kind = rand();

	return [ $c->{name}, $t, "$c->{name} $t->[2]" ] if $kind < 0.8;
	return [ "(CASE WHEN id % 3 = 0 THEN $c->{name} END)", $t, "(CASE WHEN id % 3 = 0 THEN $c->{name} END) $t->[2]" ] if $kind < 0.87;
	return [ "($c->{name} IS NULL)", undef, "($c->{name} IS NULL)" ] if $kind < 0.9;
	return [ 'id', undef, 'id' ] if $kind < 0.95;
	return [ '(id % 7)', undef, '(id % 7)' ];
}

my $index_number;

sub make_index
{
	my ($table, %o) = @_;
	my %used;
	my @keys = grep { !$used{ $_->[2] }++ } map { key_column($table) } 1 .. pick(1, 1, 1, 2, 2, 3, 4);
	my $compared = grep { my $k = $_; $k->[1] && !grep { $_ eq $k->[1][0] } @encoded } @keys;
	my $unique = !$pressure && chance(0.2);
	my $name = 'i' . $index_number++;
	my @with;

	for my $k (@keys)
	{
		$k->[3] = chance(0.3) ? 'DESC' : 'ASC';
		$k->[4] = chance(0.3) ? pick('NULLS FIRST', 'NULLS LAST') : $k->[3] eq 'ASC' ? 'NULLS LAST' : 'NULLS FIRST';
	}
	# most of what is unique is so by the id, or nothing would get in
	if ($unique && chance(0.4) && !$used{id})
	{
		push @keys, [ 'id', undef, 'id', 'ASC', 'NULLS LAST' ];
	}
	push @with, art_engine_options(pick(@engines)) if !$compared && chance(0.7);
	push @with, 'fillfactor = ' . pick(10, 50, 100) if chance(0.1);
	push @with, 'page_size = ' . pick(256, 512, 4096, 16384) if !$compared && @with && $with[0] =~ /structure = btree/ && chance(0.5);
	push @with, "max_memory = '" . pick('64kB', '128kB', '1MB') . "'" if $pressure && chance(0.3);
	my $include = $can{include} && chance(0.25) ? pick(@{ $table->{cols} }) : undef;
	my $c = pick(@{ $table->{cols} });
	my %op = type_operators($c->{type});
	my $where = chance(0.2)
	  ? pick('id % 2 = 0', "$c->{name} IS NOT NULL", "$c->{name} IS NULL", 'id > 40', "$c->{name} $op{'>='} " . literal($c->{type}, 0))
	  : undef;
	my $sql = 'CREATE ' . ($unique ? 'UNIQUE ' : '') . "INDEX $name ON $table->{name} USING {AM} ("
	  . join(', ', map { "$_->[2] $_->[3] $_->[4]" } @keys) . ')'
	  . ($include ? " INCLUDE ($include->{name})" : '')
	  . ($unique && $can{nulls} && chance(0.3) ? ' NULLS NOT DISTINCT' : '')
	  . '{WITH' . join(', ', @with) . '}'
	  . ($where ? " WHERE $where" : '');
	$sql =~ s/^CREATE (UNIQUE )?INDEX/"CREATE " . ($1 \/\/ '') . "INDEX CONCURRENTLY"/e if chance(0.05) && !$o{in_transaction};
	stmt($sql);
	push @{ $table->{indexes} },
	  { name => $name, keys => \@keys, unique => $unique, where => $where, include => $include,
		compared => $compared, expr => scalar(grep { $_->[0] =~ /^\(/ } @keys), table => $table };
	return;
}

sub make_table
{
	my ($n) = @_;
	my @cols = map { { name => 'abcd' =~ /^.{$_}(.)/ && $1, type => pick(@types) } } 0 .. pick(0, 1, 1, 2, 3);
	my $table = { name => "t$n", cols => \@cols, indexes => [], next => 1 };

	# something to join on
	$cols[0]{type} = $table[0]{cols}[0]{type} if @table;
	# an updatable column that no index has, for HOT; and wide rows, for many pages
	my $kind = $can{unlogged} && chance(0.1) ? 'UNLOGGED ' : $can{temp} && chance(0.1) ? 'TEMP ' : '';
	stmt("CREATE ${kind}TABLE t$n (id int, n int DEFAULT 0, "
		  . join(', ', map { "$_->{name} $_->{type}[1]" } @cols)
		  . ', pad text)' . (chance(0.3) ? ' WITH (fillfactor = 50)' : ''));
	$table->{temp} = $kind eq 'TEMP ';
	push @table, $table;
	return $table;
}

# One row is (id, a, b, ...)
sub row_values
{
	my ($table) = @_;

	return '(' . join(', ', $table->{next}++, map { literal($_->{type}) } @{ $table->{cols} }) . ')';
}

sub col_names { my ($table) = @_; return join(', ', 'id', map { $_->{name} } @{ $table->{cols} }); }

sub insert_many
{
	my ($table, $n) = @_;
	my ($from, $i) = ($table->{next}, 0);
	my (@join, @col);

	for my $c (@{ $table->{cols} })
	{
		my $size = @{ $pool{ $c->{type}[0] } };

		push @join, sprintf('LEFT JOIN gen.pool_%s p%d ON p%d.i = (g * %d + g / %d + %d) %% %d',
			$c->{type}[0], $i, $i, pick(1, 5, 7, 11, 13), pick(2, 3, 10, 50), int(rand(9)), $size + 2);
		push @col, "p$i.k";
		$i++;
	}
	stmt("INSERT INTO $table->{name} (" . col_names($table) . ", pad) SELECT g, " . join(', ', @col)
		  . ", repeat('x', " . pick(0, 0, 50, 400) . ") FROM generate_series($from, " . ($from + $n - 1) . ") g @join ORDER BY g");
	$table->{next} += $n;
	return;
}

# ---- what a query asks for ----

sub atom
{
	my ($table, $x) = @_;
	my $p = $x ? "$x." : '';
	my $c = pick(@{ $table->{cols} });

	# mostly what an index begins with
	if (my $index = chance(0.6) && pick(@{ $table->{indexes} }))
	{
		my ($first) = grep { $_->{name} eq $index->{keys}[0][0] } @{ $table->{cols} };

		$c = $first if $first;
	}
	my ($t, $name) = ($c->{type}, "$p$c->{name}");
	my %op = type_operators($t);
	my $r = rand();

	return "$name $op{ pick(qw(< <= = = = >= >)) } " . literal($t, 0.02) if $r < 0.4;
	return "$name $op{'>='} " . literal($t, 0) . " AND $name $op{ pick(qw(< <=)) } " . literal($t, 0) if $r < 0.5;
	return "$name IN (" . join(', ', map { literal($t, 0.03) } 1 .. pick(1, 2, 3, 5, 9)) . ')' if $r < 0.62;
	return "$name NOT IN (" . join(', ', map { literal($t, 0.02) } 1 .. pick(1, 2)) . ')' if $r < 0.64;
	return "$name IS NULL" if $r < 0.68;
	return "$name IS NOT NULL" if $r < 0.72;
	return "$name IS DISTINCT FROM " . literal($t, 0.1) if $r < 0.73;
	return pick("${p}id % 2 = 0", "${p}id % 7 = " . int(rand(7)), "${p}id > " . int(rand(300)), "${p}id < " . int(rand(300)), "${p}id = " . int(rand(300))) if $r < 0.83;
	return "(CASE WHEN ${p}id % 3 = 0 THEN $name END) $op{ pick(qw(< = >)) } " . literal($t, 0) if $r < 0.87;
	return "$name LIKE '" . pick('a%', 'a_%', 'A%', '%', 'ab', 'a\\_%', '') . "'" if $r < 0.9 && $t->[0] =~ /^(text|varchar|name)/;
	if ($r < 0.96 && @{ $table->{cols} } > 1)
	{
		my $d = pick(@{ $table->{cols} });

		return "ROW($name, $p$d->{name}) " . pick(qw(< <= >= >)) . ' ROW(' . literal($t, 0) . ', ' . literal($d->{type}, 0) . ')'
		  unless $t->[2] =~ /pattern/ || $d->{type}[2] =~ /pattern/;
	}
	return "NOT ($name $op{ pick(qw(< =)) } " . literal($t, 0) . ')' if $r < 0.98;
	return "($name IS NULL)";
}

sub qual
{
	my ($table, $x, $depth) = @_;

	$depth //= 2;
	return atom($table, $x) if $depth == 0 || chance(0.5);
	my $how = chance(0.65) ? ' AND ' : ' OR ';
	return '(' . join($how, map { '(' . qual($table, $x, $depth - 1) . ')' } 1 .. pick(2, 2, 3)) . ')';
}

# the same settings on both sides, mostly such that an index is used
sub settings
{
	my @s;

	push @s, 'seqscan' if chance(0.9);
	push @s, grep { chance(0.3) } qw(bitmapscan sort incremental_sort hashagg hashjoin mergejoin nestloop material memoize);
	push @s, 'indexscan', 'indexonlyscan' if chance(0.1) && !grep { $_ eq 'bitmapscan' } @s;
	push @s, 'indexonlyscan' if chance(0.1);
	push @s, 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_index_scan_size = 0', 'min_parallel_table_scan_size = 0' if chance(0.1);
	return @s;
}

# the prefix of an index's keys that to order by, in one of its two directions
sub order_by
{
	my ($index, $back, $x) = @_;
	my @k = @{ $index->{keys} };
	my @by;

	splice(@k, pick(1 .. @k));
	for my $k (@k)
	{
		my %op = $k->[1] ? type_operators($k->[1]) : ('<' => '<', '>' => '>');
		my ($desc, $first) = ($k->[3] eq 'DESC', $k->[4] eq 'NULLS FIRST');

		($desc, $first) = (!$desc, !$first) if $back;
		push @by, [ $k->[0], $k->[1],
			"$k->[0] " . ($op{'<'} eq '<' ? ($desc ? 'DESC' : 'ASC') : 'USING ' . $op{ $desc ? '>' : '<' })
			  . ($first ? ' NULLS FIRST' : ' NULLS LAST') ];
	}
	return @by;
}

sub query
{
	my ($table) = @_;
	my $name = $table->{name};
	my $r = rand();
	my @s = settings();
	my $where = chance(0.85) ? ' WHERE ' . qual($table) : '';
	my $index = pick(@{ $table->{indexes} });

	# what a partial index is for
	$where .= ($where ? ' AND ' : ' WHERE ') . "($index->{where})" if $index && $index->{where} && chance(0.6);
	if ($r < 0.5 && $index)
	{
		my @by = chance(0.75) ? order_by($index, chance(0.5)) : ();
		my @out = map { [ $_->[0], $_->[1] ] } @by;

		# only what the index has, or whatever
		push @out, chance(0.5)
		  ? (map { [ $_->[0], $_->[1] ] } grep { $_->[0] !~ /^\(/ && chance(0.6) } @{ $index->{keys} })
		  : ([ 'id', undef ], map { [ $_->{name}, $_->{type} ] } @{ $table->{cols} });
		push @out, [ $index->{include}{name}, $index->{include}{type} ] if $index->{include} && chance(0.5);
		push @out, [ 'id', undef ] unless @out;
		my $total = @by && chance(0.3);
		my $limit = @by && chance(0.4);
		my $sql = 'SELECT ' . join(', ', map { $_->[0] } @out, $total ? [ 'id', undef ] : ()) . " FROM $name$where";
		$sql .= ' ORDER BY ' . join(', ', map { $_->[2] } @by) . ($total ? ', id' : '') if @by;
		$sql .= ' LIMIT ' . pick(1, 3, 10, 100) . (chance(0.3) ? ' OFFSET ' . pick(1, 5, 50) : '') if $limit;
		stmt($sql, query => 1, out => [ (map { $_->[1] } @out), $total ? undef : () ], keys => [ 0 .. $#by ],
			open => $limit && !$total, set => \@s, again => 1);
		return;
	}
	my $c = pick(@{ $table->{cols} });
	my %op = type_operators($c->{type});
	if ($r < 0.65)
	{
		my @agg = ([ 'count(*)', undef ], [ 'sum(id)', undef ]);

		push @agg, [ pick('min', 'max') . "($c->{name})", $c->{type} ] if $has_min{ $c->{type}[0] };
		my $group = chance(0.4) && $c->{type}[2] !~ /pattern/;
		# which of several equal ones is the least is anybody's guess
		stmt('SELECT ' . join(', ', $group ? $c->{name} : (), map { $_->[0] } @agg) . " FROM $name$where"
			  . ($group ? " GROUP BY $c->{name}" : ''),
			query => 1, out => [ $group ? $c->{type} : (), map { $_->[1] } @agg ], keys => [], classes => 1, set => \@s, again => 1);
		return;
	}
	if ($r < 0.7 && $has_min{ $c->{type}[0] })
	{
		stmt("SELECT min($c->{name}), max($c->{name}) FROM $name$where", query => 1,
			out => [ $c->{type}, $c->{type} ], keys => [], classes => 1, set => \@s, again => 1);
		return;
	}
	if ($r < 0.77 && $c->{type}[2] !~ /pattern/)
	{
		my $d = pick('ASC', 'DESC');

		stmt("SELECT DISTINCT $c->{name} FROM $name$where ORDER BY $c->{name} $d", query => 1, out => [ $c->{type} ],
			keys => [0], classes => 1, set => \@s, again => 1);
		return;
	}
	if ($r < 0.95)
	{
		my $other = pick(@table);
		my ($a, $b) = ($table->{cols}[0], $other->{cols}[0]);
		my $on = "x.$a->{name} = y.$b->{name}" . (chance(0.3) ? ' AND ' . qual($other, 'y', 0) : '') . (chance(0.2) ? ' AND x.id = y.id' : '');
		my $filter = qual($table, 'x', 1);
		my $how = rand();
		my $sql =
			$how < 0.45 ? "SELECT count(*), sum(x.id), sum(y.id) FROM $name x JOIN $other->{name} y ON $on WHERE $filter"
		  : $how < 0.65 ? "SELECT count(*), sum(x.id), sum(y.id) FROM $name x LEFT JOIN $other->{name} y ON $on WHERE $filter"
		  : $how < 0.75 ? "SELECT count(*), sum(x.id), sum(y.id) FROM $name x FULL JOIN $other->{name} y ON x.$a->{name} = y.$b->{name}"
		  : $how < 0.9 ? "SELECT count(*), sum(x.id), 0 FROM $name x WHERE " . pick('', 'NOT ') . "EXISTS (SELECT FROM $other->{name} y WHERE $on) AND ($filter)"
		  : "SELECT x.id, (SELECT min(y.id) FROM $other->{name} y WHERE $on), 0 FROM $name x WHERE $filter";

		# mostly by one method
		push @s, @{ pick([qw(hashjoin nestloop)], [qw(hashjoin mergejoin)], []) };
		my %seen;
		stmt($sql, query => 1, out => [ undef, undef, undef ], keys => [], set => [ grep { !$seen{$_}++ } @s ], again => 1);
		return;
	}
	stmt("SELECT id FROM $name$where FOR " . pick('UPDATE', 'SHARE', 'KEY SHARE'), query => 1, out => [undef], keys => [], set => \@s);
	return;
}

# A cursor that turns: by classes, since equal rows have no order between them.
sub cursor
{
	my ($table) = @_;
	my $index = pick(@{ $table->{indexes} }) or return;
	my @by = order_by($index, chance(0.5));
	my @out = map { $_->[1] } @by;
	my $where = chance(0.6) ? ' WHERE ' . qual($table, undef, 1) : '';

	stmt('BEGIN');
	stmt('DECLARE c SCROLL CURSOR FOR SELECT ' . join(', ', map { $_->[0] } @by) . " FROM $table->{name}$where ORDER BY "
		  . join(', ', map { $_->[2] } @by), set => [ 'seqscan', chance(0.7) ? 'sort' : (), chance(0.7) ? 'bitmapscan' : () ]);
	for (1 .. pick(3 .. 8))
	{
		stmt('FETCH ' . pick('5', '30', 'BACKWARD 4', 'BACKWARD 30', 'FIRST', 'LAST', 'ABSOLUTE 17', 'RELATIVE -3', 'NEXT', 'PRIOR', 'ALL', 'BACKWARD ALL', 'ABSOLUTE -5') . ' FROM c',
			query => 1, out => \@out, keys => [ 0 .. $#by ], classes => 1);
		change($table) if chance(0.2);
	}
	stmt(pick('COMMIT', 'ROLLBACK'));
	return;
}

sub prepared
{
	my ($table) = @_;
	my $c = pick(@{ $table->{cols} });
	my %op = type_operators($c->{type});
	my $name = 'q' . $prepared++;
	my $cast = $c->{type}[1] =~ s/ COLLATE .*//r;

	stmt("PREPARE $name ($cast) AS SELECT count(*), sum(id) FROM $table->{name} WHERE $c->{name} "
		  . pick("$op{'='} \$1", "$op{'<'} \$1", "$op{'>='} \$1 AND id % 2 = 0", "IN (\$1, " . literal($c->{type}) . ')'));
	$table->{prepared}{$name} = $c->{type};
	return execute($table);
}

sub execute
{
	my ($table) = @_;
	my $name = pick(sort keys %{ $table->{prepared} }) or return;

	stmt("EXECUTE $name (" . literal($table->{prepared}{$name}) . ')', query => 1, out => [ undef, undef ], keys => [],
		set => [ 'seqscan', 'plan_cache_mode = ' . pick('force_generic_plan', 'force_custom_plan', 'auto') ]);
	return;
}

# ---- what changes the rows ----

sub change
{
	my ($table) = @_;
	my $name = $table->{name};
	my $r = rand();
	my @unique = grep { $_->{unique} } @{ $table->{indexes} };
	my $c = pick(@{ $table->{cols} });
	my $some = 'id ' . pick('= ' . (1 + int(rand($table->{next}))), '= ' . (1 + int(rand($table->{next}))));
	my $many = 'id ' . pick('% 5 = ' . int(rand(5)), 'BETWEEN ' . int(rand($table->{next})) . ' AND ' . int(rand($table->{next})), '> ' . int(rand($table->{next})));

	if ($r < 0.35)
	{
		stmt("INSERT INTO $name (" . col_names($table) . ') VALUES ' . join(', ', map { row_values($table) } 1 .. pick(1, 1, 2, 10)));
	}
	elsif ($r < 0.45)
	{
		insert_many($table, pick(20, 100, 300));
	}
	elsif ($r < 0.6)
	{
		# several rows at a time would be checked in some order or other
		my $which = @unique || $table->{exclude} ? $some : chance(0.5) ? $some : chance(0.6) ? $many : qual($table, undef, 1);

		stmt("UPDATE $name SET $c->{name} = " . literal($c->{type}) . " WHERE $which");
	}
	elsif ($r < 0.66)
	{
		stmt("UPDATE $name SET n = n + 1 WHERE $many");
	}
	elsif ($r < 0.76)
	{
		stmt("DELETE FROM $name WHERE " . pick($some, $some, $many, qual($table, undef, 1)));
	}
	elsif ($r < 0.92)
	{
		my @u = grep { !$_->{where} && !$_->{expr} && !grep { $_->[1] && $_->[1][2] } @{ $_->{keys} } } @unique;
		my $u = pick(@u);
		my $on = $u && chance(0.8) ? ' (' . join(', ', map { $_->[0] } @{ $u->{keys} }) . ')' : '';

		$on = '' if $table->{exclude};
		stmt("INSERT INTO $name (" . col_names($table) . ') VALUES ' . join(', ', map {
					my $row = row_values($table);

					# of an id that is there
					$row =~ s/^\(\d+/'(' . (1 + int(rand($table->{next})))/e if chance(0.6);
					$row;
				} 1 .. pick(1, 1, 3))
			  . " ON CONFLICT$on DO " . ($on && chance(0.6) ? "UPDATE SET n = $name.n + 1, $c->{name} = EXCLUDED.$c->{name}" : 'NOTHING'));
	}
	else
	{
		query($table);
	}
	return;
}

sub transaction
{
	my ($table) = @_;
	my $depth = 0;

	stmt('BEGIN' . (chance(0.1) ? ' ISOLATION LEVEL ' . pick('REPEATABLE READ', 'SERIALIZABLE') : ''));
	for (1 .. pick(2 .. 8))
	{
		my $r = rand();

		if ($r < 0.15) { stmt('SAVEPOINT s' . ++$depth) }
		elsif ($r < 0.3 && $depth) { stmt("ROLLBACK TO s" . pick(1 .. $depth)); }
		elsif ($r < 0.35 && $depth) { stmt("RELEASE s" . $depth--) }
		elsif ($r < 0.6) { query($table) }
		elsif ($r < 0.63) { make_index($table, in_transaction => 1) }
		elsif ($r < 0.65) { stmt("TRUNCATE $table->{name}") }
		else { change($table) }
	}
	stmt(pick('COMMIT', 'COMMIT', 'ROLLBACK'));
	return;
}

sub alter_engine
{
	my ($i) = @_;

	# which only one structure has
	stmt("ALTER INDEX $i RESET (page_size)", side => 'art');
	stmt("ALTER INDEX $i SET (" . art_engine_options(pick(@engines)) . ')', side => 'art');
	return;
}

# what is not about rows
sub upkeep
{
	my ($table) = @_;
	my $index = pick(@{ $table->{indexes} });
	my $r = rand();
	my $i = $index ? $index->{name} : '';

	if ($r < 0.3) { stmt(pick('VACUUM', 'VACUUM (INDEX_CLEANUP ON)', 'VACUUM ANALYZE', 'VACUUM (FREEZE)', 'ANALYZE') . " $table->{name}") }
	elsif ($r < 0.35) { stmt("VACUUM FULL $table->{name}") }
	elsif ($r < 0.4) { make_index($table) }
	elsif (!$index) { return }
	elsif ($r < 0.5) { stmt("SELECT artidx_unload('$i')", side => 'art') }
	elsif ($r < 0.6) { stmt("SELECT artidx_build('$i')", side => 'art') }
	elsif ($r < 0.7) { stmt("REINDEX INDEX $i") }
	elsif ($r < 0.73) { stmt("REINDEX " . pick('INDEX', 'INDEX') . " CONCURRENTLY $i") }
	elsif ($r < 0.85 && !$index->{compared}) { alter_engine($i) }
	elsif ($r < 0.88) { stmt("DROP INDEX $i"); $table->{indexes} = [ grep { $_ != $index } @{ $table->{indexes} } ] }
	elsif ($r < 0.9 && $can{cluster} && !$index->{where}) { stmt("CLUSTER $table->{name} USING $i") }
	elsif ($r < 0.93) { stmt("TRUNCATE $table->{name}"); insert_many($table, 100) }
	elsif ($r < 0.95) { stmt('DISCARD PLANS') }
	else { stmt("VACUUM (INDEX_CLEANUP ON) $table->{name}") }
	return;
}

sub make_round
{
	my ($number) = @_;

	srand($seed + 7919 * $number);
	(@table, @stmt) = ();
	($index_number, $prepared) = (0, 0);
	for my $n (0 .. pick(0, 1, 1))
	{
		my $table = make_table($n);

		make_index($table) for 1 .. pick(1, 2, 3);
		insert_many($table, pick(50, 300, 1000));
		make_index($table) for 1 .. pick(0, 1, 2);
		if ($can{exclude} && !$pressure && chance(0.07))
		{
			my $c = pick(@{ $table->{cols} });

			stmt("ALTER TABLE $table->{name} ADD EXCLUDE USING {AM} ($c->{name} $c->{type}[2] WITH =, id WITH =)"
				  . ($can{deferrable} && chance(0.5) ? ' DEFERRABLE INITIALLY ' . pick('DEFERRED', 'IMMEDIATE') : ''));
			$table->{exclude} = 1;
		}
	}
	for (1 .. pick(20 .. 60))
	{
		my $table = pick(@table);
		my $r = rand();

		$r < 0.5 ? query($table)
		  : $r < 0.7 ? change($table)
		  : $r < 0.77 ? transaction($table)
		  : $r < 0.82 ? cursor($table)
		  : $r < 0.86 ? (chance(0.5) ? prepared($table) : execute($table))
		  : upkeep($table);
	}
	return [@stmt];
}

# ---- running it ----

my %defaults = (client_min_messages => 'error', statement_timeout => '120s', jit => 'off');

sub side_sql
{
	my ($s, $side) = @_;
	my $sql = $s->{sql};
	my $am = $side eq 'art' ? 'art' : 'btree';

	$sql =~ s/\{AM\}/$am/;
	$sql =~ s/\{WITH(.*?)\}/$side eq 'art' && $1 ne '' ? " WITH ($1)" : ''/e;
	return $sql;
}

# the script of one side; every statement is marked with its number
sub side_script
{
	my ($stmts, $side, $schema) = @_;
	my $out = "DROP SCHEMA IF EXISTS $schema CASCADE;\nCREATE SCHEMA $schema;\nSET search_path = $schema, gen, public, pg_temp;\n";
	my $n = 0;

	for my $s (@$stmts)
	{
		$n++;
		next if $s->{side} && $s->{side} ne $side;
		$out .= twin_marked($n, side_sql($s, $side), @{ $s->{set} // [] });
		# and without an index
		$out .= twin_marked("$n.heap", $s->{sql}, qw(indexscan indexonlyscan bitmapscan))
		  if $side eq 'art' && $s->{again};
		$out .= twin_marked("$n.plan", 'EXPLAIN (COSTS OFF) ' . side_sql($s, $side), @{ $s->{set} // [] })
		  if $s->{plan};
	}
	# of a round that is being made smaller the end may be missing
	$out .= "ROLLBACK;\n";
	if ($side eq 'art')
	{
		$out .= twin_marked("check", "SELECT indexrelname, (artidx_check(indexrelid, true)).entries FROM artidx_indexes JOIN pg_class c ON c.oid = indexrelid "
			  . "JOIN pg_index x USING (indexrelid) WHERE indisvalid AND relnamespace = '$schema'::regnamespace AND state = 'ready' ORDER BY 1");
	}
	return $out . twin_marked('end', 'SELECT 1');
}

# How the answers to a statement differ, or undef.
sub compare
{
	my ($s, $b, $a, $who) = @_;

	return "$who: $b->[0]; art: $a->[0]" if $a->[0] ne $b->[0];
	return if $a->[0];
	if (!$s->{query})
	{
		return "$who: $b->[2] rows; art: $a->[2]" if $a->[2] != $b->[2];
		return;
	}
	my @classes = map { $_ ? $class{ $_->[0] } : undef } @{ $s->{out} };
	my ($rb, $ra) = ($b->[1], $a->[1]);

	return sprintf('%s has %d rows, art %d', $who, scalar(@$rb), scalar(@$ra)) if @$rb != @$ra;
	if (@{ $s->{keys} })
	{
		for my $i (0 .. $#$rb)
		{
			next if $rb->[$i] eq $ra->[$i];
			my ($x, $y) = map { twin_normal($_, \@classes, $s->{keys}) } $rb->[$i], $ra->[$i];
			return sprintf('row %d of %d: %s has %s, art %s', $i + 1, scalar(@$rb), $who, twin_shown($rb->[$i]), twin_shown($ra->[$i]))
			  if $x ne $y;
		}
	}
	return if $s->{open};
	return twin_miscount($rb, $ra, $s->{classes} ? sub { twin_normal($_[0], \@classes) } : undef);
}

my ($asked, $erred) = (0, 0);

# The differences of a round: [number, what]
sub differences
{
	my ($stmts, $b, $a) = @_;
	my @bad;
	my $n = 0;

	for my $side ([ btree => $b ], [ art => $a ])
	{
		push @bad, [ scalar(@$stmts), "$side->[0]: $side->[1]{end}[0]" ] if $side->[1]{end}[0];
	}
	for my $s (@$stmts)
	{
		$n++;
		my ($x, $y, $h) = ($b->{$n}, $a->{$n}, $a->{"$n.heap"});

		if ($s->{side})
		{
			push @bad, [ $n, "art: $y->[0]" ]
			  if $y && $y->[0] && !$pressure && $y->[0] !~ /^(25P0[12]|42P01|55000 index "\w+" is not ready)/;	# the last: CREATE INDEX CONCURRENTLY failed
			next;
		}
		next unless $x && $y;
		$asked++;
		$erred++ if $x->[0];
		my $d = compare($s, $x, $y, 'btree');
		$d //= compare($s, $h, $y, 'the table') if $h && !$y->[0];
		push @bad, [ $n, $d ] if defined $d;
	}
	push @bad, [ scalar(@$stmts), "artidx_check: $a->{check}[0]" ] if $a->{check} && $a->{check}[0];
	return @bad;
}

sub start_round
{
	my ($number, $stmts) = @_;

	return { number => $number, stmts => $stmts,
		map { $_ => twin_start($node, $db, "round_$number.$_", side_script($stmts, $_, "${_}_$number"), %defaults) } qw(bt art) };
}

sub finish_round
{
	my ($r) = @_;
	my ($b, $a) = map { twin_answers($r->{$_}) } qw(bt art);

	return ($b, $a);
}

# Less and less of a round that still shows the difference in its last statement.
sub smaller
{
	my ($stmts, $until) = @_;
	my @rest = @$stmts;
	my $last = pop @rest;
	my $step = int(@rest / 2) || 1;

	while (time() < $until)
	{
		my $gone = 0;

		for (my $at = $#rest - $step + 1; $at > -$step && time() < $until; $at -= $step)
		{
			my $from = $at < 0 ? 0 : $at;
			my @try = @rest;

			splice(@try, $from, $at + $step - $from);
			my $r = start_round(0, [ @try, $last ]);
			my ($b, $a) = finish_round($r);
			if (grep { $_->[0] == @try + 1 } differences([ @try, $last ], $b, $a))
			{
				@rest = @try;
				$gone = 1;
			}
		}
		last if $step == 1 && !$gone;
		$step = int($step / 2) || 1;
	}
	return [ @rest, $last ];
}

sub script_text
{
	my ($stmts) = @_;

	return join('', map {
		my $s = $_;
		my @set = map { /^(\S+) = / ? "SET $_;" : "SET enable_$_ = off;" } @{ $s->{set} // [] };

		join('', map { "$_\n" } @set) . side_sql($s, 'art') . ";\n"
		  . join('', map { /^SET (\S+)/ ? "RESET $1;\n" : () } @set)
	} @$stmts);
}

# Rounds by so many at a time, until then.
my ($shown, %scans) = (0);

sub rounds
{
	my ($first, $at_a_time, $until) = @_;
	my ($n, $bad, @running) = ($first, 0);

	while (1)
	{
		while (@running < $at_a_time && (time() < $until || $n == $first) && !($ENV{ROUND} && $n > $first))
		{
			my $stmts = make_round($ENV{ROUND} // $n);

			# now and then, what it was answered with
			$_->{plan} = 1 for grep { $_->{query} && $_->{sql} =~ /^SELECT/ && rand() < 0.1 } @$stmts;
			push @running, start_round($ENV{ROUND} // $n, $stmts);
			$n++;
		}
		my $r = shift @running or last;
		my ($b, $a) = finish_round($r);
		for my $p (map { @{ $a->{$_}[1] } } grep { /plan$/ } keys %$a)
		{
			$scans{ ($2 ? 'Backward ' : '') . $1 }++ while $p =~ /((?:Parallel )?(?:Bitmap Index|Index Only|Index|Seq) Scan)( Backward)?/g;
		}
		my @d = differences($r->{stmts}, $b, $a) or do {
			$node->safe_psql($db, "SET client_min_messages = error; DROP SCHEMA bt_$r->{number}, art_$r->{number} CASCADE");
			next;
		};
		$bad++;
		next if $shown++ >= 3;
		my ($at, $what) = @{ $d[0] };
		my @stmts = @{ $r->{stmts} }[ 0 .. $at - 1 ];
		diag("round $r->{number} of SEED=$seed, statement $at: $what");
		diag("what is left of it when as much as possible is taken away (values and types as in test/perl/ArtTypes.pm):\n"
			  . script_text(smaller(\@stmts, time() + 40)));
	}
	return ($n - $first, $bad);
}

my $offset = -s $node->logfile;
my ($n, $bad) = rounds(1, 2, time() + 0.6 * $seconds);
is($bad, 0, "$n rounds without a difference");
cmp_ok($asked, '>', 20 * $n, "$asked statements on both sides, $erred of them errors on both");
note join(', ', map { "$scans{$_} x $_" } sort keys %scans);
is(join("\n", server_crashes($node, $offset)), '', 'no crash');

# ---- with too little memory, under autovacuum, builders ended ----

unless ($ENV{ROUND} && $ENV{ROUND} < 1000000)
{
	$node->append_conf('postgresql.conf', "artidx.memory = '16MB'\nautovacuum = on\nautovacuum_naptime = '1s'\n");
	$node->restart;
	# what takes most of it, and is sealed and built again
	$node->safe_psql($db, q{CREATE TABLE ballast AS SELECT i AS k, md5(i::text) AS w FROM generate_series(1, 200000) i;
		CREATE INDEX ballast_w ON ballast USING art (w COLLATE "C"); CREATE INDEX ballast_k ON ballast USING art (k)});
	$offset = -s $node->logfile;
	$pressure = 1;
	my $until = time() + 0.4 * $seconds;
	my $trouble = twin_start($node, $db, 'trouble', join('', map { q{
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type IN ('artidx builder', 'artidx loader') AND random() < 0.3;
		UPDATE ballast SET k = k + 1 WHERE k % 400 = } . int(rand(400)) . q{;
		SELECT count(*) FROM ballast WHERE k < 1000;
		SELECT pg_sleep(0.2);
	} } 1 .. $seconds * 2), client_min_messages => 'error', enable_seqscan => 'off');
	($n, $bad) = rounds(1000000, 4, $until);
	is($bad, 0, "$n rounds with little memory, without a difference");
	$trouble->{h}->signal('TERM');
	$trouble->{h}->finish;
	is(join("\n", server_crashes($node, $offset)), '', 'no crash');
	note $node->safe_psql($db, q{SELECT string_agg(state || ' ' || n, ', ') FROM (SELECT state, count(*) AS n FROM artidx_indexes GROUP BY 1) s});
}

# ---- sqlsmith, where it is installed: statements of another mind, for crashes ----

my $smith = $ENV{SMITH_SECONDS} // ($seconds >= 600 ? $seconds / 10 : 0);
SKIP:
{
	skip 'sqlsmith is for the soak, and where it is installed', 2
	  unless $smith && IPC::Run::run([ 'sqlsmith', '--version' ], '>', \my $version, '2>&1');
	my $sql = '';
	for my $t (@types)
	{
		next if $t->[1] =~ /COLLATE gen/;
		$sql .= "CREATE TABLE smith.$t->[0] AS SELECT g AS id, p.k, q.k AS k2 FROM generate_series(1, 300) g "
		  . "LEFT JOIN gen.pool_$t->[0] p ON p.i = g % 31 LEFT JOIN gen.pool_$t->[0] q ON q.i = g / 7 % 31;\n"
		  . "CREATE INDEX ON smith.$t->[0] USING art (k $t->[2], k2 $t->[2] DESC); CREATE INDEX ON smith.$t->[0] USING art (k2 $t->[2], id);\n";
	}
	# not what would end the server, or this
	$node->append_conf('postgresql.conf', "artidx.memory = '256MB'\nenable_seqscan = off\n");
	$node->restart;
	$node->safe_psql($db, "CREATE SCHEMA smith; $sql VACUUM ANALYZE; CREATE ROLE smith LOGIN; ALTER ROLE smith SET statement_timeout = '2s';"
		  . 'GRANT ALL ON SCHEMA smith, gen TO smith; GRANT ALL ON ALL TABLES IN SCHEMA smith TO smith');
	$offset = -s $node->logfile;
	my $h = IPC::Run::start(
		[ 'sqlsmith', '--exclude-catalog', "--seed=$seed", '--target=' . $node->connstr($db) . ' user=smith' ],
		'<', \undef, '>', '/dev/null', '2>', '/dev/null');
	my $end = time() + $smith;
	sleep 1 while time() < $end && $h->pump_nb;
	$h->kill_kill;
	is(join("\n", server_crashes($node, $offset)), '', 'no crash under sqlsmith');
	is($node->safe_psql($db, q{SELECT count(*) > 0 FROM artidx_indexes i, artidx_check(i.indexrelid, true) WHERE schemaname = 'smith' AND state = 'ready'}),
		't', 'and nothing broken by it');
	$asked = () = slurp_file($node->logfile, $offset) =~ /ERROR:/g;
	note "sqlsmith met $asked errors in $smith s";
}
$node->stop;
done_testing();
