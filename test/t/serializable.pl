# Serializable transactions from many clients, each of which reads through an
# index what decides whether it may write.  Whatever order they are said to have
# run in, some things cannot have happened: looked for afterwards, with
# structures that went away and came back meanwhile, and beside a btree twin,
# which must not fail less often.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

# ICU wants an encoding that it knows
my $node = PostgreSQL::Test::Cluster->new('serializable');
$node->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
art_conf($node, max_prepared_transactions => 10);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION artidx');
my $seconds = $ENV{SERIALIZABLE_SECONDS} // 6;

for my $am ('art', 'btree')
{
	$node->safe_psql('postgres', qq{
	-- an account may be overdrawn, but not both of a pair together
	CREATE TABLE ${am}_ledger (acct int, amount int);
	INSERT INTO ${am}_ledger SELECT a, 100 FROM generate_series(1, 40) a, generate_series(1, 50);
	CREATE INDEX ${am}_ledger_i ON ${am}_ledger USING $am (acct);

	-- bookings of a room are at least two apart
	CREATE TABLE ${am}_booking (room int, slot int);
	CREATE INDEX ${am}_booking_i ON ${am}_booking USING $am (room, slot);

	-- numbers without gap within a group
	CREATE TABLE ${am}_number (grp text COLLATE "C", n int);
	INSERT INTO ${am}_number SELECT 'group ' || g, 1 FROM generate_series(1, 20) g;
	CREATE INDEX ${am}_number_i ON ${am}_number USING $am (grp, n DESC);

	-- keys that are compared: at most 30 rows of a name
	CREATE TABLE ${am}_name (name text COLLATE "en-x-icu");
	CREATE INDEX ${am}_name_i ON ${am}_name USING $am (name);

	ANALYZE ${am}_ledger, ${am}_booking, ${am}_number, ${am}_name;
	});
}

sub scripts
{
	my ($am) = @_;
	return (
		ledger => qq{\\set a random(1, 20) * 2
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT coalesce(sum(amount), 0) AS x FROM ${am}_ledger WHERE acct = :a \\gset
SELECT coalesce(sum(amount), 0) AS y FROM ${am}_ledger WHERE acct = :a - 1 \\gset
\\set which random(0, 1)
\\if :x + :y >= 300
INSERT INTO ${am}_ledger VALUES (:a - :which, -300);
\\endif
COMMIT;
},
		booking => qq{\\set r random(1, 10)
\\set s random(1, 600)
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) AS c FROM ${am}_booking WHERE room = :r AND slot BETWEEN :s - 1 AND :s + 1 \\gset
\\if :c = 0
INSERT INTO ${am}_booking VALUES (:r, :s);
\\else
DELETE FROM ${am}_booking WHERE room = :r AND slot BETWEEN :s - 1 AND :s + 1;
\\endif
COMMIT;
},
		number => qq{\\set g random(1, 20)
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT n FROM ${am}_number WHERE grp = 'group ' || :g ORDER BY grp, n DESC LIMIT 1 \\gset
INSERT INTO ${am}_number VALUES ('group ' || :g, :n + 1);
COMMIT;
},
		name => qq{\\set g random(1, 50)
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) AS c FROM ${am}_name WHERE name = 'name ' || :g \\gset
\\if :c < 30
INSERT INTO ${am}_name VALUES ('name ' || :g);
\\endif
COMMIT;
},);
}

# Runs them; returns transactions that committed, and that failed.
sub clients
{
	my ($am, $disturb) = @_;
	my %script = scripts($am);
	my @args;
	my ($out, $err) = ('', '');

	for my $name (sort keys %script)
	{
		my $file = $node->basedir . "/${am}_$name.sql";
		unlink $file;
		append_to_file($file, $script{$name});
		push @args, '-f', $file;
	}
	local $ENV{PGOPTIONS} = '-c enable_seqscan=off -c enable_bitmapscan=off';
	my $h = IPC::Run::start(
		[
			'pgbench', '-n', '-c', '16', '-j', '2', '-T', $seconds,
			'--max-tries=1', @args, '-h', $node->host, '-p', $node->port,
			'postgres'
		],
		'>', \$out, '2>', \$err);
	delete local $ENV{PGOPTIONS};
	my $until = time + $seconds;
	while ($disturb && time < $until)
	{
		$disturb->();
		select undef, undef, undef, 0.2;
	}
	$h->finish;
	is($h->result(0), 0, "$am: pgbench") or diag("$out$err");
	unlike($err, qr/aborted/, "$am: only serialization failures");
	my ($done) = $out =~ /^number of transactions actually processed: (\d+)/m;
	my ($failed) = $out =~ /^number of failed transactions: (\d+)/m;
	cmp_ok($done, '>', 100, "$am: $done transactions, $failed failed");
	return ($done, $failed);
}

# What no order of the transactions allows.
sub verify
{
	my ($am) = @_;
	is($node->safe_psql('postgres', qq{SELECT count(*) FROM (
		SELECT 1 FROM ${am}_ledger GROUP BY (acct + 1) / 2 HAVING sum(amount) < 0) x}),
		0, "$am: no pair of accounts is overdrawn");
	is($node->safe_psql('postgres', qq{SELECT count(*) FROM (
		SELECT slot - lag(slot) OVER (PARTITION BY room ORDER BY slot) AS apart
		FROM ${am}_booking) x WHERE apart < 2}),
		0, "$am: no bookings meet");
	is($node->safe_psql('postgres', qq{SELECT count(*) FROM (
		SELECT 1 FROM ${am}_number GROUP BY grp
		HAVING count(*) <> max(n) OR count(DISTINCT n) <> count(*)) x}),
		0, "$am: numbers have neither gaps nor duplicates");
	is($node->safe_psql('postgres', qq{SELECT count(*) FROM (
		SELECT 1 FROM ${am}_name GROUP BY name HAVING count(*) > 30) x}),
		0, "$am: no name has more than 30");
}

my ($bt_done, $bt_failed) = clients('btree');
verify('btree');
my ($done, $failed) = clients('art');
verify('art');

# with everything that can happen to a structure
my $round = 0;
clients('art', sub {
	my @index = map { "art_${_}_i" } qw(ledger booking number name);
	my $index = $index[$round % @index];

	if ($round++ % 9 == 8)
	{
		$node->safe_psql('postgres', "REINDEX INDEX CONCURRENTLY $index");
	}
	else
	{
		$node->safe_psql('postgres', "SELECT artidx_unload('$index')");
	}
});
verify('art');
check_clean($node, "art_${_}_i") for qw(ledger booking number name);

# a range, beside another: apart enough for a virtual page, not for a leaf
note(sprintf 'failures: art %.2f %%, btree %.2f %%',
	100 * $failed / ($done + $failed), 100 * $bt_failed / ($bt_done + $bt_failed));
cmp_ok($failed / ($done + $failed), '<=', 1.25 * $bt_failed / ($bt_done + $bt_failed) + 0.02,
	'art fails about as often as btree at most');

# ---- a prepared transaction keeps its locks, over a restart ----
$node->safe_psql('postgres', q{
	CREATE TABLE p2 (k int, v int);
	INSERT INTO p2 SELECT i, i FROM generate_series(1, 1000) i;
	CREATE INDEX p2_k ON p2 USING art (k);
	ANALYZE p2;
});
$node->safe_psql('postgres', q{
	SET enable_seqscan = off; SET enable_bitmapscan = off;
	BEGIN ISOLATION LEVEL SERIALIZABLE;
	SELECT count(*) FROM p2 WHERE k = 5000;
	SELECT count(*) FROM p2 WHERE k BETWEEN 7000 AND 7010;
	INSERT INTO p2 VALUES (6000, 1);
	PREPARE TRANSACTION 'ser';
});
$node->restart;
for my $key (5000, 7005)
{
	my ($rc, $o, $e) = $node->psql('postgres', qq{
	SET enable_seqscan = off; SET enable_bitmapscan = off;
	BEGIN ISOLATION LEVEL SERIALIZABLE;
	SELECT count(*) FROM p2 WHERE k = 6000;
	INSERT INTO p2 VALUES ($key, 1);
	COMMIT;});
	like($e, qr/could not serialize access/,
		"$key: what a prepared transaction has read, before a restart");
}
is($node->safe_psql('postgres', q{
	SET enable_seqscan = off; SET enable_bitmapscan = off;
	BEGIN ISOLATION LEVEL SERIALIZABLE;
	SELECT count(*) FROM p2 WHERE k = 6001;
	INSERT INTO p2 VALUES (5001, 1);
	COMMIT;
	COMMIT PREPARED 'ser';
	SELECT count(*) FROM p2}), "0\n1002", 'other keys are not its business');

# ---- the server's table of predicate locks does not overflow ----
# a range in each of many partitions
$node->safe_psql('postgres', q{
	CREATE TABLE parts (p int, k int) PARTITION BY LIST (p);
	DO $$ BEGIN FOR i IN 0..399 LOOP
		EXECUTE format('CREATE TABLE parts_%s PARTITION OF parts FOR VALUES IN (%s)', i, i);
	END LOOP; END $$;
	INSERT INTO parts SELECT i % 400, i * 10 FROM generate_series(1, 8000) i;
	CREATE INDEX ON parts USING art (k);
});
$node->safe_psql('postgres', 'VACUUM ANALYZE parts');
is($node->safe_psql('postgres', q{
	SET enable_seqscan = off; SET enable_bitmapscan = off;
	BEGIN ISOLATION LEVEL SERIALIZABLE;
	SELECT count(*) FROM parts WHERE k BETWEEN 12345 AND 22500;
	COMMIT;}), 1016, 'a range in 400 partitions');

# the ranges of many transactions, kept for one that goes on
$node->safe_psql('postgres', q{
	CREATE TABLE short (k int, v int);
	INSERT INTO short SELECT i, i FROM generate_series(1, 50000) i;
	CREATE INDEX ON short USING art (k);
	CREATE TABLE log (x int);
});
$node->safe_psql('postgres', 'VACUUM ANALYZE short');
append_to_file($node->basedir . '/short.sql', q{\set a random(1, 49000)
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) FROM short WHERE k BETWEEN :a AND :a + 37;
INSERT INTO log VALUES (:a);
COMMIT;
});
my ($lin, $lout, $lerr) = ('', '', '');
my $long = IPC::Run::start([ 'psql', '-XAtq', '-h', $node->host, '-p', $node->port, 'postgres' ],
	'<', \$lin, '>', \$lout, '2>', \$lerr);
$lin = "BEGIN ISOLATION LEVEL SERIALIZABLE;\nINSERT INTO log VALUES (0) RETURNING 'open';\n";
pump_until($long, IPC::Run::timer(60), \$lout, qr/open/);
{
	local $ENV{PGOPTIONS} = '-c enable_seqscan=off -c enable_bitmapscan=off';
	my ($out, $err) = run_command(
		[ 'pgbench', '-n', '-c', '4', '-t', '1000', '-f', $node->basedir . '/short.sql',
			'-h', $node->host, '-p', $node->port, 'postgres' ]);
	unlike($err, qr/out of shared memory/, 'ranges of 4000 transactions that are kept');
	like($out, qr{actually processed: 4000/4000}, 'none of them failed');
}
$lin .= "COMMIT;\n\\q\n";
$long->finish;
is($lerr, '', 'nor the one that they were kept for');

done_testing();
