# 64 clients on whatever processors there are: no statement errs, and the
# indexes agree with the heap afterwards.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('clients', autovacuum => 'on',
	autovacuum_naptime => '1s');

$node->safe_psql('postgres', q{
	CREATE TABLE t (id bigint, k int, u uuid DEFAULT gen_random_uuid());
	CREATE UNIQUE INDEX t_id ON t USING art (id);
	CREATE INDEX t_k ON t USING art (k);
	CREATE INDEX t_u ON t USING art (u);
	CREATE INDEX t_kid ON t USING art (k DESC, id);
	INSERT INTO t SELECT i, i % 100 FROM generate_series(1, 5000) i;
	CREATE SEQUENCE s START 100000;
	ANALYZE t;
});

my %script = (
	insert => q{\set k random(1, 100)
INSERT INTO t (id, k) VALUES (nextval('s'), :k);
},
	# the same few keys from everywhere: the unique check has to wait
	upsert => q{\set i random(1, 20)
\set k random(1, 100)
INSERT INTO t (id, k) VALUES (:i, :k) ON CONFLICT (id) DO UPDATE SET k = EXCLUDED.k;
},
	update => q{\set i random(1, 5000)
\set k random(1, 100)
UPDATE t SET k = :k WHERE id = :i;
},
	delete => q{\set i random(100000, 120000)
DELETE FROM t WHERE id = :i;
},
	read => q{\set i random(1, 5000)
\set k random(1, 100)
SELECT k FROM t WHERE id = :i;
SELECT id FROM t WHERE k = :k ORDER BY id LIMIT 20;
SELECT k FROM t WHERE id <= :i ORDER BY id DESC LIMIT 20;
});

my @args;
for my $name (sort keys %script)
{
	my $file = $node->basedir . "/$name.sql";
	append_to_file($file, $script{$name});
	push @args, '-f', $file;
}

my $seconds = $ENV{CLIENT_SECONDS} // 5;
my ($out, $err) = ('', '');
my $rc = IPC::Run::run(
	[
		'pgbench', '-n', '-c', '64', '-j', '2', '-M', 'prepared',
		'-T', $seconds, @args, '-h', $node->host, '-p', $node->port,
		'postgres'
	],
	'>', \$out, '2>', \$err);
ok($rc, '64 clients ran to the end');
unlike($err, qr/ERROR|FATAL|PANIC/, 'no statement erred');
like($out, qr/number of transactions actually processed: [1-9]/,
	'and they did something');

$node->append_conf('postgresql.conf', 'autovacuum = off');
$node->reload;
$node->poll_query_until('postgres',
	"SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type LIKE 'autovacuum%'");

for my $index (qw(t_id t_k t_u t_kid))
{
	check_exact($node, 't', $index);
}
same_answer($node, 'SELECT count(*), sum(k) FROM t WHERE id > 0', 'by id');
same_answer($node, 'SELECT count(*), sum(id) FROM t WHERE k < 50', 'by k');
same_answer($node,
	"SELECT count(*) FROM t WHERE u >= '00000000-0000-0000-0000-000000000000'",
	'by u');
same_answer($node,
	'SELECT md5(string_agg(id::text, \',\')) FROM '
	  . '(SELECT id FROM t WHERE k = 7 ORDER BY k DESC, id) s',
	'in order, two columns');
is( $node->safe_psql('postgres',
		'SELECT count(*) FROM (SELECT id FROM t GROUP BY id HAVING count(*) > 1) d'),
	'0', 'no duplicate in the unique index');

$node->stop;
done_testing();
