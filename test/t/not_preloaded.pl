# artidx is not in shared_preload_libraries: it can be created and dropped,
# what needs it says which setting to change, everything else goes on.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('notpreloaded', shared_preload_libraries => "''");
my $hint = qr/shared_preload_libraries/;

$node->safe_psql('postgres', q{
	CREATE TABLE t (id int);
	INSERT INTO t SELECT generate_series(1, 100);
});
fails_with($node, 'CREATE INDEX t_id ON t USING art (id)',
	'55000', $hint, 'CREATE INDEX');
is( $node->safe_psql('postgres',
		"SELECT count(*) FROM pg_class WHERE relname = 't_id'"),
	'0', 'leaves no index behind');
$node->safe_psql('postgres', 'DROP EXTENSION artidx');
pass('the extension can be dropped');
$node->safe_psql('postgres', 'CREATE EXTENSION artidx');
is($node->safe_psql('postgres', 'SELECT count(*) FROM artidx_indexes'),
	'0', 'the view works without it');

# with it ...
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'artidx'\nartidx.memory = '64MB'");
$node->restart;
$node->safe_psql('postgres', q{
	CREATE INDEX t_id ON t USING art (id);
	CREATE TABLE u (id int, v int);
	CREATE UNIQUE INDEX u_id ON u USING art (id);
	CREATE EXTENSION citext;
	CREATE TABLE c (v text, w text);
	CREATE UNIQUE INDEX c_v ON c USING art (v);
	CREATE UNIQUE INDEX c_w ON c USING art (w);
	INSERT INTO u SELECT i, i FROM generate_series(1, 100) i;
	ANALYZE t; ANALYZE u;
});

# ... and without it again: the indexes exist, their memory does not
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->restart;

is( $node->safe_psql('postgres',
		'SET enable_seqscan = off; SELECT count(*) FROM t WHERE id = 7'),
	'1', 'a query does without the index');
is( $node->safe_psql('postgres',
		'SET enable_seqscan = off; SELECT v FROM u WHERE id = 7'),
	'7', 'and without a unique one');
$node->safe_psql('postgres', 'INSERT INTO t VALUES (101)');
pass('INSERT under an index that is not unique');
fails_with($node, 'INSERT INTO u VALUES (101, 1)',
	'55000', $hint, 'INSERT under a unique index');
fails_with($node, 'UPDATE u SET id = 500 WHERE id = 5',
	'55000', $hint, 'UPDATE of the key under a unique index');
$node->safe_psql('postgres', 'UPDATE u SET v = 0 WHERE id = 5');
pass('HOT update under a unique index');
$node->safe_psql('postgres',
	'DELETE FROM t WHERE id <= 50; DELETE FROM u WHERE id <= 50');
$node->safe_psql('postgres', 'VACUUM t; VACUUM u; ANALYZE t; ANALYZE u');
pass('DELETE, VACUUM and ANALYZE');
$node->safe_psql('postgres', 'REINDEX INDEX u_id; VACUUM FULL u; '
	  . 'ALTER TABLE u ALTER id TYPE bigint; ALTER TABLE u ALTER id TYPE int');
pass('what makes the index anew');
fails_with($node, 'ALTER TABLE u ALTER id TYPE int USING id / 10',
	'23505', qr/could not create unique index "u_id"/, 'unless it makes duplicates');
# nobody sees ALTER TYPE, but the build does, if there is one
fails_with($node, 'ALTER TABLE c ALTER v TYPE citext USING lower(v)',
	'42704', qr/SELECT artidx_mirror_opclass\('public.citext_ops'\)/, 'or one that does not order as btree');
$node->safe_psql('postgres', 'ALTER TABLE c ALTER w TYPE citext');
$node->safe_psql('postgres', q{SELECT artidx_mirror_opclass('public.citext_ops'); ALTER TABLE c ALTER v TYPE citext USING lower(v)});
is($node->safe_psql('postgres', q{SELECT opcname FROM pg_opclass JOIN pg_index ON indclass[0] = pg_opclass.oid
	WHERE indexrelid = 'c_v'::regclass}), 'citext_ops', 'until a superuser makes the class');
fails_with($node, 'CREATE INDEX t_2 ON t USING art (id)',
	'55000', $hint, 'CREATE INDEX on a table that has one');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), '51',
	'the table is right');

# back with it: what happened in between is in the indexes
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries',
	"'artidx'");
$node->restart;
request_and_wait($node, 't_id', 'SELECT id FROM t WHERE id = 60');
request_and_wait($node, 'u_id', 'SELECT id FROM u WHERE id = 60');
same_answer($node, 'SELECT count(*), sum(id) FROM t WHERE id > 0', 't');
same_answer($node, 'SELECT count(*), sum(v) FROM u WHERE id > 0', 'u');
check_exact($node, 't', 't_id');
check_exact($node, 'u', 'u_id');
my (undef, undef, $told) = $node->psql('postgres', q{SELECT * FROM c WHERE w = 'a'});
like($told, qr/WARNING:  art index "c_w" compares its column "w" of type citext as text/, 'what core kept is told of');

# dropping without it
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->restart;
$node->safe_psql('postgres', 'DROP INDEX t_id; DROP TABLE u');
$node->safe_psql('postgres', 'DROP EXTENSION artidx CASCADE');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), '51',
	'indexes, tables and the extension can be dropped');

$node->stop;
done_testing();
