# Scripts by psql whose answers are taken apart: what the tests with twins
# (one side btree, the other art) compare.
package ArtTwin;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Utils;

our @EXPORT = qw(twin_start twin_answers twin_marked twin_normal twin_shown twin_miscount);

# what separates rows and fields, and ends an answer
my ($mark, $rs, $fs) = ('<m>', '<r>', '<f>');

# A statement whose answer is wanted under a name.  The settings before it are
# put back after it: "indexscan" for enable_indexscan = off, or "name = value".
sub twin_marked
{
	my ($name, $sql, @settings) = @_;
	my ($before, $after) = ('', '');

	for my $s (@settings)
	{
		my ($guc, $value) = $s =~ /^(\S+) = (.*)$/ ? ($1, $2) : ("enable_$s", 'off');

		$before .= "SET $guc = $value;\n";
		$after .= "RESET $guc;\n";
	}
	return "$before$sql;\n\\echo $mark$name :SQLSTATE :ROW_COUNT :LAST_ERROR_MESSAGE\n$after";
}

# Run a script in the background, in a session with these settings.
sub twin_start
{
	my ($node, $db, $name, $script, %settings) = @_;
	my $file = $node->basedir . "/$name";

	local $ENV{PGOPTIONS} = join(' ', map { "-c $_=$settings{$_}" } sort keys %settings);

	unlink "$file.sql";
	append_to_file("$file.sql", $script);
	return {
		file => $file,
		h => IPC::Run::start(
			[
				'psql', '-XAtq', '-R', $rs, '-F', $fs, '-P', 'null=<null>',
				'-f', "$file.sql", '-d', $node->connstr($db)
			],
			'<', \undef, '>', "$file.out", '2>', "$file.err")
	};
}

# Wait for it: the answers by name, each [error or '', [rows], row count]
sub twin_answers
{
	my ($run) = @_;
	my (%got, $text);

	$run->{h}->finish;
	$text = slurp_file("$run->{file}.out");
	while ($text =~ /\G(.*?)$mark(\S+) (\S+) (\d+)([^\n]*)\n/gs)
	{
		my ($body, $name, $state, $count, $error) = ($1, $2, $3, $4, $5);

		$body =~ s/\n\z//;
		$got{$name} = [
			$state eq '00000' ? '' : "$state$error",
			# a row of nothing prints as no row does
			[ $body eq '' ? ('') x ($state eq '00000' ? $count : 0) : split /$rs/, $body, -1 ],
			$count ];
	}
	$got{end} //= [ 'the script did not come to its end: ' . substr(slurp_file("$run->{file}.err"), -600), [], 0 ];
	unlink map { "$run->{file}.$_" } qw(out err sql);
	return \%got;
}

# The fields at some positions, by the classes of equal values, or all if
# there are no positions given.
sub twin_normal
{
	my ($row, $classes, $only) = @_;
	my @f = split /$fs/, $row, -1;

	@f = ('') unless @f;
	for my $i (0 .. $#f)
	{
		$f[$i] = $classes->[$i]{ $f[$i] } // $f[$i] if $classes->[$i];
	}
	return join($fs, $only ? @f[@$only] : @f);
}

sub twin_shown
{
	my ($row) = @_;

	$row =~ s/$fs/ | /g;
	return length($row) > 120 ? substr($row, 0, 120) . '...' : $row;
}

# What is not as often in one list as in the other, or undef.
sub twin_miscount
{
	my ($b, $a, $normal) = @_;
	my %n;

	$normal //= sub { $_[0] };
	$n{ $normal->($_) }++ for @$b;
	$n{ $normal->($_) }-- for @$a;
	for my $row (sort keys %n)
	{
		return sprintf('%s comes %d times %s by art', twin_shown($row), abs($n{$row}), $n{$row} > 0 ? 'less' : 'more')
		  if $n{$row};
	}
	return;
}

1;
