# ALTER EXTENSION artidx UPDATE while clients insert, look up and scan: on a server that
# still has the old library, if there is one (OLD_LIBRARY, a file), where it is refused;
# through the restart with the new library; under the old declarations; during and after
# the update.  Each client compares its answers, and in the end all indexes their tables.
use strict;
use warnings;

use File::Copy qw(copy);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);
use ArtTest;
use ArtScript;

install_old_script('0.1.0');
art_seed();
my ($version) = script_version();
my $n = 20000;
my $seconds = $ENV{UPDATE_SECONDS} // 3;
my $node = PostgreSQL::Test::Cluster->new('update_load');
my $library = `pg_config --pkglibdir` =~ s/\s+$//r . '/artidx.so';

# A library that a server has open is replaced, never written to.
sub put_library
{
	my ($file) = @_;

	copy($file, "$library.new") && rename("$library.new", $library) or BAIL_OUT("$library: $!");
	return;
}

my $old = $ENV{OLD_LIBRARY};
my $new = PostgreSQL::Test::Utils::tempdir() . '/new.so';
copy($library, $new) or BAIL_OUT("$library: $!");
put_library($old) if $old;
# for the tests that come after this one
END { put_library($new) if $old && -e $new; }

$node->init;
art_conf($node);
$node->start;

# Two databases with the extension, each with its clients.
my @dbs = qw(one two);
foreach my $db (@dbs)
{
	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, "CREATE EXTENSION artidx VERSION '0.1.0'");
	load_schema($node, $n, $db);
}

# Clients of both; $phase names what they lived through, $lost how they may have lost their server.
my %load;
sub clients_begin
{
	$load{$_} = load_start($node, n => $n, clients => 4, seconds => 3600, db => $_) foreach @dbs;
	sleep $seconds;
	return;
}

sub clients_end
{
	my ($phase, $lost) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $db (@dbs)
	{
		ok(load_running($load{$db}), "$phase: the clients of $db are at work") if !$lost;
		load_finish($load{$db}, stop => 1);
		is(join("\n", load_lies($load{$db}, $lost)), '', "$phase: no wrong answer and no error in $db");
	}
	return;
}

sub extension_version { return $node->safe_psql($_[0], q{SELECT extversion FROM pg_extension WHERE extname = 'artidx'}); }

# ---- the old library, under load ----

clients_begin();
if ($old)
{
	put_library($new);
	my ($rc, $out, $err) = $node->psql('one', 'ALTER EXTENSION artidx UPDATE');
	like($err, qr/could not find function "artidx_version" in file/, 'before the restart the update is refused');
	is(extension_version('one'), '0.1.0', 'and nothing has changed');
	sleep $seconds;
}

# ---- the restart with the new library, the clients in the middle ----

$node->restart;
clients_end('the restart', qr/FATAL:  terminating connection due to administrator command/);
clients_begin();
foreach my $db (@dbs)
{
	all_ready($node, "after the restart, under the old declarations, all indexes of $db are there", $db);
	is(extension_version($db), '0.1.0', 'the catalog is the old one');
	my ($rc, $out, $err) = $node->psql($db, 'SELECT artidx_version()');
	like($err, qr/function artidx_version\(\) does not exist/, 'which lacks what is new');
}

# ---- the update, in one database after the other ----

foreach my $db (@dbs)
{
	my ($rc, $out, $err) = $node->psql($db, 'SET client_min_messages = warning; ALTER EXTENSION artidx UPDATE; CREATE EXTENSION artidx_debug');
	is("$rc$err", '0', "ALTER EXTENSION artidx UPDATE of $db beside its clients");
	is(extension_version($db), $version, "$db is of $version");
	sleep $seconds;
}
clients_end('the update');

# ---- the answers ----

foreach my $db (@dbs)
{
	load_verify($node, $n, $db, $db);
}
is(join("\n", server_crashes($node, 0)), '', 'nothing crashed');
$node->stop;
done_testing();
