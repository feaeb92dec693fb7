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

# ---- settings that an earlier version had ----

my %gone = (
	'artidx.autobuild' => [ 'off', qr/"artidx\.build_workers" at 0/ ],
	'artidx.constraint_am' => [ 'art', qr/"artidx\.replace_btree" at "constraints"/ ],
	'artidx.huge_pages' => [ 'on', qr/"huge_pages" holds/ ],
	'artidx.huge_pages_status' => [ 'on', qr/artidx_hardware\(\)/ ],
	'artidx.standby' => [ 'off', qr/"artidx\.build_workers" at 0/ ],
	'artidx.survive_crash_check' => [ '50', qr/"artidx\.build_priority"/ ],
	'artidx.survive_crash_pause' => [ '0', qr/five minutes/ ]);
my @gone = sort keys %gone;

# What PostgreSQL says of each of them in this text, with a hint of ours.
sub tells
{
	my ($text, $what) = @_;

	foreach my $name (@gone)
	{
		like($text, qr/invalid configuration parameter name "$name"[^\n]*\n.*?HINT: +[^\n]*$gone{$name}[1]/s, "$what: $name");
	}
	return;
}

# in a file, before the start and at a reload
$node->append_conf('postgresql.conf', join('', map { "$_ = $gone{$_}[0]\n" } @gone));
$log = -s $node->logfile;
$node->restart;
tells(join("\n", grep { !/no_such_setting/ } split /\n/, slurp_file($node->logfile, $log)), 'a server starts without it');
$node->safe_psql('postgres', q{ALTER SYSTEM SET work_mem = '5MB'});
$log = -s $node->logfile;
$node->reload;
$node->wait_for_log(qr/configuration file .* contains errors; unaffected changes were applied/, $log);
tells(slurp_file($node->logfile, $log), 'a reload goes on without it');
$node->poll_query_until('postgres', q{SELECT current_setting('work_mem') = '5MB'}) or die;

# in a session, by ALTER SYSTEM, and from the client
my $text = '';
foreach my $name (@gone)
{
	my $err;
	$node->psql('postgres', "SET $name = $gone{$name}[0]", stderr => \$err);
	$text .= $err;
}
tells($text, 'SET');
{
	my $err;
	$node->psql('postgres', 'ALTER SYSTEM SET artidx.autobuild = off', stderr => \$err);
	like($err, qr/configuration parameter .*"artidx\.autobuild".*HINT:.*build_workers/s, 'ALTER SYSTEM SET');
	local $ENV{PGOPTIONS} = '-c artidx.constraint_am=art';
	$node->psql('postgres', 'SELECT 1', stderr => \$err);
	like($err, qr/FATAL: .*invalid configuration parameter name "artidx\.constraint_am".*HINT:.*replace_btree/s, 'PGOPTIONS');
}

# of a database and a role: from a time when nothing had reserved the prefix
$node->adjust_conf('postgresql.conf', $_, undef) foreach @gone, 'artidx.no_such_setting';
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->restart;
$node->safe_psql('postgres', q{CREATE ROLE old_user LOGIN; ALTER ROLE old_user SET artidx.constraint_am = art;
	ALTER DATABASE postgres SET artidx.autobuild = off; ALTER SYSTEM SET work_mem = '6MB'});
append_to_file($node->data_dir . '/postgresql.auto.conf', "artidx.standby = 'off'\n");
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'artidx'");
$log = -s $node->logfile;
$node->restart;
like(slurp_file($node->logfile, $log), qr/"artidx\.standby", removing it.*HINT:.*build_workers/s, 'of ALTER SYSTEM: the server starts without it');
{
	my ($rc, $out, $err) = $node->psql('postgres', 'SELECT 17', extra_params => [ '-U', 'old_user' ]);
	is("$rc|$out", '0|17', 'a session begins');
	like($err, qr/WARNING: .*"artidx\.autobuild".*HINT:.*build_workers/s, "and is told of its database's setting");
	like($err, qr/WARNING: .*"artidx\.constraint_am".*HINT:.*replace_btree/s, "and of its role's");
	# how to be rid of them: by name, where this minor release can, else by RESET ALL
	foreach my $reset ('ALTER DATABASE postgres RESET artidx.autobuild', 'ALTER ROLE old_user RESET artidx.constraint_am',
		'ALTER SYSTEM RESET artidx.standby')
	{
		($rc, $out, $err) = $node->psql('postgres', $reset);
		note("$reset: " . ($err =~ s/.*?(ERROR: [^\n]*).*/$1/sr || 'done'));
	}
	$node->psql('postgres', 'ALTER DATABASE postgres RESET ALL; ALTER ROLE old_user RESET ALL; ALTER SYSTEM RESET ALL');
	($rc, $out, $err) = $node->psql('postgres', 'SELECT 17', extra_params => [ '-U', 'old_user' ]);
	is("$rc|$out|$err", '0|17|', 'RESET ALL takes them away');
	unlike(slurp_file($node->data_dir . '/postgresql.auto.conf'), qr/artidx/, 'also those of ALTER SYSTEM');
}
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
	my %default = map { split /=/ } split /\n/,
	  $other->safe_psql('postgres', "SELECT name || '=' || current_setting(name) FROM pg_settings WHERE name LIKE 'artidx.%' AND context <> 'internal'");
	is_deeply(\%default, \%documented, 'the defaults are those of doc/options.md');

	$other->append_conf('postgresql.conf', $conf);
	$other->restart;
	is($other->safe_psql('postgres', $show), 'off|software', 'and those of the others');
	$other->stop;
}

done_testing();
