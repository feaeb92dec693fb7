# Of the parts of the install script the statements that make a thing anew, for a
# script that updates: functions, procedures and views replace their old selves, and
# keep what depends on them and who may use them.  What adds only what is missing
# (DO, SELECT) is run again.
#
# Operator classes, tables and privileges stay as they are.  What has changed of those, and
# what cannot be replaced, is in from-VERSION/before.sql and after.sql.
BEGIN { RS = ""; ORS = "\n\n" }
{ sub(/^(--[^\n]*\n|\/\*([^*]|\*[^\/])*\*\/\n?)+/, "") }
/^(--[^\n]*|)$/ { next }
/^CREATE (FUNCTION|PROCEDURE|VIEW) / { sub(/^CREATE/, "CREATE OR REPLACE"); print; next }
/^(COMMENT ON|DO|SELECT) / { print; next }
/^((CREATE|ALTER) OPERATOR (FAMILY|CLASS)|CREATE ACCESS METHOD|CREATE TABLE|REVOKE|GRANT) / { next }
{ print FILENAME ": anew.awk does not know what to do with:\n" $0 > "/dev/stderr"; exit 1 }
