# Every way of ours to run a statement: how soon a cancel ends it, that a kill in the middle leaves
# right answers, what memory it takes, that it goes on when its structure goes, what EXPLAIN shows
# in each format, and that its scans are counted.
use strict;
use warnings;

use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

my $dir = build_modules('art_insidetest');
my $node = art_node('nodes', jit => 'off', max_parallel_workers_per_gather => 0, autovacuum => 'off',
	restart_after_crash => 'on', fsync => 'off', compute_query_id => 'on',
	crash_often(), shared_preload_libraries => "'artidx, $dir/art_insidetest, pg_stat_statements, auto_explain'", shared_buffers => "'16MB'",
	'artidx.memory' => "'256MB'");

$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_stat_statements;
	CREATE TABLE big (k int, v int, w int, pad text);
	INSERT INTO big SELECT i % 1000, i, i % 7, repeat('x', 40) FROM generate_series(1, 300000) i;
	CREATE INDEX big_kv ON big USING art (k, v);
	CREATE TABLE few AS SELECT i AS id, i * 7 % 30000 AS k FROM generate_series(1, 20000) i;
	CREATE TABLE one AS SELECT i AS id, repeat('y', 20) AS pad FROM generate_series(1, 30000) i;
	CREATE INDEX one_id ON one USING art (id);
	CREATE TABLE long (g int, t text COLLATE "C", n int);
	INSERT INTO long SELECT i % 100, repeat(md5(i::text), 50), i FROM generate_series(1, 5000) i;
	CREATE INDEX long_gt ON long USING art (g, t);
	VACUUM ANALYZE});

# the statement; what its plan has; the statement where %s is a number; its index
my $joins = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off;';
my $scans = 'SET enable_seqscan = off; SET enable_bitmapscan = off;';
my %nodes = (
	'aggregates' => [ '', 'SELECT k, count(*), sum(v), max(v) FROM big WHERE v > %s GROUP BY k', 'Index Aggregate', 'big_kv' ],
	'groups' => [ '', 'SELECT DISTINCT k FROM big WHERE v > %s', 'Loose Scan', 'big_kv' ],
	'last of each group' => [ '', 'SELECT DISTINCT ON (k) k, v, pad FROM big WHERE w < 6 AND v > %s ORDER BY k, v DESC', 'Loose Scan', 'big_kv' ],
	'matches' => [ 'SET enable_mergejoin = off; SET enable_nestloop = off;', 'SELECT id FROM few WHERE k IN (SELECT k FROM big WHERE v > %s)', 'Loose Scan', 'big_kv' ],
	'skips' => [ $scans, 'SELECT k, v FROM big WHERE v BETWEEN %s AND 200000 AND v % 1000 = 999', 'Index Only Scan using big_kv', 'big_kv' ],
	'row comparison' => [ $scans, 'SELECT k, v, pad FROM big WHERE (k, v) > (500, %s)', 'Index Scan using big_kv', 'big_kv' ],
	'batched join' => [ $joins, 'SELECT few.id, one.pad FROM few JOIN one ON one.id = few.k WHERE few.id > %s', 'Batched', 'one_id' ],
);
my @names = sort keys %nodes;

sub statement
{
	my ($name, $number) = @_;
	return $nodes{$name}[1] =~ s/%s/$number/r;
}

# without an index
my $plainly = 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;';
my %right;
for my $name (@names)
{
	$right{$name} = $node->safe_psql('postgres', "$plainly SELECT count(*), sum(hashtext(s::text)) FROM (" . statement($name, 3) . ') s');
}

sub answers_are_right
{
	my ($when) = @_;
	my @wrong = grep {
		$node->safe_psql('postgres', "$nodes{$_}[0] SELECT count(*), sum(hashtext(s::text)) FROM (" . statement($_, 3) . ' OFFSET 0) s') ne $right{$_}
	} @names;

	is("@wrong", '', "$when: every answer is right");
}

answers_are_right('at first');

# ---- EXPLAIN in all formats; scans are counted; other extensions see the nodes ----

for my $name (@names)
{
	my ($settings, undef, $kind, $index) = @{ $nodes{$name} };
	my $analyze = 'ANALYZE, TIMING OFF, SUMMARY OFF';
	my %shown = map {
		$_ => $node->safe_psql('postgres', "$settings EXPLAIN ($analyze, FORMAT $_) " . statement($name, 3))
	} qw(text json xml yaml);
	my $plan = eval { decode_json($shown{json}) };
	my $node_name = $kind =~ /^Index.*Scan/ ? ($kind =~ /^(.*Scan)/)[0] : $kind;

	is(ref $plan, 'ARRAY', "$name: EXPLAIN's JSON is JSON");
	is($node->safe_psql('postgres', "SELECT xml_is_well_formed_document(\$x\$$shown{xml}\$x\$)"), 't', "$name: its XML is XML");
	like($shown{$_}, qr/$node_name/, "$name: in format $_ it shows $node_name") for qw(text json xml yaml);
	like($shown{text}, qr/\Q$kind\E/, "$name: by $kind");

	my $scanned = $node->safe_psql('postgres', "$settings BEGIN; SELECT pg_stat_get_xact_numscans('$index'::regclass) AS before \\gset\n"
		. statement($name, 3) . " \\g /dev/null\nSELECT pg_stat_get_xact_numscans('$index'::regclass) - :before; COMMIT");
	cmp_ok($scanned, '>=', 1, "$name: $scanned searches are counted");
	is($node->safe_psql('postgres', "SELECT pg_stat_statements_reset() \\g /dev/null\n$settings " . statement($name, 4) . ' \\g /dev/null'
		. "\nSELECT calls FROM pg_stat_statements WHERE query ~ 'WHERE.*(big|few)' AND query !~ 'pg_stat' OR query ~ '^SELECT.*FROM (big|few)' LIMIT 1"),
		1, "$name: pg_stat_statements has it");
}
my $offset = -s $node->logfile;
$node->safe_psql('postgres', 'SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on; SET auto_explain.log_format = json; ' . "$nodes{$_}[0] " . statement($_, 3)) for @names;
my $log = slurp_file($node->logfile, $offset);
like($log, qr/\Q$_\E/, "auto_explain shows $_") for 'Index Aggregate', 'Loose Scan', 'Batched';

# ---- memory: work_mem, and a batch of long keys ----

for my $q (
	[ '', 'SELECT g, count(*), max(t) FROM long GROUP BY g ORDER BY g', 90, 'Index Aggregate' ],
	[ '', 'SELECT DISTINCT g FROM long ORDER BY g', 90, 'Loose Scan' ],
	[ '', 'SELECT DISTINCT ON (g) g, t FROM long ORDER BY g, t DESC', 90, 'Loose Scan' ],
	[ $scans, q{SELECT g, t FROM long WHERE t > 'a'}, 2000, 'Only Scan using long_gt' ],
	[ $joins, 'SELECT few.id, one.pad FROM few JOIN one ON one.id = few.k', 15000, 'Batched' ])
{
	my $used = q{SELECT sum(total_bytes) FROM pg_backend_memory_contexts};
	my ($before, $after, $unloaded) = split /\n/, $node->safe_psql('postgres', "SET work_mem = '64kB'; $q->[0] SELECT count(*) FROM few \\g /dev/null
		BEGIN; DECLARE c CURSOR FOR $q->[1];
		$used;
		MOVE $q->[2] FROM c; FETCH 1 FROM c \\g /dev/null
		$used;
		SELECT artidx_unload('long_gt'), artidx_unload('one_id') \\g /dev/null
		MOVE 5 FROM c; $used;
		SELECT artidx_build('long_gt'), artidx_build('one_id') \\g /dev/null
		COMMIT");
	my $kb = int(($after - $before) / 1024);
	my $private = int(($unloaded - $before) / 1024);

	like($node->safe_psql('postgres', "$q->[0] EXPLAIN (COSTS OFF) DECLARE c CURSOR FOR $q->[1]"), qr/$q->[3]/, "by $q->[3]: $q->[1]");
	# 256 keys of 1,6 kB, of which a scan keeps two batches; and the tables' caches
	cmp_ok($kb, '<', 3072, "$kb kB for: $q->[1]");
	cmp_ok($private, '<', 6144, "$private kB where its structure went");
}

# ---- a structure that goes, or is sealed, while the node runs ----

for my $name (@names)
{
	my ($settings, undef, undef, $index) = @{ $nodes{$name} };
	my ($table, $row) = $index eq 'one_id' ? ('one', q{-i, 'new'}) : ('big', q{-i, -i, 7, 'new'});

	for my $how ('unloaded', 'sealed')
	{
		my $s;

		# sealed: there is room for a few rows more
		$node->safe_psql('postgres', "SELECT format('ALTER INDEX $index SET (max_memory = ''%skB'')', bytes / 1024 + 64) FROM artidx_indexes WHERE indexrelname = '$index' \\gexec")
		  if $how eq 'sealed';
		$s = $node->background_psql('postgres');
		$s->query_safe('SET client_min_messages = error') ;
		$s->query_safe($_) for grep { /\S/ } split /;/, $settings;
		$s->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
		$s->query_safe('DECLARE c CURSOR FOR SELECT hashtext(s::text) FROM (' . statement($name, 3) . ' OFFSET 0) s');
		my @rows = split /\n/, $s->query_safe('FETCH 5 FROM c');
		$node->safe_psql('postgres', $how eq 'unloaded' ? "SELECT artidx_unload('$index')" :
			"INSERT INTO $table SELECT $row FROM generate_series(1, 20000) i");
		is($node->safe_psql('postgres', "SELECT state FROM artidx_indexes WHERE indexrelname = '$index'"),
			$how eq 'unloaded' ? 'absent' : 'sealed', "$name: it is $how");
		push @rows, split /\n/, $s->query_safe('FETCH ALL FROM c');
		$s->query_safe('COMMIT');
		$s->quit;
		my ($count, $sum) = (scalar @rows, 0);
		$sum += $_ for @rows;
		is("$count|$sum", $right{$name}, "$name: goes on, $how in the middle");
		$node->safe_psql('postgres', "DELETE FROM $table WHERE " . ($table eq 'one' ? "pad = 'new'" : 'w = 7')
			. "; ALTER INDEX $index RESET (max_memory); SELECT artidx_build('$index')");
		$node->safe_psql('postgres', "VACUUM $table");
	}
}

# ---- cancel ----

# a statement that does nothing but run the node, again and again
sub without_end
{
	my ($name) = @_;
	return "$nodes{$name}[0] SELECT count(*) FROM generate_series(1, 1000000) g, LATERAL (" . statement($name, '(g % 3)') . ' OFFSET 0) s';
}

sub start_one
{
	my ($name, $err) = @_;
	my $run = IPC::Run::start([ 'psql', '-XAtqc', without_end($name), '-d', $node->connstr('postgres') . ' application_name=running' ],
		'2>', $err, '>', \my $out);

	$node->poll_query_until('postgres',
		"SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'running' AND state = 'active' AND query ~ 'LATERAL' AND clock_timestamp() > query_start + interval '300 ms'")
		or die "$name does not run";
	return $run;
}

# after a cancel the running one goes on for so many ms, and works for so many, if the system tells
$node->safe_psql('postgres', q{
	CREATE FUNCTION worked(p int) RETURNS numeric LANGUAGE sql AS $$
		SELECT split_part(pg_read_file('/proc/' || p || '/schedstat', 0, 100, true), ' ', 1)::numeric / 1000000
	$$;
	CREATE FUNCTION ends_after(OUT ms numeric, OUT work numeric) LANGUAGE plpgsql AS $$
	DECLARE
		p int := (SELECT pid FROM pg_stat_activity WHERE application_name = 'running');
		t timestamptz := clock_timestamp();
	BEGIN
		work := worked(p);
		PERFORM pg_cancel_backend(p);
		WHILE EXISTS (SELECT FROM pg_stat_activity WHERE pid = p AND state = 'active') AND clock_timestamp() < t + interval '60 s' LOOP
			PERFORM pg_sleep(0.0002), pg_stat_clear_snapshot();
		END LOOP;
		ms := round((extract(epoch FROM clock_timestamp() - t) * 1000)::numeric, 1);
		work := round(worked(p) - work, 1);
	END $$});
for my $name (@names)
{
	my (@ms, @work);

	for (1 .. 3)
	{
		my $err = '';
		my $run = start_one($name, \$err);

		my ($ms, $work) = split /\|/, $node->safe_psql('postgres', 'SELECT * FROM ends_after()');
		push @ms, $ms;
		push @work, $work || '?';
		$run->finish;
		like($err, qr/canceling statement due to user request/, "$name: cancelled");
	}
	cmp_ok((sort { $a <=> $b } @ms)[-1], '<', 60000, "$name: it stopped after @ms ms, @work ms of work");
	times_out($node, without_end($name), qr/canceling statement due to statement timeout/, "$name: statement_timeout");
}

# ---- kill ----

for my $name (@names)
{
	my $err = '';
	my $run = start_one($name, \$err);
	my $pid = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE application_name = 'running'});

	kill_and_recover($node, $pid);
	$run->finish;
	answers_are_right("killed in the middle of $name");
}
check_clean($node, $_) for 'big_kv', 'one_id';

$node->stop;
done_testing();
