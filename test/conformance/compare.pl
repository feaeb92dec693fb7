#!/usr/bin/perl
#
# test/conformance/compare.pl
#	  Compares the results of one suite, run with btree and run with art, and
#	  judges every difference by what is written in explained/.
#
# usage: compare.pl [--accept] SUITE SCHEDULE RESULTS-BTREE RESULTS-ART EXPLAINED OUT
#
# Prints every test that differs and "N of M identical"; the differences
# themselves go to OUT/SUITE/TEST.diff.  Exits with 1 when a test differs that
# nobody explained, differs in another way than was explained, or has no
# result.  --accept writes the differences into EXPLAINED, under the words that
# are there already or under words to be filled in.  EXPLAINED may be DIR:DIR: what
# the first does not explain is as in the second, and only the first is written.
#
# Two results are equal when they are after art was renamed to btree, and the
# NOTICE left out that says that an index is made again as one of btree; blanks at
# the end of a line do not count, and runs of blanks and dashes count as one in a paragraph that names either: psql makes
# columns as wide as their longest value.
#
use strict;
use warnings;

my $accept = @ARGV && $ARGV[0] eq '--accept' ? shift : 0;
die "usage: compare.pl [--accept] SUITE SCHEDULE RESULTS-BTREE RESULTS-ART EXPLAINED OUT\n"
  unless @ARGV == 6;
my ($suite, $schedule, $base, $art, $explained, $out) = @ARGV;
my @explained = split(/:/, $explained);

$explained = $explained[0];

sub slurp
{
	my ($file) = @_;

	open(my $fh, '<:raw', $file) or return undef;
	local $/;
	my $text = <$fh>;
	close $fh;
	return $text;
}

sub spew
{
	my ($file, $text) = @_;

	open(my $fh, '>:raw', $file) or die "$file: $!\n";
	print $fh $text;
	close $fh or die "$file: $!\n";
}

# Without what artidx tells of an index that it makes again.
sub told
{
	my ($text) = @_;

	$text =~ s/^(?:s\d+: )?NOTICE:  index "[^"]+" is rebuilt with access method "btree"\nDETAIL:  .*\nHINT:  .*\n//gm;
	return $text;
}

# Lines with art renamed, and with runs of blanks and dashes as one.
sub renamed
{
	my ($text) = @_;

	$text = told($text);
	$text =~ s/\bart\b/btree/g;
	return $text;
}

sub squeezed
{
	my ($line) = @_;

	$line =~ s/--+/-/g;
	$line =~ s/[ \t]+/ /g;
	$line =~ s/ $//;
	return $line;
}

# For every line: is it in a paragraph that names one of them?  Or a line that
# psql makes as wide as the plan below it?
sub listing
{
	my ($text) = @_;
	my @flags;
	my $start = 0;
	my $names = 0;
	my @lines = split(/\n/, $text, -1);

	foreach my $i (0 .. $#lines + 1)
	{
		if ($i > $#lines || $lines[$i] =~ /^\s*$/)
		{
			$flags[$_] = $names foreach ($start .. $i);
			$start = $i + 1;
			$names = 0;
		}
		elsif ($lines[$i] =~ /\b(?:art|btree)\b/)
		{
			$names = 1;
		}
	}
	foreach my $i (0 .. $#lines)
	{
		$flags[$i] = 1 if $lines[$i] =~ /^ *QUERY PLAN *$/ || $lines[$i] =~ /^-+$/;
	}
	return @flags;
}

# The lines that differ, without their numbers, since those move from one minor
# version of the tests to the next; '' when none does.
sub difference
{
	my ($left, $right) = @_;
	my @left = split(/\n/, renamed($left), -1);
	my @right = split(/\n/, renamed($right), -1);
	my @listing = listing(told($right));
	my ($l, $r, $text) = (0, 0, '');
	my @hunks;

	spew("$out/left", join("\n", map { squeezed($_) } @left));
	spew("$out/right", join("\n", map { squeezed($_) } @right));
	foreach my $line (split(/\n/, `diff -a -U0 '$out/left' '$out/right'`))
	{
		next unless $line =~ /^\@\@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? \@\@/;
		my ($ls, $ln, $rs, $rn) = ($1, $2 // 1, $3, $4 // 1);

		# without lines of its own a side names the line before
		push @hunks, [ $ln ? $ls - 1 : $ls, $ln, $rn ? $rs - 1 : $rs, $rn ];
	}
	die "diff failed\n" if $? >> 8 > 1;
	unlink("$out/left", "$out/right");

	foreach my $h (@hunks, [ scalar(@left), 0, scalar(@right), 0 ])
	{
		# the lines between two hunks are equal but for their blanks
		for (; $l < $h->[0]; $l++, $r++)
		{
			next if $listing[$r] || $left[$l] =~ s/[ \t]+$//r eq $right[$r] =~ s/[ \t]+$//r;
			$text .= "\@\@\n-$left[$l]\n+$right[$r]\n";
		}
		die "differences out of step\n" unless $r == $h->[2];
		next unless $h->[1] || $h->[3];
		$text .= "\@\@\n";
		$text .= "-$left[$l++]\n" for (1 .. $h->[1]);
		$text .= "+$right[$r++]\n" for (1 .. $h->[3]);
	}
	# the first OIDs that a cluster gives out
	$text =~ s/\b16[34]\d\d\b/OID/g;
	return $text;
}

# An explanation: "class:" and "why:" lines, an empty line, the difference.
sub explanation
{
	my ($test) = @_;
	my %e;
	my ($file) = grep { -f $_ } map { "$_/$suite/$test" } @explained;

	return undef unless defined $file;
	my $text = slurp($file);
	my ($head, $diff) = split(/\n\n/, $text, 2);
	$e{head} = $head;
	$e{diff} = defined $diff ? $diff : '';
	($e{class}) = $head =~ /^class:\s*(.*)$/m;
	$e{why} = join(' ', $head =~ /^why:\s*(.*)$/mg);
	die "$file: class: and why: are missing\n"
	  unless defined $e{class} && $e{why} ne '';
	$e{own} = $file eq "$explained/$suite/$test";
	return \%e;
}

my @tests;
my %known;

foreach my $line (split /\n/, slurp($schedule) // die "$schedule: $!\n")
{
	push @tests, split(' ', $1) if $line =~ /^test:\s*(.*)/;
}
die "no test in $schedule\n" unless @tests;

mkdir $_ foreach ($out, "$out/$suite", "$explained", "$explained/$suite");

my ($identical, $raw, $bad, @lines) = (0, 0, 0);
my %classes;

foreach my $test (@tests)
{
	my $left = slurp("$base/$test.out");
	my $right = slurp("$art/$test.out");
	my $e = explanation($test);

	$known{$test} = 1;
	if (!defined $left || !defined $right)
	{
		push @lines, [ $test, 'NO RESULT', '' ];
		$bad++;
		next;
	}
	$raw++ if $left eq $right;
	my $diff = difference($left, $right);

	if ($diff eq '')
	{
		$identical++;
		if ($e && $e->{own})
		{
			push @lines, [ $test, 'identical', "no longer needs its explanation" ];
			unlink("$explained/$suite/$test") if $accept;
		}
		next;
	}

	spew("$out/$suite/$test.diff", $diff);
	if ($accept && !($e && !$e->{own} && $e->{diff} eq $diff))
	{
		spew("$explained/$suite/$test",
			($e ? $e->{head} : "class: UNKNOWN\nwhy: UNKNOWN") . "\n\n" . $diff);
		$e = explanation($test);
	}
	if (!$e || $e->{class} eq 'UNKNOWN')
	{
		push @lines, [ $test, 'NOT EXPLAINED', "$out/$suite/$test.diff" ];
		$bad++;
	}
	elsif ($e->{diff} ne $diff)
	{
		push @lines, [ $test, 'OTHER THAN EXPLAINED', "$out/$suite/$test.diff" ];
		spew("$out/$suite/$test.explained", $e->{diff});
		$bad++;
	}
	else
	{
		push @lines, [ $test, $e->{class}, $e->{why} ];
		$classes{ $e->{class} }++;
	}
}

foreach my $file (glob("$explained/$suite/*"))
{
	my ($test) = $file =~ m{([^/]+)$};

	print "# $file explains a test that the schedule does not have\n"
	  unless $known{$test};
}
printf "%-28s %s%s\n", $_->[0], $_->[1], $_->[2] eq '' ? '' : ": $_->[2]"
  foreach @lines;
printf "## %s: %d of %d identical (%d without renaming art), %d explained%s, %d not\n",
  $suite, $identical, scalar(@tests), $raw,
  scalar(@tests) - $identical - $bad,
  %classes
  ? ' (' . join(', ', map { "$_ $classes{$_}" } sort keys %classes) . ')'
  : '',
  $bad;
exit($bad ? 1 : 0);
