# What a crash leaves behind comes back: the epochs, slots, magazines, retired objects
# and queue nodes of the dead.  Sessions change the indexes of each structure, and are killed.
# All indexes are kept each time, and the memory in use is in the end what it was at first.
# CRASH_CYCLES says how often.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $cycles = $ENV{CRASH_CYCLES} || 12;
my $settle = 3;    # crashes until what is kept for reuse has its size
my $sessions = 4;
my $open = 60;    # rows that are not committed: their entries fit into a ring
my $slack = 160 * 1024;    # how leaves are filled differs a little
my $node = art_node(
	'memory',
	restart_after_crash => 'on',
	autovacuum => 'off',
	'artidx.memory' => "'64MB'",
	'artidx.build_workers' => 0,
	# its snapshot would keep what others have deleted
	crash_often());
$node->safe_psql('postgres', 'CREATE EXTENSION artidx_debug');

sub sql { return $node->safe_psql('postgres', $_[0]); }

sql(q{
	CREATE TABLE t (k int, r bigint, u uuid, s text COLLATE "C", d numeric);
	INSERT INTO t SELECT i, hashint8(i)::bigint * 4294967291, md5(i::text)::uuid, 'key ' || i, i
		FROM generate_series(1, 10000) i;
	CREATE INDEX t_k ON t USING art (k) WITH (tail_buffer = on);
	CREATE INDEX t_r ON t USING art (r);
	CREATE INDEX t_u ON t USING art (u) WITH (sync = rowex);
	CREATE INDEX t_s ON t USING art (s) WITH (structure = btree);
	CREATE INDEX t_o ON t USING art (r) WITH (sync = optiql);
	CREATE INDEX t_c ON t USING art (r) WITH (sync = coarse);
	CREATE INDEX t_d ON t USING art (d);
});

my $before;
my @lost;

for my $cycle (1 .. $cycles)
{
	my @s;

	for my $i (1 .. $sessions)
	{
		my $s = $node->background_psql('postgres');
		my $pid = $s->query_safe('SELECT pg_backend_pid()');

		$s->query_safe(qq{
			INSERT INTO t SELECT 100000 + i, hashint8(i), md5(i::text)::uuid, md5(i::text), hashint8(i)
				FROM generate_series(1, 500) i;
			DELETE FROM t WHERE k > 100000 AND k % 2 = 0;
			BEGIN;
			INSERT INTO t SELECT 200000 + i, -hashint8(i), md5((-i)::text)::uuid, md5((-i)::text), -hashint8(i)
				FROM generate_series(1, $open) i});
		push @s, [ $s, $pid ];
	}
	kill_and_recover($node, $s[ $cycle % $sessions ][1]);
	eval { $_->[0]{run}->finish } foreach @s;
	push @lost, "cycle $cycle: $_"
	  foreach split /\n/, sql(q{
		SELECT concat_ws(' ', indexrelname, state, last_build_source) FROM artidx_indexes
		WHERE (state, last_build_source) IS DISTINCT FROM ('ready', 'kept')});
	sql('DELETE FROM t WHERE k > 100000');
	sql('VACUUM (INDEX_CLEANUP ON) t');
	$before = sql('SELECT used_bytes FROM artidx_memory') if $cycle == $settle;
}
cmp_ok($before, '>', 1024 * 1024, 'there are structures');
is(join('; ', @lost), '', 'every index was kept at every crash');
memory_returns($node, $before, $slack, "$cycles crashes leave no memory behind");
is(sql(q{SELECT count(*) FROM artidx_epochs WHERE backend_type IS NULL}),
	0, 'no slot is a dead process\'s');
check_exact($node, 't', $_) foreach indexes_of($node, 't');
$node->stop;
done_testing();
