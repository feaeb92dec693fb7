# huge_pages, and the memory of art indexes: a server that finds too few does without, or does not start; where
# there are enough, indexes lie in them, survive a crash, and give no page back.  The last
# needs HUGE free huge pages, of which root sets up some by vm.nr_hugepages.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

plan skip_all => 'needs /proc/meminfo' unless -r '/proc/meminfo';

use constant HUGE => 60;

my $node = art_node(
	'huge',
	restart_after_crash => 'on',
	max_connections => 20,
	'artidx.memory' => "'64MB'");
$node->safe_psql('postgres', 'CREATE EXTENSION artidx_debug');

sub sql { return $node->safe_psql('postgres', $_[0]) }

# Starts with these settings, or what the log says of why not.
sub start_with
{
	my ($conf) = @_;
	my $offset = -s $node->logfile;

	$node->append_conf('postgresql.conf', $conf);
	return '' if $node->start(fail_ok => 1);
	return slurp_file($node->logfile, $offset);
}

sub crash
{
	my $s = $node->background_psql('postgres');
	my $offset = -s $node->logfile;

	kill 'KILL', $s->query_safe('SELECT pg_backend_pid()');
	eval { $s->{run}->finish };
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		last if slurp_file($node->logfile, $offset) =~ /all server processes terminated/;
		select(undef, undef, undef, 0.1);
	}
	comes_back($node) or BAIL_OUT('the server does not come back');
	sql('SELECT count(*) FROM artidx_indexes');
	slurp_file($node->logfile, $offset) =~ /(after the crash: .*|do not survive the crash: .*)/;
	return $1 // '';
}

# Huge pages that nobody has and that are promised to nobody.
sub huge_left
{
	my $info = slurp_file('/proc/meminfo');
	my ($free) = $info =~ /HugePages_Free:\s*(\d+)/;
	my ($promised) = $info =~ /HugePages_Rsvd:\s*(\d+)/;

	return ($free // 0) - ($promised // 0);
}

my $status = sql('SELECT huge_pages FROM artidx_hardware()');
like($status, qr/^(on|off|transparent)$/, 'and the server says what it has got');

$node->stop;
is(start_with("huge_pages = off\nartidx.memory = '64MB'\n"), '', 'off: it starts');
is(sql('SELECT huge_pages FROM artidx_hardware()'), 'off', 'and has none');
$node->stop;
is(start_with("artidx.survive_crash = off\n"), '', 'off, without artidx.survive_crash: it starts');
is(sql('SELECT huge_pages FROM artidx_hardware()'), 'off', 'and has none');
$node->stop;

# ---- enough ----
SKIP:
{
	skip 'needs ' . HUGE . ' free huge pages', 11 if huge_left() < HUGE;

	# enough for PostgreSQL's own memory, and for artidx.memory more than any machine has
	my $log = start_with("huge_pages = on\nshared_buffers = '128kB'\nartidx.survive_crash = on\nartidx.memory = '16TB'\n");
	like($log, qr/FATAL:  could not map \d+ bytes of shared memory for art indexes in huge pages: /,
		'on: the server does not start without them');
	like($log, qr/DETAIL:  They are \d+ huge pages of \d+ kB/, 'and says how many it needs');
	like($log, qr/HINT:  .*"artidx\.memory".*"huge_pages"/, 'and what to do');

	is(start_with("artidx.memory = '64MB'\n"), '', 'enough: it starts with them');
	is(sql('SELECT huge_pages FROM artidx_hardware()'), 'on', 'and has them');
	my $left = huge_left();
	sql(q{CREATE TABLE t AS SELECT i FROM generate_series(1, 300000) i;
		CREATE INDEX t_i ON t USING art (i);
		CREATE TABLE u (x text);
		CREATE INDEX u_x ON u USING art (x);
		INSERT INTO u SELECT string_agg(md5((i * k)::text), '')
			FROM generate_series(1, 120000) i, generate_series(1, 3) k GROUP BY k;
		DROP TABLE u});
	# what was dropped is freed: pieces that have whole huge pages in them
	$node->poll_query_until('postgres', q{SELECT artidx_wait('10s') IS NOT NULL AND
		(SELECT retired_bytes = 0 FROM artidx_memory)}, 't');
	is(huge_left(), $left, 'what is freed is not given back: its reservation would be lost');
	is(crash(), 'after the crash: 1 kept, 0 given up', 'the index survives a crash');
	is(sql(q{SELECT count(*) FROM artidx_check('t_i', true)}), '1', 'and is right');
	like(crash(), qr/a short time before/, 'it is given up at the next');
	sql('SELECT count(*) FROM t WHERE i = 7');
	all_ready($node, 'and built again');
	is(sql(q{SELECT count(*) FROM artidx_check('t_i', true)}), '1', 'right');
	$node->stop;
}

done_testing();
