#!/usr/bin/perl
#
# test/bench/contention.pl
#	  What contention.sh makes of pgbench's logs.
#
#	contention.pl cell < LOG		the values of one cell; nothing if nothing ended
#	contention.pl table FILE		ratios to nbtree, stalls, who wins
#	contention.pl rises FILE		rising indexes beside nbtree and no index
#
# FILE is what contention.sh writes: lines of comment, the names of the columns, and a
# line a cell, of which "part" says whether it is of the cells, the stalls or the rises.
#
use strict;
use warnings;

my $TIE = 0.02;					# throughput nearer than this is the same

# ---- one cell -----------------------------------------------------------------

# The log has a line a transaction: client, number, microseconds, script, and
# when it ended.  The time of the cell is from the beginning of the first to the
# end of the last, without connecting.
sub cell
{
	my @us;
	my ($begin, $end);

	while (<STDIN>)
	{
		my (undef, undef, $us, undef, $s, $frac) = split ' ';
		die "not pgbench's log: $_" unless defined $frac && "$us$s$frac" =~ /^\d+$/;
		my $at = $s + $frac / 1e6;
		push @us, $us;
		$begin = $at - $us / 1e6 if !defined $begin || $at - $us / 1e6 < $begin;
		$end = $at if !defined $end || $at > $end;
	}
	return unless @us > 1;
	@us = sort { $a <=> $b } @us;
	my @q = map { $us[ int($_ * $#us) ] } 0.5, 0.99, 0.999, 1;
	printf "%.1f\t%s\t%d\t%d\n", @us / ($end - $begin), join("\t", @q),
	  scalar(grep { $_ > 100_000 } @us), scalar @us;
}

# ---- reading --------------------------------------------------------------------

# the lines of one part, {column => value} each
sub read_part
{
	my ($file, $part) = @_;
	my (@names, @lines);

	open my $in, '<', $file or die "$file: $!\n";
	while (<$in>)
	{
		chomp;
		next if /^#/;
		my %c;
		my @values = split /\t/;
		@names = @values, next if !@names;
		@c{@names} = @values;
		push @lines, \%c if $c{part} eq $part;
	}
	return @lines;
}

# {workload}{rows}{clients}{engine} = {tps, p50_us, ...}, and the orders in which
# they came up
sub read_cells
{
	my ($file, $part) = @_;
	my (%cell, %seen, %order);

	foreach my $line (read_part($file, $part))
	{
		my %c = %$line;
		$cell{ $c{workload} }{ $c{rows} }{ $c{clients} }{ $c{engine} } = \%c;
		for my $d (qw(workload rows clients engine))
		{
			push @{ $order{$d} }, $c{$d} unless $seen{$d}{ $c{$d} }++;
		}
	}
	$order{$_} = [ sort { $a <=> $b } @{ $order{$_} // [] } ] for qw(rows clients);
	$order{engine} =
	  [ sort { rank($a) cmp rank($b) } @{ $order{engine} // [] } ];
	return (\%cell, \%order);
}

# nbtree, then art's, then btree's, then hydra's
sub rank
{
	my ($e) = @_;
	return ($e eq 'nbtree' ? 0 : $e =~ /^art/ ? 1 : $e =~ /^btree/ ? 2 : 3) . $e;
}

sub geomean
{
	my $sum = 0;
	return undef unless @_;
	$sum += log($_) for @_;
	return exp($sum / @_);
}

sub title
{
	my ($w, $rows) = @_;
	my %t = (
		tail    => 'inserts at the tail',
		hot     => 'updates of a hot range',
		uniform => 'uniform, 50 % reads');
	my $t = $t{$w} // ($w =~ /^skew(\d+)$/ ? "skewed, $1 % reads" : $w);
	return "$t, $rows row" . ($rows == 1 ? '' : 's');
}

# ---- the tables --------------------------------------------------------------------

sub table
{
	my ($file) = @_;
	my ($cell, $order) = read_cells($file, 'cells');
	my @engines = @{ $order->{engine} };
	my @others = grep { $_ ne 'nbtree' } @engines;
	my (%all, %by, $left_out);

	die "no nbtree in $file: there is nothing to compare with\n" if @others == @engines;
	print "Throughput / p99 latency as multiples of nbtree's (more is better / less is better)\n\n";
	printf "%-36s %7s %9s %9s", 'statements', 'clients', 'nbtree/s', 'p99 us';
	printf " %12s", $_ for @others;
	print "\n";
	for my $w (@{ $order->{workload} })
	{
		for my $rows (@{ $order->{rows} })
		{
			for my $clients (@{ $order->{clients} })
			{
				my $c = $cell->{$w}{$rows}{$clients} or next;
				my $nb = $c->{nbtree};
				printf "%-36s %7d", title($w, $rows), $clients;
				printf " %9s %9s", $nb ? (sprintf('%.0f', $nb->{tps}), $nb->{p99_us}) : ('-', '-');
				# only cells that all have: else one would win by being absent
				my $whole = !grep { !$c->{$_} } @engines;
				$left_out++ unless $whole;
				for my $e (@others)
				{
					if ($nb && $c->{$e})
					{
						my $tps = $c->{$e}{tps} / $nb->{tps};
						my $p99 = $c->{$e}{p99_us} / ($nb->{p99_us} || 1);
						$p99 = 0.001 if $p99 < 0.001;
						printf " %12s", sprintf('%.2f / %.2f', $tps, $p99);
						next unless $whole;
						push @{ $all{$e}{tps} }, $tps;
						push @{ $all{$e}{p99} }, $p99;
						push @{ $by{$w}{$rows}{$e}{tps} }, $tps;
						push @{ $by{$w}{$rows}{$e}{p99} }, $p99;
					}
					else { printf " %12s", '-'; }
				}
				print "\n";
			}
		}
	}

	print "\nThe same, geometric means over the clients\n\n";
	printf "%-63s", '';
	printf " %12s", $_ for @others;
	print "\n";
	for my $w (@{ $order->{workload} })
	{
		for my $rows (@{ $order->{rows} })
		{
			next unless $by{$w}{$rows};
			printf "%-63s", title($w, $rows);
			for my $e (@others)
			{
				my $b = $by{$w}{$rows}{$e};
				printf " %12s", sprintf('%.2f / %.2f', geomean(@{ $b->{tps} }), geomean(@{ $b->{p99} }));
			}
			print "\n";
		}
	}
	if (!%all)
	{
		print "\nno cell that all engines have\n";
		return;
	}
	printf "%-63s", 'all ' . scalar(@{ $all{ $others[0] }{tps} }) . ' cells';
	my (%tps, %p99);
	for my $e (@others)
	{
		$tps{$e} = geomean(@{ $all{$e}{tps} });
		$p99{$e} = geomean(@{ $all{$e}{p99} });
		printf " %12s", sprintf('%.2f / %.2f', $tps{$e}, $p99{$e});
	}
	print "\n";
	print "$left_out cells that some engine lacks are left out of the means\n" if $left_out;
	$tps{nbtree} = $p99{nbtree} = 1;

	stalls($file);

	print "\nThe rule: the engine with the largest geometric mean of its throughput ratios over all cells wins; of those within "
	  . $TIE * 100 . " % of it, the one with the smallest of its p99 ratios.\n";
	for ([ 'structure = art', '^art-' ], [ 'structure = btree', '^btree-' ],
		[ 'structure = hydra', '^hydra-' ], [ 'overall', '.' ])
	{
		my ($name, $pattern) = @$_;
		my @in = grep { /$pattern/ } @engines or next;
		my ($best) = sort { $b <=> $a } map { $tps{$_} } @in;
		my ($winner) = sort { $p99{$a} <=> $p99{$b} || $tps{$b} <=> $tps{$a} }
		  grep { $tps{$_} >= $best * (1 - $TIE) } @in;
		printf "%-18s %-14s (throughput %.3f, p99 %.3f of nbtree's)\n", "$name:", $winner,
		  $tps{$winner}, $p99{$winner};
	}
}

sub stalls
{
	my ($cell, $order) = read_cells(@_, 'stalls');
	my $c = $cell->{tail}{100}{64} or return;
	my $nb = $c->{nbtree};
	my ($met, $missed) = (0, 0);

	print "\nStalls: 64 clients inserting 100 rows a statement; goal: none above 100 ms that nbtree does not have\n\n";
	printf "%-14s %10s %10s %10s %12s %14s\n", '', 'statem./s', 'p99 ms', 'p99.9 ms', 'longest ms', 'above 100 ms';
	for my $e (@{ $order->{engine} })
	{
		my $x = $c->{$e} or next;
		my $verdict = '';
		if ($nb && $e ne 'nbtree')
		{
			my $good = $x->{max_us} <= 100_000 || $x->{max_us} <= $nb->{max_us};
			$good ? $met++ : $missed++;
			$verdict = $good ? 'met' : 'missed';
		}
		printf "%-14s %10.0f %10.1f %10.1f %12.1f %6d of %-8d %s\n", $e, $x->{tps}, $x->{p99_us} / 1000,
		  $x->{p999_us} / 1000, $x->{max_us} / 1000, $x->{over_100ms}, $x->{transactions}, $verdict;
	}
	print "$met met, $missed missed\n" if $nb;
}

# ---- rising indexes -----------------------------------------------------------------

sub median
{
	my @v = sort { $a <=> $b } @_;
	return @v % 2 ? $v[ $#v / 2 ] : ($v[ $#v / 2 ] + $v[ @v / 2 ]) / 2;
}

# Here a cell has a line a round.
sub rises
{
	my ($file) = @_;
	my (%v, @order, %engines, @engines, $rounds);

	foreach my $line (read_part($file, 'rises'))
	{
		my %c = %$line;
		my $k = "$c{workload},$c{rows}";
		push @order, $k unless $v{$k};
		push @engines, $c{engine} unless $engines{ $c{engine} }++;
		push @{ $v{$k}{ $c{engine} }{$_} }, $c{$_} for qw(tps p99_us);
		$rounds = @{ $v{$k}{ $c{engine} }{tps} };
	}

	print "Rising indexes: 64 clients, medians of $rounds. share: (it - nbtree) / (no index - nbtree)\n";
	print "empty: an access method that keeps nothing\n" if $engines{empty};
	print "\n";
	printf "%-34s %-10s %11s %9s %9s %7s  %s\n", 'INSERT', 'engine', 'statem./s', 'p99 ms', 'nbtree x', 'share', '';
	for my $k (@order)
	{
		my ($w, $rows) = split /,/, $k;
		my $title = ($w eq 'rise1' ? 'one rising index' : 'four rising indexes') . ", $rows row" . ($rows == 1 ? '' : 's');
		my %tps = map { $_ => median(@{ $v{$k}{$_}{tps} }) } keys %{ $v{$k} };
		my %p99 = map { $_ => median(@{ $v{$k}{$_}{p99_us} }) / 1000 } keys %{ $v{$k} };
		for my $e (grep { $v{$k}{$_} } sort { rise_rank($a) cmp rise_rank($b) } @engines)
		{
			my ($x, $share) = ('', '');
			$x = $tps{$e} / $tps{nbtree} if $tps{nbtree};
			# nothing to have when no index is no faster
			$share = ($tps{$e} - $tps{nbtree}) / ($tps{none} - $tps{nbtree})
			  if $tps{nbtree} && $tps{none} && $tps{none} > 1.02 * $tps{nbtree};
			my @met;
			if ($e =~ /^(art|btree)$/)
			{
				push @met, [ 'nbtree x 1.7', $x >= 1.7 ] if $w eq 'rise4' && $x ne '';
				# what cannot be had
				$met[0][0] .= ' (no index ' . sprintf('%.2f', $tps{none} / $tps{nbtree}) . ')'
				  if @met && $tps{none} && $tps{none} < 1.7 * $tps{nbtree};
				push @met, [ 'share ' . ($rows == 1 ? 0.6 : 0.7), $share >= ($rows == 1 ? 0.6 : 0.7) ]
				  if $w eq 'rise1' && $share ne '';
				push @met, [ "p99 nbtree's", $p99{$e} <= $p99{nbtree} ]
				  if $w eq 'rise1' && $rows == 1 && $tps{nbtree};
			}
			printf "%-34s %-10s %11.0f %9.2f %9s %7s  %s\n", $title, $e, $tps{$e}, $p99{$e},
			  $x eq '' ? '-' : sprintf('%.2f', $x), $share eq '' ? '-' : sprintf('%.2f', $share),
			  join('; ', map { "$_->[0]: " . ($_->[1] ? 'met' : 'missed') } @met);
			$title = '';
		}
	}
	print "\n";
}

sub rise_rank
{
	my ($e) = @_;
	return ($e eq 'none' ? 0 : $e eq 'empty' ? 1 : $e eq 'nbtree' ? 2 : $e =~ /^art/ ? 3 : 4) . $e;
}

# Last, for what is above must have its values.
my $what = shift @ARGV // '';
if    ($what eq 'cell')  { cell(); }
elsif ($what eq 'table') { table(@ARGV); }
elsif ($what eq 'rises') { rises(@ARGV); }
else                     { die "contention.pl cell|table|rises\n"; }
