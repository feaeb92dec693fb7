# What 19 offers: WAIT FOR LSN on a replica with art look-ups behind it, and reads that set bits
# of the visibility map.
# Needs: 19
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
art_conf($primary, hot_standby_feedback => 'off');
$primary->start;

# ---- reads that set bits of the visibility map, as by btree ----
$primary->safe_psql('postgres', 'CREATE EXTENSION artidx; CREATE EXTENSION pg_visibility');
for my $am ('btree', 'art')
{
	$primary->safe_psql('postgres', qq{
		CREATE TABLE v_$am (id int, t text);
		CREATE INDEX v_${am}_id ON v_$am USING $am (id);
		CREATE TABLE o_$am (id int)});
}

# How many pages of the table are all visible after that statement, of new rows.
sub visible
{
	my ($am, $statement, $plan) = @_;
	my $set = 'SET artidx.batched_joins = on; SET enable_memoize = off; SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;';

	$statement =~ s/\{\}/$am/g;
	$primary->safe_psql('postgres', qq{
		TRUNCATE v_$am, o_$am;
		INSERT INTO v_$am SELECT i, repeat('x', 200) FROM generate_series(1, 5000) i;
		INSERT INTO o_$am SELECT i * 7919 % 5000 + 1 FROM generate_series(1, 5000) i;
		ANALYZE v_$am, o_$am});
	like($primary->safe_psql('postgres', "$set EXPLAIN (COSTS OFF) $statement"), $plan, "$am: the plan of $statement");
	$primary->safe_psql('postgres', "$set $statement");
	return $primary->safe_psql('postgres', "SELECT all_visible FROM pg_visibility_map_summary('v_$am')");
}

my $pages = $primary->safe_psql('postgres', q{
	INSERT INTO v_art SELECT i, repeat('x', 200) FROM generate_series(1, 5000) i;
	SELECT pg_relation_size('v_art') / 8192});
for my $case (
	[ 'SELECT max(t) FROM v_{} WHERE id > 0', qr/Index Scan using v_btree/, qr/Index Scan using v_art/ ],
	[ 'SELECT o.id, v.t FROM o_{} o LEFT JOIN v_{} v ON v.id = o.id', qr/Nested Loop.*Index Scan using v_btree/s, qr/Nested Loop/ ])
{
	my ($statement, $nested, $plan) = @$case;
	my $btree = visible('btree', $statement, $nested);

	cmp_ok($btree, '>=', $pages - 3, "btree: nearly all pages");
	is(visible('art', $statement, $plan), $btree, 'and so by art');
}
is(visible('art', 'UPDATE v_{} SET t = t WHERE id = -1', qr/Index Scan using v_/), 0, 'not by an UPDATE that finds nothing');
my $update = 'UPDATE v_{} v SET t = v.t || 1 FROM o_{} o WHERE v.id = o.id';
is(visible('art', $update, qr/v_art/), visible('btree', $update, qr/v_btree/), 'an UPDATE sets as many as by btree');

# ---- WAIT FOR LSN ----
$primary->safe_psql('postgres', q{
	CREATE TABLE t (id int, v int);
	CREATE UNIQUE INDEX t_id ON t USING art (id);
	CREATE INDEX t_v ON t USING art (v) WITH (structure = btree);
	INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i;
	ANALYZE t});
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->start;
is($standby->safe_psql('postgres', q{SELECT artidx_wait('120 s')}), 't', 'the replica has its indexes');
all_replayed($primary, $standby);

my $writer = $primary->background_psql('postgres');
my $reader = $standby->background_psql('postgres');
$reader->query_safe('SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan');
for my $p ([ 'p', 'id' ], [ 'q', 'v' ])
{
	my ($name, $column) = @$p;
	my $plan = '';

	$reader->query_safe("PREPARE $name (int) AS SELECT count(*), min(v) FROM t WHERE $column = \$1");
	# plans do without the index while the follower is behind, which it may be for a moment
	for (1 .. 600)
	{
		$plan = $reader->query_safe("EXPLAIN (COSTS OFF) EXECUTE $name (1)");
		last if $plan =~ /t_$column/;
		$reader->query_safe('DISCARD PLANS');
	}
	like($plan, qr/t_$column/, "look-ups of $column go through art");
}

# Write, wait on the replica for what was written, and look at once.
sub waited
{
	my ($rounds, $name) = @_;
	my ($failed, $wrong) = ('', '');

	for my $i (map { $_[2] + $_ } 1 .. $rounds)
	{
		my $lsn = $writer->query_safe("INSERT INTO t VALUES ($i, -$i); UPDATE t SET v = v - 1000000 WHERE id = $i; SELECT pg_current_wal_insert_lsn()");

		$writer->query_safe("SELECT pg_logical_emit_message(true, '', 'flush')");
		my $end = $reader->query_safe("WAIT FOR LSN '$lsn' WITH (TIMEOUT '120s', NO_THROW)");
		my $old = -$i;
		my $new = $old - 1000000;

		$failed .= " $i: $end" if $end ne 'success';
		my $got = join(' ', map { $reader->query_safe("EXECUTE $_") } "p ($i)", "q ($new)", "q ($old)");
		$wrong .= " $i: $got" if $got ne "1|$new 1|$new 0|";
	}
	is("$failed$wrong", '', "$name: each row is there when the wait ends");
	return;
}

waited(300, 'the follower goes on', 10000);
my $waits = 'SELECT pid FROM artidx_standby JOIN pg_stat_activity ON pid = follower_pid WHERE database = \'postgres\'';
my $pid = $standby->safe_psql('postgres', $waits);
kill 'STOP', $pid;
waited(20, 'the follower is stopped', 20000);
kill 'CONT', $pid;
waited(100, 'it catches up', 30000);
is($standby->safe_psql('postgres', q{SELECT string_agg(builds::text, ' ') FROM artidx_indexes WHERE relname = 't'}),
	'1 1', 'in the structures that were built first');
all_replayed($primary, $standby);
check_followed($standby, 'at the end', qw(t_id t_v));

# a promotion ends the wait
my $far = $primary->safe_psql('postgres', q{SELECT pg_current_wal_insert_lsn() + 1000000});
$reader->query_until(qr/begun/, "\\echo begun\nWAIT FOR LSN '$far' WITH (NO_THROW);\nEXECUTE p (30001);\n\\echo ended\n");
$standby->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'WaitForWalReplay'})
  or die 'nobody waits';
$standby->promote;
like($reader->query_until(qr/ended/, ''), qr/not in recovery.*1\|-1030001.*ended/s, 'a promotion ends the wait, and the look-up finds its row');
$reader->quit;
$writer->quit;
check_exact($standby, 't', $_) foreach qw(t_id t_v);

unlike(slurp_file($_->logfile), qr/PANIC|TRAP:|terminated by signal/, 'nothing bad in the log of the ' . $_->name)
  foreach $primary, $standby;
$standby->stop;
$primary->stop;
done_testing();
