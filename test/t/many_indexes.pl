# Many small indexes come back after a restart with little looking round; the log tells
# of loads and rebuilds in one line, and names what is left out; artidx_wait.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my ($tables, $each) = (150, 10);
my $n = $tables * $each;
my $node = art_node('many', 'artidx.build_workers' => 1, 'artidx.save_at_shutdown' => 'off',
	max_locks_per_transaction => 256, log_min_messages => 'debug1');
$node->safe_psql('postgres', qq{
	DO \$\$ BEGIN
		FOR i IN 1 .. $tables LOOP
			EXECUTE format('CREATE TABLE s%s (k int)', i);
			FOR j IN 1 .. $each LOOP
				EXECUTE format('CREATE INDEX s%s_%s ON s%s USING art (k)', i, j, i);
			END LOOP;
		END LOOP;
	END \$\$});
my $offset = -s $node->logfile;
$node->restart;
is($node->safe_psql('postgres', 'SELECT artidx_wait()'), 't', 'artidx_wait: all are there');
is($node->safe_psql('postgres', "SELECT count(*) FROM artidx_indexes WHERE state = 'ready'"), $n, 'all are ready');
my $built = 0;
my $walks = 0;
my $end = time() + $PostgreSQL::Test::Utils::timeout_default;
while ($built < $n && time() < $end)
{
	# a worker tells when it ends, which may be later
	sleep 0.1;
	my $log = slurp_file($node->logfile, $offset);
	($built, $walks) = (0, 0);
	while ($log =~ /LOG:  artidx: built (\d+) indexes of database "postgres" in [\d.]+ s, 0 are left out\n.*?looked through (\d+) times/g)
	{
		$built += $1;
		$walks += $2;
	}
}
is($built, $n, 'the log says how many were built');
cmp_ok($walks, '<', $n / 10, "$walks walks of the directory for $n indexes");

# ---- nothing changes: the launcher does not look through it every second ----
# (the last change may be told of only now)
for (1 .. 5)
{
	$offset = -s $node->logfile;
	sleep 3;
	last if slurp_file($node->logfile, $offset) !~ /looked through the directory/;
}
unlike(slurp_file($node->logfile, $offset), qr/looked through the directory/, 'no walk when nothing changes');
$node->safe_psql('postgres', 'CREATE TABLE more (k int); CREATE INDEX more_k ON more USING art (k)');
$node->wait_for_log(qr/looked through the directory, entries of 1 databases/, $offset);
$node->safe_psql('postgres', 'DROP TABLE more');

# ---- a sweep looks at suspects only ----
$offset = -s $node->logfile;
$node->safe_psql('postgres', q{BEGIN; CREATE TABLE p (k int); CREATE INDEX p_k ON p USING art (k); ROLLBACK});
SKIP:
{
	# COMMIT PREPARED asks for one
	$node->append_conf('postgresql.conf', "max_prepared_transactions = 5\n");
	$node->restart;
	$node->safe_psql('postgres', 'SELECT artidx_wait()');
	$offset = -s $node->logfile;
	$node->safe_psql('postgres', q{BEGIN; DROP TABLE s1; PREPARE TRANSACTION 'd'});
	$node->safe_psql('postgres', q{COMMIT PREPARED 'd'});
	ok($node->poll_query_until('postgres', 'SELECT true'), 'committed');
	$node->wait_for_log(qr/swept (\d+) entries, looked at (\d+)/, $offset);
	my ($swept, $looked) = slurp_file($node->logfile, $offset) =~ /swept (\d+) entries, looked at (\d+)/;
	cmp_ok($looked, '<=', 20, "$looked of $swept entries were looked at one by one");
}

# ---- what is left out is named ----
$node->safe_psql('postgres', in_builder('fails', q{RAISE EXCEPTION 'not here';}) . q{
	CREATE SCHEMA "Odd";
	CREATE TABLE "Odd".big (t text);
	INSERT INTO "Odd".big SELECT repeat(md5(i::text), 20) FROM generate_series(1, 60000) i;
	CREATE INDEX big_t ON "Odd".big USING art (t);
	CREATE TABLE e (k int);
	INSERT INTO e VALUES (1);
	CREATE INDEX e_k ON e USING art (fails(k));
});
$node->append_conf('postgresql.conf', "artidx.memory = '24MB'\n");
$offset = -s $node->logfile;
$node->restart;
is($node->safe_psql('postgres', q{SELECT artidx_wait('60 s')}), 'f', 'artidx_wait: some do not come back');
like(slurp_file($node->logfile, $offset),
	qr/WARNING:  art index "\\"Odd\\".big_t" of database "postgres" is left out: there is no memory for it|WARNING:  art index ""Odd".big_t" of database "postgres" is left out: there is no memory for it/,
	'the log names what has no memory');
$node->wait_for_log(qr/WARNING:  art index "public.e_k" of database "postgres" is left out: SQLSTATE P0001/, $offset);
pass('and what failed');
my ($rc, $out, $err) = $node->psql('postgres', 'SELECT artidx_wait()');
like($err, qr/NOTICE:  2 art indexes are not in memory: .*big_t/, 'a NOTICE names them');
like($err, qr/e_k/, 'all of them');
like($err, qr/HINT:  They will not come back by themselves/, 'and that waiting is of no use');

# ---- a load ----
$node->safe_psql('postgres', 'DROP TABLE "Odd".big, e');
$node->append_conf('postgresql.conf', "artidx.save_at_shutdown = on\n");
$node->restart;
$node->safe_psql('postgres', 'SELECT artidx_wait()');
my $have = $node->safe_psql('postgres', 'SELECT count(*) FROM artidx_indexes');
$offset = -s $node->logfile;
$node->restart;
$node->wait_for_log(qr/LOG:  artidx: loaded $have of $have indexes, \d+ entries, in/, $offset);
pass('the log tells of a load in one line');

# ---- interrupted, and out of time ----
$node->safe_psql('postgres', in_builder('stops', 'PERFORM pg_advisory_lock_shared(1);') . q{
	CREATE TABLE w (k int);
	INSERT INTO w VALUES (1);
	CREATE INDEX w_k ON w USING art (stops(k));
});
my $keeper = $node->background_psql('postgres');
$keeper->query_safe('SELECT pg_advisory_lock(1)');
$node->safe_psql('postgres', 'ALTER INDEX w_k SET (structure = btree)');
is($node->safe_psql('postgres', q{SELECT artidx_wait('100 ms')}), 'f', 'the time is over');
fails_with($node, q{SET statement_timeout = '200ms'; SELECT artidx_wait()}, '57014', qr/statement timeout/, 'interruptible');
$keeper->quit;
is($node->safe_psql('postgres', 'SELECT artidx_wait()'), 't', 'then it is there');
$node->safe_psql('postgres', q{SET allow_in_place_tablespaces = on; CREATE TABLESPACE other LOCATION ''});
is($node->safe_psql('postgres', q{SET statement_timeout = '20s';
	BEGIN; ALTER INDEX w_k SET TABLESPACE other; SELECT artidx_wait(); COMMIT}), 't', 'a file that moves takes it along');
# absent after a crash, and locked before a worker may build it
$node->append_conf('postgresql.conf', 'artidx.build_workers = 0');
$node->stop('immediate');
$node->start;
my $locker = $node->background_psql('postgres');
$locker->query_safe("SET client_min_messages = error; SET statement_timeout = '20s'; BEGIN; LOCK TABLE w");
$node->append_conf('postgresql.conf', 'artidx.build_workers = 2');
$node->reload;
$node->poll_query_until('postgres', q{SELECT current_setting('artidx.build_workers') = '2'}) or die;
is($locker->query('SELECT artidx_wait()'), 'f', 'but not for what this transaction has locked');
$locker->query_safe('COMMIT');
$locker->quit;
is($node->safe_psql('postgres', 'SELECT artidx_wait()'), 't', 'which is there after it');
$node->stop;
done_testing();
