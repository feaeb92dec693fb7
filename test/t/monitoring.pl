# What a monitor asks and is told: the queries of doc/sql_exporter.yml, the dashboard and
# the alerts that are made of them, artidx_progress of builds, loads and followers.
use strict;
use warnings;

use CPAN::Meta::YAML;
use File::Basename qw(dirname);
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $doc = dirname($0) . '/../../doc';
my $node = PostgreSQL::Test::Cluster->new('monitoring');
$node->init(allows_streaming => 1);
art_conf($node, 'artidx.build_workers' => 1, 'artidx.build_wait' => 'off');
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION artidx');

sub sql { return $node->safe_psql('postgres', join(' ', @_)); }

sub becomes
{
	my ($server, $query, $name) = @_;

	return ok($server->poll_query_until('postgres', $query), $name)
	  || diag($server->safe_psql('postgres', 'SELECT * FROM artidx_progress'));
}

sql('CREATE ROLE monitor LOGIN; GRANT pg_monitor TO monitor; CREATE ROLE other LOGIN;',
	'CREATE TABLE p (k int); INSERT INTO p SELECT generate_series(1, 400000);',
	'CREATE INDEX p_k ON p USING art (k); ANALYZE p;');

# ---- the queries ----

my (%label, %value);
my $yml = slurp_file("$doc/sql_exporter.yml");
while ($yml =~ /- name: (artidx_\w+)\n(.*?)query: \|\n((?: {10}[^\n]*\n)+)/sg)
{
	my ($name, $head, $query) = ($1, $2, $3);

	foreach my $of ([ labels => \%label ], [ values => \%value ])
	{
		my ($what, $to) = @$of;
		my @columns = $head =~ /$what: \[(.*?)\]/s ? split(/,\s*/, $1) : ();
		$to->{$name} = { map { $_ => 1 } @columns };
	}
	my ($rc, $out, $err) = $node->psql('postgres',
		'SELECT ' . join(', ', sort(keys %{ $label{$name} }, keys %{ $value{$name} })) . " FROM ($query) q",
		extra_params => [ '-U', 'monitor' ]);
	is("$rc|$err", '0|', "$name: has every label and value");
	isnt($out, '', "$name: and rows") if $name ne 'artidx_standby';
}
is(scalar(keys %value), () = $yml =~ /- name: artidx_\w/g, 'every query was run') or diag(join ' ', keys %value);

# Each metric and label of an expression is one of those; returns the labels.
my %of_exporter = map { $_ => 1 } qw(database host driver user sql_job);

sub expression_fits
{
	my ($expr, $where) = @_;
	my %labels = %of_exporter;
	my @wrong;
	my $n = 0;

	while ($expr =~ /(?<!\w)sql_(\w+)\{([^}]*)\}/g)
	{
		my ($name, $match) = ($1, $2);

		$n++;
		%labels = (%labels, %{ $label{$name} // {} });
		push @wrong, $name if !$value{$name};
		while ($match =~ /(\w+)(?:=~|!~|!=|=)"([^"]*)"/g)
		{
			push @wrong, "$name $1" if $1 ne 'col' && !$labels{$1};
			push @wrong, "$name $2" if $1 eq 'col' && !$value{$name}{$2};
		}
		push @wrong, "$name without col" if $match !~ /\bcol="/;
	}
	push @wrong, 'no metric' if $n == 0 || $n != (() = $expr =~ /\bsql_artidx/g);
	is("@wrong", '', "$where: its metrics are the exporter's");
	return \%labels;
}

# ---- the dashboard ----

my $board = decode_json(slurp_file("$doc/grafana.json"));
my %used;
my @cells;
foreach my $panel (@{ $board->{panels} })
{
	my $at = $panel->{gridPos};
	my $overlaps = grep
	{
		$at->{x} < $_->{x} + $_->{w} && $_->{x} < $at->{x} + $at->{w}
		  && $at->{y} < $_->{y} + $_->{h} && $_->{y} < $at->{y} + $at->{h}
	} @cells;

	push @cells, $at;
	ok(!$overlaps && $at->{x} + $at->{w} <= 24, "$panel->{title}: has its place");
	next if $panel->{type} eq 'row';
	ok($panel->{description} && @{ $panel->{targets} }, "$panel->{title}: says what it shows");
	foreach my $target (@{ $panel->{targets} })
	{
		my $labels = expression_fits($target->{expr}, $panel->{title});
		my @unknown = grep { !$labels->{$_} } $target->{legendFormat} =~ /\{\{(\w+)\}\}/g;

		is("@unknown", '', "$panel->{title}: its legend has labels of the metric");
		$used{$1} = 1 while $target->{expr} =~ /sql_(\w+)\{/g;
	}
}
expression_fits($_->{expr}, "annotation $_->{name}") foreach @{ $board->{annotations}{list} };
is(join(' ', grep { !$used{$_} && $_ ne 'artidx_server' } sort keys %value), '', 'the dashboard shows something of each query');

# ---- the alerts ----

my $alerts = CPAN::Meta::YAML->read_string(slurp_file("$doc/alerts.yml"))->[0];
my @rules = map { @{ $_->{rules} } } @{ $alerts->{groups} };
is(scalar(@rules), 5, 'the alerts');
foreach my $rule (@rules)
{
	my $name = $rule->{alert};
	my $labels = expression_fits($rule->{expr}, $name);
	my $says = $rule->{annotations};
	my @unknown = grep { !$labels->{$_} } "@$says{qw(summary description)}" =~ /\$labels\.(\w+)/g;
	my ($file, $anchor) = split /#/, $says->{runbook_url};

	like($rule->{for}, qr/^\d+[smh]$/, "$name: for how long");
	like($rule->{labels}{severity}, qr/^(warning|critical)$/, "$name: how bad it is");
	ok($says->{summary} && $says->{description}, "$name: says what it means");
	is("@unknown", '', "$name: by labels that there are");
	my @anchors = map { s/[^\w\- ]//gr =~ tr/ /-/r } map { lc } slurp_file("$doc/$file") =~ /^#+ (.*)$/mg;
	ok((grep { $_ eq $anchor } @anchors), "$name: has a runbook");
}

# ---- builds ----

# At one per cent the build of half a second takes most of a minute.
sql('ALTER SYSTEM SET artidx.build_priority = 1');
$node->reload;
$node->poll_query_until('postgres', "SELECT current_setting('artidx.build_priority') = '1'");
sql('ALTER INDEX p_k SET (structure = btree)');
my $row = q{p.command = 'build' AND p.datname = 'postgres' AND p.datid = a.datid AND a.backend_type = 'artidx builder'
	AND p.relid::int8 = %d AND p.index_relid::int8 = %d AND p.phase = 'scanning table' AND p.helpers = 0
	AND p.blocks_done > 0 AND p.blocks_done < p.blocks_total AND p.blocks_total = %d AND p.tuples_total IS NULL};
my $of_p = sprintf($row, split(/\|/, sql(q{SELECT 'p'::regclass::oid, 'p_k'::regclass::oid, pg_relation_size('p') / 8192})));
becomes($node, "SELECT count(*) = 1 FROM artidx_progress p JOIN pg_stat_activity a USING (pid) WHERE $of_p",
	'a build in the background');
is($node->safe_psql('template1', 'CREATE EXTENSION artidx; SELECT command, datname, relid IS NULL FROM artidx_progress'),
	'build|postgres|f', 'as another database sees it');
is(sql('SET ROLE monitor; SELECT command FROM artidx_progress'), 'build', 'as a monitor sees it');
foreach my $view (qw(artidx_progress artidx_crash_checks))
{
	my ($rc, $out, $err) = $node->psql('postgres', "SET ROLE other; SELECT * FROM $view");
	like($err, qr/permission denied for view $view/, "others do not read $view");
}
cmp_ok(sql('SELECT build_fraction FROM artidx_indexes'), '<', 1, 'artidx_indexes says so, too');
sql('ALTER SYSTEM SET artidx.build_workers = 0');
$node->reload;
$node->poll_query_until('postgres', "SELECT current_setting('artidx.build_workers') = '0'");
sql(q{SELECT pg_terminate_backend(pid) FROM artidx_progress});
becomes($node, q{SELECT count(*) = 1 FROM artidx_progress WHERE pid IS NULL AND phase = 'waiting for a worker'},
	'a build that its worker left');
sql('ALTER SYSTEM SET artidx.build_workers = 1; ALTER SYSTEM SET artidx.build_priority = 100');
$node->reload;
all_ready($node, 'it is built');
is(sql('SELECT count(*) FROM artidx_progress'), 0, 'and nothing goes on');

# CREATE INDEX: the expression waits
sql(q{CREATE FUNCTION slow(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
	$$BEGIN PERFORM pg_catalog.pg_sleep(0.005); RETURN k; END$$;},
	'CREATE TABLE s AS SELECT i AS k FROM generate_series(1, 3000) i');
my $creates = $node->background_psql('postgres');
my $pid = $creates->query_safe('SELECT pg_backend_pid()');
$creates->query_until(qr/begun/, "\\echo begun\nCREATE INDEX s_k ON s USING art (slow(k));\n");
becomes($node, qq{SELECT count(*) = 1 FROM artidx_progress WHERE pid = $pid AND command = 'build'
	AND phase = 'scanning table' AND blocks_done BETWEEN 1 AND blocks_total AND relid = 's'::regclass},
	'CREATE INDEX');
sql("SELECT pg_cancel_backend($pid)");
becomes($node, 'SELECT count(*) = 0 FROM artidx_progress', 'which is cancelled');
eval { $creates->quit };

# ---- a follower ----

$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('monitored_standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
sql('CREATE INDEX CONCURRENTLY s_k2 ON s USING art (slow(k)) WHERE k <= 1000');
becomes($standby, q{SELECT count(*) = 1 FROM artidx_progress WHERE command = 'follow' AND datname = 'postgres'
	AND pid = (SELECT follower_pid FROM artidx_standby WHERE database = 'postgres')}, 'a follower builds');
my ($query) = $yml =~ /- name: artidx_standby\n.*?query: \|\n((?: {10}[^\n]*\n)+)/s;
like($standby->safe_psql('postgres', $query), qr/^postgres\|\d+\|/m, 'artidx_standby: and rows, on a standby');
$standby->stop('immediate');
sql('DROP INDEX s_k2');

# ---- a load ----

sql('INSERT INTO p SELECT i FROM generate_series(400001, 1500000) i');
# it may be over before anybody looks
my $seen = '';
for (1 .. 60)
{
	last if $seen ne '';
	$node->restart;
	$seen = sql(q{
	CREATE TEMP TABLE seen AS SELECT * FROM artidx_progress WITH NO DATA;
	DO $$
	BEGIN
		WHILE NOT EXISTS (SELECT FROM seen) AND EXISTS (SELECT FROM artidx_indexes WHERE state <> 'ready') LOOP
			INSERT INTO seen SELECT * FROM artidx_progress WHERE tuples_total > 1000000;
			PERFORM pg_sleep(0.001);
		END LOOP;
	END$$;
	SELECT command, phase IN ('waiting for the loader', 'loading saved keys'), blocks_total, tuples_total,
		tuples_done BETWEEN 0 AND tuples_total FROM seen});
}
is($seen, 'load|t||1500000|t', 'a load counts entries');

is(sql('SELECT * FROM artidx_crash_checks'), '0|0|0', 'nothing outlived a crash');

$node->stop;
done_testing();
