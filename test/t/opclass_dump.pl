# Types of other extensions through pg_dump and back.  A dump creates artidx first, whatever
# came first in its database, and has the operator classes that art got for these types.  They
# are the same in every database that it is restored into: by a script, by pg_restore in
# several processes, with --clean --if-exists into an empty database and over itself.  They go with
# their types.  So it is with a type whose classes are in a family of core's.  And with pg_upgrade.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('opclasses');
my $dir = PostgreSQL::Test::Utils::tempdir();
my $extensions = `pg_config --sharedir` =~ s/\s+$//r . '/extension';

# An extension like pguint.  Its type has operators beside integer in btree's
# integer_ops, which artidx has, too.
sub install_int
{
	my ($name) = @_;
	my %op = ('<' => 'lt', '<=' => 'le', '=' => 'eq', '>=' => 'ge', '>' => 'gt');
	my @op = ('<', '<=', '=', '>=', '>');
	my $sql = qq{
		CREATE TYPE $name;
		CREATE FUNCTION ${name}_in(cstring) RETURNS $name STRICT IMMUTABLE LANGUAGE internal AS 'int4in';
		CREATE FUNCTION ${name}_out($name) RETURNS cstring STRICT IMMUTABLE LANGUAGE internal AS 'int4out';
		CREATE TYPE $name (input = ${name}_in, output = ${name}_out, like = int4);
		CREATE CAST ($name AS int4) WITHOUT FUNCTION AS IMPLICIT;};

	foreach my $pair ([ $name, $name, '' ], [ $name, 'int4', '_4' ], [ 'int4', $name, '4_' ])
	{
		my ($l, $r, $s) = @$pair;

		foreach my $o (@op)
		{
			my ($com) = $o =~ tr/<>/></r =~ s/=</<=/r =~ s/=>/>=/r;

			$sql .= qq{
				CREATE FUNCTION ${name}_$op{$o}$s($l, $r) RETURNS bool STRICT IMMUTABLE LANGUAGE internal AS 'int4$op{$o}';
				CREATE OPERATOR $o (function = ${name}_$op{$o}$s, leftarg = $l, rightarg = $r);};
		}
		$sql .= qq{
			CREATE FUNCTION ${name}_cmp$s($l, $r) RETURNS int STRICT IMMUTABLE LANGUAGE internal AS 'btint4cmp';};
	}
	$sql .= "CREATE OPERATOR CLASS ${name}_ops DEFAULT FOR TYPE $name USING btree FAMILY integer_ops AS "
	  . join(', ', map { 'OPERATOR ' . ($_ + 1) . " $op[$_]" } 0 .. 4) . ", FUNCTION 1 ${name}_cmp($name, $name);";
	foreach my $pair ([ "$name, int4", '_4' ], [ "int4, $name", '4_' ])
	{
		my ($types, $s) = @$pair;

		$sql .= 'ALTER OPERATOR FAMILY integer_ops USING btree ADD '
		  . join(', ', map { 'OPERATOR ' . ($_ + 1) . " $op[$_] ($types)" } 0 .. 4)
		  . ", FUNCTION 1 ($types) ${name}_cmp$s($types);";
	}
	append_to_file("$extensions/$name.control", "default_version = '1'\nrelocatable = true\n");
	append_to_file("$extensions/$name--1.sql", $sql);
	return;
}
install_int($_) for qw(aint zint);

# all that art has, what it goes with, and the indexes
sub picture
{
	my ($db) = @_;

	return $node->safe_psql($db, q{
		SELECT 'class', format('%s.%s', opcnamespace::regnamespace, opcname), opfname, opcdefault::text
			FROM pg_opclass JOIN pg_opfamily f ON f.oid = opcfamily JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'art'
		UNION ALL
		SELECT 'operator', opfname, amopopr::regoperator::text, amopstrategy::text
			FROM pg_amop JOIN pg_opfamily f ON f.oid = amopfamily JOIN pg_am a ON a.oid = amopmethod WHERE amname = 'art'
		UNION ALL
		SELECT DISTINCT 'depends', pg_describe_object(classid, objid, objsubid),
			pg_describe_object(refclassid, refobjid, refobjsubid), deptype::text
			FROM pg_depend WHERE classid = ANY ('{pg_opclass, pg_opfamily, pg_amop, pg_amproc}'::regclass[])
			AND pg_describe_object(classid, objid, objsubid) ~ 'access method art'
		UNION ALL
		SELECT 'index', relname, pg_get_indexdef(c.oid), indisvalid::text
			FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE relnamespace = 'public'::regnamespace
		ORDER BY 1, 2, 3, 4});
}

my %type = (
	citext => [ 'citext', "'a'", "'A'" ],
	isn => [ 'isbn', "'0-201-03801-3'", "'0201038013'" ],
	aint => [ 'aint', "'7'", "'7'" ],
	zint => [ 'zint', "'7'", "'7'" ]);

my $n = 0;

sub database
{
	my $db = 'd' . ++$n;

	$node->safe_psql('postgres', "CREATE DATABASE $db TEMPLATE template0");
	return $db;
}

sub through
{
	my ($name, $extension, $from) = @_;
	my ($type, $a, $b) = @{ $type{$extension} };
	my $want = picture($from);
	my ($script, $clean, $archive) = map { "$dir/$from.$_" } qw(sql clean c);

	$node->command_ok([ 'pg_dump', '-f', $script, $node->connstr($from) ], "$name: a script");
	$node->command_ok([ 'pg_dump', '--clean', '--if-exists', '-f', $clean, $node->connstr($from) ], "$name: one that cleans");
	$node->command_ok([ 'pg_dump', '-Fc', '-f', $archive, $node->connstr($from) ], "$name: an archive");
	my %how = (
		'a script' => [ [ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-f', $script ] ],
		'one that cleans' => [ ([ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-f', $clean ]) x 2 ],
		'an archive' => [ [ 'pg_restore', '--exit-on-error', '-j2', $archive ],
			[ 'pg_restore', '--exit-on-error', '--clean', '--if-exists', $archive ] ]);
	foreach my $how (sort keys %how)
	{
		my $db = database();

		$node->command_ok([ @$_, '-d', $node->connstr($db) ], "$name: $how restored") for @{ $how{$how} };
		is(picture($db), $want, "$name: with the same classes and indexes");
		my ($rc, $out, $err) = $node->psql($db, "INSERT INTO t VALUES ($b, 1)");
		like($err, qr/duplicate key value violates unique constraint "t_k"/, "$name: unique as before");
		$node->safe_psql($db, "DROP TABLE t; DROP EXTENSION $extension; DROP EXTENSION artidx");
		pass("$name: nothing of art's is in the way");
	}
	return;
}

foreach my $extension (sort keys %type)
{
	my ($type, $a, $b) = @{ $type{$extension} };

	foreach my $order ([ 'artidx', $extension ], [ $extension, 'artidx' ])
	{
		my $db = database();

		$node->safe_psql($db, "CREATE EXTENSION $_") for @$order;
		$node->safe_psql($db, qq{
			CREATE TABLE t (k $type, n int);
			CREATE UNIQUE INDEX t_k ON t USING art (k);
			CREATE INDEX t_nk ON t USING art (n, k DESC);
			INSERT INTO t VALUES ($a, 1)});
		through("@$order", $extension, $db);
	}
}

# 0.1.0 let artidx_mirror_opclass make the class after the copied members; it was theirs
my $db = database();
$node->safe_psql($db, q{
	CREATE EXTENSION artidx; CREATE EXTENSION zint;
	SELECT artidx_mirror_opclass('zint_ops');
	CREATE TABLE t (k zint, n int);
	CREATE UNIQUE INDEX t_k ON t USING art (k);
	INSERT INTO t VALUES ('7', 1)});
through('artidx_mirror_opclass', 'zint', $db);

# a named class, and what 0.1.0 chose, which has no default beside it
$db = database();
$node->safe_psql($db, q{
	CREATE EXTENSION artidx; CREATE EXTENSION citext;
	CREATE TABLE t (k citext);
	CREATE INDEX t_named ON t USING art (k text_ops)});
$node->command_ok([ 'pg_dump', '-f', "$dir/named.sql", $node->connstr($db) ], 'a named class');
like(slurp_file("$dir/named.sql"), qr/CREATE INDEX t_named ON public.t USING art \(k public.text_ops\);/, 'is in the dump');
$node->safe_psql($db, 'DROP OPERATOR FAMILY citext_ops USING art CASCADE');
$node->command_ok([ 'pg_dump', '-f', "$dir/chosen.sql", $node->connstr($db) ], 'a chosen class');
$db = database();
$node->command_ok([ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-f', "$dir/chosen.sql", '-d', $node->connstr($db) ], 'is restored');
is($node->safe_psql($db, q{SELECT opcname FROM pg_opclass JOIN pg_index ON indclass[0] = pg_opclass.oid
	WHERE indexrelid = 't_named'::regclass}), 'citext_ops', "as btree's");

# pg_upgrade: every member by itself
my $bindir = $node->config_data('--bindir');
SKIP:
{
	skip 'no pg_upgrade here', 4 unless -x "$bindir/pg_upgrade";
	my $new = PostgreSQL::Test::Cluster->new('upgraded');
	my %before;
	my ($out, $rc);

	$new->init;
	art_conf($new);
	$node->safe_psql('postgres', "DROP DATABASE $_")
	  for grep { $_ ne 'd1' } split /\n/, $node->safe_psql('postgres', q{SELECT datname FROM pg_database WHERE datname ~ '^d\d'});
	$node->safe_psql('postgres', 'CREATE DATABASE all_of_them');
	$node->safe_psql('all_of_them', "CREATE EXTENSION $_") for qw(zint artidx aint citext isn);
	$node->safe_psql('all_of_them', q{
		CREATE TABLE t (a aint, c citext, i isbn, z zint);
		CREATE UNIQUE INDEX t_a ON t USING art (a);
		CREATE UNIQUE INDEX t_c ON t USING art (c);
		CREATE UNIQUE INDEX t_i ON t USING art (i);
		CREATE UNIQUE INDEX t_z ON t USING art (z);
		CREATE INDEX t_t ON t USING art (c text_ops);
		INSERT INTO t VALUES ('7', 'a', '0-201-03801-3', '7')});
	my $want = picture('all_of_them');
	chdir PostgreSQL::Test::Utils::tempdir() or die $!;
	$node->stop;
	$rc = IPC::Run::run([ 'pg_upgrade', '--no-sync', '-d', $node->data_dir, '-D', $new->data_dir, '-b', $bindir, '-B', $bindir,
			'-s', PostgreSQL::Test::Utils::tempdir_short(), '-p', $node->port, '-P', $new->port ], '>', \$out, '2>&1');
	ok($rc, 'pg_upgrade') or diag($out, map { slurp_file($_) } split /\n/, `find @{[ $new->data_dir ]} -name 'pg_upgrade_dump*.log'`);
	$node = $new;
	$node->start;
	is(picture('all_of_them'), $want, 'with all classes and indexes');
	$node->poll_query_until('all_of_them', q{SELECT bool_and(state = 'ready') FROM artidx_indexes}) or die 'not built';
	fails_with_in('all_of_them', q{INSERT INTO t VALUES ('8', 'A', '0-8044-2957-X', '8')}, qr/"t_c"/, 'unique as before');
	$node->safe_psql('all_of_them', "DROP TABLE t");
	$node->safe_psql('all_of_them', "DROP EXTENSION $_") for qw(citext isn zint aint artidx);
	pass("nothing of art's is in the way");
}

sub fails_with_in
{
	my ($in, $sql, $want, $name) = @_;
	my ($rc, $out, $err) = $node->psql($in, $sql);

	return like($err, $want, $name);
}

$node->stop;
done_testing();
