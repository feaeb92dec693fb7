# An index whose keys are compared gives back what deleted rows leave: VACUUM brings it
# near to what REINDEX makes of it, and the rest serves another index.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('freedcmp', 'artidx.memory' => "'24MB'");

sub bytes_of
{
	my ($index) = @_;

	return $node->safe_psql('postgres',
		"SELECT bytes FROM artidx_indexes WHERE indexrelid = '$index'::regclass");
}

$node->safe_psql(
	'postgres', q{
	CREATE TABLE events (id int, key text[]);
	CREATE TABLE users (key text[]);
	CREATE UNIQUE INDEX events_key ON events USING art (key);
	CREATE UNIQUE INDEX users_key ON users USING art (key);
	INSERT INTO events SELECT g, ARRAY[md5(g::text)] FROM generate_series(1, 70000) g});

# the rest of the memory, in steps
my ($rc, $err);
for (my $n = 70000; ; $n += 2000)
{
	($rc, undef, $err) = $node->psql('postgres',
		"INSERT INTO events SELECT g, ARRAY[md5(g::text)] FROM generate_series($n + 1, $n + 2000) g",
		extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	last if $rc != 0 || $n > 1000000;
}
isnt($rc, 0, 'more than the memory holds is refused');
like($err, qr/53200/, 'for want of memory');
my $full = bytes_of('events_key');
isnt($node->psql('postgres', 'INSERT INTO users SELECT ARRAY[md5(g::text)] FROM generate_series(1, 60000) g'),
	0, 'another table\'s rows, too');

$node->safe_psql('postgres', 'DELETE FROM events WHERE id % 10 <> 0');
$node->safe_psql('postgres', 'VACUUM events, users');
my $held = bytes_of('events_key');
is($node->psql('postgres', 'INSERT INTO users SELECT ARRAY[md5(g::text)] FROM generate_series(1, 60000) g'),
	0, 'which go in when nine of ten have been deleted and vacuumed');
is($node->safe_psql('postgres', "SELECT entries FROM artidx_check('users_key', true)"), 60000, 'sound');
is( $node->safe_psql('postgres', "SELECT entries = (SELECT count(*) FROM events) FROM artidx_check('events_key', true)"),
	't', 'both');
$node->safe_psql('postgres', 'REINDEX INDEX events_key');
my $fresh = bytes_of('events_key');
note "$full bytes when full, $held after VACUUM, $fresh after REINDEX";
cmp_ok($held, '<=', $fresh * 1.5 + 512 * 1024, 'and the first is near to what REINDEX makes of it');

$node->stop;
done_testing();
