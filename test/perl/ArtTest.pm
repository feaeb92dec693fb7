# What the TAP tests of artidx share.
package ArtTest;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(art_node art_conf same_answer check_clean check_exact
  request_and_wait fails_with index_state plan_uses);

# The settings that every node of these tests starts from.
sub art_conf
{
	my ($node, %settings) = @_;
	my %all = (
		shared_preload_libraries => "'artidx'",
		'artidx.memory' => "'128MB'",
		max_connections => 100,
		autovacuum => 'off',
		shared_buffers => "'64MB'",
		log_statement => 'none',
		%settings);

	delete $all{'artidx.memory'}
	  if $all{shared_preload_libraries} eq "''";
	$node->append_conf('postgresql.conf',
		join('', map { "$_ = $all{$_}\n" } sort keys %all));
	return;
}

# A running node with the extension in it.
sub art_node
{
	my ($name, %settings) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init;
	art_conf($node, %settings);
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION artidx');
	return $node;
}

# The same query with whatever plan the planner takes and without any index;
# both must agree.  The query should return one value.
sub same_answer
{
	my ($node, $query, $name) = @_;
	my $off = join(' ', map { "SET enable_$_ = off;" }
		  qw(indexscan indexonlyscan bitmapscan));
	my $on = 'SET enable_seqscan = off;';
	my $with = $node->safe_psql('postgres', "$on $query");
	my $without = $node->safe_psql('postgres', "$off $query");

	return is($with, $without, $name);
}

# artidx_check finds nothing wrong.
sub check_clean
{
	my ($node, $index, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($rc, $out, $err) = $node->psql('postgres',
		"SELECT count(*) FROM artidx_check('$index', true)");

	return is("$rc|$out|$err", '0|1|', $name // "artidx_check of $index");
}

# The same, and after VACUUM there is an entry for every row and no other.
# The table must be at rest and no old snapshot open.
sub check_exact
{
	my ($node, $table, $index) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	# with few dead rows VACUUM would leave their entries for the next time
	$node->safe_psql('postgres', "VACUUM (INDEX_CLEANUP ON) $table");
	check_clean($node, $index);
	my $rows = $node->safe_psql('postgres',
		"SET enable_indexscan = off; SET enable_indexonlyscan = off; "
		  . "SET enable_bitmapscan = off; SELECT count(*) FROM $table");
	my $entries = $node->safe_psql('postgres',
		"SELECT entries FROM artidx_check('$index', true)");

	return is($entries, $rows, "$index has an entry for every row of $table");
}

sub index_state
{
	my ($node, $index) = @_;

	return $node->safe_psql('postgres',
		"SELECT state FROM artidx_indexes WHERE indexrelname = '$index'");
}

sub plan_uses
{
	my ($node, $index, $query) = @_;
	my $plan = $node->safe_psql('postgres',
		"SET enable_seqscan = off; EXPLAIN (COSTS OFF) $query");

	return $plan =~ /\b\Q$index\E\b/ ? 1 : 0;
}

# Ask for an index that is not in memory by planning a query that could use it,
# and wait until it is there.
sub request_and_wait
{
	my ($node, $index, $query) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->safe_psql('postgres', "EXPLAIN $query");
	return ok(
		$node->poll_query_until(
			'postgres',
			"SELECT state = 'ready' FROM artidx_indexes "
			  . "WHERE indexrelname = '$index'"),
		"$index is built on demand");
}

# A statement fails with this SQLSTATE, and what it says matches.
sub fails_with
{
	my ($node, $sql, $sqlstate, $regex, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($rc, $out, $err) = $node->psql('postgres', $sql,
		extra_params => [ '-v', 'VERBOSITY=verbose' ]);

	like($err, qr/(ERROR|FATAL):\s+$sqlstate:/, "$name: SQLSTATE $sqlstate");
	return like($err, $regex, "$name: message");
}

1;
