# A database with art indexes and constraints through pg_dump and back: indexes
# as they were under every setting, PRIMARY KEY and UNIQUE as those of the restoring session
# say (a dump does not name their access method); and the settings in a database
# without the extension.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('dump');
my $dir = PostgreSQL::Test::Utils::tempdir();

$node->safe_psql('postgres', q{
	SET client_min_messages = warning;
	SET artidx.replace_btree = constraints;
	CREATE TABLE t (id serial PRIMARY KEY, a int UNIQUE DEFERRABLE INITIALLY DEFERRED,
		b text, c numeric, EXCLUDE USING art (b WITH =));
	RESET artidx.replace_btree;
	CREATE INDEX t_b ON t USING art (b text_pattern_ops, c DESC NULLS LAST) WITH (fillfactor = 70, structure = btree);
	CREATE INDEX t_e ON t USING art ((a + 1)) WHERE a > 10;
	CREATE INDEX t_plain ON t (c, b);
	CREATE UNIQUE INDEX t_ca ON t USING art (c, a);
	ALTER TABLE t ADD CONSTRAINT t_ca UNIQUE USING INDEX t_ca;
	INSERT INTO t (a, b, c) SELECT i, 'b' || i, i FROM generate_series(1, 1000) i;
	CREATE TABLE p (k int, v int) PARTITION BY RANGE (k);
	CREATE INDEX p_v ON p USING art (v);
	CREATE UNIQUE INDEX p_k ON p (k);
	CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100);
	CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200);
	INSERT INTO p SELECT i, i % 7 FROM generate_series(0, 199) i;
	CREATE TYPE pair AS (x int, y int);
	CREATE FUNCTION pair_cmp(pair, pair) RETURNS int IMMUTABLE STRICT LANGUAGE sql
		AS 'SELECT pg_catalog.btint4cmp($1.x, $2.x)';
	CREATE OPERATOR CLASS pair_ops FOR TYPE pair USING btree AS
		OPERATOR 1 < (record, record), OPERATOR 3 = (record, record), FUNCTION 1 pair_cmp(pair, pair);
	SELECT artidx_mirror_opclass('pair_ops');
});

# which constraint or index is of which access method
sub methods
{
	my ($db) = @_;

	return $node->safe_psql($db, q{
		SELECT c.relname, a.amname, coalesce(contype::text, '-')
		FROM pg_index i JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
			LEFT JOIN pg_constraint n ON n.conindid = indexrelid
		WHERE c.relnamespace = 'public'::regnamespace ORDER BY 1});
}

my $original = methods('postgres');

is($original, join("\n", 'p1_k_idx|btree|-', 'p1_v_idx|art|-', 'p2_k_idx|btree|-',
		'p2_v_idx|art|-', 'p_k|btree|-', 'p_v|art|-', 't_a_key|art|u', 't_b|art|-',
		't_b_excl|art|x', 't_ca|art|u', 't_e|art|-', 't_pkey|art|p', 't_plain|btree|-'),
	'indexes and constraints of art');

$node->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/t.dump", $node->connstr('postgres') ], 'dumped');
$node->command_ok([ 'pg_dump', '-f', "$dir/t.sql", $node->connstr('postgres') ], 'dumped as a script');
my $script = slurp_file("$dir/t.sql");

like($script, qr/CREATE INDEX t_b ON public\.t USING art \(b public\.text_pattern_ops, c DESC NULLS LAST\) WITH \(fillfactor='70', structure=btree\)/,
	'an index says what it is');
like($script, qr/EXCLUDE USING art \(b WITH =\)/, 'so does an exclusion constraint');
like($script, qr/ADD CONSTRAINT t_pkey PRIMARY KEY \(id\);/, 'a key does not');

# restored as the settings say
sub restore
{
	my ($db, $options, $jobs, %expect) = @_;
	my $expected = $original;

	local $ENV{PGOPTIONS} = $options;
	$node->safe_psql('postgres', "CREATE DATABASE $db TEMPLATE template0");
	$node->command_ok([ 'pg_restore', '--exit-on-error', '-j', $jobs, '-d', $node->connstr($db), "$dir/t.dump" ],
		"$db: restored");
	$expected =~ s/^\Q$_\E\|\w+/$_|$expect{$_}/m for keys %expect;
	is(methods($db), $expected, "$db: access methods");
	is($node->safe_psql($db, 'SELECT count(*), sum(a), max(b), sum(c) FROM t'),
		$node->safe_psql('postgres', 'SELECT count(*), sum(a), max(b), sum(c) FROM t'), "$db: rows");
	is($node->safe_psql($db, 'SELECT count(*) FROM artidx_indexes i, artidx_check(i.indexrelid, true) c WHERE c.entries < c.heap_tuples'),
		'0', "$db: every row is in every index");
	$node->command_fails_like(
		[ 'psql', '-X', '-d', $node->connstr($db), '-c', 'INSERT INTO t (id, a) VALUES (1, 5000)' ],
		qr/duplicate key value violates unique constraint "t_pkey"/, "$db: a key");
	$node->command_fails_like(
		[ 'psql', '-X', '-d', $node->connstr($db), '-c', 'INSERT INTO t (id, a) VALUES (5000, 1)' ],
		qr/duplicate key value violates unique constraint "t_a_key"/, "$db: a deferred one");
	$node->command_fails_like(
		[ 'psql', '-X', '-d', $node->connstr($db), '-c', q{INSERT INTO t (id, a, b) VALUES (5000, 5000, 'b7')} ],
		qr/conflicting key value violates exclusion constraint "t_b_excl"/, "$db: an exclusion");
}

my %keys = (t_pkey => 'btree', t_a_key => 'btree', t_ca => 'btree');
restore('plain', '', 1, %keys);
restore('jobs', '', 3, %keys);
restore('keys', '-c artidx.replace_btree=constraints', 3);
# a dump says USING btree of a btree index
restore('everything', '-c artidx.replace_btree=all', 2);
restore('indexes', '-c artidx.replace_btree=indexes', 2, %keys);

# what was restored dumps alike
$node->command_ok([ 'pg_dump', '-s', '-f', "$dir/s1.sql", $node->connstr('postgres') ], 'schema dumped');
$node->command_ok([ 'pg_dump', '-s', '-f', "$dir/s2.sql", $node->connstr('keys') ], 'schema of the copy dumped');
# of two operator classes of one name, either may come first
my ($s1, $s2) = map {
	join "\n", sort grep { !/^(\\|--)/ } split /\n/, slurp_file("$dir/$_.sql")
} qw(s1 s2);
is($s1, $s2, 'the same schema');

# the mirror of an operator class is a class like any other now
is($node->safe_psql('keys', q{SELECT count(*) FROM pg_opclass WHERE opcname = 'pair_ops'}), '2',
	'an operator class and its mirror');

# without the extension the settings mean nothing
$node->safe_psql('postgres', 'CREATE DATABASE bare TEMPLATE template0');
$node->append_conf('postgresql.conf', "artidx.replace_btree = 'all'\n");
$node->reload;
is($node->safe_psql('bare', q{
	CREATE TABLE x (id int PRIMARY KEY, a int UNIQUE);
	CREATE INDEX x_a ON x (a);
	ALTER TABLE x ADD COLUMN b int UNIQUE;
	CREATE UNIQUE INDEX x_b ON x (b);
	ALTER TABLE x ADD CONSTRAINT x_b UNIQUE USING INDEX x_b;
	ALTER OPERATOR FAMILY integer_ops USING btree ADD FUNCTION 1 (int4, oid) btint4cmp(int4, int4);
	SELECT string_agg(DISTINCT amname, ' ') FROM pg_index JOIN pg_class c ON c.oid = indexrelid
		JOIN pg_am a ON a.oid = relam WHERE indrelid = 'x'::regclass}),
	'btree', 'a database without the extension');

# which a session is told, once
foreach my $value ('all', 'constraints')
{
	my ($out, $err);

	local $ENV{PGOPTIONS} = "-c artidx.replace_btree=$value";
	$node->psql('bare', 'DROP TABLE IF EXISTS w; CREATE TABLE w (a int PRIMARY KEY, b int UNIQUE)', stderr => \$err);
	is(scalar(() = $err =~ /WARNING:  new indexes are of access method "btree", whatever "artidx.replace_btree" says/g), 1,
		"$value: a warning");
}

# with it they hold for whoever connects; an extension's own objects stay as they are
is($node->safe_psql('postgres', q{
	CREATE TABLE y (id int PRIMARY KEY);
	SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'y_pkey'}),
	'art', 'a database with it');

# pg_upgrade would take such a key's empty file for a btree index
sub upgraded
{
	$node->stop;
	command_ok(['pg_ctl', '-w', '-D', $node->data_dir, '-l', $node->logfile, '-o', '-b', 'start'],
		'a server for pg_upgrade');
	my ($out, $err) = run_command(['pg_dump', '--schema-only', '--binary-upgrade', '-t', 'y', '-d', $node->connstr('postgres')]);
	command_ok(['pg_ctl', '-w', '-D', $node->data_dir, 'stop'], 'and stopped');
	$node->start;
	return $err;
}
like(upgraded(), qr/constraint "y_pkey" of table "y" has an index of access method "art", which pg_upgrade.*CALL artidx_to_btree\(\)/s,
	'pg_upgrade goes no further');
$node->safe_psql('postgres', q{CALL artidx_to_btree('y_pkey')});
is(upgraded(), '', 'once it is btree it does');

$node->safe_psql('postgres', 'DROP EXTENSION artidx CASCADE');
is($node->safe_psql('postgres', q{
	CREATE TABLE z (id int PRIMARY KEY);
	SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'z_pkey'}),
	'btree', 'and no longer when it is gone');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_opclass WHERE opcname = 'pair_ops'}), '1',
	'its mirrors went along');

$node->stop;
done_testing();
