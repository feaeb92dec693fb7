# A subscriber whose table has a primary key of art applies updates and deletes on
# 15, 16 and 18.  On 17 it stops: the commands that lead there say so or leave the
# key btree, and artidx_to_btree makes it go on.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('subscriber', wal_level => 'logical', max_wal_senders => 4,
	max_replication_slots => 4, wal_retrieve_retry_interval => "'100ms'",
	max_prepared_transactions => 10);
my $stops = int($node->safe_psql('postgres', 'SHOW server_version_num') / 10000) == 17;
my $warning = qr/WARNING:  logical replication into table "(\w+)" stops at the first UPDATE or DELETE.*CALL artidx_to_btree\('public\.\w+'\)/s;
my $sum = 'SELECT count(*), sum(id), sum(v) FROM r';
my $connection = "'dbname=pub port=" . $node->port . ' host=' . $node->host . "'";

$node->safe_psql('postgres', 'CREATE DATABASE pub');
$node->safe_psql('pub', q{
	CREATE TABLE r (id int PRIMARY KEY, v int);
	CREATE TABLE s (id int PRIMARY KEY, v int);
	INSERT INTO r SELECT i, 0 FROM generate_series(1, 1000) i;
	CREATE PUBLICATION r_pub FOR TABLE r, s;
});
$node->safe_psql('pub', "SELECT pg_create_logical_replication_slot('r_slot', 'pgoutput')");
$node->safe_psql('postgres', q{
	SET artidx.replace_btree = constraints;
	CREATE TABLE r (id int PRIMARY KEY, v int);
	CREATE TABLE s (id int, v int);
	INSERT INTO r SELECT i, 0 FROM generate_series(1, 1000) i;
});

sub am_of
{
	my ($index) = @_;

	return $node->safe_psql('postgres',
		"SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = '$index'");
}

# What the command says, and whether that is the warning.
sub warns
{
	my ($sql, $name) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', $sql);

	is($rc, 0, $name) or diag($err);
	$err =~ s/^NOTICE:.*\n//mg;
	if ($stops) { like($err, $warning, "$name: a warning"); }
	else { is($err, '', "$name: no warning"); }
	return;
}

is(am_of('r_pkey'), 'art', 'a primary key of art');
warns("CREATE SUBSCRIPTION r_sub CONNECTION $connection PUBLICATION r_pub
	WITH (create_slot = false, slot_name = 'r_slot', copy_data = false)", 'CREATE SUBSCRIPTION');
warns('ALTER SUBSCRIPTION r_sub REFRESH PUBLICATION WITH (copy_data = false)', 'ALTER SUBSCRIPTION');

my $offset = -s $node->logfile;
$node->safe_psql('pub', 'UPDATE r SET v = 1 WHERE id % 10 = 1; DELETE FROM r WHERE id % 10 = 2');
if ($stops)
{
	$node->wait_for_log(qr/missing operator/, $offset);
	pass('it does stop');
	$node->safe_psql('postgres', q{CALL artidx_to_btree('r_pkey')});
}
ok($node->poll_query_until('postgres', $sum, $node->safe_psql('pub', $sum)), 'updates and deletes are applied');

# keys that come later
my ($rc, $out, $err) = $node->psql('postgres', 'SET artidx.replace_btree = constraints; ALTER TABLE s ADD PRIMARY KEY (id)');
is($err, '', 'a new primary key, as the setting says');
is(am_of('s_pkey'), $stops ? 'btree' : 'art', 'is of what the subscriber can use');
if ($stops)
{
	fails_with($node, q{CALL artidx_from_btree('s_pkey')}, '0A000', qr/A subscription writes the table/,
		'and stays so');
	$node->safe_psql('postgres', 'ALTER TABLE s DROP CONSTRAINT s_pkey; CREATE UNIQUE INDEX s_u ON s USING art (id)');
	warns('ALTER TABLE s ALTER id SET NOT NULL, REPLICA IDENTITY USING INDEX s_u', 'REPLICA IDENTITY');
}
$node->safe_psql('postgres', q{
	ALTER SUBSCRIPTION r_sub DISABLE; ALTER SUBSCRIPTION r_sub SET (slot_name = NONE); DROP SUBSCRIPTION r_sub});

# Transactions that the worker prepares, and ends, by no statement.
$node->safe_psql('pub', q{
	CREATE TABLE p (id int);
	CREATE PUBLICATION p_pub FOR TABLE p;
	SELECT pg_create_logical_replication_slot('p_slot', 'pgoutput', false, true);
});
$node->safe_psql('postgres', q{CREATE TABLE p (id int); CREATE INDEX p_id ON p USING art (id)});
$node->safe_psql('postgres', "CREATE SUBSCRIPTION p_sub CONNECTION $connection PUBLICATION p_pub
	WITH (create_slot = false, slot_name = 'p_slot', copy_data = false, two_phase = true)");
$node->safe_psql('pub', 'INSERT INTO p SELECT generate_series(1, 100)');
$node->poll_query_until('postgres', 'SELECT count(*) = 100 FROM p') or die 'nothing comes';
for my $end ('ROLLBACK', 'COMMIT')
{
	$node->safe_psql('pub', q{BEGIN; TRUNCATE p; INSERT INTO p VALUES (1), (2); PREPARE TRANSACTION 'x'});
	$node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM pg_prepared_xacts WHERE database = current_database()')
	  or die 'nothing is prepared';
	is($node->safe_psql('postgres', q{SELECT count(*) FROM artidx_indexes WHERE indexrelname = 'p_id' AND state = 'ready'}),
		'0', "$end: the index is in doubt");
	$node->safe_psql('pub', "$end PREPARED 'x'");
	ok($node->poll_query_until('postgres', q{SELECT state = 'ready' FROM artidx_indexes WHERE indexrelname = 'p_id'}),
		"$end: and is there when the transaction is over");
	is($node->safe_psql('postgres', q{SET enable_seqscan = off; SELECT count(*) FROM p WHERE id > 0}),
		$end eq 'COMMIT' ? '2' : '100', "$end: with its rows");
}
$node->safe_psql('postgres', q{
	ALTER SUBSCRIPTION p_sub DISABLE; ALTER SUBSCRIPTION p_sub SET (slot_name = NONE); DROP SUBSCRIPTION p_sub});
$node->stop;
done_testing();
