# The SQL of the extension: what a database has of it, the old scripts, and names that
# somebody else put in the way.
package ArtScript;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter 'import';
use File::Basename qw(dirname);
use File::Copy qw(copy);
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(install_old_script script_version script_text script_queries catalogs same_catalogs foreign_references overloads_sql member_calls);

my $tree = abs_path(dirname(__FILE__) . '/../..');
my $extensions = `pg_config --sharedir` =~ s/\s+$//r . '/extension';

# The install script of an older version, beside the one that is installed.
sub install_old_script
{
	my ($version) = @_;
	my $name = "artidx--$version.sql";

	copy("$tree/test/old/$name", "$extensions/$name.$$") && rename("$extensions/$name.$$", "$extensions/$name")
	  or BAIL_OUT("$extensions/$name: $!");
	return;
}

# The version that CREATE EXTENSION makes.
sub script_version
{
	return (slurp_file("$extensions/artidx.control") =~ /default_version = '([^']+)'/)[0];
}

# The text of its script and that of artidx_debug, or of another version's, without comments, and without strings
# but those in dollars.
sub script_text
{
	my $version = $_[0] // script_version();
	my $text = slurp_file("$extensions/artidx--$version.sql");

	$text .= slurp_file("$extensions/artidx_debug--$version.sql") if $version eq script_version();
	$text =~ s{/\*.*?\*/|--[^\n]*}{}gs;
	$text =~ s/'[^']*'/''/g;
	return $text;
}

# The queries that the installed script and the updates to its version run and forget.
sub script_queries
{
	my $version = script_version();
	my @queries;

	foreach my $file ("$extensions/artidx--$version.sql", glob("$extensions/artidx--*--$version.sql"))
	{
		my $text = slurp_file($file) =~ s{/\*.*?\*/|--[^\n]*}{}gsr;
		push @queries, $text =~ /^SELECT (.*?);$/msg, $text =~ /\bFOR m IN\s+SELECT (.*?)\s+LOOP\b/sg,
		  $text =~ /^\tIF (.*?)\s+THEN$/msg, $text =~ /^\tEXECUTE (\(.*?\));$/msg;
	}
	return map { "SELECT $_" } @queries;
}

# ---- what a database has ----

# The members of the extension and of artidx_debug, and what belongs to them: rules, members of operator
# families, types of rows; not what users made for the access method.
my $members = q{
	WITH RECURSIVE ext AS (SELECT oid FROM pg_catalog.pg_extension WHERE extname IN ('artidx', 'artidx_debug')),
	m (classid, objid) AS (
		SELECT d.classid, d.objid FROM pg_catalog.pg_depend d, ext
		WHERE d.deptype = 'e' AND d.refclassid = 'pg_catalog.pg_extension'::regclass AND d.refobjid = ext.oid
		UNION
		SELECT d.classid, d.objid FROM pg_catalog.pg_depend d
			JOIN m ON d.refclassid = m.classid AND d.refobjid = m.objid
		WHERE d.deptype IN ('i', 'a') AND d.refclassid <> 'pg_catalog.pg_am'::regclass)
};

# All that a database has of the extension, one line a fact, sorted.  Privileges of
# roles that are not the server's own are left out.
sub catalogs
{
	my ($node, $db) = @_;
	my $acl = q{(SELECT string_agg(x::text, ' ' ORDER BY x::text) FROM unnest(%s) x WHERE x::text !~ '^\w*user\w*=')};
	my ($relacl, $proacl, $init) = map { sprintf($acl, $_) } qw(relacl proacl initprivs);

	return $node->safe_psql($db, qq{
		SET search_path = pg_catalog;
		$members, facts (fact) AS (
			SELECT 'version ' || extname || ' ' || extversion FROM pg_extension JOIN ext USING (oid)
			UNION ALL
			SELECT 'member ' || pg_describe_object(classid, objid, 0) || ', ' ||
				coalesce(obj_description(objid, (SELECT relname FROM pg_class c WHERE c.oid = classid)), 'no comment') FROM m
			UNION ALL
			SELECT DISTINCT pg_describe_object(m.classid, m.objid, d.objsubid) || ' [' || d.deptype::text || '] ' ||
				pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid)
			FROM m JOIN pg_depend d ON (d.classid, d.objid) = (m.classid, m.objid)
			UNION ALL
			SELECT oid::regclass || ' privileges ' || coalesce($relacl, 'none') || ' options ' || coalesce(reloptions::text, 'none') ||
				' is ' || pg_get_viewdef(oid)
			FROM pg_class JOIN m ON classid = 'pg_class'::regclass AND objid = oid WHERE relkind = 'v'
			UNION ALL
			SELECT attrelid::regclass || ' column ' || attnum || ' ' || attname || ' ' || format_type(atttypid, atttypmod)
			FROM pg_attribute JOIN m ON classid = 'pg_class'::regclass AND objid = attrelid
			UNION ALL
			SELECT oid::regprocedure || ' privileges ' || coalesce($proacl, 'none') || ' is ' || pg_get_functiondef(oid)
			FROM pg_proc JOIN m ON classid = 'pg_proc'::regclass AND objid = oid
			UNION ALL
			SELECT pg_describe_object(i.classoid, i.objoid, i.objsubid) || ' at first ' || i.privtype::text || ' ' || coalesce($init, 'none')
			FROM pg_init_privs i JOIN m ON (m.classid, m.objid) = (i.classoid, i.objoid))
		SELECT regexp_replace(replace(fact, E'\\n', ' '), 'pg_toast_[0-9]+', 'pg_toast_N', 'g') FROM facts ORDER BY fact COLLATE "C"});
}

# The same facts in both?  Those that differ are told.
sub same_catalogs
{
	my ($got, $want, $name) = @_;
	my %got = map { $_ => 1 } split /\n/, $got;
	my %want = map { $_ => 1 } split /\n/, $want;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(join("\n", grep { !$want{$_} } sort keys %got), join("\n", grep { !$got{$_} } sort keys %want), $name);
}

# References of the members to what is neither a member nor of pg_catalog: one a line.
# The number of all of them, too.  (What initdb makes is pinned, and not in pg_depend.)
sub foreign_references
{
	my ($node, $db) = @_;
	my $from = q{FROM m JOIN pg_catalog.pg_depend d ON (d.classid, d.objid) = (m.classid, m.objid) WHERE d.deptype <> 'e'};
	my $n = $node->safe_psql($db, "$members SELECT count(*) $from");
	my $foreign = $node->safe_psql($db, qq{
		$members SELECT pg_describe_object(d.classid, d.objid, d.objsubid) || ' refers to ' ||
			pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid)
		$from AND NOT EXISTS (SELECT FROM m o WHERE (o.classid, o.objid) = (d.refclassid, d.refobjid))
			AND (pg_identify_object(d.refclassid, d.refobjid, d.refobjsubid)).schema IS DISTINCT FROM 'pg_catalog'
			AND NOT (d.refclassid = 'pg_namespace'::regclass AND
				d.refobjid IN (SELECT extnamespace FROM pg_extension JOIN ext USING (oid)))
		ORDER BY 1});
	return ($n, $foreign);
}

# ---- names in the way ----

my @types = qw(oid regclass regproc regprocedure regoper regoperator regtype regnamespace regrole int2 int4 int8
  text name varchar bpchar "char" bool float8 oidvector int2vector oid[] text[] name[] timestamptz interval pg_lsn);
my @few = qw(oid int4 text name varchar regclass regproc bool text[] oid[]);
my @any = qw(anyelement anyarray anynonarray anycompatible anycompatiblearray);

sub pairs
{
	my ($l, $r) = @_;
	return map { my $x = $_; map { [ $x, $_ ] } @$r } @$l;
}

# Statements that a role with CREATE in the schema may run: for every operator and
# function that the script names an overload of each pair of types, for every type and
# relation another of its name, in the schema.  Each writes into SCHEMA.seen, which is
# there, and warns.  $given has the signatures, name(type,type), that are the members'.
sub overloads_sql
{
	my ($schema, $text, $given) = @_;
	my %given = map { $_ => 1 } @$given;
	my @sql;

	# of operator classes the members are named by their types alone
	my $queries = $text =~ s/\b(?:OPERATOR|FUNCTION) \d[^\n]*//gr;
	my %operators = map { $_ => 1 } grep { !/^(?:\*\/|;|::|:|\$\$)$/ } ($queries =~ /([-+*\/<>=~!\@#%^&|`?]+)/g), '=', '<>';
	my %functions = map { $_ => 1 } $queries =~ /\b([a-z_]\w*)\s*\(/g;
	my %others = map { $_ => 1 } $text =~ /\bpg_catalog\.([a-z_]\w*)\s*\(/g;
	my %relations = map { $_ => 1 } $text =~ /\b(?:FROM|JOIN)\s+(?:pg_catalog\.)?(pg_\w+)\b(?!\s*[(.])/g;
	my %words = map { $_ => 1 } $text =~ /\b([a-z_]\w*)\b/g;

	push @sql, qq{CREATE FUNCTION $schema.note(what text) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog AS \$\$
		BEGIN
			INSERT INTO $schema.seen VALUES (current_user, what);
			RAISE WARNING '% ran as %', what, current_user;
			RETURN true;
		END \$\$};
	my $body = sub {
		my ($what, $type) = @_;
		return "LANGUAGE plpgsql AS \$\$ BEGIN PERFORM $schema.note('$what'); RETURN " .
		  ($type eq 'boolean' ? 'true' : "''") . '; END $$';
	};
	foreach my $p (pairs(\@types, \@types), map { [ $_, $_ ] } @any)
	{
		my ($l, $r) = @$p;
		push @sql, "CREATE FUNCTION $schema.op($l, $r) RETURNS boolean " . $body->("an operator of ($l, $r)", 'boolean');
		push @sql, "CREATE FUNCTION $schema.joins($l, $r) RETURNS text " . $body->("|| of ($l, $r)", 'text');
		foreach my $o (sort keys %operators)
		{
			my $f = $o eq '||' ? 'joins' : 'op';
			push @sql, "CREATE OPERATOR $schema.$o (LEFTARG = $l, RIGHTARG = $r, FUNCTION = $schema.$f)";
		}
	}
	foreach my $name (sort keys %functions)
	{
		my @args = ((map { [$_] } @types, @any), pairs(\@few, \@few), (map { [ $_, $_ ] } @any),
			['VARIADIC text[]'], ['VARIADIC oid[]'], [ 'text', 'VARIADIC text[]' ], [ 'oid', 'VARIADIC anyarray' ],
			[ 'text', 'text', 'text' ], [ 'oid', 'text', 'text' ]);

		foreach my $a (@args)
		{
			my $list = join(',', @$a);
			next if $given{"$name($list)"};
			push @sql, "DO \$do\$ BEGIN CREATE FUNCTION $schema.\"$name\"($list) RETURNS text " .
			  $body->("$name($list)", 'text') . '; EXCEPTION WHEN duplicate_function THEN NULL; END $do$';
		}
	}
	# what operator classes name, with the very types
	push @sql, "DO \$do\$ DECLARE f record; BEGIN
		FOR f IN SELECT proname, oidvectortypes(proargtypes) AS args FROM pg_proc
			WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND proname IN (" .
	  join(', ', map { "'$_'" } sort keys %others) . ") AND NOT proargtypes::oid[] && ARRAY['internal'::regtype, 'pg_catalog.any'::regtype, 'cstring'::regtype]::oid[]
		LOOP
			BEGIN
				EXECUTE format('CREATE FUNCTION $schema.%I(%s) RETURNS text LANGUAGE plpgsql AS \$b\$ BEGIN PERFORM $schema.note(%L); RETURN NULL; END \$b\$',
					f.proname, f.args, f.proname);
			EXCEPTION WHEN duplicate_function THEN NULL;
			END;
		END LOOP; END \$do\$";
	push @sql, "CREATE VIEW $schema.$_ AS SELECT c.*, $schema.note('$_') FROM pg_catalog.$_ c" foreach sort keys %relations;
	# domains of the names of types: what is cast to them is noted
	push @sql, "DO \$do\$ DECLARE t record; BEGIN
		FOR t IN SELECT typname FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b'
			AND typcategory <> 'A' AND typname IN (" . join(', ', map { "'$_'" } sort keys %words) . ")
		LOOP
			EXECUTE format('CREATE DOMAIN $schema.%I AS pg_catalog.text CHECK ($schema.note(%L))', t.typname, 'type ' || t.typname);
		END LOOP; END \$do\$";
	return join(";\n", @sql) . ";\n";
}

# A statement for each function and procedure of the extension in the schema, with the
# index and the table as its arguments: [text, may be in a transaction].
sub member_calls
{
	my ($node, $db, $index, $table) = @_;
	my @calls = split /\n/, $node->safe_psql($db, qq{
		$members SELECT CASE prokind WHEN 'p' THEN 'CALL ' ELSE 'SELECT * FROM ' END || p.oid::regproc::text || '(' ||
			coalesce((SELECT string_agg(CASE t::regtype
					WHEN 'regclass'::regtype THEN format('%L::pg_catalog.regclass', CASE WHEN pronargs = 2 AND 'text[]'::regtype = ANY (proargtypes) THEN '$table' ELSE '$index' END)
					WHEN 'oid'::regtype THEN format('%L::pg_catalog.regclass::pg_catalog.oid', '$index')
					WHEN 'text'::regtype THEN format('%L::pg_catalog.text', 'pg_catalog.int8_ops')
					WHEN 'text[]'::regtype THEN format('%L::pg_catalog.text[]', '{k}')
					WHEN 'boolean'::regtype THEN 'false'
					WHEN 'float8'::regtype THEN '1::pg_catalog.float8'
					WHEN 'interval'::regtype THEN format('%L::pg_catalog.interval', '10s')
					ELSE t::regtype::text END, ', ' ORDER BY n)
				FROM unnest(proargtypes) WITH ORDINALITY a (t, n)), '') || ')'
		FROM pg_proc p JOIN m ON classid = 'pg_proc'::regclass AND objid = p.oid
		WHERE proname <> 'arthandler'
		ORDER BY proname, pronargs});
	return @calls;
}

1;
