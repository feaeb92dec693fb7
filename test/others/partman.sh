# test/others/partman.sh
#	  pg_partman's own tests, by pgTAP (sourced).  A group is a file, and its result is psql's
#	  output.  Both extensions are Debian's.  The tests come by checkout, of the same version.
#
# Left out are those that need more than one transaction, another user or a tablespace, and one with
# partitions of 30 seconds: what it finds depends on the second in which it begins.  pg_partman goes
# over its table of parents in no order, so autovacuum does not run in between.
#
#	PARTMAN_FILES="test/test-time-*.sql"	these only

partman_fetch()
{
	VERSION=4.7.2
	debs postgresql-15-partman postgresql-15-pgtap && checkout partman "v$VERSION" pgpartman/pg_partman test || return 1
	rm "$WORK/partman/test/test_native/test-time-custom-30sec-native.sql"
	VERSION+=${PARTMAN_FILES:+ ($PARTMAN_FILES)}
}

partman_run()
{
	suite_cluster "$1" "max_locks_per_transaction = 256" "autovacuum = off"
	sql "CREATE DATABASE partman" && PGDATABASE=partman sql "CREATE EXTENSION pgtap; CREATE SCHEMA partman;
		CREATE EXTENSION pg_partman SCHEMA partman"
	tap_files partman "$WORK/partman" "${PARTMAN_FILES:-test/*.sql test/test_native/*.sql test/test_upsert/*.sql}"
	art_only check_indexes partman
	suite_cluster_stop
}
