#!/usr/bin/perl
#
# test/evidence.pl
#	  doc/evidence.md, from what the runs themselves wrote to doc/evidence/*.tsv, and from
#	  doc/evidence/found.md: what they found, which people write.
#
#	evidence.pl write	the document
#	evidence.pl check	fails where the repository has another one
#
# A run with EVIDENCE=1 writes one file: lines "# key: value" (run, shows, date, seconds,
# commit, server, machine, load), then "label<TAB>value", then its rows, by art_evidence() of
# test/lib.sh.  mutants.tsv has a row for each mutation (test/mutants.sh).
#
use strict;
use warnings;

use File::Basename qw(dirname basename);

my $top = dirname(__FILE__) . '/..';

# { key => value of the header, names => [column], rows => [{ column => value }] }
sub read_tsv
{
	my ($file) = @_;
	my %t = (rows => [], file => $file);

	open my $in, '<', $file or die "$file: $!\n";
	while (<$in>)
	{
		chomp;
		if (/^# (\w+): (.*)/) { $t{$1} = $2; }
		elsif (!$t{names}) { $t{names} = [ split /\t/ ]; }
		else
		{
			my %row;
			@row{ @{ $t{names} } } = split /\t/, $_, -1;
			push @{ $t{rows} }, \%row;
		}
	}
	foreach my $key (qw(run shows date seconds commit server machine load names))
	{
		die "$file does not say its $key\n" if !defined $t{$key};
	}
	die "$file has no rows\n" if !@{ $t{rows} };
	return \%t;
}

sub duration
{
	my ($s) = @_;
	return $s < 120 ? "$s seconds" : $s < 7200 ? sprintf('%.0f minutes', $s / 60) : sprintf('%.1f hours', $s / 3600);
}

# A row of a table of Markdown.
sub row { return '| ' . join(' | ', map { s/\|/\\|/gr } @_) . " |\n" }

sub table
{
	my ($head, @rows) = @_;
	return row(@$head) . '|' . '---|' x @$head . "\n" . join('', map { row(@$_) } @rows);
}

sub plural { return $_[0] == 1 ? "$_[0] $_[1]" : "$_[0] $_[1]s" }

# When and on what a run took place.
sub when
{
	my ($t) = @_;
	return "$t->{shows}\n\nIt ran on $t->{date} for " . duration($t->{seconds}) . ", on commit `$t->{commit}`"
	  . ($t->{server} eq 'none' ? ', without a server' : ", with $t->{server}") . "; $t->{machine}, load $t->{load} before.\n\n";
}

sub facts { my ($t) = @_; return when($t) . table([ '', '' ], map { [ $_->{label}, $_->{value} ] } @{ $t->{rows} }) }

# ---- mutations -------------------------------------------------------------------

# Every mutation's own run: name, verdict, seconds, test, commit, date, server, note.
sub mutations
{
	my ($t) = @_;
	my (%kind, %test, %on, @seconds);

	foreach my $r (@{ $t->{rows} })
	{
		my ($kind) = $r->{name} =~ /^([\w-]+)\./;
		my $killed = $r->{verdict} eq 'killed';
		$kind{$kind}{ $killed ? 'killed' : 'not' }++;
		push @{ $test{ $r->{test} } }, $r->{name} if $killed;
		push @seconds, $r->{seconds} if $killed;
		$on{"$r->{date}, commit `$r->{commit}`" . ($r->{server} eq '-' ? '' : ", $r->{server}")}++;
	}
	@seconds = sort { $a <=> $b } @seconds;
	my @known = grep { $_->{verdict} eq 'survives' } @{ $t->{rows} };
	my @not = grep { $_->{verdict} ne 'killed' } @{ $t->{rows} };
	my $md = "$t->{shows}\n"
	  . "The lists grow: `perl test/mutants/mutate.pl list` names every mistake, and `EVIDENCE=1 make mutants NAMES=missing` tries those\n"
	  . "that are not here yet.\n\nOf " . plural(scalar @{ $t->{rows} }, 'mistake') . ' the tests noticed ' . @seconds . '. Of ' . @known
	  . ' it is known why no test can notice them. ' . (@not - @known) . " others passed unnoticed.\n";
	$md .= "A test took $seconds[ $#seconds / 2 ] seconds in the median and $seconds[-1] at most, beside the machine's other work.\n" if @seconds;
	$md .= "\nWhen they ran, and on which commit:\n\n"
	  . table([ 'run', 'mistakes' ], map { [ $_, $on{$_} ] } sort keys %on) . "\nBy kind, the first part of a mistake's name. It names the code, for example `cmp` (compared keys), `epoch` (when memory is used\n"
	  . "again), `interlock` (VACUUM beside scans), `ssi` (SERIALIZABLE), `olc`, `rowex` and `mvrlu` (values of the option `sync`):\n\n"
	  . table([ 'kind', 'noticed', 'not' ], map { [ $_, $kind{$_}{killed} // 0, $kind{$_}{not} // 0 ] } sort keys %kind);
	$md .= "\nNot noticed:\n\n" . table([ 'mistake', 'test', 'reason' ], map { [ "`$_->{name}`", $_->{test}, $_->{note} ] } @not) if @not;
	return $md . "\nWhich mistakes each test noticed. One test was run for each mistake:\n\n"
	  . table([ 'test', 'mistakes that it noticed' ], map { [ $_, join(', ', @{ $test{$_} }) ] } sort keys %test);
}

# ---- the document ----------------------------------------------------------------

sub document
{
	my $md = "# Evidence\n\n<!-- test/evidence.pl writes this from doc/evidence/found.md and *.tsv, and a run with EVIDENCE=1 writes the latter. Do not edit it. -->\n\n"
	  . "Each section is one command: what it is to show, when it ran, on which commit, and what came of it. The runs themselves wrote\n"
	  . "the numbers, under EVIDENCE=1. A command without a section has not run so; other chapters give the day of a figure that they\n"
	  . "quote. The source's test/README.md says how to repeat each. A commit that git does not know, of 2026-11-30 or 2026-12-01, was\n"
	  . "put together with others of its day before it landed.\n\n" . slurp("$top/doc/evidence/found.md");

	foreach my $file (sort glob "$top/doc/evidence/*.tsv")
	{
		my $t = read_tsv($file);
		$md .= "\n## $t->{run}\n\n" . (basename($file) eq 'mutants.tsv' ? mutations($t) : facts($t));
	}
	return $md;
}

sub slurp
{
	my ($file) = @_;
	open my $in, '<', $file or return '';
	local $/ = undef;
	return <$in> // '';
}

my $what = shift @ARGV // '';
my $name = "$top/doc/evidence.md";
if ($what eq 'write')
{
	open my $out, '>', $name or die "$name: $!\n";
	print $out document();
	close $out or die "$name: $!\n";
}
elsif ($what eq 'check')
{
	exit 0 if slurp($name) eq document();
	die "doc/evidence.md is not what evidence.pl makes of doc/evidence/*.tsv\n";
}
else { die "evidence.pl write | check\n"; }
