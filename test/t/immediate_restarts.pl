# An immediate restart, again and again, under clients that are restarted with
# the server: nobody is told a wrong answer, nobody gets an error other than
# the loss of the connection, and the indexes come back without being asked.
# CRASH_ROUNDS says how often.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $rounds = $ENV{CRASH_ROUNDS} // 5;
my $n = 10000;
my $big = 150000;
my $node = art_node(
	'crashloop',
	autovacuum => 'on',
	autovacuum_naptime => '1s',
	log_line_prefix => $ArtTest::LOG_PREFIX,
	'artidx.memory' => "'256MB'",
	'artidx.build_workers' => 1);

art_seed();
load_schema($node, $n);
# large enough to be seen while it is built
$node->safe_psql('postgres', qq{
	CREATE TABLE big (id bigint, k int, pad text DEFAULT repeat('x', 100));
	INSERT INTO big SELECT i, i % 1000 FROM generate_series(1, $big) i;
	CREATE UNIQUE INDEX big_id ON big USING art (id);
	CREATE INDEX big_k ON big USING art (k);
	ANALYZE big;
});

# One sample of all states a few milliseconds, until all are ready or the time
# is over: [name, state, fraction] of every index in every sample.
sub watch
{
	my ($seconds) = @_;
	my $end = time() + $seconds;
	my @seen;

	while (time() < $end)
	{
		my ($rc, $out, $err) = $node->psql('postgres',
			join('', map { "SELECT indexrelname, state, coalesce(build_fraction, -1) "
					  . "FROM artidx_indexes ORDER BY 1; SELECT '--', pg_sleep(0.003);\n" }
				  1 .. 20));
		die "cannot see the states: $err" if $rc != 0;
		push @seen, map { [ split /\|/ ] } grep { !/^--/ } split /\n/, $out;
		my @last = grep { !/^--/ } (split /\n/, $out)[ -10 .. -1 ];
		last if @last && !grep { !/\|ready\|/ } @last;
	}
	return @seen;
}

my $offset = -s $node->logfile;
my (%states, @lies, @backward, @wild);
my %rank = (absent => 0, sealed => 0, building => 1, ready => 2);
my $asked_nobody = 0;
my $transactions = 0;

for my $round (1 .. $rounds)
{
	# twice out of three times the clients are there from the first moment on
	my $quiet = $round % 3 == 0;
	my @loads;
	my @common = (n => $n, seconds => 600);
	my $begin = sub {
		push @loads, load_start($node, @common, clients => 6);
		push @loads,
		  load_start($node, @common, clients => 3, mode => 'simple',
			options => '-c enable_bitmapscan=off -c jit=off');
		push @loads,
		  load_start($node, @common, clients => 1, scripts => ['upkeep'],
			mode => 'simple')
		  if $round % 2 == 0;
	};

	$begin->() unless $quiet;
	my %at;
	my %frac;
	for my $s (watch($quiet ? 60 : 3))
	{
		my ($name, $state, $fraction) = @$s;

		$states{$state} = 1;
		push @wild, "$name $state $fraction"
		  if $fraction != -1 && ($fraction < 0 || $fraction > 1);
		# CREATE INDEX builds are not rebuilds: upkeep's go backward rightly
		next if $round % 2 == 0;
		push @backward, "round $round: $name from $at{$name} to $state"
		  if defined $at{$name} && $rank{$state} < $rank{ $at{$name} };
		$at{$name} = $state;
	}
	if ($quiet)
	{
		all_ready($node, "round $round: all ready, and nobody asked");
		$asked_nobody++;
		$begin->();
	}
	sleep(0.5 + rand(2));
	$node->stop('immediate');
	$node->start;
	for my $l (@loads)
	{
		load_finish($l);
		push @lies, load_lies($l);
		$transactions += $1
		  if $l->{out} =~ /transactions actually processed: (\d+)/;
	}
}

is(join("\n", @lies), '', 'no client saw an error or a wrong answer');
# 57P01/2/3: connections lost, starting up; 57014: autovacuum gave way
is( join("\n",
		grep { !/^57014 ERROR: canceling autovacuum/ }
		  server_errors($node, $offset, qr/^(57P0[123]|08\w{3})$/)),
	'', 'the log has no other error either');
is(join("\n", server_crashes($node, $offset)), '', 'no process crashed');
is(join(' ', sort keys %states), 'absent building ready',
	'absent, building and ready were seen');
is(join("\n", @backward), '', 'and in this order');
is(join("\n", @wild), '', 'build_fraction is between 0 and 1');
cmp_ok($asked_nobody, '>', 0, 'some rounds asked nobody') if $rounds >= 3;
cmp_ok($transactions, '>', 100 * $rounds,
	"the clients did something ($transactions transactions)");

$node->append_conf('postgresql.conf', 'autovacuum = off');
$node->reload;
all_ready($node, 'all ready at the end');
load_verify($node, $n, 'at the end');
check_exact($node, 'big', 'big_id');
check_exact($node, 'big', 'big_k');
is( $node->safe_psql('postgres',
		"SELECT DISTINCT last_build_source FROM artidx_indexes WHERE indexrelname LIKE 'big%'"
	),
	'rebuild', 'what was built was built from the heap');

$node->stop;
done_testing();
