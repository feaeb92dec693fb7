#!/usr/bin/perl
#
# test/sizes.pl
#	  How large the source is, room by room, and what stands in it more than once.
#
#	sizes.pl rooms		a table: lines of code (neither empty nor comment) of each room of
#		src, the share of comments, functions, the lines of the median one and of the
#		longest one, functions of more than 80 lines and of more than seven arguments,
#		words of its README.md
#	sizes.pl repeats [N]	places where N lines of code or more (10) are the same but for
#		space and comments; lines of braces, includes and declarations of externs do
#		not count
#
# From the top of the tree.  Prints to standard output; "make sizes" runs both.
#
use strict;
use warnings;

# The lines of a file without comments, and how many lines have nothing but a comment.
sub code_and_comments
{
	my ($file) = @_;
	local $/;
	open my $in, '<', $file or die "$file: $!\n";
	my $text = <$in>;
	my $before = () = $text =~ /^.*\S.*$/mg;

	$text =~ s{("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|/\*.*?\*/|//[^\n]*}
		{defined $1 ? $1 : $& =~ s/[^\n]//gr}gse;
	my @lines = split /\n/, $text;
	my $code = grep { /\S/ } @lines;
	return (\@lines, $before - $code);
}

# [lines, arguments] of each function of a file in pgindent's format.
sub functions
{
	my ($lines) = @_;
	my @found;
	my ($begin, $head);

	for my $i (0 .. $#$lines)
	{
		if (!defined $begin && $lines->[$i] eq '{')
		{
			my $j = $i - 1;

			$head = '';
			$head = $lines->[ $j-- ] . ' ' . $head
			  while $j >= 0 && $lines->[$j] =~ /\S/ && $lines->[$j] !~ /^[}#]|;\s*$/;
			$begin = $j + 1;
		}
		elsif (defined $begin && $lines->[$i] =~ /^\}/)
		{
			if ($lines->[$i] eq '}' && $head =~ /\w\s*\((.*)\)\s*$/)
			{
				my $arguments = $1;
				1 while $arguments =~ s/\([^()]*\)//g;
				push @found, [ $i - $begin + 1, 1 + ($arguments =~ tr/,//) ];
			}
			undef $begin;
		}
	}
	return @found;
}

sub sources
{
	my ($where) = @_;

	return grep { /\.[ch]$/ } split /\n/, `git ls-files -- $where`;
}

sub words
{
	my ($file) = @_;

	return '' unless -f $file;
	my ($n) = `wc -w <$file` =~ /(\d+)/;
	return $n;
}

sub rooms
{
	my %in;
	my $format = "%-18s %7s %6s %8s %10s %6s %7s %4s %4s %7s\n";
	my %sum;

	push @{ $in{ m{^src/(.*)/[^/]+$} ? $1 : '(handler, module)' } }, $_ for sources('src');
	printf $format, 'room', 'files', 'code', 'comments', 'functions', 'median', 'longest',
	  '>80', '>7', 'README';
	for my $room (sort(keys %in), 'all')
	{
		my ($code, $comments, @functions) = (0, 0);
		my @files = $room eq 'all' ? map { @$_ } values %in : @{ $in{$room} };

		for my $file (@files)
		{
			my ($lines, $n) = code_and_comments($file);

			$code += grep { /\S/ } @$lines;
			$comments += $n;
			push @functions, functions($lines);
		}
		my @long = sort { $a <=> $b } map { $_->[0] } @functions;
		printf $format, $room, scalar @files, $code,
		  sprintf('%d %%', 100 * $comments / ($code + $comments)), scalar @functions,
		  @long ? ($long[ @long / 2 ], $long[-1]) : ('-', '-'),
		  scalar(grep { $_->[0] > 80 } @functions), scalar(grep { $_->[1] > 7 } @functions),
		  $room eq 'all' ? words('src/README.md') : words("src/$room/README.md");
	}
	return;
}

# Lines that say something, as [file, number, text without space].
sub telling
{
	my ($file) = @_;
	my ($lines) = code_and_comments($file);
	my @telling;

	for my $i (0 .. $#$lines)
	{
		my $line = $lines->[$i] =~ s/\s+//gr;

		next if $line =~ /^[{}();]*$/ || $line =~ /^#(include|if|else|endif)/ || $line =~ /^extern/;
		push @telling, [ $file, $i + 1, $line ];
	}
	return @telling;
}

sub repeats
{
	my ($least) = @_;
	my (%at, @all, %done);
	my $found = 0;

	for my $file (sources('src'))
	{
		push @all, telling($file);
		push @all, [ $file, 0, "end of $file" ];
	}
	for my $i (0 .. $#all - $least)
	{
		my $key = join "\n", map { $_->[2] } @all[ $i .. $i + $least - 1 ];
		push @{ $at{$key} }, $i;
	}
	for my $i (0 .. $#all - $least)
	{
		my $key = join "\n", map { $_->[2] } @all[ $i .. $i + $least - 1 ];

		for my $j (grep { $_ > $i } @{ $at{$key} })
		{
			next if $done{"$i $j"};
			my $n = 0;

			while ($j + $n <= $#all && $i + $n < $j && $all[ $i + $n ][2] eq $all[ $j + $n ][2])
			{
				$done{ ($i + $n) . ' ' . ($j + $n) } = 1;
				$n++;
			}
			next if $n < $least;
			$found++;
			printf "%d lines: %s:%d and %s:%d\n", $n, @{ $all[$i] }[ 0, 1 ], @{ $all[$j] }[ 0, 1 ];
		}
	}
	print "repeats of $least lines or more: $found\n";
	return;
}

my $what = shift // '';

if ($what eq 'rooms') { rooms() }
elsif ($what eq 'repeats') { repeats(shift // 10) }
else { die "sizes.pl rooms | repeats [N]\n" }
