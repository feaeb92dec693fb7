#!/usr/bin/perl
#
# test/bench/outage.pl
#	  What outage.sh measured, as lines of a CSV file, a table and a plot.
#
#	outage.pl collect RUN KILLED BEFORE AFTER LOG...	pgbench's logs, by their names
#	outage.pl table CSV ALONE		when look-ups were back
#	outage.pl plot CSV				throughput over time, as SVG
#
use strict;
use warnings;

# Look-ups are back when each of so many tenths in a row has so much of what there
# was before the kill.
my $tenths = 5;
my $share = 0.5;

# { run => { time => [lookups, inserts] } }, and the runs in order
sub read_csv
{
	my ($file) = @_;
	my (%runs, @order);

	open my $in, '<', $file or die "$file: $!\n";
	<$in>;
	while (<$in>)
	{
		my ($run, $time, @n) = /^"([^"]*)",([-\d.]+),(\d+),(\d+)$/ or die "$file: $_";
		push @order, $run if !$runs{$run};
		$runs{$run}{ sprintf '%.1f', $time } = \@n;
	}
	return (\%runs, @order);
}

sub collect
{
	my ($run, $killed, $before, $after, @logs) = @_;
	my %n;

	foreach my $log (@logs)
	{
		my $kind = $log =~ m{/insert\.[^/]*$} ? 1 : 0;
		open my $in, '<', $log or die "$log: $!\n";
		while (<$in>)
		{
			# client, transaction, microseconds, script, second, microsecond
			my @f = split;
			next if @f < 6 || $f[2] =~ /\D/;
			my $tenth = int(($f[4] + $f[5] / 1e6 - $killed + $before) * 10);
			$n{$tenth}[$kind]++;
		}
	}
	foreach my $tenth (0 .. ($before + $after) * 10 - 1)
	{
		printf "\"%s\",%.1f,%d,%d\n", $run, $tenth / 10 - $before, map { $n{$tenth}[$_] // 0 } 0, 1;
	}
	return;
}

# (before, first, back): look-ups a second, and seconds after the kill
sub outage
{
	my ($r, $kind) = @_;
	my @times = sort { $a <=> $b } keys %$r;
	my @before = grep { $_ < 0 && $_ >= -3 } @times;
	my @after = grep { $_ >= 0 } @times;
	my $before = 0;
	my ($first, $back);

	$before += $r->{$_}[$kind] / @before foreach @before;

	# what ended before the connection was lost is not after the crash
	shift @after while @after && $r->{ $after[0] }[$kind] > 0;
	foreach my $i (0 .. $#after)
	{
		$first //= $after[$i] if $r->{ $after[$i] }[$kind] > 0;
		next if defined $back || $i + $tenths > @after;
		$back = $after[$i]
		  if !grep { $r->{$_}[$kind] < $share * $before } @after[$i .. $i + $tenths - 1];
	}
	return ($before * 10, $first, $back);
}

sub table
{
	my ($csv, $alone) = @_;
	my ($runs, @order) = read_csv($csv);
	my $format = "%-24s %10s %8s %8s %10s %8s %8s\n";

	printf $format, '', 'look-ups/s', 'first', 'back', 'inserts/s', 'first', 'back';
	my %back;
	foreach my $run (@order)
	{
		printf $format, $run, map { my @o = outage($runs->{$run}, $_);
			$back{$run} = $o[2] if $_ == 0;
			(sprintf('%.0f', $o[0]), map { defined $_ ? "$_ s" : '-' } @o[ 1, 2 ]) } 0, 1;
	}
	open my $in, '<', $alone or die "$alone: $!\n";
	my ($key, $all) = split ' ', <$in> // '';
	printf "given up, without clients: the key's index after %s s, all after %s s\n", $key, $all
	  if defined $all;
	foreach my $run (grep { /^art/ && defined $back{$_} } @order)
	{
		my ($peer, $time) = $run =~ /kept/ ? ("btree's look-ups", $back{btree}) : ('all builds alone', $all);

		printf "%s: look-ups are back after %.2f times the time of %s\n", $run, $back{$run} / $time, $peer
		  if $time;
	}
	return;
}

sub plot
{
	my ($csv) = @_;
	my ($runs, @order) = read_csv($csv);
	my @colours = ('#1f77b4', '#d62728', '#ff9896', '#2ca02c');
	my ($w, $h, $left, $top) = (720, 280, 70, 40);
	my @times = sort { $a <=> $b } keys %{ $runs->{ $order[0] } };
	my $max = 1;
	my $x = sub { $left + $w * ($_[0] - $times[0]) / (($times[-1] - $times[0]) || 1) };
	my $y = sub { $top + $h * (1 - ($_[0] > 1 ? log($_[0]) : 0) / log($max * 2)) };

	foreach my $r (values %$runs) { foreach (values %$r) { $max = $_->[0] * 10 if $_->[0] * 10 > $max; } }
	print qq{<svg xmlns="http://www.w3.org/2000/svg" width="@{[$left + $w + 20]}" height="@{[$top + $h + 60]}" font-family="sans-serif" font-size="12">\n};
	print qq{<rect width="100%" height="100%" fill="white"/>\n<text x="$left" y="20" font-size="14">Look-ups a second; a backend is killed at 0 s</text>\n};
	for (my $v = 1; $v <= $max * 2; $v *= 10)
	{
		printf qq{<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%d</text>\n},
		  $left, $left + $w, ($y->($v)) x 2, $left - 6, $y->($v) + 4, $v;
	}
	foreach my $t (grep { $_ == int($_) && $_ % 5 == 0 } @times)
	{
		printf qq{<text x="%.1f" y="%d" text-anchor="middle">%d</text>\n}, $x->($t), $top + $h + 18, $t;
	}
	foreach my $i (0 .. $#order)
	{
		my $r = $runs->{ $order[$i] };
		printf qq{<polyline fill="none" stroke="%s" points="%s"/>\n}, $colours[ $i % @colours ],
		  join ' ', map { sprintf '%.1f,%.1f', $x->($_), $y->($r->{$_}[0] * 10) } sort { $a <=> $b } keys %$r;
		printf qq{<text x="%d" y="%d" fill="%s">%s</text>\n}, $left + 160 * $i, $top + $h + 45, $colours[ $i % @colours ], $order[$i];
	}
	print "</svg>\n";
	return;
}

my $what = shift @ARGV // '';
if    ($what eq 'collect' && @ARGV > 4) { collect(@ARGV); }
elsif ($what eq 'table' && @ARGV == 2)  { table(@ARGV); }
elsif ($what eq 'plot' && @ARGV == 1)   { plot(@ARGV); }
else { die "outage.pl collect RUN KILLED BEFORE AFTER LOG... | table CSV ALONE | plot CSV\n"; }
