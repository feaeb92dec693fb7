#!/usr/bin/perl
#
# mutate.pl: reads the lists of mutations beside it (README.md has their form).
#
#	mutate.pl check				every text is where the list says, every test is there
#	mutate.pl list NAME...		a line each: name, file, test, how it is built, reason why it
#								survives; without NAME all
#	mutate.pl schedules NAME...	a line each of those that schedules find: name, file, engine, scene
#	mutate.pl apply NAME TREE	change the file of that copy of the tree
#	mutate.pl head FILE			the lines of standard input are the head of a file of results,
#								which keeps its rows
#	mutate.pl missing FILE		the mutations that have no row there
#	mutate.pl record FILE NAME VERDICT SECONDS TEST COMMIT DATE SERVER NOTE
#								the row of that mutation, in the order of the lists; rows of
#								mutations that the lists do not have any more go, and of other tests
#
use strict;
use warnings;
use Fcntl qw(:flock);
use File::Basename;

my $top = dirname($0) . '/../..';
my @records = map { read_list($_) } sort glob dirname($0) . '/*.list';
my %by_name = map { $_->{name} => $_ } @records;

# A record begins with its name at the left edge; its fields are indented.
sub read_list
{
	my ($file) = @_;
	my @found;
	open my $in, '<', $file or die "$file: $!\n";
	while (<$in>)
	{
		chomp;
		next if /^\s*(?:#.*)?$/;
		if (/^(\S+)$/)
		{
			push @found, { name => $1, where => "$file:$.", was => [], is => [], after => [] };
			next;
		}
		/^\t(file|after|was|is|breaks|by|schedules|survives)(?:[ \t]+(.*?))?\s*$/ && @found
		  or die "$file:$.: neither a name nor a field\n";
		my ($field, $text) = ($1, $2 // '');
		if ($field =~ /^(?:was|is)$/)
		{
			push @{ $found[-1]{$field} }, $text;
			# an "after" is the next text's
			$found[-1]{after}[$#{ $found[-1]{was} }] //= delete $found[-1]{pending} if $field eq 'was';
		}
		elsif ($field eq 'after') { $found[-1]{pending} = $text }
		else { $found[-1]{$field} = $text }
	}
	return @found;
}

sub lines_of
{
	my ($file) = @_;
	open my $in, '<', $file or die "$file: $!\n";
	return <$in>;
}

sub trimmed { return $_[0] =~ s/^\s+|\s+$//gr }

# The one line that has this text and nothing else; with "after", the first one behind that line.
sub place_of
{
	my ($r, $lines, $text, $after) = @_;
	my @at = grep { trimmed($lines->[$_]) eq $text } 0 .. $#$lines;

	if (defined $after)
	{
		my @from = grep { trimmed($lines->[$_]) eq $after } 0 .. $#$lines;
		@from == 1 or die "$r->{where}: $r->{name}: $r->{file} has not one line, but " . @from . ": $after\n";
		@at = grep { $_ > $from[0] } @at;
		@at or die "$r->{where}: $r->{name}: $r->{file} has nowhere after \"$after\": $text\n";
		return $at[0];
	}
	@at == 1 or die "$r->{where}: $r->{name}: $r->{file} has not one line, but " . @at . ": $text\n";
	return $at[0];
}

# The lines of the mutated file.
sub mutated
{
	my ($r, $tree) = @_;
	my @lines = lines_of("$tree/$r->{file}");
	my %new;

	foreach my $i (0 .. $#{ $r->{was} })
	{
		my $at = place_of($r, \@lines, $r->{was}[$i], $r->{after}[$i]);
		my ($indent) = $lines[$at] =~ /^(\s*)/;
		$new{$at} = "$indent$r->{is}[$i]\n";
	}
	$lines[$_] = $new{$_} foreach keys %new;
	return @lines;
}

sub test_is_there
{
	my ($by) = @_;
	if ($by =~ m{^core:(test_\w+):([\w-]+) (?:plain|asan|tsan|sched)$})
	{
		my ($test, $engine) = ($1, $2);
		return -f "$top/test/core/$test.c" && grep { trimmed(s/#.*//r) eq $engine } "hydra-mvrlu", "btree-compared", lines_of("$top/test/engines");
	}
	return -f "$top/test/fuzz/$1.c" && -f "$top/test/fuzz/corpus/$1" if $by =~ /^fuzz:(\w+)$/;
	return -f "$top/sql/$1.sql" if $by =~ /^regress:(\w+)$/;
	return -f "$top/test/isolation/specs/$1.spec" if $by =~ /^isolation:([\w-]+)$/;
	return -f "$top/test/t/$1.pl" if $by =~ /^tap:(\w+)$/;
	return 0;
}

sub check
{
	my ($bad, %seen) = 0;
	foreach my $r (@records)
	{
		my $ok = eval {
			die "$r->{where}: $r->{name}: a second one of this name\n" if $seen{ $r->{name} }++;
			foreach (qw(file breaks by))
			{
				die "$r->{where}: $r->{name}: no \"$_\"\n" unless $r->{$_};
			}
			die "$r->{where}: $r->{name}: as many \"is\" as \"was\", at least one\n"
			  unless @{ $r->{was} } && @{ $r->{was} } == @{ $r->{is} };
			die "$r->{where}: $r->{name}: no such test: $r->{by}\n" unless test_is_there($r->{by});
			mutated($r, $top);
			1;
		};
		next if $ok;
		print STDERR $@;
		$bad = 1;
	}
	return $bad;
}

# ---- results -----------------------------------------------------------------------

my @columns = qw(name verdict seconds test commit date server note);

# The head of a file of results, and its rows by name.  Until this program ends, no other one
# changes results.
sub read_results
{
	my ($file) = @_;
	my ($head, %rows) = '';
	open our $lock, '<', $0 or die "$0: $!\n";
	flock $lock, LOCK_EX;
	open my $in, '<', $file or return ('', {});
	while (<$in>)
	{
		if (/^#/) { $head .= $_ }
		elsif (/^(\S+)\t/ && $1 ne 'name') { $rows{$1} = $_ }
	}
	return ($head, \%rows);
}

sub write_results
{
	my ($file, $head, $rows) = @_;
	open my $out, '>', "$file.new" or die "$file.new: $!\n";
	print $out $head, join("\t", @columns), "\n";
	foreach my $r (@records)
	{
		my $row = $rows->{ $r->{name} };
		print $out $row if $row && (split /\t/, $row)[3] eq $r->{by};
	}
	close $out or die "$file.new: $!\n";
	rename "$file.new", $file or die "$file: $!\n";
}

my $what = shift // '';
if ($what eq 'check') { exit check() }
elsif ($what eq 'list')
{
	foreach (@ARGV) { die "no such mutation: $_\n" unless $by_name{$_} }
	foreach my $r (@ARGV ? @by_name{@ARGV} : @records)
	{
		my ($by, $flavour) = split / /, $r->{by};
		print join("\t", $r->{name}, $r->{file}, $by, $flavour // '-', $r->{survives} // '-'), "\n";
	}
}
elsif ($what eq 'schedules')
{
	foreach (@ARGV) { die "no such mutation that schedules find: $_\n" unless $by_name{$_} && $by_name{$_}{schedules} }
	foreach my $r (@ARGV ? @by_name{@ARGV} : grep { $_->{schedules} } @records)
	{
		my ($engine, $scene) = split / /, $r->{schedules};
		print join("\t", $r->{name}, $r->{file}, $engine, $scene // ''), "\n";
	}
}
elsif ($what eq 'apply')
{
	my ($name, $tree) = @ARGV;
	my $r = $by_name{$name} or die "no such mutation: $name\n";
	my @lines = mutated($r, $tree);
	open my $out, '>', "$tree/$r->{file}" or die "$tree/$r->{file}: $!\n";
	print $out @lines;
	close $out or die "$tree/$r->{file}: $!\n";
}
elsif ($what eq 'head')
{
	my ($head, $rows) = read_results($ARGV[0]);
	write_results($ARGV[0], join('', <STDIN>), $rows);
}
elsif ($what eq 'missing')
{
	my ($head, $rows) = read_results($ARGV[0]);
	print map { "$_->{name}\n" } grep { !$rows->{ $_->{name} } } @records;
}
elsif ($what eq 'record')
{
	my $file = shift;
	my ($head, $rows) = read_results($file);
	$rows->{ $ARGV[0] } = join("\t", @ARGV) . "\n";
	write_results($file, $head, $rows);
}
else { die "mutate.pl check | list NAME... | schedules NAME... | apply NAME TREE | head FILE | missing FILE | record FILE NAME ...\n" }
