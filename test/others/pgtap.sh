# test/others/pgtap.sh
#	  pgTAP's own tests (sourced).  A group is a file, and its result is psql's output.
#
# The extension is Debian's.  Its tests come by checkout, of the same version.

pgtap_fetch()
{
	VERSION=1.2.0
	debs postgresql-15-pgtap && checkout pgtap "v$VERSION" theory/pgtap test
}

pgtap_run()
{
	suite_cluster "$1"
	sql "CREATE DATABASE pgtap" && PGDATABASE=pgtap sql "CREATE EXTENSION pgtap"
	tap_files pgtap "$WORK/pgtap" 'test/sql/*.sql'
	art_only check_indexes pgtap
	suite_cluster_stop
}
