#!/bin/bash
#
# test/analyse.sh [FILE...]
#	  gcc -fanalyzer, clang-tidy and clang's analyzer over every file of src, or over those; "make
#	  analyse" calls it.
#
# Assertions are on, so that the analysers know what they say.  Each report is mended in the source, or
# test/analyse.list says why it is false.  The script prints the reports that the list does not have.
# Without FILE it also prints the entries of these tools' checks that nobody reports any more.  Either
# is a failure.  .clang-tidy names the checks of clang-tidy.
#
#	JOBS		files at a time (2)
#	TOOLS		"gcc clang-tidy clang-analyzer"; the last takes ten times the time of the others
#	RESULTS		a file for all reports, "FILE<TAB>CHECK<TAB>TEXT OF THE LINE<TAB>LINE: MESSAGE"
#	EVIDENCE=1	the counts go to doc/evidence.md
#
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

: "${JOBS:=2}" "${TOOLS:=gcc clang-tidy clang-analyzer}" "${RESULTS:=}"
[ "$TOOLS" = gcc ] || NEEDS=clang-tidy
art_need_packages
PG_CONFIG=$(art_find_pg_config) || art_die "no PostgreSQL with PGXS found"
WORK=$(mktemp -d "${TMPDIR:-/tmp}/artidx-analyse.XXXXXX") || exit 1
trap 'rm -rf "$WORK"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
[ -z "$RESULTS" ] || RESULTS=$(realpath -m "$RESULTS")
cd "$TREE" || exit 1
FLAGS="-std=gnu17 -fwrapv -fno-strict-aliasing -Isrc -I$("$PG_CONFIG" --includedir-server)"
FLAGS+=" -D_GNU_SOURCE -DARTIDX_VERSION=\"analysis\" -DPGDLLEXPORT= -DAX_DEBUG -DUSE_ASSERT_CHECKING=1"
export FLAGS WORK

# analyse TOOL FILE: what it says, into a file
analyse()
{
	local out

	out=$WORK/$(tr / _ <<<"$2").$1
	# shellcheck disable=SC2086
	case $1 in
		gcc) gcc $FLAGS -O1 -fanalyzer -fdiagnostics-plain-output -fdiagnostics-path-format=none -S -o /dev/null "$2" ;;
		clang-tidy) clang-tidy --quiet --checks=-clang-analyzer-* "$2" -- $FLAGS -w ;;
		clang-analyzer) clang-tidy --quiet --checks=-bugprone-*,-concurrency-* "$2" -- $FLAGS -w ;;
		*) echo "error: no such tool: $1" ;;
	esac >"$out" 2>&1
}
export -f analyse

if [ $# -gt 0 ]; then printf '%s\n' "$@"; else find src -name '*.c' | sort; fi >"$WORK/files"
for tool in $TOOLS; do
	xargs -P "$JOBS" -I{} bash -c 'analyse "$@"' analyse "$tool" {} <"$WORK/files"
done
perl - "$(cat "$WORK/files" | wc -l)" "$#" "$TOOLS" "$TREE/test/analyse.list" "$RESULTS" "$WORK"/src* <<'PERL' | tee "$WORK/said"
	use strict;
	use warnings;

	my ($files, $some, $tools, $list, $results, @logs) = @ARGV;
	my (%text, %report, %known, @errors);

	sub text_of
	{
		my ($file, $line) = @_;
		if (!$text{$file})
		{
			open my $in, '<', $file or return '';
			$text{$file} = [ '', <$in> ];
		}
		return ($text{$file}[$line] // '') =~ s/^\s+|\s+$//gr =~ s/\s+/ /gr;
	}

	foreach my $log (@logs)
	{
		open my $in, '<', $log or die "$log: $!\n";
		while (<$in>)
		{
			push @errors, $_ if /\berror: /;
			my ($file, $line, $message, $check) = /^(\S+?):(\d+):\d+: warning: (.*) \[([\w.,-]+)\]$/ or next;
			$file =~ s{^.*?/(?=src/)}{} if $file =~ m{^/};
			next if $file !~ m{^src/};
			my $key = join "\t", $file, $check, text_of($file, $line);
			$report{$key} //= "$line: $message";
		}
	}
	if ($results ne '')
	{
		open my $out, '>', $results or die "$results: $!\n";
		print $out "$_\t$report{$_}\n" foreach sort keys %report;
	}
	open my $in, '<', $list or die "$list: $!\n";
	my $reason = '';
	while (<$in>)
	{
		chomp;
		if (/^#/) { $reason = $_; next; }
		next if $_ eq '';
		die "$list:$.: no reason before it\n" if $reason eq '';
		die "$list:$.: not FILE, CHECK and the line's text, between tabs\n" if (() = /\t/g) != 2;
		$known{$_} = 1;
	}
	my @new = grep { !$known{$_} } sort keys %report;
	sub tool_of { return $_[0] =~ /\t-Wanalyzer/ ? 'gcc' : $_[0] =~ /\tclang-analyzer/ ? 'clang-analyzer' : 'clang-tidy' }
	my @gone = $some ? () : grep { my $tool = tool_of($_); !$report{$_} && " $tools " =~ / $tool / } sort keys %known;
	print @errors;
	print join("\t", (split /\t/, $_)[ 0, 1 ]), " line $report{$_}\n    ", (split /\t/, $_)[2], "\n" foreach @new;
	print "nobody reports this any more; take it from test/analyse.list:\n    $_\n" foreach @gone;
	printf "%d files, %d reports, %d of them explained; %d not explained, %d explanations without a report, %d errors\n",
	  $files, scalar keys %report, @{[ keys %report ]} - @new, scalar @new, scalar @gone, scalar @errors;
	exit(@new || @gone || @errors ? 1 : 0);
PERL
rc=${PIPESTATUS[0]}
[ $# -gt 0 ] || art_evidence analyse "make analyse" \
	"Static analysis of every file of src by $TOOLS. Each report that is left is false; test/analyse.list says why." \
	"gcc" "$(gcc -dumpfullversion)" "clang-tidy" "$(clang-tidy --version | sed -n 's/.*version //p' | head -1)" \
	"reports" "$(tail -1 "$WORK/said")"
exit "$rc"
