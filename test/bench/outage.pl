#!/usr/bin/perl
#
# test/bench/outage.pl
#	  What outage.sh measured, as lines of a CSV file and a table.
#
#	outage.pl collect RUN KILLED BEFORE AFTER LOG...	pgbench's logs, by their names
#	outage.pl table CSV ALONE		when look-ups were back
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

my $what = shift @ARGV // '';
if    ($what eq 'collect' && @ARGV > 4) { collect(@ARGV); }
elsif ($what eq 'table' && @ARGV == 2)  { table(@ARGV); }
else { die "outage.pl collect RUN KILLED BEFORE AFTER LOG... | table CSV ALONE\n"; }
