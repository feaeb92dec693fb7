#!/usr/bin/perl
#
# test/bench/figures.pl
#	  What the benches measured, as tables and doc/figures.md.
#
#	figures.pl table FILE	the table of a file that bench.sh wrote
#	figures.pl sysbench FILE	the same of sysbench.sh; fails where a cell was refused
#	figures.pl replica FILE LAG	the same of replica.sh; fails where a value is missing
#	figures.pl demo FILE		the same of demo.sh
#	figures.pl write		doc/figures.md and the six figures of README.md, from
#							doc/figures/*.tsv; it names the plots that are to be drawn
#	figures.pl check		fails where the repository has anything else
#
# A bench writes one file of tab-separated values: lines "# key: value" that say the
# command, the date, the machine and the scale, a line of column names, and one line
# for each measurement.  With FIGURES=1 it puts the file into doc/figures and calls
# "write".  artidx-report (report) draws the plots, and puts into each the sum of the file
# that it is of: so "check" needs nothing but Perl.
#
use strict;
use warnings;

use Digest::SHA;
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
my @goals = read_goals("$top/report/src/artidx_report/goals.tsv");

# Lines of the group, the measure, and so on; artidx-report draws by the groups.
sub read_goals
{
	my ($file) = @_;

	open my $in, '<', $file or die "$file: $!\n";
	return map { chomp; my (undef, @goal) = split /\t/; \@goal } grep { !/^#/ } <$in>;
}

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

# The columns of the table.  Those of the floor and of 18 stand there where a run measured them.
my @ams = ([ none => 'no index' ], [ empty => 'floor' ], [ btree => 'nbtree' ], [ btree18 => 'nbtree 18' ], [ hash => 'hash' ], [ art => 'art' ]);

sub bench_table
{
	my ($t) = @_;
	my $medians = bench_medians($t);
	my @columns = grep { my $am = $_->[0]; $am !~ /^(?:empty|btree18)$/ || grep { defined $_->{$am} } values %$medians } @ams;
	my $format = "%-44s %5s " . '%9s ' x (@columns + 1) . " %-14s %s\n";
	my %count = (reached => 0, missed => 0);
	my $out = sprintf $format, 'measure', 'unit', (map { $_->[1] } @columns), 'art/nbt', 'goal', '';

	foreach my $g (@goals)
	{
		my ($measure, $title, $kind, $goal) = @$g;
		my $m = $medians->{$measure} or next;
		$m->{ratio} = $m->{art} / $m->{btree} if defined $m->{art} && $m->{btree};
		my ($text, $verdict) = verdict($m, $kind, $goal, $medians);
		# before that no foreign key references an art index
		$text = 'from 18' if $measure =~ /^fk_/ && !defined $m->{art};
		$count{$verdict}++ if $verdict;
		$out .= sprintf $format, $title, $m->{unit}, (map { number($m->{ $_->[0] }) } @columns),
		  defined $m->{ratio} ? sprintf('%.3f', $m->{ratio}) : '-', $text, $verdict;
	}
	$out =~ s/ +$//mg;
	return $out . "\ngoals: $count{reached} reached, $count{missed} missed\n";
}

# ---- rising keys -------------------------------------------------------------------

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

# The files of the document, { path below the top => contents }, and the plots,
# { path => the results that it is of }.
sub documents
{
	my (%out, %plots);
	# the whole table first, then what runs of parts have
	my @benches = map { read_tsv($_) } sort { length($a) <=> length($b) || $a cmp $b } glob "$top/doc/figures/bench*.tsv";
	my ($contended) = map { read_tsv($_) } grep { -f } "$top/doc/figures/contention.tsv";
	my ($sysbench) = map { read_tsv($_) } grep { -f } "$top/doc/figures/sysbench.tsv";
	my ($demo) = map { read_tsv($_) } grep { -f } "$top/doc/figures/demo.tsv";
	my $md = <<'MD';
<!-- Written by test/bench/figures.pl from doc/figures/*.tsv.  Do not edit. -->

# Figures

The benches write this file and its tables, and `artidx-report` its plots. `make figures` measures everything
again; `CONTRIBUTING.md` in the source says how long that takes.

Read the ratios. All access methods do the same work in the same run, one after the other, so
what else the machine does hits them alike. `art/nbt` is art's time, memory or WAL as a part of
nbtree's. `floor`, where a run has it, is an access method that keeps nothing: what PostgreSQL itself spends on
an index. For `CREATE INDEX` it reads the table, and for VACUUM it asks about each row, in the order of the
table. art asks in the order of its batches, and reads pages that are all-visible in a shorter way. A scan is told
its rows before, and finds them at no cost. Where art is below that floor, it has a node of its own, or asks memory for rows ahead.
`nbtree 18` is PostgreSQL 18's nbtree, whose scans skip, too.

MD

	if (@benches)
	{
		$md .= "## One process: make bench\n\n";
		foreach my $t (@benches)
		{
			my $name = basename($t->{file}, '.tsv');
			my $medians = bench_medians($t);
			$md .= run_of($t) . "\n" . block(bench_table($t)) . "\n";
			next if !grep { $_->{art} && $_->{btree} } values %$medians;
			$plots{"doc/figures/$name.svg"} = $t->{file};
			$md .= "![art beside nbtree](figures/$name.svg)\n\n";
		}
	}
	if ($contended)
	{
		$md .= "## Many clients: make contention\n\n" . run_of($contended) . "\n";
		if (grep { $_->{part} eq 'cells' } @{ $contended->{rows} })
		{
			$md .= block(contention_of('table', $contended->{file})) . "\n";
			$plots{'doc/figures/contention.svg'} = $contended->{file};
			$md .= "![statements a second, and their 99th percentile](figures/contention.svg)\n\n";
		}
		if (grep { $_->{part} eq 'rises' } @{ $contended->{rows} })
		{
			$md .= block(contention_of('rises', $contended->{file})) . "\n";
			$plots{'doc/figures/rises.svg'} = $contended->{file};
			$md .= "![inserts of rising keys](figures/rises.svg)\n\n";
		}
	}
	if ($sysbench)
	{
		$plots{'doc/figures/sysbench.svg'} = $sysbench->{file};
		$md .= "## A whole application: make sysbench\n\n" . run_of($sysbench) . "\n" . block(sysbench_table($sysbench))
		  . "\n![sysbench with every index art](figures/sysbench.svg)\n\n";
	}
	if ($demo)
	{
		$md .= "## A first look: make demo\n\n" . run_of($demo)
		  . "`better` says how many times more work art does a second, or how many times less it takes.\n\n"
		  . block(demo_table($demo)) . "\n![a first look](figures/demo.svg)\n\n";
		$plots{'doc/figures/demo.svg'} = $demo->{file};
	}
	$out{'doc/figures.md'} = $md =~ s/\n+\z/\n/r;
	$out{'README.md'} = readme($contended, @benches);
	return (\%out, \%plots);
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
			$table .= sprintf "| `INSERT` of one row by a client, 64 at once%s | %s /s | %s /s | %.2f times |\n",
			  $case->{none} ? sprintf(' (without an index %s /s)', thousands(sprintf '%.0f', $case->{none})) : '',
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
elsif ($what eq 'replica' && @ARGV == 2)
{
	my $table = replica_table(read_tsv($ARGV[0]), read_lag($ARGV[1]));
	print $table;
	exit($table =~ /values are missing$/m ? 1 : 0);
}
elsif ($what eq 'demo' && @ARGV == 1) { print demo_table(read_tsv($ARGV[0])); }
elsif ($what eq 'write' || $what eq 'check')
{
	my ($documents, $plots) = documents();
	my $bad = 0;
	foreach my $svg (glob "$top/doc/figures/*.svg")
	{
		my $name = 'doc/figures/' . basename($svg);
		next if $plots->{$name};
		if ($what eq 'write') { unlink $svg; }
		else { warn "$name belongs to no results\n"; $bad = 1; }
	}
	foreach my $name (sort keys %$plots)
	{
		my $file = $plots->{$name};
		my $sum = Digest::SHA->new(256)->addfile($file)->hexdigest;
		next if slurp("$top/$name") =~ /^<!-- \Q${\ basename($file)}\E sha256 $sum;/m;
		warn "$name is not drawn from $file: artidx-report figures doc/figures --svg doc/figures\n";
		$bad = 1 if $what eq 'check';
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
else { die "figures.pl table FILE | sysbench FILE | replica FILE LAG | demo FILE | write | check\n"; }
