# Memory that outlived a crash is judged before anybody sees an index in it, whoever comes
# first: a look-up, an INSERT, VACUUM, the check, a view.  And nobody comes: then it is not
# saved at a shutdown.
#
# Each time rows are lost with their commits: nothing flushes WAL, for commits are
# asynchronous and the WAL writer is stopped.  There is no background worker, so the
# first to come is the one of the test.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;

plan skip_all => 'needs /proc' unless -r "/proc/$$/status";

my $node = art_node(
	'judged',
	synchronous_commit => 'off',
	wal_writer_flush_after => "'1GB'",
	wal_buffers => "'16MB'",
	checkpoint_timeout => "'1h'",
	restart_after_crash => 'on',
	enable_seqscan => 'off',
	enable_bitmapscan => 'off',
	max_worker_processes => 0,
	max_parallel_workers => 0,
	crash_often());

sub sql { return $node->safe_psql('postgres', $_[0]); }

# The index has an entry for each row, and no other.  Of the rows that are lost it has none:
# not of what took their places, either.
sub right
{
	my ($rows, $name) = @_;

	is(sql("SELECT count(*) FROM a WHERE id BETWEEN 1001 AND 1010"), 0, "$name: no row that is lost is found");
	is(sql("SELECT entries || ' ' || heap_tuples FROM artidx_check('a_i', true)"),
		"$rows $rows", "$name: no entry is left over");
	is(sql("SELECT sum(id) FROM a WHERE id > 0"),
		sql("SET enable_indexscan = off; SET enable_indexonlyscan = off; SELECT sum(id) FROM a"),
		"$name: index and table agree");
	return;
}

# Rows are inserted, and the server loses them.  Nobody has come to the memory then.
sub lose
{
	my ($meanwhile) = @_;

	sql('VACUUM a');
	sql(q{SET synchronous_commit = on; SELECT pg_logical_emit_message(true, '', '')});
	my $writer = stop_wal_writer($node);
	sql('INSERT INTO a SELECT generate_series(1001, 1010)');
	$meanwhile->() if $meanwhile;
	my $log = -s $node->logfile;
	crash_without_flush($node, $writer);
	unlike(slurp_file($node->logfile, $log), qr/after the crash|do not survive/, 'nobody has come yet');
	return $log;
}

sql(q{
	CREATE TABLE a (id int) WITH (autovacuum_enabled = off);
	CREATE INDEX a_i ON a USING art (id);
	INSERT INTO a SELECT generate_series(1, 100)});

my $rows = 100;
for my $first (
	[ 'a look-up', 'SELECT count(*) FROM a WHERE id BETWEEN 1001 AND 1010' ],
	[ 'an INSERT', 'INSERT INTO a SELECT generate_series(101, 105)' ],
	[ 'a DELETE', 'DELETE FROM a WHERE id BETWEEN 101 AND 105' ],
	[ 'VACUUM', 'VACUUM (INDEX_CLEANUP on) a' ],
	[ 'the check', q{SELECT entries - heap_tuples FROM artidx_check('a_i', true)} ],
	[ 'a view', 'SELECT entries - 100 FROM artidx_indexes' ])
{
	my ($name, $sql) = @$first;
	my $log = lose();
	my $out = sql($sql);

	is($out, $sql =~ /^SELECT/ ? '0' : '', "$name comes first");
	like(slurp_file($node->logfile, $log),
		qr/after the crash: 1 kept, 0 given up\n.*; 10 entries of rows that are lost were removed/,
		"$name: the memory was judged");
	$rows += 5 if $name eq 'an INSERT';
	$rows -= 5 if $name eq 'a DELETE';
	# VACUUM removes the entries of the rows that were deleted
	sql('VACUUM (INDEX_CLEANUP on) a') if $name eq 'a DELETE';
	right($rows, $name);
}
is(sql('SELECT state, last_build_source, builds FROM artidx_indexes'), 'ready|kept|1', 'it was kept all the time');

# ---- what a process wrote down of its rows is damaged: then nothing is kept ----

# The entries of a statement but for the first three are one record, with the length of each key
# behind the first before it.
sub damage_length
{
	my ($key) = @_;
	my $find = pack('vCQ>', 15, 1, (1 << 63) + $key);

	return sql(sprintf('SELECT art_wild_write($$\\x%s$$, $$\\x%s$$, 16)',
		unpack('H*', $find), unpack('H*', pack('v', 65000) . substr($find, 2))));
}

sql("CREATE FUNCTION art_wild_write(bytea, bytea, int) RETURNS int AS '"
	  . build_modules('art_wildtest') . "/art_wildtest' LANGUAGE C STRICT");
{
	my $log = lose(sub { ok(damage_length(1007) > 0, 'the length of a key is damaged, in old records as well') });

	sql('SELECT count(*) FROM artidx_indexes');
	like(slurp_file($node->logfile, $log),
		qr/after the crash: 0 kept, 1 given up\n.* Given up: 1 because what a process wrote down makes no sense/,
		'a damaged record: nothing is kept');
	right($rows, 'a damaged record');
}

# ---- nobody comes before the shutdown ----

my $saved = $node->data_dir . '/pg_stat/artidx.saved';
$node->stop;
ok(-e $saved, 'a shutdown saves what was judged');
$node->start;
sql("SELECT artidx_build('a_i')");

my $log = lose();
$node->stop;
ok(!-e $saved, 'a shutdown before anybody came saves nothing');
unlike(slurp_file($node->logfile, $log), qr/artidx: saved/, 'and says nothing');
# what would have been saved would be loaded now
$node->append_conf('postgresql.conf', "max_worker_processes = 8\n");
$node->start;
all_ready($node, 'built again after a shutdown before anybody came');
right($rows, 'nobody came');

unlike(slurp_file($node->logfile), qr/PANIC|TRAP:/, 'no PANIC and no failed assertion');
$node->stop;
done_testing();
