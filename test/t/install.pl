# What "make install" puts where, and takes away again; "make help"; "make
# installcheck" as root.
use strict;
use warnings;

use File::Basename qw(dirname);
use PostgreSQL::Test::Utils;
use Test::More;

my $top = dirname(__FILE__) . '/../..';
my $to = PostgreSQL::Test::Utils::tempdir();
my $docs = $to . `pg_config --docdir` =~ s/\s+$//r . '/artidx';
my $make = "make -s --no-print-directory -C '$top'";

my $said = `$make install DESTDIR='$to' 2>&1`;
is($?, 0, 'make install') or diag($said);
my @sources = map { s{^\Q$top\E/}{}r } "$top/README.md", "$top/CHANGELOG.md", "$top/LICENSE", glob("$top/doc/*.md $top/doc/*.yml $top/doc/*.json $top/doc/figures/*.svg");
foreach my $file (@sources)
{
	is(-s "$docs/$file", -s "$top/$file", "$file is installed");
}

# What a document that is installed links to is installed, or is not a file.
foreach my $file (grep { /\.md$/ } @sources)
{
	my $dir = dirname("$docs/$file");
	foreach my $link (slurp_file("$docs/$file") =~ /\]\(([^)#\s]+)[^)]*\)/g)
	{
		next if $link =~ /^\w+:/ || $link =~ /^test\//;
		ok(-e "$dir/$link", "$file links to $link");
	}
}

$said = `$make uninstall DESTDIR='$to' 2>&1`;
is($?, 0, 'make uninstall') or diag($said);
is(join(' ', grep { -f } `find '$to' -type f` =~ /(.+)/g), '', 'nothing is left');

like(`$make help`, qr/^make && sudo make install.*^make check .*^make test .*^make demo /ms, 'make help lists the targets');

# An id that answers 0 stands for root.
my $bin = PostgreSQL::Test::Utils::tempdir();
append_to_file("$bin/id", "#!/bin/sh\necho 0\n");
chmod(0755, "$bin/id") or die "chmod: $!";
$said = `PATH='$bin:$ENV{PATH}' $make installcheck REGRESS= ISOLATION= TAP_TESTS= 2>&1`;
isnt($?, 0, 'make installcheck as root fails');
like($said, qr/refuse to run as root/, 'and says why');

done_testing();
