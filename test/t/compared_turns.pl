# A query that compares slowly gets on although others change its pages all the time:
# after some losses it is its turn, and the others wait.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('turns');

# Keys of more than a quarter of a page are read one by one, each only while its page
# is as it was copied.
$node->safe_psql(
	'postgres', q{
	CREATE FUNCTION patient_cmp(a text, b text) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
	BEGIN
		IF a = b AND current_setting('turns.patient', true) = 'on' THEN
			PERFORM pg_sleep(0.005);
		END IF;
		RETURN bttextcmp(a COLLATE "C", b COLLATE "C");
	END $$;
	CREATE OPERATOR FAMILY patient_ops USING art;
	CREATE OPERATOR CLASS patient_ops FOR TYPE text USING art FAMILY patient_ops AS
		OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
		FUNCTION 1 patient_cmp(text, text);
	CREATE TABLE t (k text COLLATE "C");
	CREATE INDEX t_k ON t USING art (k patient_ops) WITH (structure = btree, page_size = 256);
	CREATE SEQUENCE s;
	INSERT INTO t VALUES (repeat('k', 100)), (repeat('z', 100));
});

# each next one comes right behind the first: into its page
my $file = $node->basedir . '/insert.sql';
append_to_file($file,
	q{INSERT INTO t SELECT repeat('k', 100) || lpad((1000000000 - i)::text, 10, '0') FROM nextval('s') i;});
my ($out, $err) = ('', '');
my $others = do
{
	local $ENV{PGAPPNAME} = 'others';
	IPC::Run::start(
		[
			'pgbench', '-n', '-c', '2', '-M', 'prepared', '-R', '2000', '-T', '300', '-f', $file,
			'-h', $node->host, '-p', $node->port, 'postgres'
		],
		'>', \$out, '2>', \$err);
};
$node->poll_query_until('postgres', 'SELECT last_value > 100 FROM s') or die 'nobody inserts';

my $first = $node->safe_psql('postgres', 'SELECT last_value FROM s');
my $query = q{
	SET enable_seqscan = off;
	SET enable_bitmapscan = off;
	SET statement_timeout = '60s';
	SET turns.patient = 'on';
};
for (1 .. 5)
{
	my ($rc, $got, $error) = $node->psql('postgres', "$query SELECT count(*) FROM t WHERE k = repeat('k', 100)");

	is("$rc $got $error", '0 1 ', "look-up $_ is answered");
}
my ($rc, $got, $error) = $node->psql('postgres',
	"$query SELECT count(*) FROM (SELECT k FROM t ORDER BY k USING < LIMIT 3) s");
is("$rc $got $error", '0 3 ', 'so is a scan');
cmp_ok($node->safe_psql('postgres', 'SELECT last_value FROM s'), '>', $first, 'and the others went on');
note $node->safe_psql("postgres", "SELECT restarts FROM artidx_contention"), " restarts";
$others->kill_kill(grace => 1);
$node->poll_query_until('postgres', q{SELECT count(pg_terminate_backend(pid)) = 0 FROM pg_stat_activity WHERE application_name = 'others'})
  or die 'the others do not end';
check_exact($node, 't', 't_k');
$node->stop;
done_testing();
