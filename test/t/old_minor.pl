# On a minor release whose bitmap scans believe the visibility map, an art index
# has them look at every row again; on this one it does not.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $dir = build_modules('art_hinttest');

# How often the condition of a bitmap scan is evaluated on rows: its function says so.
sub looks
{
	my ($node) = @_;

	$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION loud(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
	$$BEGIN RAISE NOTICE 'looked at'; RETURN $1; END$$;
CREATE TABLE t (k int);
INSERT INTO t SELECT i % 100 FROM generate_series(1, 1000) i;
SET client_min_messages = warning;
CREATE INDEX t_k ON t USING art (loud(k));
VACUUM ANALYZE t;
SQL
	my ($rc, $out, $err) = $node->psql('postgres',
		'SET enable_seqscan = off; SET enable_indexscan = off; SELECT count(*) FROM t WHERE loud(k) = 7');
	is("$rc|$out", '0|10', 'the answer is right');
	my $n = () = $err =~ /looked at/g;
	return $n;
}

my $old = PostgreSQL::Test::Cluster->new('old');
$old->init;
art_conf($old, shared_preload_libraries => "'$dir/art_oldminor, artidx'");
$old->start;
$old->safe_psql('postgres', 'CREATE EXTENSION artidx');
like($old->safe_psql('postgres', 'SHOW server_version'), qr/^\d+\.0$/, 'a server that says it is old');
my $major = $old->pg_version->major;
is(looks($old), $major < 18 ? 10 : 0, 'rows that it looks at again');
$old->stop;

my $new = art_node('new');
my ($minor) = $new->safe_psql('postgres', 'SHOW server_version') =~ /\.(\d+)/;
my %from = (15 => 13, 16 => 9, 17 => 5);
is(looks($new), ($minor // 0) < ($from{$major} // 0) ? 10 : 0, 'and on this very release');
$new->stop;

done_testing();
