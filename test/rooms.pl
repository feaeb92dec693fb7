#!/usr/bin/perl
#
# test/rooms.pl
#	  The rooms of src: what may refer to what, and signposts that lead somewhere.
#
#	rooms.pl check		every rule below; prints each violation
#	rooms.pl write		puts the map of rooms into src/README.md, and into each room's
#				README.md its files, and each section's
#	rooms.pl count		lines and references, room by room
#
# The rules:
#	- a file includes headers of its own room and of rooms below;
#	- a file names no function or variable that a room above defines;
#	- the layers below the structures, core/base, core/elide and core/tail, have no name
#	  of one, not even for a member of a type; how an engine latches (AX_SYNC_.., AX_ROWEX) is none;
#	- a header declares what its own room defines, in the section that names the
#	  file, if its sections do;
#	- no .c file declares what another one defines;
#	- inside a room no .c files name each other in a circle, unless they are one
#	  thought: then each one's first comment names the others, in a line
#	  "One thought with: FILE.c, ...";
#	- a file that is named anywhere is there; so is a section of a README.md in src;
#	- each room has a README.md that begins "# ROOM: what it is", and then has its
#	  files, with the first sentence of each one's banner;
#	- a file's first comment ends with the sections that it belongs to, each in a line
#	  "src/ROOM/README.md: TITLE", or "src/README.md: TITLE" for the whole;
#	- each section of these begins with the files that cite it, and there are some;
#	- a room's README.md has at most 2,500 words, and src/README.md 3,000.
# The order of the rooms is total, so without an upward reference there is no
# cycle between them.
#
use strict;
use warnings;

# From top to bottom.  What a room is says the title of its README.md; three have none.
my %without = (
	'top' => 'the library\'s entry, and the handler of the access method',
	'versions' => 'the differences between versions of PostgreSQL',
	'core' => 'what the core offers: plain C11, no PostgreSQL');
my @rooms = qw(top trial ddl views plan follow scan am workers saved live build survive limits area key eval
  versions core core/face core/compared core/hydra core/btree core/radix core/tail core/elide core/base);
# The rooms that are folders of src.
my $glue = join '|', grep { !m{/} && !$without{$_} } @rooms;
my %rank = map { $rooms[$_] => $_ } 0 .. $#rooms;

my $bad = 0;

sub fail
{
	print STDERR "rooms: @_\n";
	$bad = 1;
}

sub read_file
{
	my ($f) = @_;

	open(my $h, '<', $f) or die "$f: $!";
	local $/;
	my $t = <$h>;
	close($h);
	return $t;
}

# The core's face is above its sub-rooms for what it declares, below all for
# those who include it.
sub room_of
{
	my ($f) = @_;

	return 'top' if $f =~ m{^src/(?:module|handler)\.c$};
	return 'versions' if $f eq 'src/art_compat.h';
	return 'core' if $f =~ m{^src/core/\w+\.h$};
	return $1 if $f =~ m{^src/(core/\w+|\w+)/\w+\.[ch]$};
	return undef;
}

# Comments and strings become blanks; lines stay.
sub code
{
	my ($t) = @_;

	$t =~ s{(/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')}{(my $b = $1) =~ s/[^\n]/ /g; $b}gse;
	return $t;
}

my @tracked = split /\n/, `git ls-files --cached --others --exclude-standard`;
@tracked = grep { -f } @tracked;
my @src = sort grep { m{^src/.*\.[ch]$} } @tracked;
my %is = map { $_ => 1 } @tracked;
my %base;
push @{ $base{ (m{([^/]+)$})[0] } }, $_ foreach @tracked;
my (%text, %code, %room);
foreach my $f (@src)
{
	$text{$f} = read_file($f);
	$code{$f} = code($text{$f});
	$room{$f} = room_of($f);
	fail("$f is in no room") unless defined $room{$f} && defined $rank{ $room{$f} };
}
exit 1 if $bad;

# ---- who defines what ----

my (%def, %static);
foreach my $f (grep { /\.c$/ } @src)
{
	while ($code{$f} =~ /^((?:[A-Za-z_]\w*(?:\(\(\w+\)\))?[\s*]+)+?)(\w+)(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\s*\{)/mg)
	{
		my ($head, $name) = ($1, $2);

		next if $head =~ /\b(?:return|else|do|extern|typedef)\b/;
		if ($head =~ /\bstatic\b/) { $static{$f}{$name} = 1; }
		else                       { $def{$name} = $f; }
	}
	while ($code{$f} =~ /^(?!static\b|extern\b|typedef\b|return\b|struct \w+;)((?:const |struct |volatile )*\w+[\s*]+(?:const )?)(\w+)(?:\[[^\]]*\])*\s*(?:=[^;]*)?;/mg)
	{
		$def{$2} //= $f;
	}
}

# A name in an inline function or a macro of a header is named by those who use that.
my %inline;
foreach my $h (grep { /\.h$/ } @src)
{
	while ($code{$h} =~ /^(?![\s#}])[^;{}#]*?\binline\b[^;{}#]*?\b(\w+)\((?:[^()]|\([^()]*\))*\)\s*(\{.*?^\})/msg)
	{
		push @{ $inline{$1} }, $2 =~ /\b([A-Za-z_]\w+)\b/g;
	}
	while ($code{$h} =~ /^#\s*define\s+(\w+)((?:.*\\\n)*.*)/mg)
	{
		push @{ $inline{$1} }, $2 =~ /\b([A-Za-z_]\w+)\b/g;
	}
}

# All names in a text, and what the inline functions and macros among them name.
sub names_in
{
	my ($t) = @_;
	my %n;
	my @todo = $t =~ /\b([A-Za-z_]\w+)\b/g;

	while (defined(my $n = pop @todo)) { push @todo, @{ $inline{$n} // [] } unless $n{$n}++; }
	return keys %n;
}

# ---- includes and references ----

my (%refs, %seen, %within);
sub refer
{
	my ($f, $g, $what) = @_;
	my ($a, $b) = ($room{$f}, $room{$g});

	return if $a eq $b;
	$refs{$a}{$b}++ unless $seen{"$f $g"}++;
	# the core's face is offered to all above the core, and told to all within
	return if $b eq 'core' && $g =~ /\.h$/;
	fail("$f ($a) $what $g ($b), which is above") if $rank{$a} > $rank{$b};
}

foreach my $f (@src)
{
	my ($dir) = $f =~ m{^(.*)/};

	while ($text{$f} =~ /^#\s*include\s+"([^"]+)"/mg)
	{
		my $i = $1;
		my $g = $is{"$dir/$i"} ? "$dir/$i" : "src/$i";

		if ($is{$g}) { refer($f, $g, 'includes'); }
		elsif ($room{$f} =~ /^core/) { fail("$f includes \"$i\", which is not of the core"); }
		elsif ($i =~ m{^(?:ax|art|rt|bt|bc)_\w+\.h$|^(?:$glue|top|core)/}) { fail("$f includes \"$i\", which is not there"); }
	}
	fail("$f includes a header of the system that is PostgreSQL's")
	  if $room{$f} =~ /^core/ && $text{$f} =~ /^#\s*include\s+<(?:postgres|access|storage|utils|catalog)/m;
	my %said;
	while ($code{$f} =~ /\b([A-Za-z_]\w+)\b/g)
	{
		my $n = $1;
		my $g = $def{$n};

		next if !defined $g || $g eq $f || $said{$n}++ || $static{$f}{$n};
		next if $f =~ /\.h$/ && $room{$f} eq 'core';	# declares for the rooms within
		refer($f, $g, "names $n of");
	}
	if ($f =~ /\.c$/)
	{
		while ($code{$f} =~ /^extern\s[^;{]*?\b(\w+)\s*(?:\([^;{]*)?;/mg)
		{
			fail("$f declares $1, which $def{$1} defines") if defined $def{$1} && $def{$1} ne $f;
		}
	}
}

# ---- data, too ----

my $structure = qr/\b(?:(?:rt|bt|bc|hy|hm)_\w+|(?!AX_SYNC_|AX_ROWEX\b)\w*(?:radix|btree|hydra|rowex|mvrlu)\w*)/i;
foreach my $f (grep { $room{$_} =~ m{^core/(?:base|elide|tail)$} } @src)
{
	my %said;

	while ($code{$f} =~ /($structure)/g) { fail("$f names $1, which a structure owns") unless $said{$1}++; }
}

# ---- circles inside a room ----

foreach my $f (grep { /\.c$/ } @src)
{
	foreach my $g (grep { defined } map { $static{$f}{$_} ? undef : $def{$_} } names_in($code{$f}))
	{
		$within{$f}{$g} = 1 if $g ne $f && $room{$g} eq $room{$f};
	}
}

# All that a file refers to within its room, by others too.
sub reached
{
	my ($f) = @_;
	my %r;
	my @todo = keys %{ $within{$f} };

	while (my $g = pop @todo) { push @todo, keys %{ $within{$g} } unless $r{$g}++; }
	return %r;
}

my %reached = map { $_ => { reached($_) } } grep { /\.c$/ } @src;
foreach my $f (sort keys %reached)
{
	my ($head) = $text{$f} =~ m{\A(/\*.*?)\*/}s;
	my %said = map { $_ => 1 } map { split /,\s*/ } ($head // '') =~ /^ \* One thought with: (.*?)\.?\s*$/mg;

	foreach my $g (sort grep { $_ ne $f && $reached{$f}{$_} && $reached{$_}{$f} } keys %reached)
	{
		my ($b) = $g =~ m{([^/]+)$};

		fail("$f and $g refer to each other: move what one of them needs,"
			  . " or let both say \"One thought with:\"") unless delete $said{$b};
	}
	fail("$f: \"One thought with: $_\", but the two do not refer to each other") foreach sort keys %said;
}

# ---- headers declare what their room defines ----

foreach my $h (grep { /\.h$/ } @src)
{
	my $section = '';
	my $t = $text{$h};

	while ($t =~ m{\G(?:(/\* ----.*?\*/)|(/\*.*?\*/)|(extern\b[^;]*?\b(\w+)\s*(?:\([^;]*|\[[^;]*)?;)|.)}gs)
	{
		if (defined $1) { $section = $1; }
		elsif (defined $3)
		{
			my $n = $4;
			(my $d = $3) =~ s{/\*.*?\*/}{}gs;

			$n = $1 if $d =~ /\b(\w+)\s*\(/ && $d !~ /\(\*/;
			$n = $1 if $d =~ /\(\*\s*(\w+)\)/ && !defined $def{$n};
			next unless defined $def{$n};
			my $in = $room{ $def{$n} };
			fail("$h declares $n, which $def{$n} defines")
			  unless $in eq $room{$h} || ($room{$h} eq 'core' && $in =~ /^core/);
			my @named = $section =~ /(\w+\.c)\b/g;
			(my $b = $def{$n}) =~ s{.*/}{};
			fail("$h: its section \"$section\" has $n, which is in $b")
			  if @named && !grep { $_ eq $b } @named;
		}
	}
}

# ---- signposts ----

# The design: src/README.md, and one of each room.  The titles of each.
my %design = ('src/README.md' => read_file('src/README.md'));
foreach my $r (grep { !$without{$_} } @rooms)
{
	my $f = "src/$r/README.md";

	if ($is{$f}) { $design{$f} = read_file($f); }
	else         { fail("the room $r has no README.md"); }
}
exit 1 if $bad;
my %title;
foreach my $f (keys %design) { $title{$f}{$_} = 1 foreach $design{$f} =~ /^##+\s+(.*?)\s*$/mg; }

sub anchor
{
	my ($t) = @_;

	$t = lc $t;
	$t =~ s/[^\w\- ]//g;
	$t =~ s/ /-/g;
	return $t;
}

# Files of PostgreSQL that are named here; every other FILE.c or FILE.h is ours.
my %theirs = map { $_ => 1 } qw(buffile.c fd.c ri_triggers.c);
my $ours = qr/(?:art|ax|bt|bc|hm|hy|rt|test|bench)_\w+\.(?:sh|pl)|\w+\.[ch]/;
my $tops = qr{src|test|doc|sql|expected|core|base|elide|tail|radix|btree|hydra|compared|face|$glue};
foreach my $f (grep { m{^src/.*\.[ch]$|^test/.*\.[ch]$|^test/.*\.(?:sh|pl|pm|mk|spec)$|Makefile$|^[\w/]+\.md$} && $_ ne 'CHANGELOG.md' } @tracked)
{
	my $t = $text{$f} // read_file($f);
	my ($dir) = $f =~ m{^(.*)/};

	$dir //= '.';
	# in C only what comments say
	$t = join("\n", $t =~ m{/\*(.*?)\*/}gs) if $f =~ /\.[ch]$/;
	# elsewhere no code
	$t =~ s/^```.*?^```//gms if $f =~ /\.md$/;
	while ($t =~ m{(?<![\w/.\$%<-])((?:[\w.-]+/)*)($ours)(?!\w|\.\w)}g)
	{
		my ($p, $b) = ($1, $2);

		next if $b =~ /^test_\w+\.c$/ && $p eq '' && $base{$b};
		if ($p eq '')
		{
			next if $theirs{$b} || $f !~ /\.(?:[ch]|md)$/ && $b !~ /^(?:ax|bt|bc|hm|hy|rt|test|bench)_/;
			fail("$f names $b, which is not there") unless $base{$b};
		}
		elsif ($p =~ m{^(?:$tops)/})
		{
			fail("$f names $p$b, which is not there")
			  unless grep { $is{"$_$p$b"} } '', 'src/', 'src/core/', 'test/', "$dir/";
		}
	}
	while ($t =~ m{(?<![\w/.])(src/(?:[\w/]+/)?README\.md)[,:]\s+(?:\*\s+)?"?([A-Z][\w'+-]*(?:,?[ \n]+(?:\*\s+)?[\w'+-]+)*)}g)
	{
		my ($in, $s) = ($1, $2);

		next if $s =~ /^TITLE/;
		$s =~ s/\s*\n\s*\*?\s*/ /g;
		my @w = split / +/, $s;
		my $ok = 0;

		for (my $i = @w; $i > 0 && !$ok; $i--) { $ok = $title{$in}{ join(' ', @w[ 0 .. $i - 1 ]) }; }
		fail("$f names the section \"$s\" of $in, which is not there") unless $ok;
	}
	if ($f =~ /\.md$/)
	{
		while ($t =~ m{`(t/\w+)(?:\.pl)?`}g)
		{
			fail("$f names the test $1, which is not there") unless $is{"test/$1.pl"};
		}
	}
	fail("$f names a section by number") if $f =~ m{^src/.*\.[ch]$} && $t =~ /\bARCHITECTURE\b/;
	if ($f =~ /\.md$/)
	{
		while ($t =~ /\]\(([^)\s#]*)(?:#([^)\s]+))?\)/g)
		{
			my ($to, $frag) = ($1, $2);

			next if $to =~ /^\w+:/;
			my $path = $to eq '' ? $f : "$dir/$to";

			$path =~ s{^\./}{};
			1 while $path =~ s{[^/]+/\.\./}{};
			fail("$f links to $to, which is not there") unless -e $path;
			next unless defined $frag && -f $path;
			my %a = map { anchor($_) => 1 } read_file($path) =~ /^#+\s+(.*?)\s*$/mg;
			fail("$f links to $to#$frag, which is not there") unless $a{$frag};
		}
	}
}

# ---- the map ----

sub banner
{
	my ($f) = @_;

	return '' unless $text{$f} =~ m{\A/\*\s*\n \* (\S+)\n \*\t  (.*?)(?=\n \*\s*\n|\n \*/|\n \*\t?\S*[^\t ])}s
	  || $text{$f} =~ m{\A/\*\s*\n \* (\S+)\n \*\t  (.*?)\n \*(?:/|\s*\n)}s;
	my $what = $text{$f} =~ m{\A/\*\s*\n \* \S+\n((?: \*\t  .*\n)+)} ? $1 : '';

	$what =~ s/^ \*\t  //mg;
	$what =~ s/\s+/ /g;
	$what =~ s/\s+$//;
	# its first sentence, and no more than a sentence may have (test/comments.pl)
	$what =~ s/(?<=[a-z\d)])\. .*$/./;
	$what =~ s/[:;] .*$/./ if (my @w = split / /, $what) > 22;
	fail("$f: its banner names $1") if $text{$f} =~ m{\A/\*\s*\n \* (\S+)\n} && $1 ne ($f =~ m{([^/]+)$})[0];
	return $what;
}

# What is said of a room in one sentence: the title of its README.md.
sub room_is
{
	my ($r) = @_;

	return $without{$r} if $without{$r};
	return $1 if $design{"src/$r/README.md"} =~ /\A# \Q$r\E: (.+?)\.?\s*\n/;
	fail("src/$r/README.md does not begin with \"# $r: what it is\"");
	return '';
}

sub map_text
{
	my $out = '';

	foreach my $r (@rooms)
	{
		my $what = room_is($r);
		my @f = map { (m{([^/]+)$})[0] } grep { $room{$_} eq $r } @src;

		if ($without{$r}) { $out .= '- ' . join(', ', map { ($r eq 'core' ? '`core/' : '`') . "$_`" } @f) . ": $what.\n"; }
		else              { $out .= "- [$r]($r/README.md): $what.\n"; }
	}
	return $out;
}

# The files of a room, with what their banners say.
sub list_text
{
	my ($r) = @_;
	my $out = '';

	foreach my $f (grep { $room{$_} eq $r } @src)
	{
		my ($b) = $f =~ m{([^/]+)$};
		my $what = banner($f);

		fail("$f has no banner") if $what eq '';
		$out .= "- `$b`: $what\n";
	}
	return $out;
}

# ---- sections and their files ----

my %section;
foreach my $f (keys %design) { $section{$f}{$_} = [] foreach $design{$f} =~ /^## (.*?)\s*$/mg; }
foreach my $r (@rooms)
{
	foreach my $f (grep { $room{$_} eq $r } @src)
	{
		my ($head) = $text{$f} =~ m{\A(/\*.*?)\*/}s;
		my $cites = 0;

		while (($head // '') =~ /^ \* (src\/(?:[\w\/]+\/)?README\.md): (.*?)\s*$/mg)
		{
			my ($in, $s) = ($1, $2);

			$cites++;
			if ($section{$in}{$s}) { push @{ $section{$in}{$s} }, $f; }
			else                   { fail("$f cites the section \"$s\" of $in, which is not there"); }
		}
		fail("$f cites no section: its first comment ends with no line \"src/ROOM/README.md: TITLE\"") unless $cites;
	}
}

# "Files: `b.c`, `a/c.c`.", in lines of 100; those of the README's own room by their names.
sub files_text
{
	my ($in, $s) = @_;
	my ($out, $line) = ('', 'Files:');
	my ($dir) = $in =~ m{^(.*/)};
	my @f = map { (my $b = $_) =~ s{^\Q$dir\E|^src/}{}; "`$b`" } @{ $section{$in}{$s} };

	fail("the section \"$s\" of $in names no file: none cites it") unless @f;
	for (my $i = 0; $i < @f; $i++)
	{
		my $w = $f[$i] . ($i < $#f ? ',' : '.');

		if (length("$line $w") > 100) { $out .= "$line\n"; $line = $w; }
		else                          { $line .= " $w"; }
	}
	return "$out$line\n";
}

# A README.md as it should be.
sub written
{
	my ($f) = @_;
	my $t = $design{$f};
	my ($r) = $f =~ m{^src/(.+)/README\.md$};

	if (defined $r)
	{
		my $list = list_text($r);

		$t =~ s/\A(# [^\n]*\n)\n?(?:<!-- files -->\n.*?<!-- end of files -->\n\n?)?/$1\n<!-- files -->\n$list<!-- end of files -->\n\n/s;
	}
	else
	{
		my $map = map_text();

		$t =~ s/(<!-- rooms -->\n).*?(<!-- end of rooms -->)/$1$map$2/s or fail("$f has no place for the map of rooms");
	}
	# what is about no file of its own needs none: the sections of src/README.md
	$t =~ s/^(## (.*?)\s*\n\n)(?:Files:(?:.+\n)+\n|Files:\n\n)?/$1 . (!defined $r && !@{ $section{$f}{$2} } ? '' : files_text($f, $2) . "\n")/meg;
	return $t;
}

# A room is read in one sitting.  The lists that "write" makes do not count.
sub check_length
{
	my ($f) = @_;
	my $prose = $design{$f};
	my $most = $f eq 'src/README.md' ? 3000 : 2500;

	$prose =~ s/<!-- files -->.*?<!-- end of files -->//s;
	$prose =~ s/^Files:(?:.+\n)+//mg;
	my $words = () = $prose =~ /\S+/g;

	fail("$f has $words words, more than $most") if $words > $most;
}

my $what = shift // 'check';
if ($what eq 'write')
{
	foreach my $f (keys %design)
	{
		my $t = written($f);

		open(my $h, '>', $f) or die "$f: $!";
		print $h $t;
		close($h) or die "$f: $!";
	}
}
elsif ($what eq 'count')
{
	my $all = 0;

	foreach my $r (@rooms)
	{
		my ($c, $h) = (0, 0);

		foreach my $f (grep { $room{$_} eq $r } @src)
		{
			my $n = () = $text{$f} =~ /\n/g;

			if ($f =~ /c$/) { $c += $n; }
			else            { $h += $n; }
		}
		my $to = join(', ', map { "$_ $refs{$r}{$_}" } sort { $rank{$a} <=> $rank{$b} } keys %{ $refs{$r} });

		$all += $_ foreach values %{ $refs{$r} };
		printf "%-14s %6d lines of .c, %5d of .h; refers to %s\n", $r, $c, $h, $to eq '' ? 'none' : $to;
	}
	print "$all references between files of different rooms\n";
}
elsif ($what eq 'check')
{
	foreach my $f (sort keys %design)
	{
		fail("$f does not list its rooms or files, or a section those that cite it; run \"perl test/rooms.pl write\"")
		  unless written($f) eq $design{$f};
		check_length($f);
	}
}
else
{
	die "usage: $0 check|write|count\n";
}
exit $bad;
