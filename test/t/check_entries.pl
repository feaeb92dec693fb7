# artidx_check notices entries that lead nowhere, into the middle of a chain, and to rows of another
# key or of none; and rows without an entry.  What is only dead, and not yet vacuumed, it takes for
# what it is.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $module = build_modules('art_insidetest') . '/art_insidetest';
my $node = art_node('entries', autovacuum => 'off');

sub sql { return $node->safe_psql('postgres', $_[0]); }

# artidx knows no encoding for own_ops, so that index compares its keys
sql(qq{CREATE FUNCTION entry(regclass, tid, anyelement) RETURNS void AS '$module', 'art_inside_entry' LANGUAGE C STRICT;
	CREATE FUNCTION own_cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT (\$1 > \$2)::int - (\$1 < \$2)::int';
	CREATE OPERATOR CLASS own_ops FOR TYPE int USING art AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=,
		OPERATOR 5 >, FUNCTION 1 own_cmp(int, int);
	CREATE TABLE t (k int, n int) WITH (fillfactor = 50);
	INSERT INTO t SELECT i, 0 FROM generate_series(1, 1000) i});
my $gone = sql('SELECT ctid FROM t WHERE k = 500');
sql('DELETE FROM t WHERE k = 500');
sql('VACUUM t');
my $member = sql('UPDATE t SET n = 1 WHERE k = 7 RETURNING ctid');
my $row = sql('SELECT ctid FROM t WHERE k = 8');

sub check
{
	my $err;
	my ($rc, $out) = $node->psql('postgres', "SELECT entries FROM artidx_check('t_k', true)", stderr => \$err);

	return $rc == 0 ? $out : $err;
}

for my $index ('(k)', '(k) WITH (sync = rowex)', '(k) WITH (structure = btree)', '(k) WITH (structure = hydra)',
	'(k) WITH (structure = hydra, sync = mvrlu)', '(k own_ops)')
{
	for my $wrong (
		[ '(100000,1)', 42, qr/an entry's row address \(100000,1\) is past the end of the table/ ],
		[ '(0,250)', 42, qr/an entry's row address \(0,250\) is past the end of its page/ ],
		[ $gone, 500, qr/an entry's row address \Q$gone\E is an unused line pointer/ ],
		[ $member, 7, qr/an entry's row address \Q$member\E is not the root of its chain/ ],
		[ $row, 9, qr/an entry leads to the row \Q$row\E, which has another key/ ])
	{
		my ($tid, $key, $says) = @$wrong;

		sql("CREATE INDEX t_k ON t USING art $index");
		# the member of the chain is dead to nobody, and has one entry
		is(check(), 999, "$index: nothing is wrong") if $key == 42;
		sql("SELECT entry('t_k', '$tid', $key)");
		like(check(), qr/ERROR:  index "t_k" is corrupted: $says/, "$index: $tid, $key");
		sql('DROP INDEX t_k');
	}
}

# ---- a function of the index changes: rows have no entry, and entries lead to rows that have none ----
sub function { sql("CREATE OR REPLACE FUNCTION f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $_[0]'"); return; }

for my $with ('', ' WITH (sync = rowex)', ' WITH (structure = btree)', ' WITH (structure = hydra)',
	' WITH (structure = hydra, sync = mvrlu)', 'own_ops')
{
	my ($class, $options) = $with eq 'own_ops' ? (" $with", '') : ('', $with);

	for my $wrong (
		[ "(f(k)$class)$options", '$1 + 1', qr/the row with root \(\d+,\d+\) has no entry/ ],
		[ "(k$class)$options WHERE f(k) < 500", '$1 - 100', qr/the row with root \(\d+,\d+\) has no entry/ ],
		[ "(k$class)$options WHERE f(k) < 500", '$1 + 100', qr/its entries lead to another number of rows than the table has/ ])
	{
		my ($index, $becomes, $says) = @$wrong;

		function('$1');
		sql("CREATE INDEX t_k ON t USING art $index");
		like(check(), qr/^(999|499)$/, "$index: nothing is wrong");
		function($becomes);
		like(check(), qr/ERROR:  index "t_k" is corrupted: $says/, "$index: f is $becomes");
		sql('DROP INDEX t_k');
	}
}

# ---- what is dead is no mistake ----
sql('CREATE INDEX t_k ON t USING art (k)');
sql('DELETE FROM t WHERE k > 900');
is(check(), 999, 'entries of dead rows');
sql('VACUUM t');
is(check(), 899, 'and without them');
$node->stop;
done_testing();
