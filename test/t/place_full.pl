# A scan of a class that may be no order remembers places in the tree.  Each allocation of the
# scan fails once.  The statement gets the error, and the session goes on: it finds all rows,
# and holds nothing that VACUUM would wait for.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('full', 'artidx.memory' => "'64MB'", 'artidx.build_workers' => 0, restart_after_crash => 'off');

sub sql { return $node->safe_psql('postgres', $_[0]); }

# in a language that artidx does not know, so it may be no order
sql("CREATE FUNCTION art_wild_full(text, int) RETURNS int AS '"
	  . build_modules('art_wildtest') . q{/art_wildtest' LANGUAGE C STRICT;
	CREATE FUNCTION own_cmp(text, text) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT
		AS 'BEGIN RETURN CASE WHEN $1 < $2 THEN -1 ELSE ($1 > $2)::int END; END';
	CREATE OPERATOR CLASS own_ops FOR TYPE text USING art AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=,
		OPERATOR 5 >, FUNCTION 1 own_cmp(text, text);
	CREATE TABLE t (k text COLLATE "C");
	INSERT INTO t SELECT repeat(chr(65 + i % 26), 20 + i % 700) || i FROM generate_series(1, 2000) i;
	CREATE INDEX t_k ON t USING art (k own_ops)});

my $by = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;';
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query($by);
my $failed = 0;

for my $n (1 .. 60)
{
	$session->query_safe("BEGIN; DECLARE c SCROLL CURSOR FOR SELECT k FROM t WHERE k > 'B' ORDER BY k; FETCH 3 FROM c");
	like($session->query_safe("SELECT art_wild_full('art scan', $n)"), qr/[1-9]/, 'there is a scan') if $n == 1;
	$session->query_safe("SELECT art_wild_full('art scan', $n)") if $n > 1;
	$session->query($_) foreach 'MOVE 700 IN c', 'MOVE BACKWARD 300 IN c', 'MOVE ALL IN c';
	$failed++ if $session->{stderr} =~ /out of memory, as was asked for/;
	$session->{stderr} = '';
	$session->query('ROLLBACK');
	last if $session->query_safe("SELECT count(*) || ' ' || count(DISTINCT k) FROM t WHERE k > 'A'") !~ /\b2000 2000\b/
	  && ok(0, "allocation $n: the next scan finds all rows");
}
cmp_ok($failed, '>=', 8, "$failed allocations have failed, and each time the next scan found all rows");
sql("DELETE FROM t WHERE k < 'M'; VACUUM t");
is(sql("SELECT entries FROM artidx_check('t_k', true)"), sql('SELECT count(*) FROM t'), 'VACUUM has removed all');
$session->quit;
$node->stop;
done_testing();
