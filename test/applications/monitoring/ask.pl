#!/usr/bin/perl
#
# test/applications/monitoring/ask.pl URL DASHBOARD
#	  Each expression of the dashboard is put to the Prometheus at URL, as Grafana would put
#	  it, again and again, until it has answered with series that have all labels of its
#	  legend.  Then what the documents say of the alerts and of the other exporter.  Prints
#	  "ok WHAT" or "not ok WHAT" for each, and how many questions it asked.
#
use strict;
use warnings;
use HTTP::Tiny;
use JSON::PP qw(decode_json);

my ($url, $file) = @ARGV;
my $http = HTTP::Tiny->new(timeout => 10);
my $asked = 0;

sub api
{
	my ($path, %with) = @_;
	my $answer = $http->get("$url/api/v1/$path" . (%with ? '?' . $http->www_form_urlencode(\%with) : ''));
	my $said = eval { decode_json($answer->{content}) } || { status => 'error', error => $answer->{content} };

	$asked++;
	return ($said->{data}, $said->{status} eq 'success' ? undef : $said->{error});
}

# Questions are subroutines: undef when the answer is as it must be, else what it was.
my @questions;

# series EXPRESSION, LABELS: some have all of these
sub series
{
	my ($expr, @labels) = @_;

	return sub {
		my $databases = join '|', @{ (api('label/database/values', 'match[]' => 'sql_artidx_indexes'))[0] // [] };
		my ($data, $error) = api('query', query => $expr =~ s/\$database/($databases)/gr);

		return $error if defined $error;
		return 'no series' if !@{ $data->{result} };
		return undef if grep { my $m = $_->{metric}; !grep { !length($m->{$_} // '') } @labels } @{ $data->{result} };
		return 'no series with all of ' . join(' ', @labels);
	};
}

open my $in, '<', $file or die "$file: $!\n";
my $board = decode_json(do { local $/ = undef; <$in> });
foreach my $panel (@{ $board->{panels} })
{
	foreach my $target (@{ $panel->{targets} // [] })
	{
		push @questions, [ "$panel->{title}: $target->{expr}", series($target->{expr}, $target->{legendFormat} =~ /\{\{(\w+)\}\}/g) ];
	}
}
push @questions, [ "annotation $_->{name}: $_->{expr}", series($_->{expr}) ] foreach @{ $board->{annotations}{list} };
foreach my $variable (@{ $board->{templating}{list} })
{
	my ($metric, $label) = $variable->{query}{query} =~ /^label_values\((\w+), (\w+)\)$/ or die "variable $variable->{name}\n";

	push @questions, [ "variable $variable->{name}: $label of $metric", sub {
		my ($data, $error) = api("label/$label/values", 'match[]' => $metric);
		return $error // (@$data ? undef : 'no value');
	} ];
}
# An index that is away is counted, one server is a primary and one a standby.
push @questions, [ $_, series($_) ] foreach 'count(sql_artidx_indexes{col="ready"} == 0) > 0', 'count(count by (host) (sql_artidx_memory)) == 2',
  # what the other exporter tells of a server with artidx
  'pg_up == 1 and pg_exporter_last_scrape_error == 0', 'pg_settings_artidx_memory_bytes == 2 ^ 28',
  'pg_stat_database_xact_commit{datname="monitoring"} > 0';
push @questions, [ 'the alerts are evaluated', sub {
	my ($data, $error) = api('rules');
	my @rules = map { @{ $_->{rules} } } @{ ($data // {})->{groups} // [] };
	my @bad = grep { $_->{health} ne 'ok' } @rules;
	return $error // (@rules == 5 && !@bad ? undef : join ', ', scalar(@rules), map { "$_->{name} $_->{health} " . ($_->{lastError} // '') } @bad);
} ];
push @questions, [ 'an index that is away is a pending alert', sub {
	my ($data, $error) = api('alerts');
	return $error // ((grep { $_->{labels}{alertname} eq 'ArtidxIndexNotReady' && $_->{state} eq 'pending' } @{ $data->{alerts} }) ? undef : 'none');
} ];

my $end = time() + 240;
my %said;
do
{
	foreach my $q (@questions)
	{
		next if exists $said{ $q->[0] } && !defined $said{ $q->[0] };
		$said{ $q->[0] } = $q->[1]->();
	}
	sleep 1;
} while (grep { defined } values %said) && time() < $end;
print defined $said{ $_->[0] } ? "not ok $_->[0]\n# $said{$_->[0]}\n" : "ok $_->[0]\n" foreach @questions;
print "# asked: $asked times\n";
