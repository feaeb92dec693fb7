# Memory that was freed is free: what a failed bulk insert and deleted rows leave
# serves other tables after VACUUM, and VACUUM brings an index near to what
# REINDEX makes of it.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

my $node = art_node('freed', 'artidx.memory' => "'32MB'");
$node->safe_psql('postgres', 'CREATE EXTENSION artidx_debug');

sub bytes_of
{
	my ($index) = @_;

	return $node->safe_psql('postgres',
		"SELECT bytes FROM artidx_indexes WHERE indexrelid = '$index'::regclass");
}

# Of a dozen classes of objects the last small span stays, though nothing may be in it.
my $slack = 12 * 16 * 1024;

# Held after VACUUM, and after REINDEX: at most half as much again.
sub compare
{
	my ($index, $name) = @_;
	my $held = bytes_of($index);

	$node->safe_psql('postgres', "REINDEX INDEX $index");
	my $fresh = bytes_of($index);

	note sprintf('%s: %d bytes after VACUUM, %d after REINDEX: %.2f', $name, $held, $fresh, $held / $fresh);
	cmp_ok($held, '<=', $fresh * 1.5 + $slack, "$name: near to what REINDEX makes");
	return;
}

sub unique_inserts
{
	my ($name) = @_;

	my ($rc, $out, $err) = $node->psql('postgres',
		'INSERT INTO users SELECT g, gen_random_uuid() FROM generate_series((SELECT count(*) FROM users) + 1, '
		  . '(SELECT count(*) FROM users) + 10000) g');
	is($rc, 0, $name) or diag($err);
	return;
}

$node->safe_psql(
	'postgres', q{
	CREATE TABLE events (id uuid);
	CREATE UNIQUE INDEX events_id ON events USING art (id);
	CREATE TABLE users (id bigint, key uuid);
	CREATE UNIQUE INDEX users_id ON users USING art (id);
	CREATE UNIQUE INDEX users_key ON users USING art (key);
	INSERT INTO events SELECT gen_random_uuid() FROM generate_series(1, 50000);
	INSERT INTO users SELECT g, gen_random_uuid() FROM generate_series(1, 1000) g});

# ---- one failed bulk insert, then VACUUM

my ($rc, $out, $err) = $node->psql('postgres',
	'INSERT INTO events SELECT gen_random_uuid() FROM generate_series(1, 1500000)',
	extra_params => [ '-v', 'VERBOSITY=verbose' ]);
isnt($rc, 0, 'more than the memory holds is refused');
like($err, qr/53200/, 'for want of memory');
my $full = bytes_of('events_id');
$node->safe_psql('postgres', 'VACUUM events');
note "$full bytes held before VACUUM";
unique_inserts('then another table takes unique rows');
compare('events_id', 'after a failed insert');

# ---- most rows deleted

for my $structure ('structure = art', 'structure = art, sync = rowex', 'structure = btree')
{
	my ($name) = $structure =~ /(\w+)$/;

	$node->safe_psql(
		'postgres', qq{
		CREATE TABLE d_$name AS SELECT gen_random_uuid() AS id, g AS n FROM generate_series(1, 100000) g;
		CREATE UNIQUE INDEX d_${name}_id ON d_$name USING art (id) WITH ($structure);
		DELETE FROM d_$name WHERE n % 10 <> 0;
		VACUUM d_$name});
	compare("d_${name}_id", "nine rows of ten deleted, $name");
	is($node->safe_psql('postgres', "SELECT entries FROM artidx_check('d_${name}_id', true)"),
		10000, "$name: sound");
	$node->safe_psql('postgres', "DROP TABLE d_$name");
}

# ---- as many inserted as deleted, until there were ten times as many

for my $structure ('structure = art', 'structure = art, sync = rowex', 'structure = btree')
{
	my ($name) = $structure =~ /(\w+)$/;

	$node->safe_psql(
		'postgres', qq{
		CREATE TABLE e_$name AS SELECT gen_random_uuid() AS id, g AS n FROM generate_series(1, 40000) g;
		CREATE INDEX e_${name}_id ON e_$name USING art (id) WITH ($structure)});
	for my $round (1 .. 19)
	{
		$node->safe_psql(
			'postgres', qq{
			DELETE FROM e_$name WHERE n % 2 = $round % 2;
			INSERT INTO e_$name SELECT gen_random_uuid(), 2 * g + $round % 2 FROM generate_series(1, 20000) g});
		$node->safe_psql('postgres', "VACUUM e_$name") if $round % 6 == 0;
	}
	# and each once more, by one statement
	$node->safe_psql('postgres', "UPDATE e_$name SET id = gen_random_uuid()");
	$node->safe_psql('postgres', "VACUUM e_$name");
	compare("e_${name}_id", "each row replaced ten times, $name");
	is($node->safe_psql('postgres', "SELECT entries FROM artidx_check('e_${name}_id', true)"),
		40000, "$name: sound");
	$node->safe_psql('postgres', "DROP TABLE e_$name");
}

# ---- what sessions that do nothing now keep at hand

my @idle = map { $node->background_psql('postgres') } 1 .. 8;
$node->safe_psql(
	'postgres', q{
	CREATE TABLE pool (id uuid, n int);
	CREATE INDEX pool_id ON pool USING art (id)});
for my $turn (1 .. 3)
{
	$_->query_safe('INSERT INTO pool SELECT gen_random_uuid(), g FROM generate_series(1, 10000) g')
	  for @idle;
}
$node->safe_psql('postgres', 'DELETE FROM pool WHERE n % 20 <> 0');
$node->safe_psql('postgres', 'VACUUM pool');
compare('pool_id', 'beside idle sessions');
$_->quit for @idle;

# ---- VACUUM beside a process that was stopped in a call: it waits for what that may see

$node->safe_psql(
	'postgres', q{
	CREATE TABLE slow (id uuid, n int);
	CREATE TABLE halt ();
	INSERT INTO slow SELECT gen_random_uuid(), g FROM generate_series(1, 100000) g;
	CREATE INDEX slow_id ON slow USING art (id);
	VACUUM slow;
	DELETE FROM slow WHERE n % 10 <> 0});
my $full = bytes_of('slow_id');
my $reader = $node->background_psql('postgres');
my $pid = $reader->query_safe('SELECT pg_backend_pid()');
$reader->{stdin} .= q{SET enable_seqscan = off; SET enable_bitmapscan = off;
	DO $$BEGIN
		WHILE NOT EXISTS (SELECT FROM halt) LOOP
			PERFORM count(*) FROM slow WHERE id > '00000000-0000-0000-0000-000000000000';
		END LOOP;
	END$$;
};
$reader->{run}->pump_nb;
my $inside = 0;
for my $try (1 .. 500)
{
	select(undef, undef, undef, 0.01);
	kill 'STOP', $pid;
	$inside = $node->safe_psql('postgres',
		"SELECT count(*) FROM artidx_epochs WHERE pid = $pid AND pinned_epoch IS NOT NULL");
	last if $inside;
	kill 'CONT', $pid;
}
is($inside, 1, 'a process is stopped in a call');
my ($vacuumed, $said) = ('', '');
my $vacuum = IPC::Run::start(
	[ 'psql', '-X', '-d', $node->connstr('postgres'), '-c', 'VACUUM slow' ],
	'>', \$vacuumed, '2>', \$said);
my $began = 0;
for my $try (1 .. 600)
{
	my $phase = $node->safe_psql('postgres', 'SELECT phase FROM pg_stat_progress_vacuum');

	# it does not wait for ever
	last if $phase eq 'cleaning up indexes' || ($began && $phase eq '');
	$began = 1 if $phase ne '';
	select(undef, undef, undef, 0.1);
}
select(undef, undef, undef, 1);
kill 'CONT', $pid;
$vacuum->finish;
is("$vacuumed$said", "VACUUM\n", 'VACUUM beside it');
my $slow = bytes_of('slow_id');
$node->safe_psql('postgres', 'INSERT INTO halt DEFAULT VALUES');
$reader->quit;
# the reader is in a call most of the time, and so some of it may wait for the next VACUUM
note "$full bytes before, $slow after VACUUM";
cmp_ok($slow, '<=', $full / 2, 'it waited, and then gave back');
$node->safe_psql('postgres', 'VACUUM slow');
compare('slow_id', 'without the reader');

# ---- what dead rows leave when scans meet them: nobody vacuums, and the launcher,
# or whoever needs the memory, gives it back

$node->safe_psql(
	'postgres', q{
	DROP TABLE events, users;
	CREATE TABLE old AS SELECT gen_random_uuid() AS id, g AS n FROM generate_series(1, 350000) g;
	CREATE TABLE new (id uuid);
	CREATE UNIQUE INDEX new_id ON new USING art (id);
	CREATE UNIQUE INDEX old_id ON old USING art (id);
	INSERT INTO old SELECT gen_random_uuid(), 1 FROM generate_series(1, 150000);
	DELETE FROM old WHERE n % 20 <> 0});
my $before = bytes_of('old_id');
$node->safe_psql('postgres',
	'SET enable_seqscan = off; SET enable_bitmapscan = off; '
	  . 'SELECT count(n) FROM (SELECT n FROM old ORDER BY id) s') for 1 .. 2;
my $entries = $node->safe_psql('postgres',
	"SELECT entries FROM artidx_indexes WHERE indexrelid = 'old_id'::regclass");
cmp_ok($entries, '<', 50000, 'scans have removed the entries of dead rows');
my ($rc2, $out2, $err2) = $node->psql('postgres',
	'INSERT INTO new SELECT gen_random_uuid() FROM generate_series(1, 650000)');
is($rc2, 0, 'and what they took serves another index') or diag($err2);
ok( $node->poll_query_until('postgres',
		"SELECT bytes < $before / 4 FROM artidx_indexes WHERE indexrelid = 'old_id'::regclass"),
	'without VACUUM');
note "$before bytes before, " . bytes_of('old_id') . ' after';
is($node->safe_psql('postgres', "SELECT entries FROM artidx_check('new_id', true)"),
	650000, 'sound');

$node->stop;
done_testing();
