#!/usr/bin/perl
#
# test/bench/contention.pl
#	  What contention.sh makes of pgbench's logs.
#
#	contention.pl cell < LOG		the values of one cell; nothing if nothing ended
#	contention.pl table FILE		ratios to nbtree, stalls, who wins
#	contention.pl rises FILE		rising indexes beside nbtree and no index
#	contention.pl plot FILE			an SVG: throughput and p99 against clients
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

	print "Rising indexes: 64 clients, medians of $rounds. share: (it - nbtree) / (no index - nbtree)\n\n";
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
	return ($e eq 'none' ? 0 : $e eq 'nbtree' ? 1 : $e =~ /^art/ ? 2 : 3) . $e;
}

# ---- the plots -----------------------------------------------------------------------

my %color = (
	'nbtree'       => '#000000',
	'art-olc'      => '#d62728',
	'art-rowex'    => '#ff7f0e',
	'art-optiql'   => '#e377c2',
	'art-coarse'   => '#bc9d22',
	'btree-olc'    => '#1f77b4',
	'btree-optiql' => '#2ca02c',
	'btree-coarse' => '#9467bd');
my @spare = ('#8c564b', '#17becf', '#7f7f7f', '#aec7e8');

sub esc
{
	my ($t) = @_;
	$t =~ s/&/&amp;/g;
	$t =~ s/</&lt;/g;
	return $t;
}

sub text
{
	my ($x, $y, $t, %o) = @_;
	my $a = $o{anchor} // 'start';
	my $size = $o{size} // 11;
	my $more = ($o{bold} ? ' font-weight="bold"' : '') . ($o{turn} ? " transform=\"rotate(-90 $x $y)\"" : '');
	printf "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" text-anchor=\"%s\"%s>%s</text>\n", $x, $y, $size, $a,
	  $more, esc($t);
}

sub line
{
	my ($x1, $y1, $x2, $y2, $stroke) = @_;
	printf "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", $x1, $y1, $x2, $y2, $stroke;
}

# nbtree a cross, art a disc, btree a square
sub marker
{
	my ($e, $x, $y, $c) = @_;
	if ($e eq 'nbtree')
	{
		printf "<path d=\"M%.1f %.1fl6 6m0 -6l-6 6\" stroke=\"%s\" stroke-width=\"1.6\"/>\n", $x - 3, $y - 3, $c;
	}
	elsif ($e =~ /^art/)
	{
		printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", $x, $y, $c;
	}
	else
	{
		printf "<rect x=\"%.1f\" y=\"%.1f\" width=\"5.6\" height=\"5.6\" fill=\"%s\"/>\n", $x - 2.8, $y - 2.8, $c;
	}
}

sub dash
{
	my ($e) = @_;
	return $e =~ /^btree/ ? ' stroke-dasharray="5 3"' : '';
}

sub short
{
	my ($v) = @_;
	return
	    $v >= 1e6  ? sprintf('%gM', $v / 1e6)
	  : $v >= 1000 ? sprintf('%gk', $v / 1000)
	  :              sprintf('%g', $v);
}

sub ms
{
	my ($us) = @_;
	return $us >= 1e6 ? sprintf('%g s', $us / 1e6) : $us >= 1000 ? sprintf('%g ms', $us / 1000) : "$us us";
}

sub plot
{
	my ($file) = @_;
	my ($cell, $order) = read_cells($file, 'cells');
	my @engines = @{ $order->{engine} };
	my @clients = @{ $order->{clients} };
	my @rows = @{ $order->{rows} };
	my ($w, $h, $left, $right, $top, $bottom) = (350, 250, 58, 14, 30, 40);
	my $head = 64;
	my $width = $w * 2 * @rows;
	my $height = $head + $h * @{ $order->{workload} };

	for my $e (@engines)
	{
		$color{$e} //= shift @spare // '#444444';
	}
	print "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
	print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"$width\" height=\"$height\" viewBox=\"0 0 $width $height\" font-family=\"Helvetica, Arial, sans-serif\" fill=\"#222222\">\n";
	print "<rect width=\"$width\" height=\"$height\" fill=\"#ffffff\"/>\n";
	text(14, 22, 'Statements a second, and their 99th percentile, against clients', size => 15, bold => 1);
	my $x = 14;
	for my $e (@engines)
	{
		printf "<line x1=\"%d\" y1=\"44\" x2=\"%d\" y2=\"44\" stroke=\"%s\" stroke-width=\"2\"%s/>\n", $x, $x + 30,
		  $color{$e}, dash($e);
		marker($e, $x + 15, 44, $color{$e});
		text($x + 36, 48, $e, size => 12);
		$x += 50 + 7.5 * length($e);
	}

	my $y0 = $head;
	for my $load (@{ $order->{workload} })
	{
		for my $r (0 .. $#rows)
		{
			for my $m (0, 1)
			{
				panel($cell->{$load}{ $rows[$r] }, \@engines, \@clients, $m, title($load, $rows[$r]),
					$w * (2 * $r + $m) + $left, $y0 + $top, $w - $left - $right, $h - $top - $bottom);
			}
		}
		$y0 += $h;
	}
	print "</svg>\n";
}

# m: 0 throughput, linear from 0; 1 p99, logarithmic
sub panel
{
	my ($cells, $engines, $clients, $m, $title, $x0, $y0, $w, $h) = @_;
	my $what = $m ? 'p99_us' : 'tps';
	my (@v, @ticks, $lo, $hi);

	for my $c (@$clients)
	{
		push @v, map { $cells->{$c}{$_} ? $cells->{$c}{$_}{$what} : () } @$engines;
	}
	@v = sort { $a <=> $b } grep { $_ > 0 } @v or return;
	if ($m)
	{
		$lo = 10**int(log($v[0]) / log(10));
		$hi = $lo * 10;
		$hi *= 10 while $hi < $v[-1];
		for (my $t = $lo; $t <= $hi; $t *= 10)
		{
			push @ticks, $t;
		}
	}
	else
	{
		my $step = 10**int(log($v[-1]) / log(10));
		$step /= 10 if $v[-1] / $step < 2;
		$step *= 2 if $v[-1] / $step > 6;
		$step *= 2.5 if $v[-1] / $step > 6;
		$lo = 0;
		$hi = 0;
		push(@ticks, $hi), $hi += $step while $hi < $v[-1];
		push @ticks, $hi;
	}
	my ($cmin, $cmax) = ($clients->[0], $clients->[-1]);
	my $px = sub {
		my ($c) = @_;
		return $cmin == $cmax ? $x0 + $w / 2 : $x0 + 8 + ($w - 16) * log($c / $cmin) / log($cmax / $cmin);
	};
	my $py = sub {
		my ($v) = @_;
		return $y0 + $h - $h * ($m ? log($v / $lo) / log($hi / $lo) : $v / $hi);
	};

	text($x0, $y0 - 9, $title . ($m ? ': p99' : ': per second'), size => 12, bold => 1);
	for my $t (@ticks)
	{
		line($x0, $py->($t), $x0 + $w, $py->($t), '#e2e2e2');
		text($x0 - 5, $py->($t) + 4, $m ? ms($t) : short($t), anchor => 'end', size => 10);
	}
	line($x0, $y0, $x0, $y0 + $h, '#555555');
	line($x0, $y0 + $h, $x0 + $w, $y0 + $h, '#555555');
	for my $c (@$clients)
	{
		line($px->($c), $y0 + $h, $px->($c), $y0 + $h + 4, '#555555');
		text($px->($c), $y0 + $h + 16, $c, anchor => 'middle', size => 10);
	}
	text($x0 + $w / 2, $y0 + $h + 31, 'clients', anchor => 'middle', size => 10);
	for my $e (@$engines)
	{
		my @p = map { [ $px->($_), $py->($cells->{$_}{$e}{$what} || $lo || 1) ] }
		  grep { $cells->{$_}{$e} } @$clients;
		next unless @p;
		printf "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\"%s/>\n",
		  join(' ', map { sprintf '%.1f,%.1f', @$_ } @p), $color{$e}, dash($e);
		marker($e, @$_, $color{$e}) for @p;
	}
}

# Last, for what is above must have its values.
my $what = shift @ARGV // '';
if    ($what eq 'cell')  { cell(); }
elsif ($what eq 'table') { table(@ARGV); }
elsif ($what eq 'rises') { rises(@ARGV); }
elsif ($what eq 'plot')  { plot(@ARGV); }
else                     { die "contention.pl cell|table|rises|plot\n"; }
