# Every setting of artidx in postgresql.conf is what the server starts with; and
# ELISION and ELISION_PROVIDER, which run all tests under another elision, reach
# the server.
use strict;
use warnings;

use File::Basename qw(dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

# A string has no list of values to choose from.
my %strings = (
	'artidx.build_wait' => '7s',
	'artidx.database_limit' => '33%',
	'artidx.role_limit' => '22%',
	'artidx.temp_limit' => '11%');

my $node = PostgreSQL::Test::Cluster->new('settings');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'artidx'\n");
$node->start;

# For each setting, a value that is not its default, as SHOW prints it.
my $list = $node->safe_psql('postgres', <<'SQL');
SELECT name, CASE vartype
	WHEN 'bool' THEN CASE boot_val WHEN 'on' THEN 'off' ELSE 'on' END
	WHEN 'enum' THEN (SELECT v FROM unnest(enumvals) WITH ORDINALITY AS e (v, n)
		WHERE v <> boot_val ORDER BY n DESC LIMIT 1)
	WHEN 'integer' THEN CASE
		WHEN min_val::bigint > boot_val::bigint THEN min_val
		WHEN boot_val::bigint + 1 <= max_val::bigint THEN (boot_val::bigint + 1)::text
		ELSE min_val END
	WHEN 'real' THEN ((boot_val::float8 + max_val::float8) / 2)::text
	END
FROM pg_settings WHERE name LIKE 'artidx.%' AND context <> 'internal' ORDER BY name COLLATE "C"
SQL
my %value;
foreach (split /\n/, $list)
{
	my ($name, $value) = split /\|/;
	$value = $strings{$name} // '' if $value eq '';
	isnt($value, '', "$name has a value here that is not its default");
	$value{$name} = $value;
}
cmp_ok(scalar keys %value, '>=', 10, 'the settings are found');

$node->append_conf('postgresql.conf',
	join('', map { "$_ = '$value{$_}'\n" } sort keys %value));
my $log = -s $node->logfile;
$node->restart;
foreach my $name (sort keys %value)
{
	is( $node->safe_psql('postgres', "SELECT setting || ' of ' || source FROM pg_settings WHERE name = '$name'"),
		"$value{$name} of configuration file", "$name is $value{$name} after the start");
}
unlike(substr(slurp_file($node->logfile), $log), qr/invalid configuration parameter|removing/,
	'the start removes none of them');

# What nobody has defined is still found.
$node->append_conf('postgresql.conf', "artidx.no_such_setting = 1\n");
$log = -s $node->logfile;
$node->restart;
like(substr(slurp_file($node->logfile), $log), qr/invalid configuration parameter name "artidx.no_such_setting"/,
	'and a name that is not one of them is reported');
$node->stop;

# ---- the tests' own way: art_conf for TAP, art_elision_conf for the others ----

{
	local $ENV{ELISION} = 'off';
	local $ENV{ELISION_PROVIDER} = 'software';
	local $ENV{ELISION_MODULE} = build_modules('art_elidetest') . '/art_elidetest';
	my $show = "SELECT current_setting('artidx.elision'), current_setting('art_elidetest.provider')";

	my $tap = art_node('tap');
	is($tap->safe_psql('postgres', $show), 'off|software', 'ELISION reaches the servers of the TAP tests');
	$tap->stop;

	my $lib = dirname(__FILE__) . '/../lib.sh';
	my $conf = `bash -c '. "$lib"; art_elision_conf'`;
	my $other = PostgreSQL::Test::Cluster->new('other');
	$other->init;
	$other->append_conf('postgresql.conf', "shared_preload_libraries = 'artidx'\n");
	$other->start;
	my %documented = slurp_file(dirname(__FILE__) . '/../../doc/options.md') =~ /^\| `(artidx\.\w+)` \| (\S*) ?\|/mg;
	delete $documented{'artidx.huge_pages_status'};	# a state
	my %default = map { split /=/ } split /\n/,
	  $other->safe_psql('postgres', "SELECT name || '=' || current_setting(name) FROM pg_settings WHERE name LIKE 'artidx.%' AND context <> 'internal'");
	is_deeply(\%default, \%documented, 'the defaults are those of doc/options.md');

	$other->append_conf('postgresql.conf', $conf);
	$other->restart;
	is($other->safe_psql('postgres', $show), 'off|software', 'and those of the others');
	$other->stop;
}

done_testing();
