#!/usr/bin/perl
#
# test/gcov.pl SRC UNCOVERED [key=value ...] < JSON
#	  Lines and branches of the source that ran, by room, from gcov --json-format --stdout -b.
#
# SRC is the folder src.  A line of a header, or of a function that the compiler copies into its callers, is
# in many places of the program.  It is counted once: a line or a branch ran if it ran in one of them.  Where
# copies differ in the number of branches, for a constant decides some, those with the most count.  Branches
# of an assertion are left out, since one side of it is a panic.  Lines that did not run go to the file
# UNCOVERED, "FILE:LINE:TEXT".
#
#	only=REGEX	these files, by their path below src
#	lines=N		per cent of lines, and
#	branches=N	of branches, that is the goal; files below that are named
#	list=FILE	why the rest of a file does not run, "FILE reason" a line
#
# The last line is "lines N of M, P %; branches ...".  The exit status is 1 below a goal.
#
use strict;
use warnings;

use JSON::PP;

my ($src, $uncovered, @rest) = @ARGV;
my %arg = (only => '.', lines => 0, branches => 0, map { split /=/, $_, 2 } @rest);
my $assertion = qr/\b(?:AX_ASSERT|AX_ENSURE|AX_POINT|Assert|AssertMacro|StaticAssert\w*)\b/;
my %text;     # file => [ its lines ]
my %lines;    # file => line => count
my %branches; # file => line => [ count of each ]

sub text_of
{
	my ($file) = @_;
	return $text{$file} //= do {
		open my $in, '<', "$src/$file" or die "$src/$file: $!\n";
		[ '', <$in> ];
	};
}

sub count_file
{
	my ($file, $f) = @_;

	foreach my $l (@{ $f->{lines} })
	{
		my $n = $l->{line_number};
		$lines{$file}{$n} = ($lines{$file}{$n} // 0) + $l->{count};
		my @b = @{ $l->{branches} // [] } or next;
		next if (text_of($file)->[$n] // '') =~ $assertion;
		my $sum = $branches{$file}{$n} //= [];
		next if @b < @$sum;
		@$sum = (0) x @b if @b > @$sum;
		$sum->[$_] += $b[$_]{count} foreach 0 .. $#b;
	}
}

while (my $doc = <STDIN>)
{
	next if $doc !~ /^\{/;
	foreach my $f (@{ decode_json($doc)->{files} })
	{
		my ($file) = "/$f->{file}" =~ m{^.*/src/(.*)$} or next;
		count_file($file, $f) if $file =~ /$arg{only}/;
	}
}
die "no file of src matches $arg{only}\n" if !%lines;

# [ lines, that ran, branches, that ran ]
sub sums
{
	my @sum = (0) x 4;

	foreach my $file (@_)
	{
		$sum[0] += keys %{ $lines{$file} };
		$sum[1] += grep { $_ > 0 } values %{ $lines{$file} };
		foreach my $on_line (values %{ $branches{$file} // {} })
		{
			$sum[2] += @$on_line;
			$sum[3] += grep { $_ > 0 } @$on_line;
		}
	}
	return @sum;
}

# why the rest of a file does not run
my %why;
if ($arg{list})
{
	open my $in, '<', $arg{list} or die "$arg{list}: $!\n";
	while (<$in>)
	{
		next if /^#|^\s*$/;
		my ($file, $reason) = /^(\S+)\s+(.*\S)\s*$/ or die "$arg{list}:$.: not FILE and a reason\n";
		-f "$src/$file" or die "$arg{list}:$.: no file $file\n";
		$why{$file} = $reason;
	}
}

sub percent { return $_[1] ? 100 * $_[0] / $_[1] : 100 }

sub line
{
	my ($name, @s) = @_;
	return sprintf "%-34s %6d lines %6.1f %%  %6d branches %6.1f %%\n", $name, $s[0], percent(@s[ 1, 0 ]), $s[2], percent(@s[ 3, 2 ]);
}

my %rooms;
push @{ $rooms{ m{^(.*)/} ? $1 : '.' } }, $_ foreach sort keys %lines;
print line($_, sums(@{ $rooms{$_} })) foreach sort keys %rooms;

print "files below $arg{lines} % of lines" . ($arg{branches} ? " or $arg{branches} % of branches" : '') . ":\n";
foreach my $file (sort keys %lines)
{
	my @s = sums($file);
	next if percent(@s[ 1, 0 ]) >= $arg{lines} && percent(@s[ 3, 2 ]) >= $arg{branches};
	print '  ', line($file, @s) =~ s/\n//r, '  ', $why{$file} // 'no reason is given', "\n";
}

open my $out, '>>', $uncovered or die "$uncovered: $!\n";
foreach my $file (sort keys %lines)
{
	foreach my $n (sort { $a <=> $b } grep { $lines{$file}{$_} == 0 } keys %{ $lines{$file} })
	{
		print $out "$file:$n:" . (text_of($file)->[$n] // "\n");
	}
}
close $out or die "$uncovered: $!\n";

my @all = sums(keys %lines);
printf "lines %d of %d, %.1f %%; branches %d of %d, %.1f %%\n", $all[1], $all[0], percent(@all[ 1, 0 ]), $all[3], $all[2], percent(@all[ 3, 2 ]);
exit 1 if percent(@all[ 1, 0 ]) < $arg{lines} || percent(@all[ 3, 2 ]) < $arg{branches};
