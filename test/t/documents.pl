# Every SQL example of README.md and doc/*.md does what the document says it does.
# perl/ArtDocument.pm says what an example is, and what is compared.  DOCUMENT=name
# runs one of them.
use strict;
use warnings;

use File::Basename qw(dirname basename);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;
use ArtDocument;

my $top = dirname(__FILE__) . '/../..';

# ---- that the comparison notices differences ----

{
	my @doc = ('NOTICE:  so', ' name | n ', '------+---', ' a    | 1 ', '(1 row)');
	my ($got, $want) = statement_same(\@doc, [@doc], {});
	is($got, $want, 'what is the same is the same');
	foreach my $other (['NOTICE:  not so', @doc[1 .. 3]], [@doc[0 .. 3], ' b    | 1 '],
		[@doc[0 .. 2], ' a    | 2 '], [@doc[1 .. 3]], [@doc[0 .. 2]])
	{
		($got, $want) = statement_same(\@doc, $other, {});
		isnt($got, $want, 'another message, row or figure is noticed');
	}
	($got, $want) = statement_same(\@doc, [@doc[0 .. 2], ' a    | 23 '], { n => 1 });
	is($got, $want, 'but not where the document says that it varies');
	($got, $want) = statement_same(\@doc, [@doc[0 .. 2], ' a    | x '], { n => 1 });
	isnt($got, $want, 'where a word is noticed');
	($got, $want) = statement_same([], [' f ', '---', '', '(1 row)'], {});
	is($got, $want, 'a void result may be left out');
	($got, $want) = statement_same([], [' f ', '---', ' 7', '(1 row)'], {});
	isnt($got, $want, 'a value may not');
}

# ---- the documents ----

if ((`pg_config --version` =~ /(\d+)/)[0] != 15)
{
	note('the documents show the output of PostgreSQL 15');
	done_testing();
	exit;
}

# Run the steps in one session; every one is marked in both outputs.
sub run_steps
{
	my ($node, $database, $document, @steps) = @_;
	my $script = '';
	my ($out, $err) = ('', '');

	return if !@steps;
	foreach my $i (0 .. $#steps)
	{
		$script .= "\\echo \@\@$i\n\\warn \@\@$i\n$steps[$i]{sql}\n";
	}
	IPC::Run::run([ 'psql', '-X', '-d', $node->connstr($database) ],
		'<', \$script, '>', \$out, '2>', \$err, IPC::Run::timeout(600));

	my %said = map { $_ => ['(nothing, the session had ended)'] } 0 .. $#steps;
	$said{$_} = [] foreach $err =~ /^@@(\d+)$/mg;
	foreach my $text ($err, $out)
	{
		my $at;
		foreach my $line (split /\n/, $text)
		{
			if ($line =~ /^@@(\d+)$/) { $at = $1; }
			elsif (defined $at) { push @{ $said{$at} }, $line; }
			else { fail("$document: before the first statement: $line"); }
		}
	}
	foreach my $i (0 .. $#steps)
	{
		my $step = $steps[$i];
		my $name = "$document:$step->{line}: " . substr($step->{sql} =~ s/\s+/ /gr, 0, 60);

		if (defined $step->{expected})
		{
			my ($got, $want) = statement_same($step->{expected}, $said{$i}, $step->{varies});
			is($got, $want, $name) or diag("the server said:\n" . join("\n", @{ $said{$i} }));
		}
		else
		{
			my @bad = grep { /^(?:ERROR|FATAL|PANIC|WARNING|psql|invalid)/ } @{ $said{$i} };
			is(join("\n", @bad), '', $name);
		}
	}
	return;
}

# Run a block of language "sh", with the server's programs in the path.
sub run_shell
{
	my ($node, $database, $name, $commands) = @_;
	my $log = '';

	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => $database);
	my $ok = IPC::Run::run([ 'bash', '-e', '-c', $commands ], '>', \$log, '2>&1', IPC::Run::timeout(600));
	ok($ok, "$name: the commands end well") or diag($log);
	return;
}

sub run_document
{
	my ($file) = @_;
	my $document = basename($file);
	my @blocks = document_blocks(slurp_file($file));
	return if !grep { block_steps($_) } @blocks;

	my $node = PostgreSQL::Test::Cluster->new($document =~ s/\W/_/gr);
	my $database = 'postgres';
	my (@steps, $examples);

	# as servers are by default, and not without WAL
	$node->init(allows_streaming => 1);
	art_conf($node, 'artidx.memory' => "'256MB'", jit => 'off');
	$node->start;
	foreach my $block (@blocks)
	{
		my @these = block_steps($block);
		my %varies;
		my $run = 1;

		foreach my $directive (@{ $block->{directives} })
		{
			my ($word, $rest) = @$directive;

			if ($word eq 'not run')
			{
				isnt($rest, '', "$document:$block->{line}: not run: $rest");
				$run = 0;
			}
			elsif ($word eq 'varies') { %varies = map { $_ => 1 } split /,\s*/, $rest; }
			elsif ($word eq 'wait')
			{
				# each time a statement of its own: no other one sees a setting that was reloaded
				my $look = "SELECT NOT coalesce(($rest), false) AS more \\gset\n";
				push @steps, { line => $block->{line}, sql => $look .
					join('', map { "\\if :more\nSELECT pg_sleep($_ * 0.05);\n$look\\endif\n" } 1 .. 68) .
					"\\if :more\n\\warn 'ERROR: waited in vain'\n\\endif\n" };
			}
			elsif ($word eq 'shell' || $word eq 'connect')
			{
				run_steps($node, $database, $document, @steps);
				@steps = ();
				$database = $rest if $word eq 'connect';
				run_shell($node, $database, "$document:$block->{line}", $block->{text}) if $word eq 'shell';
				$examples++;
			}
			elsif ($word eq 'run') { push @steps, { line => $block->{line}, sql => "$rest\n" }; }
			else
			{
				run_steps($node, $database, $document, @steps);
				@steps = ();
				if ($word eq 'database')
				{
					$node->safe_psql('postgres', "CREATE DATABASE $rest");
					$database = $rest;
				}
				else
				{
					$node->stop($word eq 'crash' ? 'immediate' : 'fast');
					$node->start;
				}
			}
		}
		if ($block->{language} eq 'conf' && $run)
		{
			run_steps($node, $database, $document, @steps);
			@steps = ();
			$node->append_conf('postgresql.conf', $block->{text});
			$node->restart;
		}
		next if !$run;
		$_->{varies} = \%varies foreach @these;
		$examples += @these;
		push @steps, @these;
	}
	run_steps($node, $database, $document, @steps);
	$node->stop;
	note("$document: " . ($examples // 0) . ' examples');
	return;
}

foreach my $file ("$top/README.md", glob("$top/doc/*.md"))
{
	run_document($file) if index(basename($file), $ENV{DOCUMENT} // "") == 0;
}

done_testing();
