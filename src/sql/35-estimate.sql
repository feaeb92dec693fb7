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
SET search_path = pg_catalog
BEGIN ATOMIC
	SELECT t.oid::regclass, c.oid::regclass, pg_relation_size(c.oid),
		   artidx_estimate_stats(c.oid::regclass)
	FROM pg_index i
		JOIN pg_class c ON c.oid = i.indexrelid
		JOIN pg_class t ON t.oid = i.indrelid
		JOIN pg_am h ON h.oid = t.relam AND h.amhandler = 'heap_tableam_handler'::regproc
		JOIN pg_am a ON a.oid = c.relam AND a.amname = 'btree'
	WHERE t.relkind IN ('r', 'm') AND c.relkind = 'i'
		AND t.relpersistence <> 't' AND t.oid >= 16384
		AND NOT (t.relpersistence = 'u' AND pg_is_in_recovery())
		AND i.indisvalid
		AND has_table_privilege(t.oid, 'SELECT') AND NOT row_security_active(t.oid)
		AND NOT EXISTS (
			SELECT FROM unnest(i.indclass::oid[]) k JOIN pg_opclass o ON o.oid = k
			WHERE NOT EXISTS (
				SELECT FROM pg_opclass p JOIN pg_am pa ON pa.oid = p.opcmethod
				WHERE pa.amname = 'art' AND p.opcname = o.opcname
					AND p.opcintype = o.opcintype))
	ORDER BY 3 DESC, 2;
END;

COMMENT ON FUNCTION artidx_estimate_database() IS
	'what every btree index of this database takes, and about what it would take as an art index';
