# The table of doc/keys.md says what this server's types do: how their keys are kept, whether an
# index-only scan gives each value as it was, which values are equal and printed differently, whose class
# is no order.  Rows of types that the server has not, as those of Debian's extensions, are left alone;
# "make applications" has those.
# TYPE_TABLE=write writes the rows into the copy of the document that the test has.
use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;
use ArtTypes;

my $file = "$FindBin::Bin/../../doc/keys.md";
my $head = "| type | of | keys | index-only scan | equal, and printed differently | else |\n|---|---|---|---|---|---|\n";

my $node = PostgreSQL::Test::Cluster->new('type_table');
$node->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
art_conf($node, jit => 'off', fsync => 'off');
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION artidx');
my ($types, $missing) = type_setup($node, 'postgres');
note "not on this server: @$missing" if @$missing;
$node->safe_psql('postgres', q{SELECT artidx_mirror_opclass('gen.' || opcname) FROM pg_opclass
	WHERE opcmethod = 403 AND opcnamespace = 'gen'::regnamespace});
my @rows = type_table($node, 'postgres', $types);
$node->stop;

my $doc = slurp_file($file);
my ($before, $table, $after) = $doc =~ /^(.*\n\Q$head\E)((?:\|[^\n]*\n)*)(.*)$/s or die "no table in $file";
my %said = map { (split / \| /)[0] => $_ } split /\n/, $table;
my $line = sub { "| " . join(" | ", @{ $_[0] }) . " |" };
# contrib's versions are the server's
my $plain = sub { ($_[0] // '') =~ s/^(\| [^|]* \| [a-z]+) [\d.]+ /$1 /r };
my %now = map { my $l = $line->($_); (split / \| /, $l)[0] => $l } @rows;

if (($ENV{TYPE_TABLE} // '') eq 'write')
{
	my %all = (%said, %now);
	my $rank = sub { $_[0] =~ /\| PostgreSQL \|/ ? 0 : $_[0] =~ /\| (citext|cube|hstore|isn|ltree|seg) / ? 1 : 2 };
	my $of = sub { (split / \| /, $_[0])[1] };
	my @sorted = sort { $rank->($a) <=> $rank->($b) || ($rank->($a) ? $of->($a) cmp $of->($b) : 0) || $a cmp $b } values %all;
	open(my $fh, '>', $file) or die "$file: $!";
	print $fh $before, map({ "$_\n" } @sorted), $after;
	close($fh);
	note 'written';
	%said = %all;
}
is($plain->($said{$_}), $plain->($now{$_}), "doc/keys.md: $_") for sort keys %now;
# and has no row of core's that is not a type here
is(join(' ', grep { $said{$_} =~ /\| PostgreSQL \|/ && !$now{$_} } sort keys %said), '', 'no row is left of another time')
  unless grep { /^(icu|libc)$/ } @$missing;
ok(!(grep { /not exact/ } values %now), 'every index-only scan is exact');
done_testing();
