# ALTER EXTENSION artidx UPDATE: from 0.1.0, whose script ran what others had put in the
# way, to a database that is like one made by this version.  Old declarations with the
# new library; a dump of an old database.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;
use ArtScript;

install_old_script('0.1.0');
my $node = PostgreSQL::Test::Cluster->new('update');
my ($version) = script_version();

$node->init;
art_conf($node, jit => 'off');
$node->start;
$node->safe_psql('postgres', q{
	CREATE ROLE mallory LOGIN;
	CREATE ROLE user_of_views LOGIN;
	CREATE SCHEMA ext;
	CREATE EXTENSION artidx SCHEMA ext;
	CREATE EXTENSION artidx_debug SCHEMA ext});
my $fresh = catalogs($node, 'postgres');
cmp_ok(scalar(split /\n/, $fresh), '>', 1000, 'facts of a database that was made by this version');
is($node->safe_psql('postgres', 'SELECT ext.artidx_version()'), $version, 'the library tells its version');

# Tables with art indexes, and views, a function and privileges on what the extension has.
# Those that artidx_debug has now, or which have columns that only artidx_debug has, come last.
my @moved = qw(contention aborts memory_classes epochs);
my @views = (qw(indexes memory usage standby), @moved);
sub of_views { return join('', map { "CREATE VIEW of_$_ AS SELECT * FROM ext.artidx_$_; GRANT SELECT ON ext.artidx_$_ TO user_of_views;\n" } @_); }
sub not_moved { return @views[0 .. $#views - @moved]; }
my $of_users = q{
	CREATE TABLE t (k int PRIMARY KEY, s text COLLATE "C", n numeric);
	INSERT INTO t SELECT i, 'text ' || i, i FROM generate_series(1, 1000) i;
	CREATE UNIQUE INDEX t_k ON t USING art (k);
	CREATE INDEX t_s ON t USING art (s);
	CREATE INDEX t_n ON t USING btree (n);
	CREATE FUNCTION estimates() RETURNS bigint LANGUAGE sql
		BEGIN ATOMIC SELECT sum(art_bytes) FROM ext.artidx_estimate_database(); END;
	GRANT USAGE ON SCHEMA ext TO user_of_views;
	GRANT EXECUTE ON FUNCTION ext.artidx_memory_stats(), ext.artidx_check(regclass, boolean) TO user_of_views;
	};

sub old_database
{
	my ($db, $first) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, 'CREATE SCHEMA ext');
	$node->safe_psql($db, $first) if $first;
	$node->safe_psql($db, "CREATE EXTENSION artidx SCHEMA ext VERSION '0.1.0'");
	$node->safe_psql($db, $of_users . of_views(@views));
	return;
}

# ALTER EXTENSION UPDATE, without what depends on what moves, and that made anew afterwards.
sub updated
{
	my ($db, $path) = @_;
	my $drop = join('', map { "DROP VIEW IF EXISTS of_$_; " } @moved);
	my ($rc, $out, $err) = $node->psql($db, "SET client_min_messages = warning; $drop SET search_path = $path; ALTER EXTENSION artidx UPDATE; CREATE EXTENSION artidx_debug SCHEMA ext");

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is("$rc$err", '0', "$db: ALTER EXTENSION artidx UPDATE");
	same_catalogs(catalogs($node, $db), $fresh, "$db: what the extensions have is as this version makes it");
	$node->safe_psql($db, 'GRANT SELECT ON ext.artidx_contention TO user_of_views; ' . of_views(@moved) =~ s/artidx_contention/artidx_contention_details/gr);
	return;
}

# What users made of the extension is there, and says something.
sub of_users_works
{
	my ($db, $what, @which) = @_;
	@which = @views if !@which;
	my $rows = $node->safe_psql($db, join(' UNION ALL ', map { "SELECT '$_', count(*) FROM of_$_" } @which));
	my $names = $node->safe_psql($db, 'SELECT string_agg(indexrelname, $$ $$ ORDER BY indexrelname) FROM of_indexes');

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(scalar(() = $rows =~ /\|/g), scalar @which, "$what: users' views");
	like($rows, qr/^indexes\|2\nmemory\|1\nusage\|[1-9]/, "$what: have rows");
	like($rows, qr/^contention\|2\naborts\|[1-9]/m, "$what: the others, too") if @which == @views;
	is($names, 't_k t_s', "$what: of the indexes");
	cmp_ok($node->safe_psql($db, 'SELECT estimates()'), '>', 0, "$what: a user's function");
	is($node->safe_psql($db, "SET search_path = public, ext; SELECT entries FROM artidx_check('t_k', true) UNION ALL SELECT entries FROM artidx_check('t_s', true)"),
		"1000\n1000", "$what: indexes are right");
	is($node->safe_psql($db, "SELECT relname FROM pg_class WHERE relnamespace = 'ext'::regnamespace AND relkind = 'v'
			AND NOT has_table_privilege('user_of_views', oid, 'SELECT')
			AND relname NOT IN ('artidx_progress', 'artidx_crash_checks')"), '', "$what: users' privileges on views that 0.1.0 had");
	is($node->safe_psql($db, 'SELECT count(*) > 0 FROM ext.artidx_memory', extra_params => [ '-U', 'user_of_views' ]), 't',
		"$what: and on a function");
	return;
}

# ---- old declarations, new library ----

old_database('plain');
isnt(catalogs($node, 'plain'), $fresh, 'an old database is another');
of_users_works('plain', 'before the update');
foreach my $call (member_calls($node, 'plain', 'public.t_s', 'public.t'))
{
	$call =~ s/t_s/t_n/ if $call =~ /from_btree/;
	my ($rc, $out, $err) = $node->psql('plain', "SET search_path = public; $call");
	my $ok = $call =~ /mirror/ ? qr/^(?:$|.*operator (?:class|family).*)/s : qr/^(?:.*NOTICE.*)?$/s;
	like($err, $ok, "before the update: $call");
	# as it was before
	my @back = $call =~ /from_btree/ ? "CALL ext.artidx_to_btree('t_n', false)" :
	  $call =~ /to_btree\('/ ? "CALL ext.artidx_from_btree('t_s', false)" :
	  $call =~ /to_btree\(\)/ ? map { "CALL ext.artidx_from_btree('$_', false)" } qw(t_s t_k) : ();
	$node->safe_psql('plain', join('; ', @back)) if @back;
}

# ---- newer declarations: a column more than the library gives ----

$node->safe_psql('postgres', $of_users);
my $more = $node->safe_psql('postgres', q{
	SELECT format('CREATE FUNCTION public.%s(%s, OUT one_more text) RETURNS %s LANGUAGE c AS %L, %L', proname,
		pg_get_function_arguments(oid), CASE WHEN proretset THEN 'SETOF record' ELSE 'record' END, '$libdir/artidx', prosrc)
	FROM pg_proc WHERE pronamespace = 'ext'::regnamespace AND prorettype = 'record'::regtype AND prolang = 13
		AND proargmodes @> '{o}'});
my @more = split /;?\n/, $more;
cmp_ok(scalar @more, '>=', 9, 'functions with rows');
foreach my $create (@more)
{
	my ($name) = $create =~ /FUNCTION public\.(\w+)/;
	$node->safe_psql('postgres', $create);
	my ($call) = grep { /\b$name\(/ } member_calls($node, 'postgres', 'public.t_k', 'public.t');
	my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n" . ($call =~ s/\bext\.//r));
	like($err, qr/ERROR:  42P13: function $name\(\) is declared with \d+ columns.*HINT:.*ALTER EXTENSION artidx UPDATE/s,
		"$name() with more columns than the library gives");
	$node->safe_psql('postgres', "DROP FUNCTION public.$name");
}

# ---- the update ----

my ($rc, $out, $err);
foreach my $view (@moved)
{
	($rc, $out, $err) = $node->psql('plain', 'ALTER EXTENSION artidx UPDATE');
	like($err, qr/ERROR:  cannot update extension "artidx" because other objects depend on what it gives up: VIEW artidx_$view\n.*DETAIL:  view public\.of_$view depends on view (?:ext\.)?artidx_$view\n.*HINT:  Drop these objects and update\. Extension "artidx_debug" has/s,
		"a view of artidx_$view stops the update, and is named");
	$node->safe_psql('plain', "DROP VIEW of_$view");
}
updated('plain', 'public');
of_users_works('plain', 'after the update');
is($node->safe_psql('plain', "SELECT count(*) FROM pg_init_privs WHERE initprivs::text ~ 'user_of_views'"), '0',
	'a dump has the privileges that users gave');

# A name that somebody took first is not taken over.
old_database('taken');
$node->safe_psql('taken', 'DROP VIEW ' . join(', ', map { "of_$_" } @moved));
$node->safe_psql('taken', q{GRANT CREATE ON SCHEMA ext TO mallory; SET ROLE mallory;
	CREATE FUNCTION ext.artidx_version() RETURNS text LANGUAGE sql AS $$ SELECT 'mine' $$});
($rc, $out, $err) = $node->psql('taken', 'ALTER EXTENSION artidx UPDATE');
like($err, qr/function artidx_version\(\) is not a member of extension "artidx"/, 'a function of somebody else stops the update');
is($node->safe_psql('taken', "SELECT extversion FROM pg_extension WHERE extname = 'artidx'"), '0.1.0', 'which did nothing');
of_users_works('taken', 'after that', not_moved());

# ---- an old database in which mallory came first ----

# As the ones of pg_catalog, so that nobody notices; but they write down for whom they run.
my $hijack = q{
	GRANT CREATE, USAGE ON SCHEMA ext TO mallory;
	SET SESSION AUTHORIZATION mallory;
	CREATE TABLE ext.seen (who name, what text);
	GRANT INSERT ON ext.seen TO PUBLIC;
	CREATE FUNCTION ext.note(what text) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog AS
		$$ BEGIN INSERT INTO ext.seen VALUES (current_user, what); RETURN true; END $$;
	CREATE FUNCTION ext.eq(oid, regnamespace) RETURNS boolean LANGUAGE sql AS $$ SELECT ext.note('oid = regnamespace') AND $1 = $2::oid $$;
	CREATE OPERATOR ext.= (LEFTARG = oid, RIGHTARG = regnamespace, FUNCTION = ext.eq);
	CREATE FUNCTION ext.lt(oid, int) RETURNS boolean LANGUAGE sql AS $$ SELECT ext.note('oid < int4') AND $1 < $2::oid $$;
	CREATE OPERATOR ext.< (LEFTARG = oid, RIGHTARG = int, FUNCTION = ext.lt);
	CREATE FUNCTION ext.ge(oid, int) RETURNS boolean LANGUAGE sql AS $$ SELECT ext.note('oid >= int4') AND $1 >= $2::oid $$;
	CREATE OPERATOR ext.>= (LEFTARG = oid, RIGHTARG = int, FUNCTION = ext.ge);
	CREATE FUNCTION ext.eq(regproc, regproc) RETURNS boolean LANGUAGE sql AS $$ SELECT ext.note('regproc = regproc') AND $1::oid = $2::oid $$;
	CREATE OPERATOR ext.= (LEFTARG = regproc, RIGHTARG = regproc, FUNCTION = ext.eq);
	CREATE FUNCTION ext.pg_relation_size(oid) RETURNS bigint LANGUAGE sql AS
		$$ SELECT pg_relation_size($1::regclass) WHERE ext.note('pg_relation_size(oid)') $$;
	CREATE FUNCTION ext.unnest(oid[]) RETURNS SETOF oid LANGUAGE sql AS
		$$ SELECT pg_catalog.unnest($1) WHERE ext.note('unnest(oid[])') $$;
	CREATE FUNCTION ext.artidx_abort_stats(oid, OUT site text, OUT mode text, OUT sections bigint, OUT attempts bigint,
		OUT commits bigint, OUT conflict bigint, OUT capacity bigint, OUT explicit bigint, OUT lock_busy bigint, OUT nested bigint,
		OUT zero bigint, OUT other bigint, OUT retry_hint bigint, OUT fallbacks bigint, OUT switch_offs bigint, OUT switch_ons bigint,
		OUT stats_reset timestamptz)
	RETURNS SETOF record LANGUAGE sql AS $$ SELECT 'mine', '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, now() WHERE ext.note('artidx_abort_stats(oid)') $$};
my $seen = q{SELECT DISTINCT what FROM ext.seen WHERE who = 'postgres' ORDER BY 1};

old_database('hijacked', $hijack);
$node->safe_psql('hijacked', 'SELECT count(*) FROM of_aborts; SELECT estimates()');
is($node->safe_psql('hijacked', $seen), join("\n", 'artidx_abort_stats(oid)', 'oid < int4', 'oid = regnamespace', 'oid >= int4',
		'pg_relation_size(oid)', 'regproc = regproc', 'unnest(oid[])'), 'functions of mallory run as the superuser in 0.1.0');
my ($n, $foreign) = foreign_references($node, 'hijacked');
like($foreign, qr/pg_relation_size\(oid\).*artidx_abort_stats\(oid\)/s, 'the extension refers to them');
$node->safe_psql('hijacked', 'TRUNCATE ext.seen');
updated('hijacked', 'ext');
of_users_works('hijacked', 'after the update');
is($node->safe_psql('hijacked', 'SELECT count(*) FROM ext.seen'), '0', 'none of them ran');
($n, $foreign) = foreign_references($node, 'hijacked');
is($foreign, '', 'the extension refers to nothing of others');
isnt($node->safe_psql('hijacked', 'SELECT min(site) FROM of_aborts'), 'mine', "a user's view has the rows of the new one");

# With other columns than ours, or so that classes are not there.
old_database('columns', $hijack =~ s/OUT site text/OUT place text/r =~ s/AND \$1 = \$2::oid/AND false/r =~ s/AND \$1 < \$2::oid/AND false/r);
$node->safe_psql('columns', 'TRUNCATE ext.seen');
updated('columns', 'ext');
is($node->safe_psql('columns', 'SELECT count(*) FROM ext.seen'), '0', 'none of the functions ran');

# Beside overloads of everything.
my @given = split /\n/, $node->safe_psql('postgres', q{
	SELECT proname || '(' || replace(replace(replace(oidvectortypes(proargtypes), ', ', ','), 'boolean', 'bool'), 'smallint', 'int2') || ')'
	FROM pg_proc WHERE pronamespace = 'ext'::regnamespace});
$node->safe_psql('postgres', "CREATE DATABASE beside");
$node->safe_psql('beside', "CREATE SCHEMA ext AUTHORIZATION mallory; CREATE EXTENSION artidx SCHEMA ext VERSION '0.1.0'");
$node->safe_psql('beside', 'BEGIN; CREATE TABLE ext.seen (who name, what text); GRANT INSERT ON ext.seen TO PUBLIC; ' .
	overloads_sql('ext', script_text('0.1.0'), \@given) . 'COMMIT', extra_params => [ '-U', 'mallory' ]);
($rc, $out, $err) = $node->psql('beside', 'ALTER EXTENSION artidx UPDATE; CREATE EXTENSION artidx_debug SCHEMA ext');
is("$rc$err" . $node->safe_psql('beside', 'SELECT who, what FROM ext.seen LIMIT 9'), '0', 'ALTER EXTENSION artidx UPDATE beside overloads of everything');
same_catalogs(catalogs($node, 'beside'), $fresh, 'what the extension has is as this version makes it');

# ---- a dump, of an old database and of one that was updated ----

sub dumped
{
	my ($db, $what, @which) = @_;
	my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump.sql';

	$node->command_ok([ 'pg_dump', '-f', $dump, $node->connstr($db) ], "pg_dump of $what");
	$node->safe_psql('postgres', "CREATE DATABASE restored_$db");
	$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr("restored_$db") ], 'its restore');
	$node->safe_psql("restored_$db", 'CREATE EXTENSION artidx_debug SCHEMA ext') if @which < @views;
	same_catalogs(catalogs($node, "restored_$db"), $fresh, 'is of this version');
	$node->safe_psql("restored_$db", 'GRANT SELECT ON ' . join(', ', map { "ext.artidx_$_" } @moved, 'contention_details') . ' TO user_of_views') if @which < @views;
	of_users_works("restored_$db", 'restored', @which);
	return;
}
old_database('dumped');
$node->safe_psql('dumped', join('', map { "DROP VIEW of_$_; REVOKE SELECT ON ext.artidx_$_ FROM user_of_views;" } @moved));
dumped('dumped', 'an old database', not_moved());
dumped('plain', 'one that was updated', @views);

is(join("\n", server_crashes($node, 0)), '', 'nothing crashed');
$node->stop;
done_testing();
