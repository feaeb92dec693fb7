# One tenant, everybody's builds: an index whose expression never ends keeps no worker
# from others, no lock from who waits for it, and shows why it is absent.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

# The times are multiples of deadlock_timeout: a turn is 5, and an expression ends after 60;
# after 10, if others wait.
my $node = art_node('one_tenant',
	'artidx.build_workers' => 1,
	'artidx.survive_crash' => 'off',
	'artidx.save_at_shutdown' => 'off',
	'artidx.build_wait' => 'off',
	deadlock_timeout => "'100ms'",
	log_min_messages => 'debug1',
	max_worker_processes => 16);

sub set
{
	my ($name, $value) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET $name = '$value'");
	$node->safe_psql('postgres', 'SELECT pg_reload_conf()');
	$node->poll_query_until('postgres', "SELECT current_setting('$name') = '$value'") or die;
	return;
}

# Seconds that a statement takes.
sub takes
{
	my ($db, $sql) = @_;
	my $begin = time();

	$node->safe_psql($db, $sql);
	return time() - $begin;
}

sub value
{
	my ($db, $sql) = @_;

	return $node->safe_psql($db, $sql);
}

# A role that has a schema of its own and nothing else.  In its own session the functions are
# honest; a worker is another session.
$node->safe_psql('postgres', 'CREATE ROLE tenant LOGIN; CREATE DATABASE other');
$node->safe_psql('other', q{
	CREATE EXTENSION artidx;
	CREATE TABLE o (k int PRIMARY KEY);
	INSERT INTO o SELECT generate_series(1, 1000);
	CREATE INDEX o_k ON o USING art (k);
	CREATE UNIQUE INDEX o_u ON o USING art (k);
});

# Make the tenant's schema, with one index for each of these bodies of a function.
sub tenant
{
	my ($rows, %body) = @_;

	$node->safe_psql('postgres', q{
		DROP SCHEMA IF EXISTS s CASCADE;
		CREATE SCHEMA s AUTHORIZATION tenant});
	foreach my $name (sort keys %body)
	{
		$node->safe_psql('postgres', qq{
			CREATE FUNCTION s.$name(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS \$\$
			BEGIN
				IF session_user <> 'tenant' THEN $body{$name} END IF;
				RETURN k;
			END \$\$;
			CREATE TABLE s.t_$name (k int);
			INSERT INTO s.t_$name SELECT generate_series(1, $rows);
			CREATE INDEX i_$name ON s.t_$name USING art (s.$name(k));},
			extra_params => [ '-U', 'tenant' ]);
	}
	return;
}
my %endless = (
	sleeps => 'PERFORM pg_sleep(1000000);',
	loops => 'LOOP END LOOP;',
	# cancelled, it goes on
	catches => 'LOOP BEGIN PERFORM pg_sleep(1000000); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP;');

sub state_of
{
	my ($index, $columns, $db) = @_;

	return value($db // 'postgres', 'SELECT ' . ($columns // 'state') .
		" FROM artidx_indexes WHERE indexrelname = '$index'");
}

sub wait_for
{
	my ($condition, $name, $db) = @_;

	return ok($node->poll_query_until($db // 'postgres', "SELECT $condition"), $name);
}

sub activity
{
	my ($condition) = @_;

	return "count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'artidx builder' AND $condition";
}

# ---- one worker ----
tenant(10, %endless);
$node->stop('immediate');
$node->start;
my $begin = time();
all_ready($node, 'one worker, and another database has its indexes', 'other');
is(value('other', "SELECT artidx_wait('10s')"), 't', 'artidx_wait');
cmp_ok(time() - $begin, '<', 20, 'soon');
wait_for("reason = 'error: an expression did not end' FROM artidx_indexes WHERE indexrelname = 'i_$_'",
	"$_: the view says why")
  foreach sort keys %endless;
is(value('postgres', "SELECT artidx_wait('10s')"), 'f', 'nobody waits for what does not come');
done_testing();
