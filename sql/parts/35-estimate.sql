-- artidx_estimate: the size of an index that is not there yet.  It checks the
-- caller's privileges on the table itself, reads with them and changes nothing,
-- so everybody may call it.

CREATE FUNCTION artidx_estimate(relation regclass, columns text[])
RETURNS bigint
AS 'MODULE_PATHNAME', 'artidx_estimate'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION artidx_estimate(regclass, text[]) IS
	'bytes of shared memory that an art index on these columns or (expressions) would take';
