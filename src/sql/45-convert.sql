-- From art to btree and back.  Procedures, since they commit after each step
-- when they are called by themselves; and so not STRICT.

CREATE PROCEDURE artidx_to_btree(index regclass, concurrently boolean DEFAULT true)
AS 'MODULE_PATHNAME', 'artidx_to_btree'
LANGUAGE C;

COMMENT ON PROCEDURE artidx_to_btree(regclass, boolean)
IS 'make an art index one of btree, with its constraint and all that depends on it';

CREATE PROCEDURE artidx_to_btree()
AS 'MODULE_PATHNAME', 'artidx_to_btree_all'
LANGUAGE C;

COMMENT ON PROCEDURE artidx_to_btree()
IS 'make all art indexes of the database, as far as one owns them, ones of btree';

CREATE PROCEDURE artidx_from_btree(index regclass, concurrently boolean DEFAULT true)
AS 'MODULE_PATHNAME', 'artidx_from_btree'
LANGUAGE C;

COMMENT ON PROCEDURE artidx_from_btree(regclass, boolean)
IS 'make a btree index one of art, with its constraint and all that depends on it';
