# The SQL examples of a document, and what a server makes of them.
#
# Run are all fenced blocks of language "sql", which have to work without a warning,
# and all with lines that begin with "=# ", whose output is compared.  A block of
# language "conf" is what postgresql.conf has from there on.  The statements of a
# document are one session in one database.  A comment before a block directs it:
#
#	<!-- example: not run, REASON -->	but not of SQL that could be run
#	<!-- example: varies COLUMN, ... -->	figures of these columns; "messages": those in
#						NOTICE, WARNING, ERROR, DETAIL, HINT, CONTEXT
#	<!-- example: wait CONDITION -->	until it is true (SQL)
#	<!-- example: run COMMANDS -->		beforehand, what is not worth showing (SQL)
#	<!-- example: restart -->		the server, with the settings there are; or "crash"
#	<!-- example: database NAME -->		go on in a new one, that has not the extension
#	<!-- example: connect NAME -->		go on in one that is there
#	<!-- example: shell -->			a block of language "sh" is run, and has to end well
#
# What the document leaves out is not compared: the number of rows, command tags where it
# has none, LINE of an error, a result without a value.  A size with its unit
# is taken for any other but none; all other words, rows and figures must be there.
package ArtDocument;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(document_blocks block_steps statement_same);

my $message = qr/^(?:NOTICE|WARNING|ERROR|DETAIL|HINT|CONTEXT|INFO): /;
my $tag = qr/^(?:(?:CREATE|ALTER|DROP) [A-Z ]+|INSERT \d+ \d+|(?:UPDATE|DELETE|SELECT|COPY|MOVE|FETCH) \d+|SET|RESET|BEGIN|COMMIT|ROLLBACK|CALL|DO|VACUUM|ANALYZE|REINDEX|CLUSTER|TRUNCATE TABLE|GRANT|REVOKE|CHECKPOINT|COMMENT|LOCK TABLE|PREPARE|PREPARE TRANSACTION|DEALLOCATE|EXPLAIN)$/;

# Blocks of the text: { line, language, text, directives => [[word, rest], ...] }.
sub document_blocks
{
	my ($text) = @_;
	my (@blocks, @directives);
	my $block;
	my $n = 0;

	foreach my $line (split /\n/, $text)
	{
		$n++;
		if ($block)
		{
			if ($line =~ /^\s*```\s*$/)
			{
				push @blocks, $block;
				$block = undef;
			}
			else
			{
				$block->{text} .= "$line\n";
			}
		}
		elsif ($line =~ /^\s*```(\w*)/)
		{
			$block = { line => $n, language => $1, text => '', directives => [@directives] };
			@directives = ();
		}
		elsif ($line =~ /^\s*<!-- example: (not run|varies|wait|run|restart|crash|database|connect|shell)\b,?\s*(.*?)\s*-->\s*$/)
		{
			push @directives, [ $1, $2 ];
		}
		elsif ($line =~ /<!-- example/)
		{
			die "line $n: not a directive: $line\n";
		}
		elsif ($line =~ /\S/ && @directives)
		{
			die "line $n: a directive without a block behind it\n";
		}
	}
	die "line $block->{line}: the block does not end\n" if $block;
	die "a directive at the end\n" if @directives;
	return @blocks;
}

sub complete
{
	my ($sql) = @_;
	my $quotes = () = $sql =~ /\$\$/g;

	return 1 if $sql =~ /^\\/;
	$sql =~ s/\s*--[^\n]*$//;
	return $quotes % 2 == 0 && $sql =~ /;\s*$/;
}

# The statements of a block: { line, sql, expected => [lines] or undef }; none when
# it is not one of SQL.
sub block_steps
{
	my ($block) = @_;
	my $n = $block->{line};
	my @steps;

	if ($block->{language} eq 'sql')
	{
		return { line => $n, sql => $block->{text}, expected => undef };
	}
	return if $block->{text} !~ /^=# /m;
	foreach my $line (split /\n/, $block->{text})
	{
		$n++;
		if ($line =~ /^=# (.*)/)
		{
			die "line $n: the statement before has no end\n" if @steps && !complete($steps[-1]{sql});
			push @steps, { line => $n, sql => "$1\n", expected => [] };
		}
		elsif (!@steps)
		{
			die "line $n: output before the first statement\n";
		}
		elsif (!complete($steps[-1]{sql}))
		{
			$steps[-1]{sql} .= "$line\n";
		}
		else
		{
			push @{ $steps[-1]{expected} }, $line;
		}
	}
	die "line $n: the last statement has no end\n" if !complete($steps[-1]{sql});
	return @steps;
}

sub figures
{
	my ($text) = @_;
	$text =~ s/-?\d+(?:\.\d+)?(?: (?:bytes|kB|MB|GB|TB)\b)?/#/g;
	$text =~ s/#(?::#)+/#/g;
	return $text;
}

sub sizes
{
	my ($text) = @_;
	$text =~ s/\b(?!0 )\d+(?:\.\d+)? (?:bytes|kB|MB|GB|TB)\b/SIZE/g;
	return $text;
}

# Messages and rows as they are compared.
sub normalized
{
	my ($lines, $varies, $with_tags) = @_;
	my (@messages, @rows);
	my $columns;

	foreach my $line (@$lines)
	{
		if ($line =~ $message)
		{
			push @messages, $varies->{messages} ? figures($line) : sizes($line);
			next;
		}
		next if $line =~ /^LINE \d+:|^\s*\^\s*$|^\(\d+ rows?\)$|^\s*$/;
		if ($line =~ $tag)
		{
			push @rows, $line if $with_tags;
			next;
		}
		if ($line =~ /^-+(?:\+-+)*$/)
		{
			# the names of the columns were the line before
			$columns = $rows[-1];
			next;
		}
		my @cells = map { s/^\s+|\s+$//gr } split /\|/, $line, -1;
		push @rows, [@cells];
	}
	foreach my $row (@rows)
	{
		next if !ref $row;
		if ($columns && $row != $columns)
		{
			foreach my $i (0 .. $#$row)
			{
				my $name = $columns->[$i] // '';
				$row->[$i] = $varies->{$name} ? figures($row->[$i]) : sizes($row->[$i]);
			}
		}
		$row = join(' | ', @$row);
	}
	return (\@messages, \@rows);
}

# What the server said as it is compared with what the document says: two texts.
sub statement_same
{
	my ($expected, $got, $varies) = @_;
	my $with_tags = grep { $_ =~ $tag } @$expected;
	my ($em, $er) = normalized($expected, $varies, $with_tags);
	my ($gm, $gr) = normalized($got, $varies, $with_tags);

	# SELECT of a function that returns nothing, shown without its result
	$gr = [] if !@$er && @$gr == 1;
	return (join("\n", @$gm, @$gr), join("\n", @$em, @$er));
}

1;
