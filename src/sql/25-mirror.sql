/*
 * The other operator classes of btree, as they are in this version of
 * PostgreSQL: their keys are compared unless they have an encoding.
 */

CREATE FUNCTION artidx_mirror_opclass(opclass text) RETURNS oid
	AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

COMMENT ON FUNCTION artidx_mirror_opclass(text) IS
	'make an operator class of access method art from one of btree';

SELECT artidx_mirror_opclass('pg_catalog.' || pg_catalog.quote_ident(c.opcname))
FROM (SELECT opcname FROM pg_catalog.pg_opclass b
	  WHERE opcmethod = (SELECT oid FROM pg_catalog.pg_am WHERE amname = 'btree')
		AND opcnamespace = 'pg_catalog'::regnamespace
		AND NOT EXISTS (SELECT FROM pg_catalog.pg_opclass a
						WHERE a.opcname = b.opcname AND a.opcmethod =
							(SELECT oid FROM pg_catalog.pg_am WHERE amname = 'art'))
	  ORDER BY opcname) c;
