# Memory is shared between people: a role that may do nothing but connect and
# make temporary tables tries to take all of it, and the others do not notice.
# Limits of databases and roles; who gives way to whom; what the log tells.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use ArtTest;
use Time::HiRes qw(sleep);

my $node = art_node('shared', 'artidx.memory' => "'32MB'", 'log_min_messages' => 'error');
my @dbs = qw(postgres other);

sub as
{
	my ($role, $db, $sql) = @_;
	my ($rc, $out, $err) = $node->psql($db, $sql,
		extra_params => [ '-U', $role, '-v', 'VERBOSITY=verbose' ]);

	return ($rc == 0 ? $out : undef, $err);
}

# Its inserts succeed, silently.
sub goes_on
{
	my ($role, $db, $sql, $name) = @_;
	my ($out, $err) = as($role, $db, $sql);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(defined $out ? $err : "failed: $err", '', $name);
}

# Insert until it fails, or 100 times; returns what it said on the way.
sub take_all
{
	my ($role, $db, $setup, $insert) = @_;
	my ($out, $err) = as($role, $db,
		"$setup; " . join('; ', map { (my $s = $insert) =~ s/\$i/$_/g; $s } 1 .. 100));

	return $err;
}

sub usage
{
	my ($what, $where) = @_;

	return $node->safe_psql('postgres', "SELECT $what FROM artidx_usage WHERE $where");
}

sub set
{
	my ($name, $value) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET $name = '$value'");
	$node->reload;
	# the postmaster tells all processes at once, when it gets to it
	ok($node->poll_query_until('postgres', qq{
			SELECT current_setting('$name') = '$value' FROM pg_sleep(0.1)}), "$name = $value");
	return;
}

$node->safe_psql('postgres', q{
	REVOKE CREATE ON SCHEMA public FROM PUBLIC;
	CREATE ROLE grabber LOGIN; CREATE ROLE app LOGIN; CREATE ROLE tenant LOGIN;
	CREATE DATABASE other});
$node->safe_psql('other', 'CREATE EXTENSION artidx; REVOKE CREATE ON SCHEMA public FROM PUBLIC');
for my $db (@dbs)
{
	$node->safe_psql($db, q{
		CREATE SCHEMA app AUTHORIZATION app; CREATE SCHEMA tenant AUTHORIZATION tenant;
		SET ROLE app;
		CREATE TABLE app.users (id uuid, name text, n int);
		CREATE UNIQUE INDEX users_id ON app.users USING art (id);
		CREATE INDEX users_name ON app.users USING art (name);
		INSERT INTO app.users SELECT gen_random_uuid(), md5(i::text), i FROM generate_series(1, 10000) i});
}
my $insert = q{INSERT INTO app.users SELECT gen_random_uuid(), md5(i::text), i FROM generate_series(1, 1000) i};

# ---- nothing but CONNECT and TEMP

my $temp_limit = 8 * 1024 * 1024;
my %tries = (
	'uuids' => [ 'CREATE TEMP TABLE g (id uuid); CREATE UNIQUE INDEX ON g USING art (id)',
		'INSERT INTO g SELECT gen_random_uuid() FROM generate_series(1, 50000)' ],
	'wide keys' => [ q{CREATE TEMP TABLE g (id text); CREATE UNIQUE INDEX ON g USING art (id)},
		q{INSERT INTO g SELECT $i || repeat('x', 1000000) || j FROM generate_series(1, 2) j} ],
	'many tables' => [ 'SELECT 1',
		'CREATE TEMP TABLE g$i (id uuid); CREATE UNIQUE INDEX ON g$i USING art (id); '
		  . 'INSERT INTO g$i SELECT gen_random_uuid() FROM generate_series(1, 20000)' ],
	'an index of what is there' => [
		'CREATE TEMP TABLE g (id uuid); INSERT INTO g SELECT gen_random_uuid() FROM generate_series(1, 400000)',
		'CREATE UNIQUE INDEX ON g USING art (id); INSERT INTO g VALUES (gen_random_uuid())' ],
	'an index that is not unique' => [ 'CREATE TEMP TABLE g (id uuid); CREATE INDEX ON g USING art (id)',
		'INSERT INTO g SELECT gen_random_uuid() FROM generate_series(1, 50000)' ]);

for my $try (sort keys %tries)
{
	my $session = $node->background_psql('postgres', on_error_stop => 0,
		extra_params => [ '-U', 'grabber' ]);
	my ($setup, $grab) = @{ $tries{$try} };
	my $said = '';

	$session->query($setup);
	for my $i (1 .. 100)
	{
		(my $sql = $grab) =~ s/\$i/$i/g;
		$session->{stderr} = '';
		$session->query($sql);
		$said = $session->{stderr};
		last if $said =~ /ERROR|WARNING/;
		goes_on('app', $dbs[ $i % 2 ], $insert, "$try: others go on, meanwhile") if $i % 10 == 0;
	}
	like($said, qr/"artidx\.temp_limit" lets them have 8192 kB/, "$try: ends at the limit");
	like($said, qr/HINT:  Increase the configuration parameter "artidx\.temp_limit"/,
		"$try: and the hint names it");
	cmp_ok(usage('coalesce(max(limit_used_bytes), 0)', "kind = 'temporary'"), '<=',
		$temp_limit, "$try: has no more than that");
	goes_on('app', $_, $insert, "$try: a unique insert in database $_") for @dbs;
	$session->quit;
	ok($node->poll_query_until('postgres',
			q{SELECT count(*) = 0 FROM artidx_usage WHERE kind = 'temporary'}),
		"$try: nothing is left of it");
}
is($node->safe_psql($_, q{SELECT string_agg(state || ' ' || seals, ', ') FROM artidx_indexes}),
	'ready 0, ready 0', "nobody gave way in $_")
  for @dbs;

# ---- a temporary index gives way to others, which do not give way to it

my $session = $node->background_psql('postgres', on_error_stop => 0, extra_params => [ '-U', 'grabber' ]);
$session->query_safe('CREATE TEMP TABLE g (id uuid); CREATE UNIQUE INDEX g_id ON g USING art (id)');
$session->query_safe('INSERT INTO g SELECT gen_random_uuid() FROM generate_series(1, 150000)');
is(usage('indexes', "kind = 'temporary' AND owner = 'grabber'"), '1', 'a temporary index');
$node->safe_psql('other', q{
	CREATE TABLE tenant.t (id uuid);
	CREATE UNIQUE INDEX t_id ON tenant.t USING art (id);
	ALTER TABLE tenant.t OWNER TO tenant});
my $fill = 'INSERT INTO tenant.t SELECT gen_random_uuid() FROM generate_series(1, 50000)';
my $said = '';
for my $i (1 .. 100)
{
	my ($out, $err) = as('tenant', 'other', $fill);

	$said .= $err;
	last if !defined $out || $err =~ /sealed/;
}
like($said, qr/WARNING:  53200: art index with OID \d+ of database "postgres" was sealed to make room for index "t_id"/,
	'a unique insert elsewhere takes from the temporary index');
is(usage('sealed', "kind = 'temporary' AND owner = 'grabber'"), '1', 'which is gone');
my $log = slurp_file($node->logfile);
like($log, qr/LOG:  artidx: sealed index "postgres\.pg_temp_\d+\.g_id" of role "grabber", which held \d+ (kB|MB), for index "other\.tenant\.t_id" of role "tenant"\n[^\n]*DETAIL:  Art indexes take \d+ MB of shared memory/,
	'the log tells whose it was, and for whom');
# the area is full of what is not temporary: it gets nothing from that
$said = '';
for my $i (1 .. 100)
{
	my ($out, $err) = as('tenant', 'other', $fill);

	$said = $err;
	last if $err ne '';
}
like($said, qr/sealed|out of memory/, 'the area is full');
is($node->safe_psql('postgres', q{SELECT state FROM artidx_indexes WHERE indexrelname = 'users_id'}),
	'ready', 'a unique index in another database is still there');
is($node->safe_psql('postgres', q{SELECT state || seals FROM artidx_indexes WHERE indexrelname = 'users_name'}),
	'ready0', 'and so is one that is not unique, for it was in use');
$node->safe_psql('postgres', q{INSERT INTO app.users SELECT gen_random_uuid() FROM generate_series(1, 10)});
$session->{stderr} = '';
$session->query('INSERT INTO g VALUES (gen_random_uuid())');
is($node->safe_psql('postgres', q{SELECT state FROM artidx_indexes WHERE indexrelname = 'users_name'}),
	'ready', 'a temporary index takes from no other');
$session->quit;
$node->safe_psql('other', 'DROP TABLE tenant.t');

# ---- a role's own tables

set('artidx.role_limit', '6MB');
for my $kind ('', 'UNLOGGED')
{
	my $err = take_all('tenant', 'other',
		"CREATE $kind TABLE tenant.t (id uuid); CREATE UNIQUE INDEX t_id ON tenant.t USING art (id)",
		$fill);

	like($err, qr/53200: out of memory for art index "t_id".*The art indexes of role "tenant" take \d+ (kB|MB), and "artidx.role_limit" lets them have 6144 kB/s,
		"a role has a limit $kind");
	is(usage('limited_by, limit_bytes, bytes BETWEEN 3000000 AND limit_bytes',
			"owner = 'tenant' AND database = 'other'"), 'artidx.role_limit|6291456|t', 'as the view shows');
	goes_on('app', 'other', $insert, 'another has its own');
	$node->safe_psql('other', 'DROP TABLE tenant.t');
}
my ($out, $err) = as($node->safe_psql('postgres', 'SELECT current_user'), 'other',
	"CREATE TABLE t (id uuid); CREATE UNIQUE INDEX t_id ON t USING art (id);" . "INSERT INTO t SELECT gen_random_uuid() FROM generate_series(1, 300000)");
is($err, '', 'a superuser has none');

# the charge is that of the owner, as of the last build
$node->safe_psql('other', 'ALTER TABLE t OWNER TO tenant');
like((as('postgres', 'other', 'REINDEX TABLE t'))[1], qr/valid but sealed.*role "tenant".*artidx\.role_limit/s,
	'given to another, and built again, it does not fit');
is($node->safe_psql('other', q{SELECT state, reason FROM artidx_indexes WHERE indexrelname = 't_id'}),
	'sealed|artidx.role_limit', 'it is out for that reason');
set('artidx.role_limit', '100%');
ok($node->poll_query_until('other',
		q{SELECT state = 'ready' FROM artidx_indexes WHERE indexrelname = 't_id'}),
	'a limit that is raised brings it back by itself');
$node->safe_psql('other', 'DROP TABLE t');

# ---- a database

set('artidx.database_limit', '40%');
$err = take_all('tenant', 'other',
	"CREATE TABLE tenant.t (id uuid); CREATE UNIQUE INDEX t_id ON tenant.t USING art (id)", $fill);
like($err, qr/53200: out of memory.*The art indexes of this database take 1\d MB, and "artidx.database_limit" lets them have 13 MB/s,
	'a database has a limit');
like($err, qr/WARNING.*sealed to make room/, 'within which one that is not unique gives way first');
goes_on('app', 'postgres', $insert, 'another has its own');
is($node->safe_psql('postgres', q{SELECT string_agg(state || ' ' || seals, ', ') FROM artidx_indexes}),
	'ready 0, ready 0', 'and nothing of that gave way');

# raised, it is no more in the way of an insert that it has just refused
set('artidx.database_limit', '0B');
$node->safe_psql('other', 'CREATE TABLE v (id int); CREATE UNIQUE INDEX v_id ON v USING art (id)');
like((as('postgres', 'other', 'INSERT INTO v VALUES (1)'))[1], qr/53200/, 'nothing is left of a database\'s limit');
set('artidx.database_limit', '100%');
is((as('postgres', 'other', 'INSERT INTO v VALUES (1)'))[1], '', 'it is raised: the next insert succeeds');
$node->safe_psql('other', 'DROP TABLE v');
set('artidx.database_limit', '40%');

# charges outlive a clean restart, as the structures do
my $before = usage('bytes', "database = 'postgres' AND owner = 'app'");
$node->restart;
all_ready($node, 'postgres');
my $use = usage("owner, kind, indexes, bytes > $before / 2, limited_by, limit_used_bytes >= bytes",
	"database = 'postgres'");
is($use, 'app|permanent|2|t|artidx.database_limit|t', 'the same after a restart');
is($node->safe_psql('postgres', q{SELECT DISTINCT last_build_source FROM artidx_indexes}),
	'load', 'which loaded them');
is(server_crashes($node) + 0, 0, 'the server never stumbled');
$node->stop;
done_testing();
