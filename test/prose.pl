#!/usr/bin/perl
#
# test/prose.pl FILE...
#	  Sentences of documents that a reader would stumble over: those that begin with
#	  "Who" or "What" and are no question, and those in which "who" is a noun.
#
# It prints each with its file and line, and fails if there is one.  A paragraph, an item
# of a list and a cell of a table are read alone.  Blocks of code, comments and headings
# are left out.  Code within a line counts as one word, as does a link's address.
#
use strict;
use warnings;

my $bad = 0;

sub sentences
{
	my ($file, $line, $text) = @_;

	$text =~ s/<!--.*?-->//gs;
	$text =~ s/!\[[^\]]*\]\([^)]*\)//g;
	$text =~ s/\[([^\]]*)\]\([^)]*\)/$1/g;
	$text =~ s/``.*?``|`[^`]*`/CODE/gs;
	$text =~ s/[*_]{2}//g;
	$text =~ s/\b(?:e\.g|i\.e)\./such/g;
	foreach my $sentence (split /(?<=[.!?])["')]*\s+(?=["'(]*\w)/, $text)
	{
		my @words = $sentence =~ /[\w'’\-.,]*\w[\w'’\-]*/g;
		my $start = join ' ', grep { defined } @words[ 0 .. ($#words < 7 ? $#words : 7) ];
		if ($sentence =~ /\b(?:by|for|of|to|from|with|than|as|so) who\b|\bThe same, of\b/i)
		{
			print "$file:$line: \"who\" is a noun: $start ...\n";
			$bad++;
		}
		if ($sentence =~ /^\W*(?:Who|What)(?:ever)?\b/i && $sentence !~ /\?\W*$/)
		{
			print "$file:$line: begins like a question and is none: $start ...\n";
			$bad++;
		}
	}
}

foreach my $file (@ARGV)
{
	my ($block, $comment, $text, $at) = (0, 0, '', 0);
	my $flush = sub { sentences($file, $at, $text) if $text =~ /\S/; $text = ''; };

	open my $in, '<', $file or die "$file: $!\n";
	while (<$in>)
	{
		if (/^\s*```/) { $flush->(); $block = !$block; next; }
		next if $block;
		$comment = 1 if /<!--/;
		if ($comment) { $flush->(); $comment = 0 if /-->/; next; }
		if (/^\s*$|^#/) { $flush->(); next; }
		if (/^\s*\|/)
		{
			$flush->();
			s/\\\|/ or /g;
			sentences($file, $., $_) foreach split /\|/;
			next;
		}
		$flush->() if /^\s*(?:[-*+]|\d+\.)\s/;
		s/^\s*(?:[-*+]|\d+\.)\s+//;
		$at = $. if $text !~ /\S/;
		$text .= $_;
	}
	$flush->();
	close $in;
}
exit($bad > 0);
