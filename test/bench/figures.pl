#!/usr/bin/perl
#
# test/bench/figures.pl
#	  What the benches measured, as tables, plots and doc/figures.md.
#
#	figures.pl table FILE	the table of a file that bench.sh wrote
#	figures.pl sysbench FILE, sysbench-plot FILE	the same of sysbench.sh; fails where a
#							cell was refused
#	figures.pl replica FILE LAG, replica-plot FILE LAG	the same of replica.sh; fails
#							where a value is missing
#	figures.pl write		doc/figures.md, doc/figures/*.svg and the six figures of
#							README.md, from doc/figures/*.tsv
#	figures.pl check		fails where the repository has anything else
#
# A bench writes one file of tab-separated values: lines "# key: value" that say the
# command, the date, the machine and the scale, a line of column names, and one line
# for each measurement.  With FIGURES=1 it puts the file into doc/figures and calls
# "write".  Perl draws the plots, because every machine that runs the tests has it, and
# because it draws the same bytes everywhere: so "check" can compare them.
#
use strict;
use warnings;

use File::Basename qw(dirname basename);

my $top = dirname(__FILE__) . '/../..';
my $contention = dirname(__FILE__) . '/contention.pl';

# ---- reading ---------------------------------------------------------------------

# { key => value of the header, rows => [{ column => value }] }
sub read_tsv
{
	my ($file) = @_;
	my %t = (rows => [], file => $file);
	my $between = $file =~ /\.csv$/ ? qr/,/ : qr/\t/;
	my @names;

	open my $in, '<', $file or die "$file: $!\n";
	while (<$in>)
	{
		chomp;
		if (/^# (\w+): (.*)/) { $t{$1} = $2; }
		elsif (!@names) { @names = split $between; }
		else
		{
			my %row;
			@row{@names} = split $between;
			push @{ $t{rows} }, \%row;
		}
	}
	foreach my $key (qw(command date machine server scale))
	{
		die "$file does not say its $key\n" if !defined $t{$key};
	}
	return \%t;
}

sub median
{
	my @v = sort { $a <=> $b } map { $_ + 0 } @_;
	return if !@v;
	return @v % 2 ? $v[ $#v / 2 ] : ($v[ $#v / 2 ] + $v[ @v / 2 ]) / 2;
}

sub number
{
	my ($x) = @_;
	return !defined $x ? '-' : sprintf($x >= 1000 ? '%.0f' : $x >= 100 ? '%.1f' : '%.2f', $x);
}

# ---- make bench ------------------------------------------------------------------

# measure, title, kind of goal, goal.  The kinds: ratio, art / nbtree at most; abs, art
# at most; both, at most A, and at most B times nbtree; heap, no more than without an
# index (2 % for chance); zero, nothing; of, art at most F times another measure of art;
# beside, as ratio, to another measure of nbtree, which does not have this one.
my @goals = map { [ split /\|/ ] } (
	'lookup|look-up alone, random bigint|ratio|0.12',
	'lookup1|the same, a tenth of the keys|ratio|0.2',
	'begin|begin and end of a scan|abs|80',
	'point|point SELECT in a PL/pgSQL loop|ratio|0.55',
	'next|WHERE k > x ORDER BY k LIMIT 1, the same way|ratio|0.5',
	'plan|planning a point query, EXECUTE of a text|ratio|1.0',
	'join_heap|nested loop, a row, heap fetch|ratio|0.45',
	'join_heap_many|the same, batched|beside|0.22 join_heap',
	'join_ios|nested loop, a row, index-only|ratio|0.3',
	'join_ios_many|the same, batched|beside|0.12 join_ios',
	'insert_seq|index insert alone, sequential bigint|ratio|0.333',
	'insert_rnd|index insert alone, random bigint|ratio|0.25',
	'insert_uuid|index insert alone, uuid|ratio|0.25',
	'tail2_1|index insert, one sequence, 2 backends|ratio|0.25',
	'tail2_32|the same, each drawing 32 numbers at a time|ratio|0.25',
	'tail2_off|the first, without the tail buffer|none',
	'tail2_1.least|the slower one of the two, of its half|none',
	'insel_1|INSERT ... SELECT a row, one index|ratio|0.5',
	'insel_4|INSERT ... SELECT a row, four indexes|ratio|0.14',
	'clients_100|16 clients, 100 rows, four indexes, a row|ratio|0.25',
	'clients_100.p99|the same, p99 of the INSERT|ratio|0.3',
	'clients_100.wal|the same, WAL a row|none',
	'clients_1|16 clients, 1 row, four indexes, a row|ratio|0.77',
	'clients_1.p99|the same, p99 of the INSERT|none',
	'clients_1.wal|the same, WAL a row|none',
	'fk_insert|INSERT ... SELECT a row that references one|ratio|1.0',
	'fk_copy|COPY, the same|ratio|1.0',
	'wal|WAL a row after a checkpoint|heap',
	'build_seq|CREATE INDEX, sequential bigint|ratio|0.3',
	'build_rnd|CREATE INDEX, random bigint|ratio|0.3',
	'build_uuid|CREATE INDEX, uuid|ratio|0.3',
	'build_text|CREATE INDEX, 25-byte text|ratio|0.3',
	'build2_seq|CREATE INDEX, sequential bigint, 2 workers|ratio|0.8',
	'build2_rnd|CREATE INDEX, random bigint, 2 workers|ratio|0.6',
	'build2_uuid|CREATE INDEX, uuid, 2 workers|ratio|0.6',
	'build2_text|CREATE INDEX, 25-byte text, 2 workers|ratio|0.6',
	'bytes_seq|bytes a key, sequential bigint|abs|12',
	'bytes_rnd|bytes a key, random bigint|abs|23',
	'bytes_uuid|bytes a key, uuid|abs|33',
	'bytes_text|bytes a key, 25-byte text|abs|40',
	'freed_equal|bytes a key, uuid, each replaced|of|1.5 fresh_equal',
	'fresh_equal|the same, of an index made anew|none',
	'freed_most|bytes a key, uuid, nine of ten deleted|of|1.5 fresh_most',
	'fresh_most|the same, of an index made anew|none',
	'dups_build|bytes a row, 1,000 values, built|both|9 1.4',
	'dups_insert|bytes a row, 1,000 values, inserted|both|9 1.4',
	'count_seq|index-only count, a key, heap order|ratio|1.0',
	'count_rnd|index-only count, a key, random order|ratio|0.9',
	'count_100|index-only count of 100 keys, cached plan|ratio|0.75',
	'count_all|index-only count of a whole table, a key|ratio|0.7',
	'range|range of 1,000 rows, heap fetch, a row|ratio|0.85',
	'page|(a, b) > (x, y) ORDER BY a, b LIMIT 20|ratio|0.7',
	'agg_count|count(*) of a range, half a table|ratio|0.10',
	'agg_sum|count(*), sum, avg and max of it|ratio|0.2',
	'agg_group|count(*), min, max of 100 groups|ratio|0.15',
	'distinct|SELECT DISTINCT a, of 100 values|ratio|0.01',
	'distinct_last|DISTINCT ON (a) ORDER BY a, b DESC|ratio|0.01',
	'distinct_minmax|GROUP BY a with min(b) and max(b)|ratio|0.01',
	'distinct_count|GROUP BY a with count(DISTINCT b)|none',
	'skip|b = x, 100 values of a before it|ratio|0.02',
	'skip_range|a > x, 19 values, and a range of b|ratio|0.1',
	'vacuum|VACUUM of one in ten, index part|ratio|0.45',
	'vacuum_wal|VACUUM of one in ten, WAL of the index|zero',
	'small|smallest index, one of 1,000|abs|16',
	'first_answer|first answer after a crash, from 1,000 rows|abs|0.6',
	'first_big|and then one from the large table, not built|none',
	'rebuild_1|rebuild after a restart, one worker|abs|4',
	'rebuild_2|rebuild after a restart, two workers|abs|2.5',
	'load|load from the saved file|of|0.5 rebuild_1',
	'stop|clean shutdown, not saving and saving|none');

# {measure}{am} = median, and {measure}{unit}
sub bench_medians
{
	my ($t) = @_;
	my (%v, %m);

	push @{ $v{ $_->{measure} }{ $_->{am} } }, $_->{value} foreach @{ $t->{rows} };
	foreach my $measure (keys %v)
	{
		$m{$measure}{$_} = median(@{ $v{$measure}{$_} }) foreach keys %{ $v{$measure} };
	}
	$m{ $_->{measure} }{unit} = $_->{unit} foreach @{ $t->{rows} };
	foreach my $g (grep { $_->[2] eq 'beside' && $m{ $_->[0] } } @goals)
	{
		$m{ $g->[0] }{btree} = $m{ (split / /, $g->[3])[1] }{btree};
	}
	return \%m;
}

# (goal, verdict) of art's median; an empty verdict where there is none
sub verdict
{
	my ($m, $kind, $goal, $medians) = @_;
	my ($art, $ratio) = ($m->{art}, $m->{ratio});
	my ($a, $b) = split / /, $goal // '';
	my ($text, $value, $most) =
	    $kind =~ /^(?:ratio|beside)$/ ? ("<= $a x", $ratio, $a)
	  : $kind eq 'abs'   ? ("<= $a",          $art,   $a)
	  : $kind eq 'both'  ? ("<= $a, $b x",    $art,   $a)
	  : $kind eq 'heap'  ? ('the heap alone', $art,   ($m->{none} // 0) * 1.02)
	  : $kind eq 'zero'  ? ('none',           $art,   0.05)
	  : $kind eq 'of'    ? ("<= $a " . $b =~ s/_.*//r,  $art,   $a * ($medians->{$b}{art} // 0))
	  :                    ('',               undef,  0);
	return ($text, '') if !defined $value || $most == 0;
	return ($text, 'missed') if $kind eq 'both' && !(defined $ratio && $ratio <= $b);
	return ($text, $value <= $most ? 'reached' : 'missed');
}

sub bench_table
{
	my ($t) = @_;
	my $medians = bench_medians($t);
	my $format = "%-44s %5s %9s %9s %9s %9s %9s  %-14s %s\n";
	my %count = (reached => 0, missed => 0);
	my $out = sprintf $format, 'measure', 'unit', 'no index', 'nbtree', 'hash', 'art', 'art/nbt', 'goal', '';

	foreach my $g (@goals)
	{
		my ($measure, $title, $kind, $goal) = @$g;
		my $m = $medians->{$measure} or next;
		$m->{ratio} = $m->{art} / $m->{btree} if defined $m->{art} && $m->{btree};
		my ($text, $verdict) = verdict($m, $kind, $goal, $medians);
		# before that no foreign key references an art index
		$text = 'from 18' if $measure =~ /^fk_/ && !defined $m->{art};
		$count{$verdict}++ if $verdict;
		$out .= sprintf $format, $title, $m->{unit}, (map { number($m->{$_}) } qw(none btree hash art)),
		  defined $m->{ratio} ? sprintf('%.3f', $m->{ratio}) : '-', $text, $verdict;
	}
	$out =~ s/ +$//mg;
	return $out . "\ngoals: $count{reached} reached, $count{missed} missed\n";
}

# ---- plots -----------------------------------------------------------------------

sub esc
{
	my ($t) = @_;
	return $t =~ s/&/&amp;/gr =~ s/</&lt;/gr;
}

# Horizontal bars on a logarithmic scale around 1: [label, value, colour].
sub bars
{
	my ($title, $note, @bars) = @_;
	my ($left, $width, $row, $top) = (340, 420, 18, 58);
	my ($lo, $hi) = (1, 1);
	foreach my $bar (@bars)
	{
		$lo /= 2 while $bar->[1] < $lo && $lo > 1 / 16;
		$hi *= 2 while $bar->[1] > $hi && $hi < 128;
	}
	$hi = 2 if $hi < 2;
	my $x = sub {
		my $v = $_[0] < $lo ? $lo : $_[0] > $hi ? $hi : $_[0];
		return $left + $width * log($v / $lo) / log($hi / $lo);
	};
	my $height = $top + $row * @bars + 30;
	my $total = $left + $width + 60;
	my $out = <<"SVG";
<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="$total" height="$height" viewBox="0 0 $total $height" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#222222">
<rect width="$total" height="$height" fill="#ffffff"/>
<text x="14" y="22" font-size="15" font-weight="bold">${\ esc($title)}</text>
<text x="14" y="40" fill="#666666">${\ esc($note)}</text>
SVG
	for (my $tick = $lo; $tick <= $hi; $tick *= 2)
	{
		$out .= sprintf qq{<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s"/>\n}, $x->($tick), $top - 6, $x->($tick),
		  $height - 24, $tick == 1 ? '#222222' : '#dddddd';
		$out .= sprintf qq{<text x="%.1f" y="%d" text-anchor="middle" font-size="10">%gx</text>\n}, $x->($tick),
		  $height - 10, $tick;
	}
	my $y = $top;
	foreach my $bar (@bars)
	{
		my ($label, $v, $colour) = @$bar;
		my ($a, $b) = sort { $a <=> $b } $x->(1), $x->($v);
		$out .= sprintf qq{<text x="%d" y="%d" text-anchor="end">%s</text>\n}, $left - 8, $y + 11, esc($label);
		$out .= sprintf qq{<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>\n}, $a, $y, $b - $a < 1 ? 1 : $b - $a,
		  $row - 5, $colour;
		$out .= sprintf qq{<text x="%.1f" y="%d">%s</text>\n}, $b + 5, $y + 11,
		  sprintf($v >= 10 ? '%.0f' : '%.2f', $v);
		$y += $row;
	}
	return "$out</svg>\n";
}

# How many times less time, memory or WAL art takes than nbtree.
sub bench_plot
{
	my ($t) = @_;
	my $medians = bench_medians($t);
	my @bars;

	foreach my $g (@goals)
	{
		my $m = $medians->{ $g->[0] } or next;
		next if !$m->{art} || !$m->{btree};
		my $times = $m->{btree} / $m->{art};
		push @bars, [ $g->[1], $times, $times >= 1 ? '#2ca02c' : '#d62728' ];
	}
	return if !@bars;
	return bars('art beside nbtree: how many times less time, memory or WAL', "$t->{date}, " . scale($t) . "; more is better",
		@bars);
}

# {case}{engine} = median of the statements a second, of the part "rises"
sub rises
{
	my ($t) = @_;
	my (%v, @order);

	foreach my $row (grep { $_->{part} eq 'rises' } @{ $t->{rows} })
	{
		my $case = "$row->{workload},$row->{rows}";
		push @order, $case if !$v{$case};
		push @{ $v{$case}{ $row->{engine} } }, $row->{tps};
	}
	foreach my $case (@order)
	{
		$v{$case}{$_} = median(@{ $v{$case}{$_} }) foreach keys %{ $v{$case} };
	}
	return (\%v, @order);
}

sub rises_plot
{
	my ($t) = @_;
	my ($v, @order) = rises($t);
	my %colour = (none => '#999999', art => '#d62728', 'art-off' => '#ff9896', btree => '#1f77b4', 'btree-off' => '#aec7e8');
	my @bars;

	foreach my $case (@order)
	{
		my ($w, $rows) = split /,/, $case;
		my $nb = $v->{$case}{nbtree} or next;
		foreach my $e (grep { $v->{$case}{$_} } qw(none art art-off btree btree-off))
		{
			my $name = $e eq 'none' ? 'no index' : $e =~ s/-off$/, no tail buffer/r;
			push @bars,
			  [ ($w eq 'rise1' ? 'one index' : 'four indexes') . ", $rows row" . ($rows == 1 ? '' : 's') . ": $name",
				$v->{$case}{$e} / $nb, $colour{$e} ];
		}
	}
	return if !@bars;
	return bars('Inserts of rising keys by 64 clients: statements, in multiples of nbtree', "$t->{date}; more is better", @bars);
}

# ---- make demo -------------------------------------------------------------------

my @demo = map { [ split /\|/ ] } (
	'insert|inserts, rows/s|more',                 'lookup|look-ups by pgbench, /s|more',
	'join|look-ups in one join, rows/s|more',      'range|scans of 1,000 keys, /s|more',
	'wal|WAL, bytes a row inserted|less',          'walcp|the same after a checkpoint|less',
	'size|index, bytes a row|less',                'build|CREATE INDEX, s|less');

sub demo_table
{
	my ($t) = @_;
	my %v = map { ("$_->{kind},$_->{measure},$_->{am}" => $_->{value}) } @{ $t->{rows} };
	my $out = sprintf "%-34s %-31s %-31s\n", '', '  --------- random uuid -------', '  ---------- bigserial --------';

	$out .= sprintf "%-34s %10s %10s %8s  %10s %10s %8s\n", '', qw(btree art better) x 2;
	foreach my $d (@demo)
	{
		my ($measure, $title, $good) = @$d;
		$out .= sprintf '%-34s', $title;
		foreach my $kind (qw(uuid serial))
		{
			my ($b, $a) = map { $v{"$kind,$measure,$_"} } qw(btree art);
			my $times = ($a // 0) > 0 && ($b // 0) > 0 ? sprintf('%.2fx', $good eq 'more' ? $a / $b : $b / $a) : '-';
			$out .= sprintf ' %10s %10s %8s ', $b // '-', $a // '-', $times;
		}
		$out .= "\n";
	}
	return $out =~ s/ +$//mgr;
}

# ---- make sysbench ---------------------------------------------------------------

# Rows of the workloads, { name, refused or { measure => { am => median } }, ratio }, in order.
sub sysbench_rows
{
	my ($t) = @_;
	my (%v, @rows);

	foreach my $row (@{ $t->{rows} })
	{
		my $w = $v{ $row->{workload} };
		push @rows, $w = $v{ $row->{workload} } = { name => $row->{workload} } if !$w;
		$w->{refused} //= "$row->{am}: $row->{refused}" if $row->{refused};
		push @{ $w->{$_}{ $row->{am} } }, $row->{$_} foreach qw(tps p99_ms wal_bytes);
	}
	foreach my $w (@rows)
	{
		foreach my $of (map { $w->{$_} } qw(tps p99_ms wal_bytes))
		{
			$_ = median(@$_) foreach values %$of;
		}
		$w->{refused} //= 'not run with both' if !$w->{tps}{art} || !$w->{tps}{btree};
		$w->{ratio} = $w->{tps}{art} / $w->{tps}{btree} if !$w->{refused};
	}
	return @rows;
}

sub sysbench_table
{
	my ($t) = @_;
	my @rows = sysbench_rows($t);
	my $format = "%-22s %9s %9s %8s  %8s %8s  %9s %9s\n";
	my $out = sprintf $format, '', 'btree /s', 'art /s', 'art/bt', 'p99 ms', 'art', 'WAL bytes', 'art';
	my ($sum, $worst) = (0);

	foreach my $w (@rows)
	{
		if ($w->{refused}) { $out .= sprintf "%-22s refused: %s\n", @$w{qw(name refused)}; next; }
		$out .= sprintf $format, $w->{name}, (map { sprintf '%.0f', $w->{tps}{$_} } qw(btree art)),
		  sprintf('%.3f', $w->{ratio}), map { number($_) } map { @$_{qw(btree art)} } @$w{qw(p99_ms wal_bytes)};
		$sum += log $w->{ratio};
		$worst = $w if !$worst || $w->{ratio} < $worst->{ratio};
	}
	return $out . "\nno mean: a workload was refused\n" if !$worst || grep { $_->{refused} } @rows;
	my $mean = exp($sum / @rows);
	return $out . sprintf "\ngeometric mean of %d: %.3f (goal 1.12: %s); the worst: %.3f, %s (goal 1.00: %s)\n", scalar @rows,
	  $mean, $mean >= 1.12 ? 'reached' : 'missed', $worst->{ratio}, $worst->{name}, $worst->{ratio} >= 1 ? 'reached' : 'missed';
}

sub sysbench_plot
{
	my ($t) = @_;
	return bars('sysbench with every index art: transactions, in multiples of btree', "$t->{date}, " . scale($t) . "; more is better",
		map { [ $_->{name}, $_->{ratio}, $_->{ratio} >= 1 ? '#2ca02c' : '#d62728' ] } grep { $_->{ratio} } sysbench_rows($t));
}

# ---- make replica ----------------------------------------------------------------

# What a standby is behind while the load runs: { am => [[time, ms, bytes, bytes of replay]] }
sub read_lag
{
	my ($file) = @_;
	my %lag;

	open my $in, '<', $file or die "$file: $!\n";
	<$in>;
	while (<$in>)
	{
		my ($am, @f) = split /[,\n]/;
		push @{ $lag{$am} }, \@f;
	}
	# so few tell no median
	delete $lag{$_} foreach grep { @{ $lag{$_} } < 200 } keys %lag;
	return \%lag;
}

sub percentile
{
	my ($share, @v) = @_;
	@v = sort { $a <=> $b } @v;
	return $v[ int($share * $#v) ];
}

# Lines of the table, { title, unit, btree, art, goal, ok }: of a goal, whether it was reached
sub replica_rows
{
	my ($t, $lag) = @_;
	my (%v, @rows);
	my $line = sub {
		my ($title, $unit, $btree, $art, $goal, $ok) = @_;
		push @rows, { title => $title, unit => $unit, btree => $btree, art => $art, goal => $goal // '' };
		$rows[-1]{ok} = $ok->($art) ? 1 : 0 if $ok && defined $art;
	};
	my $most = sub { my ($most) = @_; return ("<= $most", sub { $_[0] <= $most }) };
	# a place in a list, even where there is no value
	my $middle = sub { my $value = median(@_); return $value };
	my $m = sub { my ($measure, $am) = @_; return $middle->(values %{ $v{$measure}{$am} }) };
	# in each round, to another measure of it
	my $to = sub {
		my ($measure, $other, $am) = @_;
		my ($x, $y) = map { $v{$_}{$am} // {} } $measure, $other;
		return $middle->(map { $x->{$_} / $y->{$_} } grep { $y->{$_} } keys %$x);
	};

	$v{ $_->{measure} }{ $_->{am} }{ $_->{rep} } = $_->{value} foreach @{ $t->{rows} };
	$line->('look-ups a second on the standby, to the primary', 'x', (map { $to->(qw(lookup_standby lookup_primary), $_) } qw(btree art)),
		'>= 0.95', sub { $_[0] >= 0.95 });
	$line->("look-ups in a second of a session's processor time, the same", 'x', (map { $to->(qw(lookup_ns_primary lookup_ns_standby), $_) } qw(btree art)),
		'>= 0.95', sub { $_[0] >= 0.95 });
	$line->('look-ups a second under the load, the same', 'x', map { $to->(qw(loaded_standby loaded_primary), $_) } qw(btree art));
	$line->('of them, read the table', '', undef, $m->('loaded_tables', 'art'), $most->(0));
	my @art = @{ $lag->{art} // [] };
	my @last = grep { $_->[0] > 0.75 * $art[-1][0] } @art;
	$line->('follower behind replay, median', 'ms', undef, $middle->(map { $_->[1] } @art), $most->(20));
	$line->('the same, last quarter of the load', 'ms', undef, $middle->(map { $_->[1] } @last), $most->(20));
	$line->("the same, $_->[1]", 'ms', undef, percentile($_->[0], map { $_->[1] } @art)) foreach [ 0.99, '99th percentile' ], [ 1, 'longest' ];
	$line->('replay behind what came, median', 'kB', map { $middle->(map { $_->[3] / 1000 } @{ $lag->{$_} // [] }) } qw(btree art));
	$line->('transactions of the load', '/s', map { $m->('load', $_) } qw(btree art));
	foreach my $kind ([ 'one', 'one row a statement' ], [ 'all', 'all by one statement' ])
	{
		$line->("aminsert, $kind->[1]", 'ns', map { $m->("primary_$kind->[0]", $_) } qw(btree art));
		$line->("and a row and index on the standby", 'ns', map { $m->("standby_$kind->[0]", $_) } qw(btree art));
		$line->('the one to the other', 'x', (map { $to->("standby_$kind->[0]", "primary_$kind->[0]", $_) } qw(btree art)), $most->(1.5));
	}
	my ($load, $one) = map { $m->($_, 'art') } qw(standby_load primary_one);
	$line->('a row and index on the standby, under the load', 'ns', undef, $load);
	$line->('to aminsert, one row a statement', 'x', undef, $load && $one ? $load / $one : undef, $most->(1.5));
	# of all, the one that is farthest from none
	my $farthest = sub {
		my ($am, @of) = @_;
		my ($value) = sort { abs $b <=> abs $a } map { values %{ $v{$_}{$am} } } @of;
		return $value;
	};
	$line->('WAL beyond that without an index', 'bytes', (map { $farthest->($_, qw(wal_one wal_all)) } qw(btree art)), 'none', sub { $_[0] == 0 });
	$line->('and beyond that with artidx.build_workers = 0', 'bytes', undef, $farthest->(art => qw(wal_followed_one wal_followed_all)), 'none', sub { $_[0] == 0 });
	my $entries = $m->('sweep_entries', 'art');
	$line->(sprintf('sweep of %.1f million entries', ($entries // 0) / 1e6), 'ms', undef, $m->('sweep', 'art'),
		$most->(sprintf '%.0f', ($entries // 0) / 1e4)) ;
	$line->("processor time of the follower for it and VACUUM's records", 'ms', undef, $m->('sweep_cpu', 'art'));
	$line->('longest look-up beside that and VACUUM', 'ms', map { $m->('sweep_longest', $_) } qw(btree art));
	$line->('of them, read the table', '', undef, $m->('sweep_tables', 'art'), $most->(0));
	my $btree = $m->('promote_lookup', 'btree');
	# two sessions look every millisecond
	$line->('pg_ctl promote to the first look-up', 'ms', $btree, $m->('promote_lookup', 'art'), "<= btree's", sub { $_[0] <= $btree + 2 });
	$line->('and to the first insert', 'ms', map { $m->('promote_insert', $_) } qw(btree art));
	return @rows;
}

sub replica_table
{
	my ($t, $lag) = @_;
	my $format = "%-62s %5s %10s %10s  %-11s %s\n";
	my %count = (reached => 0, missed => 0);
	my $missing = 0;
	my $out = sprintf $format, '', '', 'btree', 'art', 'goal', '';

	foreach my $row (replica_rows($t, $lag))
	{
		my $verdict = !defined $row->{ok} ? '' : $row->{ok} ? 'reached' : 'missed';
		$count{$verdict}++ if $verdict;
		$missing++ if !defined $row->{art};
		$out .= sprintf $format, $row->{title}, $row->{unit}, (map { number($row->{$_}) } qw(btree art)), $row->{goal}, $verdict;
	}
	$out =~ s/ +$//mg;
	$out .= "\ngoals: $count{reached} reached, $count{missed} missed; that of a sweep is 1 s for 10 million entries\n";
	$out .= "$missing values are missing\n" if $missing;
	return $out;
}

# The lag over time: of each 50 ms the longest
sub replica_plot
{
	my ($t, $lag) = @_;
	my ($w, $h, $left, $top) = (720, 260, 70, 60);
	my $art = $lag->{art} or return;
	my ($max, %at) = (20);

	foreach (@$art)
	{
		my $slot = int($_->[0] * 20);
		$at{$slot} = $_->[1] if !defined $at{$slot} || $_->[1] > $at{$slot};
	}
	foreach (values %at) { $max = $_ if $_ > $max; }
	my $end = (sort { $b <=> $a } keys %at)[0] || 1;
	my $y = sub { $top + $h * (1 - log(1 + $_[0]) / log(1 + $max)) };
	my $out = sprintf qq{<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">\n<rect width="100%%" height="100%%" fill="white"/>\n},
	  $left + $w + 20, $top + $h + 50;
	$out .= qq{<text x="14" y="22" font-size="15" font-weight="bold">A standby's follower behind replay, ms, over the seconds of the load</text>\n};
	$out .= sprintf qq{<text x="14" y="40" fill="#666666">%s; the longest of each 50 ms</text>\n}, esc("$t->{date}, " . scale($t));
	foreach my $v (grep { $_ <= $max } 0, 1, 5, 20, 100, 500, 2000, 10000)
	{
		$out .= sprintf qq{<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="%s"/><text x="%d" y="%.1f" text-anchor="end">%d</text>\n},
		  $left, $left + $w, ($y->($v)) x 2, $v == 20 ? '#222' : '#ddd', $left - 6, $y->($v) + 4, $v;
	}
	$out .= sprintf qq{<text x="%.1f" y="%d" text-anchor="middle">%d</text>\n}, $left + $w * $_ * 20 / $end, $top + $h + 18, $_
	  foreach grep { $_ % 5 == 0 } 0 .. $end / 20;
	$out .= sprintf qq{<polyline fill="none" stroke="#2ca02c" points="%s"/>\n</svg>\n},
	  join ' ', map { sprintf '%.1f,%.1f', $left + $w * $_ / $end, $y->($at{$_}) } sort { $a <=> $b } keys %at;
	return $out;
}

# ---- the document ----------------------------------------------------------------

sub thousands
{
	my ($n) = @_;
	1 while $n =~ s/^(\d+)(\d{3})/$1,$2/;
	return $n;
}

sub scale
{
	my ($t) = @_;
	return $t->{scale} =~ s/(\d{5,})/thousands($1)/ger;
}

sub run_in_short
{
	my ($t) = @_;
	my $load = ($t->{load} // 0) >= 1 ? "; not quiet (load $t->{load})" : '';
	return "$t->{date}, `$t->{command}`: " . scale($t) . "; $t->{machine}$load";
}

sub run_of
{
	my ($t) = @_;
	my $text = "`$t->{command}`, $t->{date}: " . scale($t) . ".\n$t->{server} on $t->{machine}.\n";
	$text .= "Conditions: $t->{conditions}.\n" if $t->{conditions};
	$text .= "The machine was not quiet: its load was $t->{load} when the run began.\n" if ($t->{load} // 0) >= 1;
	return $text;
}

sub contention_of
{
	my ($what, $file) = @_;
	open my $in, '-|', $^X, $contention, $what, $file or die "$contention: $!\n";
	local $/ = undef;
	my $out = <$in> // '';
	close $in or die "$contention $what $file failed\n";
	return $out =~ s/ +$//mgr;
}

sub block
{
	my ($text) = @_;
	$text =~ s/\A\n+|\n+\z//g;
	return "```text\n$text\n```\n";
}

# The files of the document: { path below the top => contents }.
sub documents
{
	my %out;
	# the whole table first, then what runs of parts have
	my @benches = map { read_tsv($_) } sort { length($a) <=> length($b) || $a cmp $b } glob "$top/doc/figures/bench*.tsv";
	my ($contended) = map { read_tsv($_) } grep { -f } "$top/doc/figures/contention.tsv";
	my ($sysbench) = map { read_tsv($_) } grep { -f } "$top/doc/figures/sysbench.tsv";
	my ($demo) = map { read_tsv($_) } grep { -f } "$top/doc/figures/demo.tsv";
	my $md = <<'MD';
<!-- Written by test/bench/figures.pl from doc/figures/*.tsv.  Do not edit. -->

# Figures

The benches write this file, its tables and its plots. `make figures` measures everything
again; `CONTRIBUTING.md` in the source says how long that takes.

Read the ratios. All access methods do the same work in the same run, one after the other, so
what else the machine does hits them alike. `art/nbt` is art's time, memory or WAL as a part of
nbtree's.

MD

	if (@benches)
	{
		$md .= "## One process: make bench\n\n";
		foreach my $t (@benches)
		{
			my $name = basename($t->{file}, '.tsv');
			my $plot = bench_plot($t);
			$md .= run_of($t) . "\n" . block(bench_table($t)) . "\n";
			next if !$plot;
			$out{"doc/figures/$name.svg"} = $plot;
			$md .= "![art beside nbtree](figures/$name.svg)\n\n";
		}
	}
	if ($contended)
	{
		$md .= "## Many clients: make contention\n\n" . run_of($contended) . "\n";
		if (grep { $_->{part} eq 'cells' } @{ $contended->{rows} })
		{
			$md .= block(contention_of('table', $contended->{file})) . "\n";
			$out{'doc/figures/contention.svg'} = contention_of('plot', $contended->{file});
			$md .= "![statements a second, and their 99th percentile](figures/contention.svg)\n\n";
		}
		if (my $plot = rises_plot($contended))
		{
			$md .= block(contention_of('rises', $contended->{file})) . "\n";
			$out{'doc/figures/rises.svg'} = $plot;
			$md .= "![inserts of rising keys](figures/rises.svg)\n\n";
		}
	}
	if ($sysbench)
	{
		$out{'doc/figures/sysbench.svg'} = sysbench_plot($sysbench);
		$md .= "## A whole application: make sysbench\n\n" . run_of($sysbench) . "\n" . block(sysbench_table($sysbench))
		  . "\n![sysbench with every index art](figures/sysbench.svg)\n\n";
	}
	if ($demo)
	{
		$md .= "## A first look: make demo\n\n" . run_of($demo)
		  . "`better` says how many times more work art does a second, or how many times less it takes.\n\n"
		  . block(demo_table($demo)) . "\n";
	}
	$out{'doc/figures.md'} = $md =~ s/\n+\z/\n/r;
	$out{'README.md'} = readme($contended, @benches);
	return \%out;
}

sub slurp
{
	my ($file) = @_;
	open my $in, '<', $file or return '';
	local $/ = undef;
	return <$in> // '';
}

# README.md with the six figures of now between its marks.
sub readme
{
	my ($contended, @benches) = @_;
	my $text = slurp("$top/README.md");
	my @six = (
		[ 'insel_1',   '`INSERT ... SELECT`, one index, a row', 0 ],
		[ 'join_heap', 'look-up in a join, a row',              0 ],
		[ 'wal',       'WAL of a row after a checkpoint',       0 ],
		[ 'build_rnd', '`CREATE INDEX` on random numbers',      2 ],
		[ 'bytes_uuid', 'memory of a uuid key',                 1 ]);
	my $table = "| | btree | art | |\n|---|---|---|---|\n";
	my %runs;

	foreach my $s (@six)
	{
		my ($measure, $title, $digits) = @$s;
		# the newest run that has it
		my ($t) = grep { my $m = bench_medians($_)->{$measure}; $m && $m->{art} && $m->{btree} }
		  sort { $b->{date} cmp $a->{date} } @benches or next;
		my $m = bench_medians($t)->{$measure};
		$table .= sprintf "| %s | %s | %s | %.1f times |\n", $title,
		  (map { thousands(sprintf '%.*f', $digits, $_) . " $m->{unit}" } $m->{btree}, $m->{art}), $m->{btree} / $m->{art};
		$runs{ run_in_short($t) } = 1;
	}
	if ($contended)
	{
		my ($v) = rises($contended);
		my $case = $v->{'rise1,1'};
		if ($case && $case->{nbtree} && $case->{art})
		{
			$table .= sprintf "| `INSERT` of one row by a client, 64 at once | %s /s | %s /s | %.2f times |\n",
			  (map { thousands(sprintf '%.0f', $case->{$_}) } qw(nbtree art)), $case->{art} / $case->{nbtree};
			$runs{ run_in_short($contended) } = 1;
		}
	}
	$table .= "\nMeasured:\n\n" . join('', map { "- $_\n" } sort keys %runs);
	$text =~ s/(<!-- figures:begin[^\n]*\n).*?(<!-- figures:end)/$1$table$2/s
	  or die "README.md has no marks for its figures\n";
	return $text;
}

my $what = shift @ARGV // '';
if ($what eq 'table' && @ARGV == 1) { print bench_table(read_tsv($ARGV[0])); }
elsif ($what eq 'sysbench' && @ARGV == 1)
{
	my $table = sysbench_table(read_tsv($ARGV[0]));
	print $table;
	exit($table =~ /^no mean/m ? 1 : 0);
}
elsif ($what eq 'sysbench-plot' && @ARGV == 1) { print sysbench_plot(read_tsv($ARGV[0])); }
elsif ($what eq 'replica' && @ARGV == 2)
{
	my $table = replica_table(read_tsv($ARGV[0]), read_lag($ARGV[1]));
	print $table;
	exit($table =~ /values are missing$/m ? 1 : 0);
}
elsif ($what eq 'replica-plot' && @ARGV == 2) { print replica_plot(read_tsv($ARGV[0]), read_lag($ARGV[1])); }
elsif ($what eq 'demo' && @ARGV == 1) { print demo_table(read_tsv($ARGV[0])); }
elsif ($what eq 'write' || $what eq 'check')
{
	my $documents = documents();
	my $bad = 0;
	foreach my $svg (glob "$top/doc/figures/*.svg")
	{
		my $name = 'doc/figures/' . basename($svg);
		next if $documents->{$name};
		if ($what eq 'write') { unlink $svg; }
		else { warn "$name belongs to no results\n"; $bad = 1; }
	}
	foreach my $name (sort keys %$documents)
	{
		next if slurp("$top/$name") eq $documents->{$name};
		if ($what eq 'write')
		{
			open my $out, '>', "$top/$name" or die "$name: $!\n";
			print $out $documents->{$name};
			close $out or die "$name: $!\n";
		}
		else { warn "$name is not what figures.pl makes of doc/figures/*.tsv\n"; $bad = 1; }
	}
	exit $bad;
}
else { die "figures.pl table FILE | sysbench FILE | sysbench-plot FILE | replica FILE LAG | replica-plot FILE LAG | demo FILE | write | check\n"; }
