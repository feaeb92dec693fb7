# The SQL of the extension runs, reads and refers to nothing but what pg_catalog has and
# what it made itself, whoever may create in its schema.  The role mallory may: it has an
# overload of everything that the script names, and none of them ever runs.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;
use ArtScript;

my $node = PostgreSQL::Test::Cluster->new('script');

$node->init;
art_conf($node, jit => 'off', max_locks_per_transaction => 1000);
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE mallory LOGIN; CREATE SCHEMA ext; CREATE EXTENSION artidx SCHEMA ext; CREATE EXTENSION artidx_debug SCHEMA ext');

# ---- the catalogs ----

my ($n, $foreign) = foreign_references($node, 'postgres');
cmp_ok($n, '>', 500, "references of the extension's members: $n");
is($foreign, '', 'none leads elsewhere');

# A call that is reached by an implicit cast is one that a better match takes away.
my $trees = $node->safe_psql('postgres', q{
	SELECT c.oid::regclass::text, r.ev_action FROM pg_rewrite r JOIN pg_class c ON c.oid = ev_class
	WHERE relnamespace = 'ext'::regnamespace
	UNION ALL
	SELECT oid::regproc::text, prosqlbody FROM pg_proc WHERE pronamespace = 'ext'::regnamespace AND prosqlbody IS NOT NULL});
cmp_ok(scalar(() = $trees =~ /^ext\./mg), '>=', 9, 'trees of views and of a function');
foreach my $tree (split /\n/, $trees)
{
	my ($name, $nodes) = split /\|/, $tree, 2;
	unlike($nodes, qr/:(?:relabel|func|coerce|arraycoerce|convert|row_)format 2\b/, "$name: no implicit cast");
	cmp_ok(scalar(() = $nodes =~ /\{(?:OPEXPR|FUNCEXPR) /g), '>', 0, "$name: operators or functions");
}

# ---- beside overloads of everything ----

my @given = split /\n/, $node->safe_psql('postgres', q{
	SELECT proname || '(' || replace(replace(replace(oidvectortypes(proargtypes), ', ', ','), 'boolean', 'bool'), 'smallint', 'int2') || ')'
	FROM pg_proc WHERE pronamespace = 'ext'::regnamespace});
my $overloads = overloads_sql('evil', script_text(), \@given);
cmp_ok(scalar(() = $overloads =~ /CREATE OPERATOR/g), '>', 3000, 'operators in the way');
cmp_ok(scalar(() = $overloads =~ /CREATE FUNCTION/g), '>', 3000, 'functions in the way');

sub database_of_mallory
{
	my ($db) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, q{
		CREATE SCHEMA evil AUTHORIZATION mallory;
		CREATE SCHEMA own;
		SET ROLE mallory;
		CREATE TABLE evil.seen (who name, what text);
		GRANT INSERT ON evil.seen TO PUBLIC});
	$node->safe_psql($db, "BEGIN; $overloads COMMIT", extra_params => [ '-U', 'mallory' ]);
	return;
}

sub nothing_seen
{
	my ($db, $what, $err) = @_;
	my $seen = $node->safe_psql($db, q{SELECT who || ': ' || what || ' ' || count(*) FROM evil.seen GROUP BY who, what ORDER BY 1 LIMIT 20});

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is("$err$seen", '', $what);
}

# Run by a superuser; what goes wrong is told.
sub quiet
{
	my ($db, $sql, $what) = @_;
	my ($rc, $out, $err) = $node->psql($db, $sql);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return nothing_seen($db, $what, $rc == 0 && $err !~ /WARNING|ERROR/ ? '' : "$rc $err");
}

# Every view is read and every function called, with the path given.
sub use_all
{
	my ($db, $schema, $path) = @_;

	quiet($db, "SET search_path = $path; CREATE TABLE own.t (k pg_catalog.int4, b pg_catalog.int4, s pg_catalog.text);
		INSERT INTO own.t SELECT * FROM (VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')) v;
		CREATE INDEX t_k ON own.t USING art (k);
		CREATE UNIQUE INDEX t_s ON own.t USING art (s);
		CREATE INDEX t_b ON own.t USING btree (b);
		CREATE INDEX t_tried ON own.t USING btree (b, k);
		INSERT INTO own.t VALUES (4, 4, 'd')", "with search_path = $path: art indexes");
	my @views = split /\n/, $node->safe_psql($db,
		"SELECT oid::regclass FROM pg_class WHERE relkind = 'v' AND relnamespace = '$schema'::regnamespace AND relname ~ '^artidx'");
	cmp_ok(scalar @views, '>=', 8, 'the views');
	quiet($db, "SET search_path = $path; SELECT * FROM $_", "with search_path = $path: $_") foreach @views;
	my @calls = (member_calls($node, $db, 'own.t_k', 'own.t'), "SELECT * FROM $schema.artidx_estimate('own.t_b'::pg_catalog.regclass)",
		"SELECT * FROM $schema.artidx_check('own.t_s'::pg_catalog.regclass, true)");
	cmp_ok(scalar @calls, '>=', 22, 'calls of the functions');
	# the way back of all indexes is the last
	foreach my $call (sort { ($a =~ /_to_btree\(\)/) <=> ($b =~ /_to_btree\(\)/) } @calls)
	{
		# a class beside the extension's own is made elsewhere
		my $where = $call =~ /mirror/ ? 'own, evil' : $path;
		$call =~ s/t_k/t_b/ if $call =~ /from_btree/;
		$call =~ s/t_k/t_tried/ if $call =~ /artidx_trial/;
		quiet($db, "SET search_path = $where; $call", "with search_path = $where: $call");
		quiet($db, "CALL $schema.artidx_from_btree('own.t_k'::pg_catalog.regclass, false)", 'and back') if $call =~ /to_btree\('/;
	}
	$node->safe_psql($db, 'DROP TABLE own.t; DROP OPERATOR CLASS own.int8_ops USING art CASCADE; DROP OPERATOR FAMILY own.integer_ops USING art CASCADE');
	return;
}

database_of_mallory('named');
# that mallory's do run where they are meant, and are seen
is($node->safe_psql('named', 'SET search_path = evil; BEGIN; SELECT pg_my_temp_schema() < 16384; SELECT count(*) FROM evil.seen; ROLLBACK'), "t\n1",
	'an overload of mallory runs where a cast would be needed');
quiet('named', 'CREATE EXTENSION artidx SCHEMA evil; CREATE EXTENSION artidx_debug SCHEMA evil', 'CREATE EXTENSION artidx SCHEMA evil');

# Queries of the scripts that are not kept: as views they show what they are bound to,
# also where they find no row on this server.
my $n_queries = 0;
foreach my $query (script_queries())
{
	$n_queries++;
	my $bound = $node->safe_psql('named', "BEGIN; SET search_path = evil; CREATE VIEW own.query AS $query; " . q{
		SELECT pg_catalog.pg_describe_object(d.refclassid, d.refobjid, 0) FROM pg_catalog.pg_depend d
			JOIN pg_catalog.pg_rewrite r ON d.objid OPERATOR(pg_catalog.=) r.oid AND r.ev_class OPERATOR(pg_catalog.=) 'own.query'::pg_catalog.regclass::pg_catalog.oid
			WHERE d.refobjid OPERATOR(pg_catalog.<>) r.ev_class
				AND d.refobjid NOT IN (SELECT e.objid FROM pg_catalog.pg_depend e WHERE e.deptype OPERATOR(pg_catalog.=) 'e')
				AND pg_catalog.pg_describe_object(d.refclassid, d.refobjid, 0) OPERATOR(pg_catalog.~) 'evil|operator|function';
		ROLLBACK});
	is($bound, '', 'a query of the scripts is bound to pg_catalog: ' . substr($query =~ s/\s+/ /gr, 0, 60));
}
cmp_ok($n_queries, '>=', 5, 'queries of the scripts');

($n, $foreign) = foreign_references($node, 'named');
is($foreign, '', 'no member refers to anything of mallory');
use_all('named', 'evil', $_) foreach 'evil', 'evil, pg_catalog';
same_catalogs(catalogs($node, 'named') =~ s/\bevil\b/ext/gr, catalogs($node, 'postgres'), 'the extension is the same as elsewhere');

$node->safe_psql('named', 'DROP EXTENSION artidx_debug, artidx');
quiet('named', 'SET search_path = evil; CREATE EXTENSION artidx; CREATE EXTENSION artidx_debug', 'CREATE EXTENSION artidx, with the schema first in the path');
quiet('named', 'SET search_path = evil; ALTER EXTENSION artidx SET SCHEMA own; ALTER EXTENSION artidx_debug SET SCHEMA own', 'ALTER EXTENSION artidx SET SCHEMA own');
quiet('named', 'SET search_path = evil; ALTER EXTENSION artidx SET SCHEMA evil; ALTER EXTENSION artidx_debug SET SCHEMA evil', 'and back');
($n, $foreign) = foreign_references($node, 'named');
is($foreign, '', 'no member refers to anything of mallory');
$node->safe_psql('named', 'DROP EXTENSION artidx_debug, artidx; CREATE EXTENSION artidx SCHEMA public; CREATE EXTENSION artidx_debug SCHEMA public');
quiet('named', 'SET search_path = evil, pg_catalog; ALTER EXTENSION artidx SET SCHEMA evil; ALTER EXTENSION artidx_debug SET SCHEMA evil', 'ALTER EXTENSION artidx SET SCHEMA evil');
use_all('named', 'evil', 'evil');

is(join("\n", server_crashes($node, 0)), '', 'nothing crashed');
$node->stop;
done_testing();
