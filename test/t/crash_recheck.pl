# What outlived a crash is checked against its table, in the background.
#
# A process that goes wild writes to the memory of an index, outside of any call, and
# crashes: so the memory is kept.  The check finds it, says so, and the index is built
# again; the others stay.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ArtTest;

plan skip_all => 'needs /proc' unless -r '/proc/self/maps';

my $dir = build_modules('art_wildtest');
my $node = art_node(
	'recheck',
	restart_after_crash => 'on',
	enable_seqscan => 'off',
	enable_bitmapscan => 'off',
	jit => 'off',
	crash_often());
my $offset;

sub sql { return $node->safe_psql('postgres', $_[0]); }

# Wait until the log says that so many have been checked, since the crash, and do that
# meanwhile.  How many differ?
sub checked
{
	my ($want, $meanwhile) = @_;
	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;

	while (time() < $end)
	{
		my $log = slurp_file($node->logfile, $offset);
		my ($n, $differ) = (0, 0);

		while ($log =~
			/artidx: checked (\d+) indexes of database "postgres" that outlived a crash in [\d.]+ s, (\d+) differ/g)
		{
			$n += $1;
			$differ += $2;
		}
		return "$n checked, $differ differ" if $n >= $want;
		$meanwhile->() if $meanwhile;
		sleep 0.1;
	}
	BAIL_OUT("$want indexes are not checked");
}

# Per cent of the time that a check works, at most 25; 0: it does not.
sub setting
{
	my ($share) = @_;

	sql('ALTER SYSTEM SET artidx.build_workers = ' . ($share > 0 ? 2 : 0));
	sql('ALTER SYSTEM SET artidx.build_priority = ' . 4 * ($share || 25));
	sql('SELECT pg_reload_conf()');
	return;
}

# A process does that, and dies.
sub crash
{
	my ($does) = @_;
	my $s = $node->background_psql('postgres');
	my $pid = $s->query_safe('SELECT pg_backend_pid()');
	my $out = $s->query_safe($does // 'SELECT 1');

	$offset = -s $node->logfile;
	kill 'KILL', $pid;
	eval { $s->{run}->finish };
	while (slurp_file($node->logfile, $offset) !~ /all server processes terminated; reinitializing/)
	{
		sleep 0.05;
	}
	comes_back($node) or BAIL_OUT('the server does not come back');
	return $out;
}

sub source
{
	return sql("SELECT state || ' ' || last_build_source FROM artidx_indexes
		WHERE indexrelid = '$_[0]'::regclass");
}

# Writes some bytes over others in the memory of the indexes, which is larger than the
# server's.
sub wild
{
	my ($find, $put) = map { unpack('H*', $_) } @_;

	return "SELECT art_wild_write('\\x$find', '\\x$put', 128)";
}

# A key as it is in a leaf: most of its bytes, highest first; or lowest first.
sub wild_key
{
	my ($engine, @keys) = @_;
	my @bytes = map { substr(pack('Q>', $_), 2) } @keys;

	return wild($engine =~ /^btree/ ? map { scalar reverse $_ } @bytes : @bytes);
}

# A row's address as it is in a leaf, "(block,number)": most of its bytes.
sub wild_tid
{
	return wild(map { /(\d+),(\d+)/; substr(pack('Nn', $1, $2), 1) } @_);
}

my @engines = grep { /^(art|btree)-olc$/ } art_engines();
my @names = map { (my $name = "a_$_") =~ tr/-/_/; $name } @engines;

sql("CREATE FUNCTION art_wild_write(bytea, bytea, int) RETURNS int
	AS '$dir/art_wildtest' LANGUAGE C STRICT");
# an index of each engine on a column of its own
sql(q{CREATE TABLE a (} . join(', ', map { "$_ bigint" } @names) . q{, pad text)
	WITH (autovacuum_enabled = off)});
my $seed = 0;
my $columns = join(', ', @names);
sql("INSERT INTO a ($columns, pad) SELECT "
	  . join(', ', map { $seed++; "hashint8extended(i, $seed)" } @names)
	  . ", repeat('x', 100) FROM generate_series(1, 20000) i");
# a row with bytes that are nowhere else
my @ids = map { 6491872795170800881 + $_ * 3163704880499276 } 0 .. $#names;
sql("INSERT INTO a ($columns) VALUES (" . join(', ', @ids) . ')');
sql("CREATE INDEX $names[$_] ON a USING art ($names[$_]) WITH (" . art_engine_options($engines[$_]) . ')')
  foreach 0 .. $#names;
sql('CREATE TABLE e (id int); CREATE INDEX e_i ON e USING art (id);
	CREATE UNLOGGED TABLE u (id int); CREATE INDEX u_i ON u USING art (id);
	CREATE TABLE x (id int); INSERT INTO x SELECT generate_series(1, 1000);
	CREATE INDEX x_i ON x USING art ((id % 10), id) WHERE id > 5');

# an index whose function comes to do what nobody may who calls it for another
sub set_key
{
	sql("CREATE OR REPLACE FUNCTION f_key(int) RETURNS int IMMUTABLE LANGUAGE plpgsql
		AS \$\$ BEGIN $_[0] RETURN \$1; END \$\$");
	return;
}
set_key('');
sql('CREATE ROLE owner_of_f; CREATE TABLE f (id int); INSERT INTO f VALUES (1);
	CREATE INDEX f_i ON f USING art (f_key(id)); ALTER TABLE f OWNER TO owner_of_f');

# an index whose function says what the check does; six rows have blocks of their own
sql(q{CREATE TABLE s (id int, pad text) WITH (autovacuum_enabled = off);
	ALTER TABLE s ALTER pad SET STORAGE PLAIN;
	CREATE TABLE s_mode (mode text); CREATE TABLE s_note (id int, xid bigint, at timestamptz); CREATE SEQUENCE s_new START 1000;
	CREATE FUNCTION s_note(i int) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		mode text := (SELECT mode FROM public.s_mode);
	BEGIN
		IF mode IS NULL OR mode <> 'grow' AND i > 6 OR current_setting('s.inside', true) = 'yes' OR
			(SELECT client_port IS NOT NULL FROM pg_stat_get_activity(pg_backend_pid())) THEN
			RETURN;
		END IF;
		IF mode = 'grow' THEN
			PERFORM set_config('s.inside', 'yes', true);
			INSERT INTO public.s SELECT nextval('public.s_new') FROM generate_series(1, 2);
			PERFORM set_config('s.inside', 'no', true);
		ELSE
			INSERT INTO public.s_note VALUES (i, txid_current(), clock_timestamp());
			PERFORM pg_sleep(0.02);
			IF mode = 'wait' AND i = 3 THEN
				PERFORM pg_advisory_xact_lock(79);
			END IF;
		END IF;
	END $$;
	CREATE FUNCTION s_key(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
		BEGIN PERFORM public.s_note(i); RETURN i; END $$;
	INSERT INTO s SELECT i, CASE WHEN i <= 6 THEN repeat('x', 5000) END FROM generate_series(1, 150) i;
	CREATE INDEX s_i ON s USING art (s_key(id)); });
sub set_mode { return sql("TRUNCATE s_mode, s_note; INSERT INTO s_mode VALUES ('$_[0]')"); }

sql('CREATE DATABASE later');
$node->safe_psql('later', 'CREATE EXTENSION artidx; CREATE TABLE l (id int);
	INSERT INTO l SELECT generate_series(1, 20000); CREATE INDEX l_i ON l USING art (id)');
all_ready($node, 'the indexes are there');
my $kept = @names + 3;

# ---- nothing is wrong ----

set_mode('note');
set_key("IF current_user = 'owner_of_f' THEN PERFORM set_config('role', 'none', false); END IF;");
crash();
is(checked($kept, sub { sql('SELECT pg_reload_conf()') }), "$kept checked, 0 differ",
	'what was kept is checked, and the log says so');
# another owner's is another worker's, which may come later
foreach (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	last if slurp_file($node->logfile, $offset) =~ /art index "public.f_i" of database "postgres" could not be checked/;
	sleep 0.1;
}
like(slurp_file($node->logfile, $offset),
	qr/art index "public.f_i" of database "postgres" could not be checked after a crash: cannot set parameter "role" within security-restricted operation/,
	'functions run as the owner of the table, as in a build');
is(source($_), 'ready kept', "$_ is kept") foreach @names, 'e_i', 'x_i', 'f_i', 's_i';
is(sql('SELECT count(*), count(DISTINCT xid) FROM s_note'), '12|7',
	'each row is looked at twice; when that is slow, each block in a transaction of its own');
cmp_ok(sql(q{SELECT round(1000 * min(extract(epoch FROM at - before))) FROM
	(SELECT at, lag(at) OVER w AS before, xid - lag(xid) OVER w AS later FROM s_note WINDOW w AS (ORDER BY at)) s WHERE later > 0}),
	'>=', 80, 'a worker that has worked for 20 ms rests for 60, whatever wakes it');
set_key('');
$kept++;

# ---- for each entry two more come ----

set_mode('grow');
setting(25);
crash();
is(checked($kept), "$kept checked, 0 differ", 'the check ends');
sql('TRUNCATE s_mode');
cmp_ok(sql('WITH d AS (DELETE FROM s WHERE id >= 1000 RETURNING 1) SELECT count(*) FROM d'), '>', 1000, 'though the table grows faster');

# ---- an entry has another key ----

for my $i (0 .. $#names)
{
	my $name = $names[$i];

	cmp_ok(crash(wild_key($engines[$i], $ids[$i], $ids[$i] + 1)), '>', 0, "$engines[$i]: a process writes wildly");
	is(checked($kept), "$kept checked, 1 differ", "$engines[$i]: the check finds that");
	cmp_ok(sql(q{SELECT different FROM artidx_crash_checks WHERE waiting = 0 AND sound > 0}), ">", 0, "$engines[$i]: artidx_crash_checks counts it");
	like(slurp_file($node->logfile, $offset),
		qr/WARNING:  art index "public.$name" of database "postgres" has outlived a crash, and differs from its table/,
		"$engines[$i]: and says where");
	all_ready($node, "$engines[$i]: it is built again");
	is(source($name), 'ready rebuild', "$engines[$i]: by itself");
	is(sql("SELECT count(*) FROM a WHERE $name = $ids[$i]"), 1, "$engines[$i]: the row is found");
	check_clean($node, $name, "$engines[$i]: it is right");
	is(source($_), 'ready kept', "$engines[$i]: $_ is still kept") foreach 'e_i', 'x_i';
}

# ---- what is seen from one side only ----

# Two rows, of which one is deleted.  If the address of the one in the indexes becomes
# that of the other, either a row has no entry, or one leads to another row.
for my $dead (0, 1)
{
	my $side = $dead ? 'table' : 'index';
	my @ctids = split(/\n/, sql("INSERT INTO a ($columns) VALUES ("
			  . join('), (', map { my $n = $_; join(', ', map { $_ + 1000 * $n } @ids) } 1 + $dead, 3 + $dead)
			  . ') RETURNING ctid'));

	sql("DELETE FROM a WHERE ctid = '$ctids[$dead]'");
	is(crash(wild_tid(@ctids)) > 0, 1, "seen from the $side: a process writes wildly");
	is(checked($kept), "$kept checked, @{[scalar @names]} differ", "seen from the $side: the check finds it");
	like(slurp_file($node->logfile, $offset),
		$dead ? qr/the row with root .* has no entry/ : qr/an entry leads to the row .*, which has another key/,
		"seen from the $side: and says it");
	all_ready($node, "seen from the $side: they are built again");
	check_clean($node, $_, "seen from the $side: $_ is right") foreach @names;
}

# ---- its pace, and its end ----

# Wait for a worker that rests between two pieces of an index like that one of the database,
# but not this one.  Its process, and the index's name.
sub rests
{
	my ($db, $like, $not) = (@_, '');
	my $which = qq{FROM pg_stat_activity WHERE backend_type = 'artidx builder' AND datname = '$db'
		AND state = 'idle' AND query LIKE 'checking art index "$like"' AND query NOT LIKE '%"$not"'
		AND wait_event_type = 'Extension'};

	my $end = time() + $PostgreSQL::Test::Utils::timeout_default;

	while (time() < $end)
	{
		my $row = sql("SELECT pid, substring(query FROM '\"(.*)\"') $which");

		return split(/\|/, $row) if $row ne '';
		sleep 0.1;
	}
	BAIL_OUT("no worker checks $like of $db");
}

# rows on a page that is not full
sql("INSERT INTO a ($columns) VALUES (" . join(', ', 1 .. @names) . ')');
setting(0);
crash();
setting(2);
my (undef, $first) = rests('postgres', 'a_%');
# (one try in some fifty meets a piece of the check)
sub soon
{
	my ($query) = @_;

	for (1 .. 20)
	{
		return 1 if $node->psql('postgres', $query, on_error_stop => 1) == 0;
	}
	return 0;
}
ok(soon('BEGIN; LOCK TABLE a NOWAIT; COMMIT'), 'a check that is to be slow rests, and holds no lock then');
ok(soon("SELECT 1 / (count(*) = 0)::int FROM pg_stat_activity WHERE backend_type = 'artidx builder' AND backend_xmin IS NOT NULL"),
	'and no snapshot');

# entries of dead rows go, and the rows stay, while the check is at it
sql("DELETE FROM a WHERE $names[0] = 1; " . join('; ', map { "SELECT * FROM a WHERE $names[$_] = $_ + 1" } 0 .. $#names));
my $again = sql("SELECT pg_get_indexdef('$first'::regclass)");
sql("DROP INDEX $first; $again");
my ($pid) = rests('postgres', 'a_%', $first);
sql("SELECT pg_terminate_backend($pid)");
rests('later', 'l_i');
ok($node->psql('postgres', 'DROP DATABASE later') == 0,
	'when one is ended the next database comes first, and can be dropped meanwhile');
unlike(slurp_file($node->logfile, $offset), qr/artidx: checked \d+ indexes of database "postgres"/, 'that one was ended before its time');
setting(25);
like(checked(1), qr/ checked, 0 differ/, 'another worker goes on where one was ended');

# off, while it is at it
setting(0);
crash();
setting(1);
rests('postgres', 'a_%');
setting(0);
ok($node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'artidx builder'}),
	'turned off, it ends');
unlike(slurp_file($node->logfile, $offset), qr/artidx: checked/, 'before its time');

# ---- off, over a restart, and behind a lock ----

set_mode('wait');
setting(0);
crash(wild_key($engines[0], $ids[0], $ids[0] + 1));
sql("SELECT artidx_build('u_i')");
unlike(slurp_file($node->logfile, $offset), qr/outlived a crash/, 'off: nothing is checked');
is(source($names[0]), 'ready kept', 'off: all is kept');
$node->restart;
all_ready($node, 'the file is loaded');
is(source($names[0]), 'ready load', 'a shutdown saves it all the same');
my $locker = $node->background_psql('postgres');
$locker->query_safe('BEGIN; LOCK TABLE e IN ACCESS EXCLUSIVE MODE');

# a table that is locked while it is checked
my $waited = $node->background_psql('postgres');
my $second = $node->background_psql('postgres');
$waited->query_safe('SELECT pg_advisory_lock(79)');
setting(25);
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}),
	'a worker is in the middle of a table');
# cancelled there, after two rows
sql(q{SELECT pg_cancel_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted});
$node->wait_for_log(qr/art index "public.s_i" of database "postgres" could not be checked after a crash: canceling statement due to user request\n.*DETAIL:  It is checked later/, $offset);
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}),
	'one that was cancelled is checked again');
$second->query_until(qr/asked/, "\\echo asked\nBEGIN; LOCK TABLE s;\n");
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE relation = 's'::regclass AND NOT granted}),
	'somebody wants that for himself');
$waited->quit;
$second->query_safe('SELECT pg_sleep(3)');
$second->quit;
my $others = $kept - 1;
is(checked($others), "$others checked, 1 differ", 'on again: it is checked, also after a restart');
is(sql('SELECT count(*) FROM s_note'), 2 + 12, 'one that was begun goes on behind the lock');
$locker->quit;
is(checked($kept), "$kept checked, 1 differ", 'what was locked comes last');
all_ready($node, 'and built again');
check_clean($node, $names[0], 'it is right');

unlike(slurp_file($node->logfile), qr/PANIC|TRAP:/, 'no PANIC and no failed assertion');
$node->stop;
done_testing();
