-- artidx_check: one row when the structure is sound, else an error (XX002).

CREATE FUNCTION artidx_check(index regclass, heapallindexed boolean DEFAULT false)
RETURNS TABLE (entries bigint, heap_tuples bigint, nodes bigint, bytes bigint)
AS 'MODULE_PATHNAME', 'artidx_check'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

REVOKE ALL ON FUNCTION artidx_check(regclass, boolean) FROM PUBLIC;

COMMENT ON FUNCTION artidx_check(regclass, boolean)
IS 'verify an art index, with heapallindexed also against its table';
