-- The access method.  Its operator classes follow in the next parts.

CREATE FUNCTION arthandler(internal)
RETURNS index_am_handler
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT;

COMMENT ON FUNCTION arthandler(internal) IS
	'handler of the index access method art';

CREATE ACCESS METHOD art TYPE INDEX HANDLER arthandler;

COMMENT ON ACCESS METHOD art IS
	'adaptive radix tree in shared memory, rebuilt from the table when needed';
