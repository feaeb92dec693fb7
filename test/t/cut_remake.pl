# An index that is made again with another access method, for a foreign key or a
# partition, cut short at each of its steps by cancel, timeout, terminate,
# kill -9, or for want of memory: the index is the old one or the new one, never
# neither, both or half.  Then searches that count the server's predicate locks:
# cut short the same ways.
# CUT_ROUNDS is how many cuts at random moments, SEED which.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $rounds = $ENV{CUT_ROUNDS} // 6;
my $rows = 5000;
my $node = art_node(
	'cut',
	log_line_prefix => $ArtTest::LOG_PREFIX,
	jit => 'off',
	restart_after_crash => 'on',
	max_parallel_maintenance_workers => 0,
	'artidx.memory' => "'24MB'");
my $offset = -s $node->logfile;
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');
my $prlimit = IPC::Run::run([ 'sh', '-c', 'command -v prlimit' ], '>', \my $where) &&
  -r '/proc/self/status';

art_seed();
$node->safe_psql('postgres', qq{
	-- a key that a foreign key wants
	CREATE TABLE pk (id bigint, x text);
	INSERT INTO pk SELECT i, md5(i::text) FROM generate_series(1, $rows) i;
	CREATE TABLE fk (id bigint);
	INSERT INTO fk SELECT i FROM generate_series(1, 500) i;
	-- one that is to be part of its parent's
	CREATE TABLE root (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
	CREATE TABLE part (id bigint NOT NULL);
	INSERT INTO part SELECT i FROM generate_series(1, $rows) i;
	-- and the other way round
	CREATE TABLE up (id bigint) PARTITION BY RANGE (id);
	CREATE TABLE down PARTITION OF up FOR VALUES FROM (0) TO (1000000);
	INSERT INTO down SELECT i FROM generate_series(1, $rows) i;
	CREATE INDEX up_id ON ONLY up USING art (id);
});

# Each kind: how it begins, the statement, the table and index, and of which
# access method that is without and with the statement.
my %kind = (
	key => {
		make => 'SET artidx.replace_btree = constraints; ALTER TABLE pk ADD CONSTRAINT the_key PRIMARY KEY (id); '
		  . q{COMMENT ON INDEX the_key IS 'mine'},
		do => 'ALTER TABLE fk ADD CONSTRAINT fk_pk FOREIGN KEY (id) REFERENCES pk (id)',
		undo => 'ALTER TABLE fk DROP CONSTRAINT IF EXISTS fk_pk; ALTER TABLE pk DROP CONSTRAINT the_key',
		done => q{SELECT count(*) FROM pg_constraint WHERE conname = 'fk_pk'},
		table => 'pk', index => 'the_key', before => 'art', after => 'btree'
	},
	part => {
		make => 'SET artidx.replace_btree = constraints; ALTER TABLE part ADD CONSTRAINT the_part PRIMARY KEY (id); '
		  . q{COMMENT ON INDEX the_part IS 'mine'},
		do => 'ALTER TABLE root ATTACH PARTITION part FOR VALUES FROM (0) TO (1000000)',
		undo => q{DO $$ BEGIN IF (SELECT relispartition FROM pg_class WHERE oid = 'part'::regclass) THEN
			ALTER TABLE root DETACH PARTITION part; END IF; END $$;
			ALTER TABLE part DROP CONSTRAINT the_part},
		done => q{SELECT count(*) FROM pg_inherits WHERE inhrelid = 'part'::regclass},
		table => 'part', index => 'the_part', before => 'art', after => 'btree'
	},
	index => {
		make => q{CREATE INDEX down_id ON down USING btree (id); COMMENT ON INDEX down_id IS 'mine'},
		do => 'ALTER INDEX up_id ATTACH PARTITION down_id',
		undo => 'DROP INDEX up_id; CREATE INDEX up_id ON ONLY up USING art (id); DROP INDEX IF EXISTS down_id',
		done => q{SELECT count(*) FROM pg_inherits WHERE inhrelid = 'down_id'::regclass},
		table => 'down', index => 'down_id', before => 'btree', after => 'art'
	});
# from 18 on a foreign key is content with art
my @kinds = $version >= 180000 ? ('part', 'index') : ('key', 'part', 'index');

my $relations = q{SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class
	WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i', 'p', 'I')
	  AND relname NOT LIKE 'hog%'};
my %expected;

sub make
{
	my ($name) = @_;
	my $k = $kind{$name};

	$node->safe_psql('postgres', $k->{make});
	$expected{$name} //= $node->safe_psql('postgres', $relations);
	return;
}

sub undo
{
	my ($name) = @_;

	$node->safe_psql('postgres', "SET client_min_messages = error; $kind{$name}{undo}");
	return;
}

# The old index or the new one, whole.  Returns whether it is the new one.
sub whole
{
	my ($name, $what) = @_;
	my $k = $kind{$name};
	my $done = $node->safe_psql('postgres', $k->{done});
	my $am = $done ? $k->{after} : $k->{before};
	my $unique = $name eq 'index' ? 'f' : 't';
	my @wrong;

	my $is = $node->safe_psql('postgres', qq{
		SELECT amname, indisvalid, indisready, indislive, indisunique,
			obj_description(indexrelid, 'pg_class'),
			(SELECT count(*) FROM pg_constraint WHERE conindid = indexrelid AND contype = 'p')
		FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
		WHERE indrelid = '$k->{table}'::regclass});
	push @wrong, "index: $is"
	  if $is ne join('|', $am, 't', 't', 't', $unique, 'mine', $unique eq 't' ? 1 : 0);
	my $now = $node->safe_psql('postgres', $relations);
	push @wrong, "relations: $now" if $now ne $expected{$name};
	my ($rc, $out, $err) = $node->psql('postgres', "INSERT INTO $k->{table} VALUES (77)");
	push @wrong, "duplicate: $err" if $unique eq 't' && $err !~ /unique constraint "$k->{index}"/;
	push @wrong, "insert: $err" if $unique eq 'f' && $rc != 0;
	my $n = $node->safe_psql('postgres',
		"SET enable_seqscan = off; SELECT count(*) FROM $k->{table} WHERE id BETWEEN 1000 AND 1099");
	push @wrong, "rows: $n" if $n ne '100';
	if ($am eq 'art')
	{
		($rc, $out, $err) = $node->psql('postgres', "SELECT count(*) FROM artidx_check('$k->{index}', true)");
		push @wrong, "check: $err" if $rc != 0;
	}
	ok(!@wrong, $what) or diag(join("\n", @wrong));
	return $done;
}

sub start
{
	my ($sql) = @_;
	my %v = (out => '', err => '');

	local $ENV{PGAPPNAME} = 'victim';
	$v{h} = IPC::Run::start(
		[
			'psql', '-XAtq', '-v', 'VERBOSITY=verbose', '-v', 'ON_ERROR_STOP=1',
			'-d', $node->connstr('postgres'), map { ('-c', $_) } @{$sql}
		],
		'<', \undef, '>', \$v{out}, '2>', \$v{err});
	return \%v;
}

sub victim
{
	return $node->safe_psql('postgres',
		q{SELECT pid FROM pg_stat_activity WHERE application_name = 'victim'});
}

sub cut
{
	my ($how) = @_;
	my $pid = victim();

	return undef if $pid eq '';
	if ($how eq 'kill') { kill 'KILL', $pid; }
	else { $node->psql('postgres', "SELECT pg_${how}_backend($pid)"); }
	return $how eq 'kill' ? $pid : undef;
}

# ---- at every step: another session holds up the first write to a catalog ----

my @catalogs = qw(pg_class pg_attribute pg_index pg_depend pg_description pg_statistic
  pg_seclabel pg_init_privs pg_constraint pg_trigger);
my $steps = 0;
my @ways = qw(cancel terminate timeout);

for my $name (@kinds)
{
	my $k = $kind{$name};
	my $turn = 0;

	make($name);
	for my $catalog (@catalogs)
	{
		# every step once by another way; kill -9, which takes longest, at each of the first
		for my $how ($ways[ $turn++ % @ways ], $name eq $kinds[0] || $turn % 3 == 0 ? ('kill') : ())
		{
			my $gate = $node->background_psql('postgres', on_error_die => 0);

			$gate->query_safe("BEGIN; LOCK TABLE $catalog IN SHARE MODE");
			my $v = start([ $how eq 'timeout' ? q{SET lock_timeout = '300ms'} : (), $k->{do} ]);
			my $held = $node->poll_query_until('postgres', qq{
				SELECT count(*) > 0 FROM pg_locks l JOIN pg_stat_activity USING (pid)
				WHERE application_name = 'victim' AND NOT granted AND relation = '$catalog'::regclass
				OR NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'victim')});
			$steps += $held && victim() ne '' ? 1 : 0;
			my $killed = $how ne 'timeout' ? cut($how) : undef;
			if ($how eq 'kill')
			{
				eval { $gate->quit; };
				$v->{h}->finish;
				comes_back($node, $killed) or BAIL_OUT('the server does not come back');
			}
			else
			{
				$v->{h}->finish;
				eval { $gate->query_safe('COMMIT'); $gate->quit; };
			}
			like($v->{err}, $how eq 'timeout' ? qr/55P03/ : qr/57014|57P01|server closed/,
				"$name, $how at $catalog");
			is(whole($name, "$name, $how at $catalog: whole"), 0, "$name, $how at $catalog: undone");
		}
	}

	# in the transaction that has done it
	for my $how ('terminate', 'kill', 'rollback')
	{
		my $v = start([ "BEGIN; $k->{do}; " . ($how eq 'rollback' ? 'ROLLBACK' : 'SELECT pg_sleep(100)') ]);
		my $killed;

		if ($how ne 'rollback')
		{
			$node->poll_query_until('postgres', q{
				SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'victim'
				AND wait_event = 'PgSleep'});
			$killed = cut($how);
		}
		$v->{h}->finish;
		comes_back($node, $killed) or BAIL_OUT('the server does not come back');
		is(whole($name, "$name, $how before the commit: whole"), 0, "$name, $how before the commit: undone");
	}

	# in its own time
	$node->safe_psql('postgres', "SET client_min_messages = error; $k->{do}");
	is(whole($name, "$name: whole"), 1, "$name: done");
	undo($name);
}
cmp_ok($steps, '>=', 9 * @kinds, "$steps times it was held up where it was to be");

# ---- at random moments ----

my ($cut, $oom) = (0, 0);
my @odd;
for my $round (1 .. $rounds)
{
	my $name = $kinds[ $round % @kinds ];
	my $how = (qw(cancel terminate kill memory))[ int rand 4 ];

	make($name);
	if ($how eq 'memory' && $prlimit)
	{
		my $s = $node->background_psql('postgres', on_error_stop => 0);
		my $pid = $s->query_safe('SELECT pg_backend_pid()');

		$s->query_safe("SET client_min_messages = error; BEGIN; $kind{$name}{do}; ROLLBACK");
		my ($size) = slurp_file("/proc/$pid/status") =~ /VmSize:\s+(\d+) kB/;
		IPC::Run::run([ 'prlimit', "--pid=$pid", '--as=' . 1024 * ($size + int(rand 600)) . ':' ])
		  or die 'prlimit failed';
		$s->query("\\set VERBOSITY verbose\nSET work_mem = '64MB'; SET maintenance_work_mem = '64MB'; $kind{$name}{do}");
		$oom++ if $s->{stderr} =~ /53200/;
		push @odd, "$name: $s->{stderr}" if $s->{stderr} =~ /(ERROR|FATAL|PANIC):  (?!53200)/
		  || $s->{stderr} =~ /server closed/;
		$s->{stderr} = '';
		eval { $s->quit; };
	}
	elsif ($how ne 'memory')
	{
		my $v = start([ $kind{$name}{do} ]);
		my $end = time() + 2;

		sleep 0.002 while victim() eq '' && $v->{h}->pumpable && time() < $end;
		sleep rand(0.06);
		my $killed = cut($how);
		$v->{h}->finish;
		$cut++ if $v->{err} =~ /57014|57P01|server closed/;
		push @odd, "$name: $how: $v->{err}" if $v->{err} =~ /(ERROR|FATAL|PANIC):  (?!57014|57P0[123])/;
		comes_back($node, $killed) or BAIL_OUT('the server does not come back');
	}
	whole($name, "round $round, $name, $how: whole");
	undo($name);
}
diag("$cut of $rounds were cut short, $oom had no memory");
is(join("\n", @odd), '', 'none ended in another way');

# ---- the area full ----

$node->safe_psql('postgres', q{
	CREATE TABLE hog (k bigint, p text COLLATE "C");
	CREATE UNIQUE INDEX hog_k ON hog USING art (p)});
for my $i (1 .. 200)
{
	my ($rc, $out, $err) = $node->psql('postgres', 'INSERT INTO hog '
		  . "SELECT i, md5(i::text) || md5('x' || i) FROM generate_series($i * 1000, $i * 1000 + 999) i");

	last if $err =~ /artidx\.memory/;
	die $err if $rc != 0;
}
for my $i (1 .. 2000)
{
	my ($rc) = $node->psql('postgres', "INSERT INTO hog SELECT 0, 'last ' || $i || md5(i::text) FROM generate_series(1, 10) i");

	last if $rc != 0;
}
for my $name (@kinds)
{
	my $k = $kind{$name};

	$node->safe_psql('postgres', "SET client_min_messages = error; $k->{make}");
	my ($rc, $out, $err) = $node->psql('postgres', $k->{do});
	is($rc, 0, "$name: made again with the area full") or diag($err);
	is($node->safe_psql('postgres', $k->{done}), 1, "$name: done");
	is( $node->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*) FROM $k->{table} WHERE id BETWEEN 1000 AND 1099"),
		100, "$name: right");
	if ($name ne 'index')
	{
		fails_with($node, "INSERT INTO $k->{table} VALUES (77)", '23505', qr/$k->{index}/, "$name: unique");
	}
	undo($name);
}
$node->safe_psql('postgres', 'DROP TABLE hog');
is(join("\n", server_errors($node, $offset, qr/^(57014|57P0[123]|55P03|53200|23505|08\w{3})$/)),
	'', 'the log has no other error');
is(join("\n", server_crashes($node, $offset)), '', 'nothing died but of our hand');
is( $node->safe_psql('postgres',
		"SELECT count(*) FROM artidx_indexes WHERE state = 'building'"), '0', 'nothing is being built');
$node->safe_psql('postgres', 'DROP TABLE fk, pk, root, part, up');
memory_returns($node, 0, 512 * 1024, 'no memory is lost');
$node->stop;

# ---- predicate locks that are counted ----

my $ser = art_node(
	'count',
	log_line_prefix => $ArtTest::LOG_PREFIX,
	jit => 'off',
	max_connections => 20,
	max_worker_processes => 4,
	max_pred_locks_per_transaction => 300,
	restart_after_crash => 'on');
$offset = -s $ser->logfile;
$ser->safe_psql('postgres', q{
	CREATE TABLE s (k int, v int);
	INSERT INTO s SELECT i, i FROM generate_series(1, 50000) i;
	CREATE INDEX s_k ON s USING art (k);
	CREATE TABLE log (x int);
	ALTER DATABASE postgres SET default_transaction_isolation = 'serializable';
	ALTER DATABASE postgres SET enable_seqscan = off;
	ALTER DATABASE postgres SET enable_bitmapscan = off;
	-- so many transactions with some ten locks each
	CREATE PROCEDURE many(n int) LANGUAGE plpgsql AS $$
	DECLARE c int;
	BEGIN
		FOR i IN 1 .. n LOOP
			FOR j IN 1 .. 3 LOOP
				SELECT count(*) INTO c FROM s WHERE k BETWEEN (i * 7 + j * 10000) % 49000 + 1 AND (i * 7 + j * 10000) % 49000 + 38;
				IF c <> 38 THEN RAISE EXCEPTION 'wrong answer: %', c; END IF;
			END LOOP;
			COMMIT;
		END LOOP;
	END $$;
	CREATE VIEW held AS SELECT count(*) FROM pg_locks WHERE mode = 'SIReadLock';
	VACUUM ANALYZE s;
});

# whose locks are kept: what the others had locked while it goes on
sub keeper
{
	my $s = $ser->background_psql('postgres', on_error_die => 0);

	$s->query_safe('BEGIN; INSERT INTO log VALUES (0); SELECT 1');
	return $s;
}

SKIP:
{
	skip 'no prlimit here', 3 unless $prlimit;
	my $old = keeper();
	my $s = $ser->background_psql('postgres', on_error_stop => 0);
	my $pid = $s->query_safe('SELECT pg_backend_pid()');

	$s->query_safe('CALL many(100)');
	$s->query_safe('SELECT count(*) FROM s WHERE k = 7');
	my ($size) = slurp_file("/proc/$pid/status") =~ /VmSize:\s+(\d+) kB/;
	IPC::Run::run([ 'prlimit', "--pid=$pid", '--as=' . 1024 * ($size + 100) . ':' ]) or die 'prlimit failed';
	$s->query("\\set VERBOSITY verbose\nCALL many(2000)");
	is($s->{stderr}, '', 'a process without memory to count the locks searches on');
	$s->{stderr} = '';
	is($s->query('SELECT count(*) FROM s WHERE k = 7'), 1, 'and on');
	cmp_ok($ser->safe_psql('postgres', 'TABLE held'), '<', 200 * 35, 'and the table does not fill up');
	eval { $s->quit; };
	$old->query_safe('COMMIT');
	$old->quit;
}

# cut short while others count, and the count is of those that are gone
for my $how ('cancel', 'terminate', 'kill')
{
	my $old = keeper();
	my @all;

	for my $i (1 .. 3)
	{
		my %v = (out => '', err => '');

		local $ENV{PGAPPNAME} = 'victim';
		$v{h} = IPC::Run::start([ 'psql', '-XAtq', '-v', 'VERBOSITY=verbose',
				'-d', $ser->connstr('postgres'), '-c', 'CALL many(100000)' ],
			'<', \undef, '>', \$v{out}, '2>', \$v{err});
		push @all, \%v;
	}
	$ser->poll_query_until('postgres', 'SELECT (TABLE held) > 1500');
	sleep rand(0.5);
	my $killed;
	if ($how eq 'kill')
	{
		$killed = $ser->safe_psql('postgres',
			q{SELECT pid FROM pg_stat_activity WHERE application_name = 'victim' LIMIT 1});
		kill 'KILL', $killed;
		eval { $old->quit; };
	}
	else
	{
		$ser->safe_psql('postgres',
			"SELECT count(pg_${how}_backend(pid)) FROM pg_stat_activity WHERE application_name = 'victim'");
	}
	$_->{h}->finish for @all;
	comes_back($ser, $killed) or BAIL_OUT('the server does not come back');
	if ($how ne 'kill')
	{
		$old->query_safe('COMMIT');
		$old->quit;
	}
	unlike(join('', map { $_->{err} } @all), qr/(ERROR|FATAL|PANIC):  (?!57014|57P0[123])/,
		"$how: nothing else was said");
	ok($ser->poll_query_until('postgres', 'SELECT (TABLE held) < 10'), "$how: no lock is left");
}

# precise again: neighbours do not meet, the same key does
my ($a, $b) = map { $ser->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
for my $other (40000, 100)
{
	$ser->safe_psql('postgres', 'CALL many(30)');
	$_->query_safe('BEGIN') for $a, $b;
	$a->query_safe('SELECT count(*) FROM s WHERE k = 100');
	$b->query_safe("SELECT count(*) FROM s WHERE k = $other");
	$a->query_safe("INSERT INTO s VALUES ($other, 1)");
	$b->query_safe('INSERT INTO s VALUES (' . ($other == 100 ? 100 : 30000) . ', 1)');
	$a->query('COMMIT');
	$b->query('COMMIT');
	my $failed = ($a->{stderr} . $b->{stderr}) =~ /could not serialize/ ? 1 : 0;

	$_->{stderr} = '' for $a, $b;
	$_->query('ROLLBACK') for $a, $b;
	$_->{stderr} = '' for $a, $b;
	is($failed, $other == 100 ? 1 : 0, $other == 100 ? 'a write skew is found' : 'where there is none, none');
}
$_->quit for $a, $b;
is(join("\n", server_errors($ser, $offset, qr/^(57014|57P0[123]|40001|25P02|08\w{3})$/)),
	'', 'the log has no other error');
is(join("\n", server_crashes($ser, $offset)), '', 'nothing died but of our hand');
check_clean($ser, 's_k');
$ser->stop;
done_testing();
