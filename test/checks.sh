#!/bin/bash
#
# test/checks.sh
#	  Rules of the tree that a compiler does not check.
#
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0

fail()
{
	echo "checks: $*" >&2
	bad=1
}

# Rooms: what may refer to what, and signposts that lead somewhere.
perl test/rooms.pl check || fail "the rooms of src are not in order: see test/rooms.pl"

# Where the core would answer wrongly it does not compile.
for d in __BYTE_ORDER__=__ORDER_BIG_ENDIAN__ __SIZEOF_POINTER__=4; do
	"${CC:-cc}" -std=gnu11 -fsyntax-only -w -U"${d%%=*}" -D"$d" -x c src/core/ax.h 2>&1 | grep -q 'artidx needs a little-endian' ||
		fail "src/core/ax.h compiles with $d"
done

# Server files start with postgres.h.
for f in src/*.c $(find src -mindepth 2 -name '*.c' ! -path 'src/core/*'); do
	grep -m1 -E '^#[[:space:]]*include' "$f" | grep -q '"postgres.h"' ||
		fail "$f: the first include is not postgres.h"
done

while IFS= read -r f; do
	n=$(wc -l <"$f")
	[ "$n" -lt 1300 ] || fail "$f has $n lines"
done < <(find src test -name '*.[ch]')

if grep -nE '\b(TODO|FIXME|XXX)\b' -r src --include='*.[ch]'; then
	fail "unfinished work is marked in src"
fi

# No node has the tag of a family: a server with assertions aborts.
if grep -rnE '\b(castNode|(lfirst|linitial|lsecond|llast|list_nth)_node)\((Node|Expr|Path|Plan|Scan|Join|PlanState|ScanState)\b' src --include='*.c'; then
	fail "castNode() and the like take the type that the node is tagged with, and these are tags of none"
fi

if grep -n '@extschema@' src/sql/*.sql; then
	fail "the extension is relocatable: no @extschema@; what a view names is found when it is made"
fi

# The install script runs where others may create: what it calls and reads has its schema
# (src/views/README.md: The SQL of the extension).
check_script_names()
{
	perl - src/sql/*.sql src/sql/from-*/*.sql <<-'PERL' || fail "names without pg_catalog in src/sql"
		use strict; use warnings;
		my $bad = 0;
		my $words = join '|', qw(in exists values table as and or not from join select where on lateral if then else by is operator execute materialized coalesce nullif greatest);
		foreach my $file (@ARGV)
		{
			open my $in, '<', $file or die "$file: $!\n";
			local $/ = undef;
			my $text = <$in>;
			# comments and strings leave their lines
			$text =~ s{(/\*.*?\*/|--[^\n]*|'[^']*')}{$1 =~ tr/\n//cdr}gse;
			while ($text =~ /(?<![\w.])(?!(?:$words)\b|artidx_|arthandler\b)([a-z_]\w*)\s*\(|(::)\s*(?!pg_catalog\.)|\b(?:FROM|JOIN)\s+(?!pg_catalog\.|artidx_|LATERAL\b|PUBLIC\b|\()(\w+)/gi)
			{
				my $what = $1 // $2 // $3;
				my $line = 1 + (() = substr($text, 0, $-[0]) =~ /\n/g);
				print STDERR "$file:$line: $what\n";
				$bad = 1;
			}
		}
		exit $bad;
	PERL
}
check_script_names

# sql/ has the inputs of the regression tests: each is in REGRESS, and has its output.
listed=" $(sed -n '/^REGRESS /,/[^\\]$/p; /^REGRESS += /p' Makefile | sed 's/^REGRESS [+]*= //; s/\\$//' | tr -s ' \t\n' ' ') "
for f in sql/*; do
	name=$(basename "$f" .sql)
	case $listed in
		*" $name "*) [ -f "expected/$name.out" ] || fail "$f has no expected/$name.out" ;;
		*) fail "$f is not in REGRESS of the Makefile" ;;
	esac
done
for f in expected/*.out; do
	name=$(basename "$f" .out)
	[ -f "sql/${name%_[0-9]}.sql" ] || fail "$f has no sql/${name%_[0-9]}.sql"
done

# Only src/eval evaluates anything of an index (eval.h has the rule).  FILE: NAME... are exceptions,
# each with its reason.
check_eval()
{
	local names='ExecPrepareExpr|ExecInitExpr|ExecEvalExpr\w*|ExecPrepareQual|ExecQual\w*|FormIndexDatum|BuildIndexInfo|RelationGetIndexExpressions|RelationGetIndexPredicate|table_index_build_\w+|table_index_validate_scan|(Oid)?FunctionCall\w*|OidInputFunctionCall|OidOutputFunctionCall|InputFunctionCall\w*|OutputFunctionCall|ApplySort\w*Comparator|PrepareSortSupport\w*|datum_image_eq|ExecInsertIndexTuples'
	local allowed='
		plan/join_executor.c: ExecQual
		plan/aggregate_executor.c: ExecQual
		plan/on_conflict.c: BuildIndexInfo
		build/btree_limit.c: BuildIndexInfo FormIndexDatum
		build/parallel_create.c: BuildIndexInfo
		build/table_scan.c: FormIndexDatum table_index_build_scan table_index_build_range_scan
		views/check_function.c: BuildIndexInfo table_index_build_range_scan'
	# join_executor, aggregate_executor: the statement's own conditions, as a nested loop's and HAVING
	# on_conflict: what core's executor does for a row that is inserted, as its inserter
	# btree_limit: of the index of a constraint, which has neither expressions nor a predicate
	# parallel_create, table_scan: CREATE INDEX, where core has made the owner the current user
	# check_function: between art_check_begin and art_check_end, as src/eval says
	local f name

	while IFS=: read -r f name; do
		f=${f#src/}
		grep -qE "^[[:space:]]*$f:.* $name( |\$)" <<<"$allowed" ||
			fail "src/$f calls $name: only src/eval evaluates anything of an index"
	done < <(find src -name '*.[ch]' ! -path 'src/core/*' ! -path 'src/eval/*' -print0 |
		xargs -0 perl -0777 -ne 's{/\*.*?\*/}{}gs; print "$ARGV:$1\n" while /\b('"$names"')\(/g' | sort -u)
	grep -q 'no function, operator, cast or table is ever run or read with more rights than its' src/eval/eval.h ||
		fail "src/eval/eval.h does not begin with the rule"
}
check_eval

# What a comment must say (test/comments.pl): each longer function what it does,
# each that takes a lock or calls the core which (src/README.md, Contracts).
check_comments()
{
	local all design

	mapfile -t all < <(find src -name '*.[ch]' | sort)
	mapfile -t design < <(find src -name README.md | sort)
	perl test/comments.pl functions "${all[@]}" ||
		fail "functions without a sentence"
	perl test/comments.pl contracts "${all[@]}" ||
		fail "functions that do not say which locks they take"
	perl test/comments.pl jumps "${all[@]}" ||
		fail "a goto into a block, or a macro that hides a jump"
	perl test/comments.pl sentences "${all[@]}" "${design[@]}" ||
		fail "sentences that hide who acts"
	perl test/comments.pl pronouns "${all[@]}" "${design[@]}" ||
		fail "comments that a reader has to read twice"
	mapfile -t all < <(find src -name '*.h' | sort)
	perl test/comments.pl headers "${all[@]}" ||
		fail "declarations without a contract"
}
check_comments

if command -v python3 >/dev/null 2>&1; then
	python3 -c 'import json; json.load(open("META.json"))' ||
		fail "META.json is not JSON"
fi

version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" artidx.control)
[ "$(sed -n "s/^default_version = '\(.*\)'/\1/p" artidx_debug.control)" = "$version" ] ||
	fail "artidx.control and artidx_debug.control name different versions"
grep -q "\"version\": \"$version\"" META.json ||
	fail "META.json and artidx.control name different versions"
grep -q "^version = \"$version\"\$" report/pyproject.toml ||
	fail "report/pyproject.toml and artidx.control name different versions"
grep -q "^EXTVERSION = $version\$" Makefile ||
	fail "Makefile and artidx.control name different versions"

# ---- documents ---------------------------------------------------------------------

DOCUMENTS="README.md CONTRIBUTING.md doc/*.md"

check_prose()
{
	local size

	# figures.pl writes doc/figures.md, and evidence.pl doc/evidence.md
	perl test/prose.pl test/README.md $(ls $DOCUMENTS | grep -vE '^doc/(figures|evidence).md$') >&2 ||
		fail "sentences that a reader stumbles over; test/prose.pl says which rule"
	size=$(wc -c <README.md)
	[ "$size" -le 9216 ] || fail "README.md has $size bytes, more than 9 KB"
}

# A link between documents leads to a file, and to a heading of it.
check_links()
{
	perl - $DOCUMENTS test/README.md test/*/README.md src/README.md src/*/README.md src/core/*/README.md doc/internals/*.md <<-'PERL' || fail "links that lead nowhere"
		use strict; use warnings; use File::Basename;
		my $bad = 0;
		sub slurp { open my $in, '<', $_[0] or return ''; local $/ = undef; return <$in> // '' }
		sub anchors
		{
			my %have;
			my $text = slurp($_[0]) =~ s/^```.*?^```//gmsr;
			while ($text =~ /^#+ (.*)/mg)
			{
				my $a = lc $1;
				$a =~ s/[^\w\- ]//g;
				$a =~ s/ /-/g;
				$have{$a} = 1;
			}
			return \%have;
		}
		foreach my $file (@ARGV)
		{
			my $text = slurp($file) =~ s/^```.*?^```//gmsr =~ s/`[^`\n]*`//gr;
			while ($text =~ /\]\(([^)\s]+)\)/g)
			{
				my ($to, $anchor) = $1 =~ /^([^#]*)(?:#(.*))?$/;
				next if $to =~ /^\w+:/;
				my $target = $to eq '' ? $file : dirname($file) . "/$to";
				if (!-e $target) { print STDERR "$file: no file $to\n"; $bad = 1; }
				elsif (defined $anchor && !anchors($target)->{$anchor}) { print STDERR "$file: no heading $to#$anchor\n"; $bad = 1; }
			}
		}
		exit $bad;
	PERL
}

# Every function, procedure, view, option and setting has a line in the reference.
check_reference()
{
	local name

	for name in $(sed -nE 's/^CREATE (FUNCTION|PROCEDURE|VIEW) (artidx_[a-z_]+).*/\2/p' src/sql/*.sql src/sql/debug/*.sql | sort -u); do
		# what only a view calls
		case $name in artidx_abort_stats) ;; *_stats) [ "$name" = artidx_reset_stats ] || continue ;; esac
		grep -q "^| \`\(CALL \)\?$name[\`(]\|^| \`artidx_aborts\`.*\`$name(" doc/views.md || fail "doc/views.md has no line for $name"
	done
	for name in $(grep -rhoE 'DefineCustom[A-Za-z]+Variable\([^,]*' src --include='*.c' | sed -nE 's/.*"(artidx\.[a-z_]+)".*/\1/p') \
		$(grep -rhoE '^[[:space:]]*"artidx\.[a-z_]+(", "artidx\.[a-z_]+)*"' src --include='*.c' | grep -oE 'artidx\.[a-z_]+'); do
		grep -q "\`$name\`" doc/options.md || fail "doc/options.md has no line for $name"
	done
	for name in $(grep -rhoE 'add_(enum|int|bool|string|real)_reloption\([a-z_]+, "[a-z_]+"' src --include='*.c' | grep -oE '"[a-z_]+"' | tr -d '"'); do
		grep -q "^| \`$name\` " doc/options.md || fail "doc/options.md has no line for the option $name"
	done
}

# The table of claims in test/README.md names every test there is, and no other.
check_claims()
{
	local table f name

	table=$(sed -n '/^| claim | test |/,$p' test/README.md)
	for f in sql/*.sql test/t/*.pl test/isolation/specs/*.spec test/core/test_*.c test/models/*.pml \
		test/stress/*.sh test/modules/*/sql/*.sql; do
		name=$(basename "$f")
		name=${name%.*}
		case $f in
			sql/* | test/t/* | test/stress/*) name=$(sed 's,^test/,,' <<<"$f") ;;
		esac
		grep -qF "\`$name\`" <<<"$table" || fail "test/README.md: no claim names \`$name\` ($f)"
	done
	for name in $(grep -oE '`(sql|t|stress)/[a-z0-9_]+\.(sql|pl|sh)`' <<<"$table" | tr -d '`'); do
		[ -f "$name" ] || [ -f "test/$name" ] || fail "test/README.md: a claim names $name, which is not there"
	done
	for name in $(grep -oE '`test_[a-z_]+`' <<<"$table" | tr -d '`'); do
		[ -f "test/core/$name.c" ] || fail "test/README.md: a claim names $name, which is not there"
	done
}

check_prose
check_links
check_reference
check_claims
perl test/bench/figures.pl check || fail "make figures writes the figures, nobody else does"

perl test/evidence.pl check || fail "a run with EVIDENCE=1 writes doc/evidence.md, nobody else does"

# Each mutation's text is where its list says, and its test is there.
perl test/mutants/mutate.pl check || fail "a mutation does not fit the tree: see test/mutants/README.md"

bash test/conformance/selftest.sh || fail "test/conformance does not notice differences"

[ $bad -eq 0 ] && echo "checks: clean"
exit $bad
