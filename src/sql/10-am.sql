-- The access method.  Its operator classes follow in the next parts.

-- The library that the server has loaded may be older than this script.  Then this
-- first statement fails, and nothing is made that the library does not know.
CREATE FUNCTION artidx_version()
RETURNS text
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT STABLE PARALLEL SAFE;

COMMENT ON FUNCTION artidx_version() IS
	'version of the artidx library that the server has loaded';

CREATE FUNCTION arthandler(internal)
RETURNS index_am_handler
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT;

COMMENT ON FUNCTION arthandler(internal) IS
	'handler of the index access method art';

CREATE ACCESS METHOD art TYPE INDEX HANDLER arthandler;

COMMENT ON ACCESS METHOD art IS
	'adaptive radix tree in shared memory, rebuilt from the table when needed';
