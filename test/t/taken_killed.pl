# ALTER COLUMN TYPE without a rewrite gives the structure of the old index to the new one,
# under two locks of the directory.  Who does it is killed between the two, and so is somebody
# else while he waits there.  Afterwards the answers are right, and all memory is there again.
# The same with the memory in PostgreSQL's segment.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $locks = 64;    # ART_NPARTITIONS
my $slack = 160 * 1024;
my $node = art_node(
	'taken',
	restart_after_crash => 'on',
	'artidx.memory' => "'64MB'",
	'artidx.build_workers' => 0,
	crash_often());

sub sql { return $node->safe_psql('postgres', $_[0]); }

sql("CREATE FUNCTION art_wild_hold(text, int, int) RETURNS int AS '"
	  . build_modules('art_wildtest') . "/art_wildtest' LANGUAGE C STRICT;
	CREATE TABLE t (k varchar(10), n int);
	INSERT INTO t SELECT i, i FROM generate_series(1, 10000) i;
	CREATE UNIQUE INDEX t_k ON t USING art (k)");

# A session that waits between the two locks, and one that makes it wait.
sub between
{
	for my $try (1 .. 60)
	{
		my $length = 10 + $try;
		my $holder = $node->background_psql('postgres');
		my $alter = $node->background_psql('postgres');
		my $pid = $alter->query_safe('SELECT pg_backend_pid()');
		my $first = 1 + int(rand($locks - 1));
		my $waits = 0;

		$holder->query_safe("SELECT art_wild_hold('artidx directory', $locks, $first)");
		$alter->query_until(qr/started/, "\\echo started\nBEGIN;\nALTER TABLE t ALTER k TYPE varchar($length);\n\\echo ended\n");
		for (1 .. 300)
		{
			my ($event) = sql("SELECT coalesce(wait_event, '') || ' ' || state FROM pg_stat_activity WHERE pid = $pid");

			$waits = $event =~ /artidx directory/;
			last if $waits || $event =~ /idle in transaction$/;
			sleep 0.05;
		}
		if ($waits && $holder->query_safe("SELECT art_wild_hold('artidx directory', $locks, $first)") == 1)
		{
			note("at try $try");
			return ($holder, $alter, $pid);
		}
		$holder->query_safe("SELECT art_wild_hold('artidx directory', $locks, $locks)");
		$holder->quit;
		$alter->query_safe('ROLLBACK');
		$alter->quit;
	}
	die 'nobody waits between two locks';
}

for my $survive ('on', 'off')
{
	$node->append_conf('postgresql.conf', "artidx.survive_crash = $survive");
	$node->restart;
	for my $whom ('it', 'another one')
	{
		my $what = "survive_crash = $survive, $whom is killed";

		sql("SELECT artidx_build('t_k')");
		my $before = sql('SELECT used_bytes FROM artidx_memory');
		my ($holder, $alter, $pid) = between();
		my $other = $node->background_psql('postgres');

		$pid = $other->query_safe('SELECT pg_backend_pid()') if $whom eq 'another one';
		ok(kill_and_recover($node, $pid), "$what: the server is back");
		eval { $_->quit } foreach $holder, $alter, $other;

		is(sql("SELECT count(*), sum(n) FROM t WHERE k BETWEEN '0' AND '99999'"), '10000|50005000', "$what: without an index");
		sql("SELECT artidx_build('t_k')");
		is(sql(q{SET enable_seqscan = off; SET enable_bitmapscan = off;
			SELECT count(*), sum(n) FROM t WHERE k BETWEEN '0' AND '99999'}), '10000|50005000', "$what: all rows");
		is(sql("SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 't'::regclass AND attname = 'k'"),
			'character varying(10)', "$what: the type is what it was");
		is(sql("SELECT entries FROM artidx_check('t_k', true)"), 10000, "$what: artidx_check");
		memory_returns($node, $before, $slack, "$what: the memory");
		is(sql('SELECT count(*) FROM artidx_indexes WHERE state = \'ready\''), 1, "$what: one structure");
		# and the structure is taken over as before
		is(sql("ALTER TABLE t ALTER k TYPE varchar(11); ALTER TABLE t ALTER k TYPE varchar(10);
			SELECT artidx_build('t_k'); SELECT count(*) FROM artidx_indexes WHERE state = 'ready'") =~ s/^t?\n//r, 1,
			"$what: the next one");
	}
}
$node->stop;
done_testing();
