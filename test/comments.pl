#!/usr/bin/perl
#
# test/comments.pl
#	  What comments must say, in which words, and where a goto may lead.
#
#	comments.pl functions FILE...	static functions of more than ten lines, as
#		counted from the type to the last brace, have a sentence before them;
#		functions of more than 80 lines have in it a line "Long:" that says why,
#		those of more than seven arguments a line "Arguments:"
#	comments.pl arguments FILE...	no rule, a list: functions of more than seven arguments
#	comments.pl contracts FILE...	functions that take or give back a lock have
#		a line "Locks:", those that call the core, or within it enter or leave an
#		epoch, a line "Epoch:", those that take a latch a line "Latches:"
#	comments.pl jumps FILE...	no goto leads into a block, and no macro hides a
#		jump; one that defines whole functions begins with "static"
#	comments.pl sentences FILE...	no sentence that is no question begins with Who,
#		What or the like
#	comments.pl pronouns FILE...	no comment before a function, a declaration or a type
#		begins with a pronoun (It, They, That, This is ...) or with So or Then; nowhere
#		stands "by who", "for who", "so who", "The same, of"
#	comments.pl headers FILE...	every extern has a comment on its line, or above it in
#		its block, which blank lines and titles of sections end
#
# Prints what is wrong, one a line; the exit status is 1 if there is anything.
#
use strict;
use warnings;

my $lock = join('|',
	'LWLock(?:Acquire|Release|ConditionalAcquire|AcquireOrWait)',
	'SpinLock\w+',
	'Lock(?:Acquire|Release)\w*',
	'(?:Unl|L)ockRelation\w*',
	'ConditionalLock\w*',
	'(?:Unl|L)ockTuple',
	'(?:try_)?(?:table|relation)_open',
	'index_open',
	'art_(?:un)?lock(?:_changed)?',
	'art_find_locked',
	'art_walk_(?:next|end)',
	'art_list_entries',
	'art_(?:try_|un)?lock_place\w*');
# of the core, and its descents, which latch under pessimism
my $latch = join('|',
	'ax_latch_arena',
	'ax_tail_claim',
	'ax_word_(?:lock|trylock|take|acquire)',
	'ax_guard_(?:open|open_target|lock|lock_at|close|kill)',
	'ax_open',
	'ax_close',
	'rt_(?:start|step|go_down|descend|open_leaf|open_target|close|begin)',
	'bt_(?:start|enter|enter_target|descend|close|begin)');
my $found = 0;

sub complain
{
	my ($file, $line, $text) = @_;

	print "$file:$line: $text\n";
	$found = 1;
}

# Calls &$fn(file, line, name, signature, comment or undef, body, lines) for each
# function of a file in pgindent's format.
sub functions
{
	my ($file, $fn) = @_;

	open(my $h, '<', $file) or die "$file: $!";
	my @l = <$h>;
	close($h);
	for (my $i = 0; $i < @l; $i++)
	{
		next unless $l[$i] =~ /^\{/;
		my ($first, $last) = ($i, $i);
		$first-- while $first > 0 && $l[ $first - 1 ] !~ m{^\s*$|^#|^\}|\*/\s*$|;\s*$};
		$last++ while $last < $#l && $l[$last] !~ /^\}/;
		my $signature = join('', @l[ $first .. $i - 1 ]);
		next unless $signature =~ /^(?!__attribute__)(\w+)\(/m;
		my $name = $1;
		my $comment;
		if ($first > 0 && $l[ $first - 1 ] =~ m{\*/\s*$})
		{
			my $c = $first - 1;
			$c-- while $c > 0 && $l[$c] !~ m{/\*};
			$comment = join('', @l[ $c .. $first - 1 ]);
		}
		my $body = join('', @l[ $i .. $last ]);
		$body =~ s{/\*.*?\*/}{}gs;
		&$fn($file, $first + 1, $name, $signature, $comment, $body, $last - $first + 1);
	}
}

# How many arguments a signature has.
sub arguments
{
	my ($list) = $_[0] =~ /^\w+\((.*)\)/ms;

	1 while $list =~ s/\([^()]*\)//g;	# those of function pointers
	return 1 + ($list =~ tr/,//);
}

# What is a comment's text but the lines of a contract.
sub said
{
	my ($text) = @_;
	my $rule = qr/(?:Arguments|Epoch|Latches|Locks|Long|Order|Returns):/;

	$text =~ s{^/\*|\*/}{}g;
	$text =~ s/^\s*\*//mg;
	$text =~ s/^\s*$rule.*?(?=^\s*$|^\s*$rule|\z)//msg;
	return $text;
}

sub check_function
{
	my ($file, $line, $name, $signature, $comment, $body, $lines) = @_;

	complain($file, $line, "$name() has $lines lines and no sentence before it")
	  if $signature =~ /\bstatic\b/ && $lines > 10 && (() = said($comment // '') =~ /\w+/g) < 4;
	complain($file, $line, "$name() has $lines lines and no line \"Long:\" that says why")
	  if $lines > 80 && ($comment // '') !~ m{^(?:/|\s)\*\s+Long: \w}m;
	my $n = arguments($signature);
	complain($file, $line, "$name() has $n arguments and no line \"Arguments:\" that says why")
	  if $n > 7 && ($comment // '') !~ m{^(?:/|\s)\*\s+Arguments: \w}m;
}

# Names a function of more than seven arguments, and says how many it has.
sub list_arguments
{
	my ($file, $line, $name, $signature) = @_;
	my $n = arguments($signature);

	print "$file:$line: $name $n\n" if $n > 7;
}

sub check_contract
{
	my ($file, $line, $name, $signature, $comment, $body, $lines) = @_;
	my $said = $comment // '';

	complain($file, $line, "$name() takes or gives back a lock, and no line \"Locks:\" says so")
	  if $body =~ /\b(?:$lock)\s*\(/ && $said !~ /^\s*\*\s+Locks: /m;
	complain($file, $line, "$name() calls the core, or enters or leaves an epoch, and no line \"Epoch:\" says so")
	  if $body =~ /\b(?:ART_CORE_(?:BEGIN|END)\b|ax_(?:enter|enter_read|epoch_enter|leave)\s*\()/ &&
	  $said !~ /^\s*\*\s+Epoch: /m;
	complain($file, $line, "$name() takes a latch or gives one back, and no line \"Latches:\" says so")
	  if $body =~ /\b(?:$latch)\s*\(/ && $said !~ /^\s*\*\s+Latches: /m;
}

# In a function: every label is in a block that is open where the goto is.
sub check_goto
{
	my ($file, $line, $name, $signature, $comment, $body, $lines) = @_;
	my (@open, %label, @goto);
	my $blocks = 0;

	$body =~ s/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)+'//g;
	while ($body =~ /([{}])|\bgoto\s+(\w+)|^[ \t]*(\w+):(?=[\s;])/mg)
	{
		if    (defined $2)                      { push @goto, [ $2, @open ]; }
		elsif (defined $3)                      { $label{$3} = $open[-1] if $3 ne 'default'; }
		elsif ($1 eq '{')                       { push @open, ++$blocks; }
		else                                    { pop @open; }
	}
	foreach my $g (@goto)
	{
		my ($to, @from) = @$g;

		complain($file, $line, "$name() jumps to $to, into a block")
		  unless grep { $_ == ($label{$to} // 0) } @from;
	}
}

sub check_macros
{
	my ($file) = @_;

	open(my $h, '<', $file) or die "$file: $!";
	my $t = do { local $/; <$h> };
	close($h);
	while ($t =~ /^[ \t]*#[ \t]*define[ \t]+(\w+)(\([^)]*\))?((?:\\\n|.)*)/mg)
	{
		my ($name, $body) = ($1, $3);
		my $line = 1 + (substr($t, 0, $-[0]) =~ tr/\n//);

		$body =~ s{/\*.*?\*/|"(?:[^"\\]|\\.)*"}{}gs;
		complain($file, $line, "the macro $name hides a $1")
		  if $body =~ /\b(return|goto|break|continue|(?:sig)?longjmp)\b/ && $body !~ /^[\s\\]*static\b/;
	}
}

# A paragraph is what blank lines, list items, tables and contract lines leave.
sub check_sentences
{
	my ($file, $line, $text) = @_;

	return if $text =~ m{^Files: |^ ?src/(?:[\w/]+/)?README\.md: };	# lists, no sentences
	$text =~ s/\s+/ /g;
	$text =~ s/\b(e\.g|i\.e|vs|cf|etc|al)\./$1/g;
	foreach my $s (split /(?<=[.?!])[)"*\]]*\s+/, $text)
	{
		$s =~ s/^\W+//;
		complain($file, $line, "hides who acts: $s")
		  if $s =~ /^(?:Who|What|Whoever|Whatever|Whose)\b/ && $s !~ /\?/;
	}
}

sub sentences
{
	my ($file) = @_;

	open(my $h, '<', $file) or die "$file: $!";
	my $t = do { local $/; <$h> };
	close($h);
	my @blocks;
	if ($file =~ /\.md$/)
	{
		@blocks = ([ 1, $t ]);
	}
	else
	{
		push @blocks, [ 1 + (substr($t, 0, $-[0]) =~ tr/\n//), $1 ] while $t =~ m{/\*(.*?)\*/}gs;
	}
	foreach my $b (@blocks)
	{
		my ($line, $from, $text, $fence) = ($b->[0], $b->[0], '', 0);
		my $flush = sub {
			check_sentences($file, $from, $text) if $text =~ /\w/;
			$text = '';
		};

		foreach my $l (split /\n/, $b->[1])
		{
			$l =~ s/^\s*\*(?=\s|$)// unless $file =~ /\.md$/;
			$fence = !$fence if $l =~ /^```/;
			if ($fence || $l =~ /^\s*$|^#|^```|^ ?\t|^ {4,}|^\|/ && !($l =~ /^\t+\S/ && $b->[1] !~ /^\s*\*/m))
			{
				&$flush;
			}
			else
			{
				&$flush if $l =~ /^\s*(?:[-*]|\d+\.|\([a-z0-9]+\))\s|^\s*(?:Arguments|Epoch|Latches|Locks|Long|Order|Returns):/;
				$from = $line if $text eq '';
				$text .= "$l\n";
			}
			$line++;
		}
		&$flush;
	}
}

# A reader who has only this comment must find out who "it" is.
my $pronoun = qr/(?:It|They|That|Those|These|So|Then)\b|This (?:is|was|has|had|does|may|can|goes|takes|makes|says)\b/;
my $noun = qr/\b(?:by|for|of|to|from|with|than|as|[Ss]o) who\b|\bThe same, of\b/;

sub pronouns
{
	my ($file) = @_;

	open(my $h, '<', $file) or die "$file: $!";
	my $t = do { local $/; <$h> };
	close($h);
	$t =~ s/^```.*?^```//gms if $file =~ /\.md$/;
	while ($t =~ m{(?:(^)|(?<=[\s;]))/\*(.*?)\*/|\A(?!/\*)(.*)\z}gsm)
	{
		my ($outside, $text) = (defined $1, $2 // $3);
		my $line = 1 + (substr($t, 0, $-[0]) =~ tr/\n//);

		next if defined $3 && $file !~ /\.md$/;
		$text =~ s/\s*\n\s*\*?\s*/ /g;
		$text =~ s/^[\s*]+//;
		complain($file, $line, "begins with a pronoun: " . substr($text, 0, 60)) if $outside && $text =~ /^$pronoun/;
		complain($file, $line, "\"who\" is no noun: ... $1 ...") while $text =~ /(.{0,30}$noun.{0,20})/g;
	}
}

# A comment counts for all of its block, but not one of a member within a type.
sub headers
{
	my ($file) = @_;

	open(my $h, '<', $file) or die "$file: $!";
	my $t = do { local $/; <$h> };
	close($h);
	my ($said, $line) = (0, 1);

	while ($t =~ m{\G(?:(/\*.*?\*/)|(extern\b[^;]*;[^\n]*)|(\{[^\}]*\})|(\n[ \t]*(?=\n))|[^\n]|\n)}gs)
	{
		my ($comment, $extern, $body, $blank, $all) = ($1, $2, $3, $4, $&);
		my $starts = $-[0] == 0 || substr($t, $-[0] - 1, 1) eq "\n";

		if    (defined $comment) { $said = $comment !~ m{^/\* ---- } if $starts; }
		elsif (defined $blank)   { $said = 0; }
		elsif (defined $extern && $starts && !$said && $extern !~ m{/\*})
		{
			$extern =~ s/\s+/ /g;
			complain($file, $line, "no comment of: $extern");
		}
		$line += $all =~ tr/\n//;
	}
}

my $what = shift // '';
foreach my $file (@ARGV)
{
	if    ($what eq 'functions') { functions($file, \&check_function); }
	elsif ($what eq 'arguments') { functions($file, \&list_arguments); }
	elsif ($what eq 'contracts') { functions($file, \&check_contract); }
	elsif ($what eq 'jumps')     { functions($file, \&check_goto); check_macros($file); }
	elsif ($what eq 'sentences') { sentences($file); }
	elsif ($what eq 'pronouns')  { pronouns($file); }
	elsif ($what eq 'headers')   { headers($file); }
	else                         { die "usage: $0 functions|arguments|contracts|jumps|sentences|pronouns|headers FILE...\n"; }
}
exit $found;
