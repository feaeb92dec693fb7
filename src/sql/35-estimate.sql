-- artidx_estimate: the size of an index that is not there yet.  It checks the
-- caller's privileges on the table itself, reads with them and changes nothing,
-- so everybody may call it.

CREATE FUNCTION artidx_estimate(relation regclass, columns text[])
RETURNS bigint
AS 'MODULE_PATHNAME', 'artidx_estimate'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION artidx_estimate(regclass, text[]) IS
	'bytes of shared memory that an art index on these columns or (expressions) would take';

CREATE FUNCTION artidx_estimate(index regclass)
RETURNS bigint
AS 'MODULE_PATHNAME', 'artidx_estimate_index'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION artidx_estimate(regclass) IS
	'bytes of shared memory that this btree index would take as an art index, or this art index if it were built now';

-- The same, and NULL with a warning where that errs: for artidx_estimate_database only.
CREATE FUNCTION artidx_estimate_stats(index regclass)
RETURNS bigint
AS 'MODULE_PATHNAME', 'artidx_estimate_or_null'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION artidx_estimate_stats(regclass) IS
	'artidx_estimate of an index, for artidx_estimate_database';

-- Of every btree index of this database that art could take the place of and whose
-- table the caller may read.  An unlogged table is empty on a standby.
CREATE FUNCTION artidx_estimate_database(
	OUT indrelid regclass, OUT indexrelid regclass, OUT btree_bytes bigint,
	OUT art_bytes bigint)
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	SELECT t.oid::pg_catalog.regclass, c.oid::pg_catalog.regclass,
		   pg_catalog.pg_relation_size(c.oid::pg_catalog.regclass),
		   artidx_estimate_stats(c.oid::pg_catalog.regclass)
	FROM pg_catalog.pg_index i
		JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
		JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
		JOIN pg_catalog.pg_am h ON h.oid = t.relam AND h.amhandler::pg_catalog.oid =
			'pg_catalog.heap_tableam_handler'::pg_catalog.regproc::pg_catalog.oid
		JOIN pg_catalog.pg_am a ON a.oid = c.relam AND a.amname = 'btree'
	WHERE t.relkind IN ('r', 'm') AND c.relkind = 'i'
		AND t.relpersistence <> 't' AND t.oid >= 16384::pg_catalog.oid
		AND NOT (t.relpersistence = 'u' AND pg_catalog.pg_is_in_recovery())
		AND i.indisvalid
		AND pg_catalog.has_table_privilege(t.oid, 'SELECT')
		AND NOT pg_catalog.row_security_active(t.oid)
		AND NOT EXISTS (
			SELECT FROM pg_catalog.unnest(i.indclass::pg_catalog.oid[]) k
				JOIN pg_catalog.pg_opclass o ON o.oid = k
			WHERE NOT EXISTS (
				SELECT FROM pg_catalog.pg_opclass p
					JOIN pg_catalog.pg_am pa ON pa.oid = p.opcmethod
				WHERE pa.amname = 'art' AND p.opcname = o.opcname
					AND p.opcintype = o.opcintype))
	ORDER BY 3 DESC, 2;
END;

COMMENT ON FUNCTION artidx_estimate_database() IS
	'what every btree index of this database takes, and about what it would take as an art index';
