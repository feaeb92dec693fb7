/*
 * The other operator classes of btree, as they are in this version of
 * PostgreSQL: their keys are compared unless they have an encoding.
 */

CREATE FUNCTION artidx_mirror_opclass(opclass text) RETURNS oid
	AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

COMMENT ON FUNCTION artidx_mirror_opclass(text) IS
	'make an operator class of access method art from one of btree';

SELECT artidx_mirror_opclass(pg_catalog.format('pg_catalog.%I', c.opcname))
FROM (SELECT b.opcname FROM pg_catalog.pg_opclass b
		JOIN pg_catalog.pg_am bm ON bm.oid = b.opcmethod AND bm.amname = 'btree'
		JOIN pg_catalog.pg_namespace n ON n.oid = b.opcnamespace AND n.nspname = 'pg_catalog'
	  WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_opclass a
							JOIN pg_catalog.pg_am am ON am.oid = a.opcmethod AND am.amname = 'art'
						WHERE a.opcname = b.opcname)
	  ORDER BY b.opcname) c;
