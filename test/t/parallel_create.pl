# CREATE INDEX by several processes: that they come, what happens when they are
# cancelled or killed on the way, duplicates, dead rows, and builds beside writers.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $node = art_node(
	'pbuild',
	'artidx.memory' => "'256MB'",
	jit => 'off',
	restart_after_crash => 'on',
	'artidx.build_workers' => 0,
	max_worker_processes => 16,
	max_parallel_workers => 8,
	max_parallel_maintenance_workers => 2);

sub sql
{
	return $node->safe_psql('postgres', join(' ', @_));
}

sql('CREATE TABLE p (k int, r bigint, t text COLLATE "C") WITH (parallel_workers = 2,',
	'autovacuum_enabled = off)');
sql('INSERT INTO p SELECT i, hashint8extended(i, 5), md5(i::text) FROM generate_series(1, 150000) i');

# ---- they come ----

sub asked
{
	my ($command, $settings) = @_;
	my ($out, $err);

	$node->psql('postgres', "SET client_min_messages = debug1; " . ($settings // '') . $command,
		stdout => \$out, stderr => \$err);
	return $err =~ /with request for (\d+) parallel worker/ ? $1 : 0;
}

is(asked('CREATE INDEX p_r ON p USING art (r)'), 2, 'workers are asked for');
is(asked('REINDEX INDEX p_r'), 2, 'by REINDEX, too');
is(asked('REINDEX INDEX p_r', 'SET max_parallel_maintenance_workers = 1;'), 1, 'no more than there may be');
is(asked('REINDEX INDEX p_r', 'SET max_parallel_maintenance_workers = 0;'), 0, 'none');
sql("CREATE FUNCTION unsafe(int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS 'BEGIN RETURN \$1; END'");
is(asked('CREATE INDEX p_unsafe ON p USING art (unsafe(k))'), 0, 'none for what is not parallel safe');
sql('DROP INDEX p_unsafe');

# ---- what a build reads and holds, as its processes log it ----

# Bytes: all that the tasks read, the most of one, the most that one holds, and the marks.
sub costs
{
	my ($command) = @_;
	my $from = -s $node->logfile;
	my %cost = (tasks => 0, all => 0, most => 0, holds => 0);

	sql("SET maintenance_work_mem = '1MB'; SET log_min_messages = debug1;", $command);
	my $log = slurp_file($node->logfile, $from);
	while ($log =~ /a task of the build reads (\d+) bytes and holds (\d+)/g)
	{
		$cost{tasks}++;
		$cost{all} += $1;
		$cost{most} = $1 if $1 > $cost{most};
		$cost{holds} = $2 if $2 > $cost{holds};
	}
	($cost{marks}) = $log =~ /the marks of the build take (\d+) bytes/;
	note("$command: " . join(', ', map { "$_ $cost{$_}" } sort keys %cost));
	return %cost;
}

# long keys, of which a run has few: a task reads little more than its own
sql('CREATE TABLE long (t text COLLATE "C") WITH (parallel_workers = 2, autovacuum_enabled = off);',
	'ALTER TABLE long ALTER t SET STORAGE EXTERNAL;',
	'INSERT INTO long SELECT (SELECT string_agg(md5((i * 100 + j)::text), \'\') FROM generate_series(1, 94) j)',
	'FROM generate_series(1, 20000) i');
my %cost = costs('CREATE INDEX long_t ON long USING art (t)');
cmp_ok($cost{most}, '<', 25e6, 'a task does not read most of the 60 MB');
cmp_ok($cost{most}, '>', 0, 'but it reads some');
cmp_ok($cost{all}, '<', 120e6, 'and all of them read less than twice as much');
check_clean($node, 'long_t');

# so long that a share of the memory holds five of them
sql('DROP INDEX long_t; TRUNCATE long;',
	q{INSERT INTO long SELECT (i * 7 % 2000 + 1000) || repeat('x', 70000) FROM generate_series(1, 2000) i});
%cost = costs('CREATE UNIQUE INDEX long_u ON long USING art (t)');
cmp_ok($cost{marks}, '<', 1.2e6, 'the marks of long keys take about maintenance_work_mem');
cmp_ok($cost{all}, '<', 280e6, 'tasks of keys of 70 kB read less than twice the 140 MB');
check_clean($node, 'long_u');
sql('DROP INDEX long_u;',
	q{TRUNCATE long; INSERT INTO long SELECT repeat('x', 70000) || (i * 7 % 500 + 1000) FROM generate_series(1, 500) i});
costs('CREATE UNIQUE INDEX long_u ON long USING art (t)');
is(sql("SELECT entries FROM artidx_check('long_u', true)"), 500, 'keys that differ behind what a mark has of them');
sql('DROP INDEX long_u');

# a batch has two of them, or three with the last one before: a pair of equal ones is parted
foreach my $twice (1250 .. 1253)
{
	my $err;

	sql("INSERT INTO long SELECT repeat('x', 70000) || $twice");
	$node->psql('postgres', "SET maintenance_work_mem = '1MB'; CREATE UNIQUE INDEX long_u ON long USING art (t)",
		stderr => \$err);
	like($err, qr/could not create unique index "long_u"/, "$twice is there twice");
	sql("DELETE FROM long WHERE ctid = (SELECT max(ctid) FROM long WHERE right(t, 4) = '$twice')");
}
sql('DROP TABLE long');

# many runs: what all tasks read, and what one of them holds
sql('CREATE TABLE runs (k bigint) WITH (parallel_workers = 2, autovacuum_enabled = off);',
	'INSERT INTO runs SELECT hashint8extended(i, 9) FROM generate_series(1, 1500000) i');
for my $with ('', ' WITH (structure = btree)')
{
	%cost = costs("CREATE UNIQUE INDEX runs_k ON runs USING art (k)$with");
	cmp_ok($cost{all}, '<', 1.5e6 * 16 * 2, "of many runs tasks read less than twice the data$with");
	cmp_ok($cost{all}, '>=', 1.5e6 * 16, "and all of it$with");
	cmp_ok($cost{holds}, '<', 1.5 * 1024 * 1024, "and hold no more than about maintenance_work_mem$with");
	cmp_ok($cost{marks}, '<', 1024 * 1024, "and so do the marks$with");
	check_clean($node, 'runs_k');
	is(sql("SELECT entries FROM artidx_check('runs_k', true)"), 1500000, "all rows are there$with");
	sql('DROP INDEX runs_k');
}
sql('DROP TABLE runs');

# how many participants read rows: each notes itself through the expression
sql("CREATE FUNCTION slowly(int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS ",
	"'BEGIN IF \$1 % 1000 = 0 THEN PERFORM pg_sleep(0.02); END IF; RETURN \$1; END'");

sub start
{
	my ($command) = @_;
	my $s = $node->background_psql('postgres', on_error_stop => 0);

	$s->query_safe('SELECT 1');
	$s->{stdin} .= "$command;\n";
	$s->{run}->pump_nb();
	return $s;
}

my $workers = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND query LIKE 'CREATE%slowly%'";

for my $how ('cancel the leader', 'cancel a worker', 'terminate a worker', 'terminate the leader')
{
	my $s = start('CREATE INDEX p_slow ON p USING art (slowly(k))');

	ok($node->poll_query_until('postgres', $workers, '2'), "$how: two workers build");
	sleep(0.2);
	my $what = $how =~ /cancel/ ? 'pg_cancel_backend' : 'pg_terminate_backend';
	my $whom = $how =~ /leader/ ? 'client backend' : 'parallel worker';
	is(sql("SELECT $what(pid) FROM pg_stat_activity WHERE backend_type = '$whom'",
			"AND query LIKE 'CREATE%slowly%' AND pid <> pg_backend_pid() LIMIT 1"),
		't', $how);
	ok($node->poll_query_until('postgres',
			"SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE%slowly%' AND state = 'active' AND pid <> pg_backend_pid()",
			'0'), "$how: all end");
	is(sql("SELECT count(*) FROM pg_class WHERE relname = 'p_slow'"), 0, "$how: no index");
	eval { $s->quit; };
}
ok($node->poll_query_until('postgres', "SELECT count(*) FROM artidx_indexes WHERE state = 'building'", '0'),
	'nothing builds any more');
is(sql("SELECT entries FROM artidx_check('p_r', true)"), 150000, 'the other index is as it was');

# a worker killed takes the server along, which comes back
{
	my $s = start('CREATE INDEX p_slow ON p USING art (slowly(k))');

	ok($node->poll_query_until('postgres', $workers, '2'), 'two workers build');
	my $pid = sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND query LIKE 'CREATE%slowly%' LIMIT 1");
	kill 'KILL', $pid;
	eval { $s->quit; };
	ok(comes_back($node, $pid), 'the server is back');
	is(sql('CREATE INDEX p_t ON p USING art (t)', ';', "SELECT entries FROM artidx_check('p_t', true)"),
		150000, 'and builds with workers');
}

# ---- unique: duplicates far apart, and rows that are dead to all but one ----

for my $with ('', ' WITH (structure = btree)')
{
	my ($out, $err);

	sql('INSERT INTO p SELECT 7, 7, md5(7::text)');
	$node->psql('postgres', "CREATE UNIQUE INDEX p_u ON p USING art (k)$with", stderr => \$err);
	like($err, qr/could not create unique index "p_u"\nDETAIL:  Key \(k\)=\(7\) is duplicated\./, "a duplicate$with");

	my $old = $node->background_psql('postgres');
	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM p');
	sql('DELETE FROM p WHERE r = 7; UPDATE p SET k = k WHERE k % 3 = 0');
	sql("SET maintenance_work_mem = '1MB'; CREATE UNIQUE INDEX p_u ON p USING art (k)$with");
	cmp_ok(sql("SELECT entries FROM artidx_check('p_u', true)"), '>', 150000,
		"rows that are dead are in the index$with, and no duplicates");
	$old->quit;
	sql('DROP INDEX p_u; VACUUM p');
}

# ---- CONCURRENTLY beside writers ----

my $file = $node->basedir . '/w.sql';
append_to_file($file,
	"\\set k random(1, 150000)\n"
	  . "UPDATE p SET r = r + 1 WHERE ctid = (SELECT ctid FROM p OFFSET :k LIMIT 1);\n"
	  . "INSERT INTO p VALUES (1000000 + :k, :k, 'new');\n");
my ($pin, $pout, $perr) = ('', '', '');
my $load = IPC::Run::start(
	[
		'pgbench', '-n', '-c', 3, '-T', 8, '-f', $file,
		'-h', $node->host, '-p', $node->port, 'postgres'
	],
	'<', \$pin, '>', \$pout, '2>', \$perr);
sleep(0.5);
is(asked('CREATE INDEX CONCURRENTLY p_c ON p USING art (r, k)'), 2, 'CONCURRENTLY with workers');
is(asked('REINDEX INDEX CONCURRENTLY p_t'), 2, 'REINDEX CONCURRENTLY with workers');
$load->finish;
for my $i ('p_c', 'p_t', 'p_r')
{
	is(sql("SELECT entries >= (SELECT count(*) FROM p) FROM artidx_check('$i', true)"), 't',
		"$i has all rows");
}

# ---- memory full: valid, without a structure; unique all the same ----

sql("CREATE INDEX p_cap ON p USING art (t) WITH (max_memory = '1MB')");
is(sql("SELECT state FROM artidx_indexes WHERE indexrelname = 'p_cap'"), 'sealed', 'at its cap');
{
	my $err;

	sql("INSERT INTO p VALUES (-1, 1, 'x'), (-1, 1, 'y')");
	$node->psql('postgres', "CREATE UNIQUE INDEX p_ucap ON p USING art (k) WITH (max_memory = '1MB')",
		stderr => \$err);
	like($err, qr/could not create unique index "p_ucap"/, 'a duplicate is found without memory');
}

# and where there is room, but only the leader can make it: the index that is made
# anew gives way when memory runs out, be it over dead rows that a worker has
for my $with ('', ' WITH (structure = btree)')
{
	$node->append_conf('postgresql.conf', "artidx.memory = '32MB'\nmax_parallel_maintenance_workers = 3");
	$node->restart;
	sql('DROP TABLE IF EXISTS p, q, hog;',
		'CREATE TABLE q (k int, t text COLLATE "C") WITH (parallel_workers = 3, autovacuum_enabled = off);',
		"INSERT INTO q SELECT i, md5(i::text) FROM generate_series(1, 120000) i;",
		"CREATE UNIQUE INDEX q_t ON q USING art (t)$with;",
		'CREATE TABLE hog (t text COLLATE "C"); CREATE INDEX hog_t ON hog USING art (t)');
	my $live = sql("SELECT bytes FROM artidx_indexes WHERE indexrelname = 'q_t'");
	my $old = $node->background_psql('postgres');
	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	sql('UPDATE q SET k = k WHERE k % 4 <> 0');

	# less and less is free beside the old one: enough for all rows, for the live, for none
	sql('REINDEX INDEX q_t');
	my $n = 0;
	my $states = '';
	for (;;)
	{
		my $free = sql('SELECT free_bytes FROM artidx_memory');

		last if $free < 0.8 * $live;
		$states .= ' ' . sql('REINDEX INDEX q_t;',
			"SELECT string_agg(state, '+') FROM artidx_indexes WHERE indexrelname IN ('q_t', 'hog_t');",
			"SELECT '=' || entries FROM artidx_check('q_t', true)") =~ s/\n//r
		  if $free < 2.4 * $live;
		sql("INSERT INTO hog SELECT md5(i::text) FROM generate_series($n + 1, $n + 20000) i");
		$n += 20000;
	}
	like($states, qr/^( ready\+ready=210000){5,}$/, "the index is built whenever there would be room$with");
	$old->quit;
}

$node->stop;
done_testing();
