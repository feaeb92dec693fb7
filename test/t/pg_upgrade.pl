# pg_upgrade: it stops at a key of art, and goes on when artidx_to_btree has been
# called; other art indexes go over as they are, and the keys become art again.  An
# extension of an older version goes over as it is, and is updated.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;
use ArtScript;

my $bindir = PostgreSQL::Test::Cluster->new('bindir')->config_data('--bindir');
plan skip_all => 'no pg_upgrade here' unless -x "$bindir/pg_upgrade";

my $old = art_node('old');
my $new = PostgreSQL::Test::Cluster->new('new');

$new->init;
art_conf($new);
$old->safe_psql('postgres', q{
	SET artidx.replace_btree = constraints;
	CREATE TABLE t (id int PRIMARY KEY, v text UNIQUE DEFERRABLE);
	INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 2000) i;
	CREATE INDEX t_lower ON t USING art (lower(v)) WITH (structure = btree);
	CREATE UNIQUE INDEX t_u ON t USING art (v, id);
});
install_old_script('0.1.0');
$old->safe_psql('postgres', 'CREATE DATABASE older');
$old->safe_psql('older', q{
	CREATE SCHEMA ext;
	CREATE EXTENSION artidx SCHEMA ext VERSION '0.1.0';
	CREATE TABLE t (k int);
	INSERT INTO t SELECT generate_series(1, 1000);
	CREATE INDEX t_k ON t USING art (k);
	CREATE VIEW mine AS SELECT indexrelname, entries FROM ext.artidx_indexes});
my $indexes = q{SELECT relname, amname, coalesce(contype::text, '-') FROM pg_index JOIN pg_class c ON c.oid = indexrelid
	JOIN pg_am a ON a.oid = relam LEFT JOIN pg_constraint ON conindid = c.oid
	WHERE indrelid = 't'::regclass ORDER BY 1};
my $before = $old->safe_psql('postgres', $indexes);
my $again = $old->safe_psql('postgres', q{
	SELECT format('CALL artidx_from_btree(%L);', indexrelid::regclass)
	FROM artidx_indexes JOIN pg_constraint ON conindid = indexrelid});

sub upgrade
{
	my ($out, $rc);
	my @where = (
		'-d', $old->data_dir, '-D', $new->data_dir, '-b', $bindir, '-B', $bindir,
		'-s', PostgreSQL::Test::Utils::tempdir_short(),
		'-p', $old->port, '-P', $new->port);

	chdir PostgreSQL::Test::Utils::tempdir() or die $!;
	$old->stop;
	$rc = IPC::Run::run([ 'pg_upgrade', '--no-sync', @where ], '>', \$out, '2>&1');
	return ($rc, $out);
}

my ($done, $out) = upgrade();

ok(!$done, 'it goes no further than a key of art');
my @dumps = map { slurp_file($_) } split /\n/, `find @{[ $new->data_dir, PostgreSQL::Test::Utils::tempdir() ]} -name 'pg_upgrade_dump*.log'`;
like(join('', @dumps), qr/constraint "t_pkey" of table "t" has an index of access method "art".*CALL artidx_to_btree\(\)/s,
	'and says what to do');

# a new cluster for the next try
$old->start;
$old->safe_psql('postgres', q{CALL artidx_to_btree('t_pkey')});
$old->safe_psql('postgres', q{CALL artidx_to_btree('t_v_key')});
$new->clean_node;
$new = PostgreSQL::Test::Cluster->new('newer');
$new->init;
art_conf($new);
($done, $out) = upgrade();
ok($done, 'with keys of btree it comes to its end') or diag($out);

$new->start;
is($new->safe_psql('postgres', $indexes), $before =~ s/art\|([pu])/btree|$1/gr, 'every index is what it was');
fails_with($new, q{INSERT INTO t VALUES (7, 'x')}, '23505', qr/"t_pkey"/, 'a key');
all_ready($new, 'the art indexes are built');
is($new->safe_psql('postgres', $_), '', $_) for split /\n/, $again;
is($new->safe_psql('postgres', $indexes), $before, 'the keys are of art again');
fails_with($new, q{INSERT INTO t VALUES (7, 'x')}, '23505', qr/"t_pkey"/, 'a key');
check_exact($new, 't', $_) for qw(t_pkey t_v_key t_lower t_u);

is($new->safe_psql('older', "SELECT extversion FROM pg_extension WHERE extname = 'artidx'"), '0.1.0', 'an older version goes over');
$new->poll_query_until('older', 'SELECT entries = 1000 FROM mine') or die 'no index';
is($new->safe_psql('older', 'SELECT * FROM mine'), 't_k|1000', 'with what was made of it');
$new->safe_psql('older', 'ALTER EXTENSION artidx UPDATE');
$new->safe_psql('postgres', 'CREATE DATABASE fresh');
$new->safe_psql('fresh', 'CREATE SCHEMA ext; CREATE EXTENSION artidx SCHEMA ext');
same_catalogs(catalogs($new, 'older'), catalogs($new, 'fresh'), 'ALTER EXTENSION artidx UPDATE makes it like a new one');
is($new->safe_psql('older', 'SELECT * FROM mine'), 't_k|1000', 'and a view of it goes on');

$new->stop;
done_testing();
