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
	deadlock_timeout => "'250ms'",
	log_min_messages => 'debug1',
	max_worker_processes => 16,
	wal_level => 'replica',
	max_wal_senders => 4);

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
	CREATE INDEX o_l ON o USING art (k);
});

# Make the tenant's schema, with one index for each of these bodies of a function.
sub tenant
{
	my ($rows, $unique, %body) = @_;

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
			CREATE TABLE s.t_$name (k int, fill text);
			ALTER TABLE s.t_$name ALTER fill SET STORAGE PLAIN;
			INSERT INTO s.t_$name SELECT i, repeat('x', 1800) FROM generate_series(1, $rows) i;
			CREATE $unique INDEX i_$name ON s.t_$name USING art (s.$name(k));},
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

sub crash
{
	$node->stop('immediate');
	$node->start;
	return;
}

# ---- one worker, and a tenant whose indexes come first ----
tenant(10, 'UNIQUE', loops => $endless{loops}, catches => $endless{catches}, zero => 'NULL;');
crash();
my $begin = time();
is(value('other', "SELECT artidx_wait('30s')"), 't', 'artidx_wait: another database has its indexes');
is(value('other', q{SELECT string_agg(state, ' ') FROM artidx_indexes}), 'ready ready', 'both');
cmp_ok(time() - $begin, '<', 15, 'soon');
is(value('postgres', q{SELECT count(*) < 2 FROM artidx_indexes WHERE reason LIKE 'error%'}), 't',
	'and not after all of the tenant');
like($node->safe_psql('postgres', q{SELECT string_agg(reason, ',') FROM artidx_indexes WHERE state = 'absent'}),
	qr/no free worker/, 'others wait for a worker, says the view');
set('deadlock_timeout', '50ms');
foreach my $name (qw(catches loops))
{
	wait_for("reason = 'error: an expression did not end' FROM artidx_indexes WHERE indexrelname = 'i_$name'",
		"$name: the view says why");
}
unlike(slurp_file($node->logfile), qr/ERROR:  canceling statement/, 'a cancel is no error in the log');

# ---- the pauses grow: 3 s, then 6 ----
tenant(10, '', sleeps => $endless{sleeps});
crash();
my ($rc, $out, $err) = $node->psql('postgres', "SELECT artidx_wait('1min')");
is($out, 'f', 'nobody waits for what does not come');
like($err, qr/is not in memory: s\.i_sleeps/, 'which the NOTICE names');
my $pause = q{round(extract(epoch FROM next_try - now())) FROM artidx_indexes WHERE indexrelname = 'i_sleeps'};
wait_for("next_try IS NOT NULL FROM artidx_indexes WHERE indexrelname = 'i_sleeps'", 'it is put off');
cmp_ok(value('postgres', "SELECT $pause"), '<=', 3, 'for some seconds');
wait_for("state = 'building' FROM artidx_indexes WHERE indexrelname = 'i_sleeps'", 'it is tried again');
wait_for("next_try IS NOT NULL FROM artidx_indexes WHERE indexrelname = 'i_sleeps'", 'and put off again');
cmp_ok(value('postgres', "SELECT $pause"), '>', 3, 'for longer');

# ---- turns: an honest build that takes long ----
# A row of 30 ms, four rows a page; each is counted.
$node->safe_psql('postgres', q{CREATE SEQUENCE public.calls; GRANT ALL ON public.calls TO tenant});
tenant(150, 'UNIQUE', slow => q{PERFORM pg_sleep(0.03); PERFORM nextval('public.calls');});
crash();
is(value('other', "SELECT artidx_wait('30s')"), 't', 'another database has its turn');
is(state_of('i_slow', 'state, build_fraction > 0'), 'building|t', 'in the middle of a build');
all_ready($node, 'which goes on');
cmp_ok(value('postgres', 'SELECT last_value FROM calls'), '<', 190, 'where it was left');

# ---- locks ----
# From here an expression may take half a minute.
set('deadlock_timeout', '500ms');
set('artidx.build_workers', 2);
tenant(10, '', loops => $endless{loops});
$node->safe_psql('postgres', 'ALTER INDEX s.i_loops SET (structure = btree)');
wait_for(activity("state = 'active' AND query LIKE 'building%'"), 'an endless expression holds a lock');
cmp_ok(takes('postgres', 'DROP SCHEMA s CASCADE'), '<', 15, 'DROP SCHEMA gets it');

# The build goes on after somebody had the lock, with what it had: some three seconds' rows,
# of which it loads what it has now and then.
$node->safe_psql('postgres', 'ALTER SEQUENCE calls RESTART');
tenant(150, '', slow => q{PERFORM pg_sleep(CASE WHEN k = 100 THEN 3 ELSE 0.03 END); PERFORM nextval('public.calls');});
$node->safe_psql('postgres', 'ALTER INDEX s.i_slow SET (structure = btree)');
wait_for('last_value > 90 FROM calls', 'a build is at a slow row');
$node->safe_psql('postgres', 'BEGIN; LOCK TABLE s.t_slow; ROLLBACK');
is(state_of('i_slow'), 'building', 'the build was left');
all_ready($node, 'and goes on');
cmp_ok(value('postgres', 'SELECT last_value FROM calls'), '<', 190, 'with what it had loaded');

# ---- memory ----
# Of small runs a structure is larger: builders do not take the database's setting.
my $rebuilt = sub {
	foreach my $structure (qw(btree art))
	{
		$node->safe_psql('other', "ALTER INDEX r_k SET (structure = $structure)");
		all_ready($node, "rebuilt: $structure", 'other');
	}
	return state_of('r_k', 'bytes', 'other');
};
$node->safe_psql('other', q{
	CREATE TABLE r (k int);
	INSERT INTO r SELECT hashint4(i) FROM generate_series(1, 100000) i;
	CREATE INDEX r_k ON r USING art (k)});
my $bytes = $rebuilt->();
$node->safe_psql('postgres', q{ALTER DATABASE other SET maintenance_work_mem = '1MB'});
is($rebuilt->(), $bytes, 'maintenance_work_mem of a database');
set('maintenance_work_mem', '1MB');
cmp_ok($rebuilt->(), '>', $bytes, 'maintenance_work_mem of the server');

# ---- a standby: one process follows all indexes of a database ----
tenant(10, '', catches => $endless{catches} =~ s/LOOP/WHILE pg_is_in_recovery() LOOP/r);
$node->safe_psql('postgres', q{
	CREATE TABLE f (k int);
	INSERT INTO f SELECT generate_series(1, 1000);
	CREATE INDEX f_k ON f USING art (k)});
set('deadlock_timeout', '50ms');
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('one_tenant_standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
ok($standby->poll_query_until('postgres',
	q{SELECT reason = 'recovery: an expression did not end' FROM artidx_indexes WHERE indexrelname = 'i_catches'}),
	'a follower leaves the expression');
ok($standby->poll_query_until('postgres',
	q{SELECT state = 'ready' FROM artidx_indexes WHERE indexrelname = 'f_k'}),
	'and has the other index');

$standby->stop;
$node->stop;
done_testing();
