--
-- Constraints with art indexes: deferrable ones, EXCLUDE, USING INDEX.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA con;
SET search_path = con, public;

-- ADD CONSTRAINT ... USING INDEX
CREATE TABLE u (a int, b text, c int NOT NULL, d int);
CREATE UNIQUE INDEX u_a ON u USING art (a);
CREATE UNIQUE INDEX u_bc ON u USING art (b, c);
CREATE UNIQUE INDEX u_expr ON u USING art ((a + 1));
CREATE UNIQUE INDEX u_part ON u USING art (a) WHERE a > 0;
CREATE UNIQUE INDEX u_desc ON u USING art (c DESC);
CREATE UNIQUE INDEX u_pattern ON u USING art (b text_pattern_ops);
CREATE UNIQUE INDEX u_coll ON u USING art (b COLLATE "POSIX");
CREATE UNIQUE INDEX u_def ON u USING art (d);
CREATE INDEX u_not ON u USING art (c);
CREATE TABLE u2 (a int);
CREATE UNIQUE INDEX u2_a ON u2 USING art (a);
INSERT INTO u VALUES (1, 'x', 1, 1), (NULL, 'y', 2, 2);
ALTER TABLE u ADD PRIMARY KEY USING INDEX u_expr;
ALTER TABLE u ADD PRIMARY KEY USING INDEX u_part;
ALTER TABLE u ADD PRIMARY KEY USING INDEX u_desc;
ALTER TABLE u ADD UNIQUE USING INDEX u_pattern;
ALTER TABLE u ADD UNIQUE USING INDEX u_coll;
ALTER TABLE u ADD UNIQUE USING INDEX u_not;
ALTER TABLE u ADD UNIQUE USING INDEX u2_a;
ALTER TABLE u ADD UNIQUE USING INDEX nope;
ALTER TABLE u ADD PRIMARY KEY USING INDEX u_a;
UPDATE u SET a = 2 WHERE a IS NULL;
ALTER TABLE u ADD PRIMARY KEY USING INDEX u_a;
ALTER TABLE u ADD PRIMARY KEY USING INDEX u_bc;
ALTER TABLE u ADD UNIQUE USING INDEX u_a;
ALTER TABLE u ADD CONSTRAINT u_b_c UNIQUE USING INDEX u_bc,
	ADD CONSTRAINT u_d UNIQUE USING INDEX u_def DEFERRABLE INITIALLY DEFERRED, ADD COLUMN e int;
SELECT conname, contype, condeferrable, condeferred, amname, indimmediate, indisprimary
	FROM pg_constraint JOIN pg_class c ON c.oid = conindid JOIN pg_am a ON a.oid = relam JOIN pg_index ON indexrelid = conindid
	WHERE conrelid = 'u'::regclass ORDER BY 1;
\d u
INSERT INTO u VALUES (NULL, 'z', 3, 3);
INSERT INTO u VALUES (2, 'z', 3, 3);
INSERT INTO u VALUES (3, 'x', 1, 3);
BEGIN;
INSERT INTO u VALUES (3, 'z', 3, 1);
COMMIT;
ALTER TABLE u DROP CONSTRAINT u_d;
CREATE UNIQUE INDEX u_def ON u USING art (d);
-- a column's type in the same command
ALTER TABLE u ALTER d TYPE bigint USING -d, ADD CONSTRAINT u_def UNIQUE USING INDEX u_def;
SELECT conname, amname FROM pg_constraint JOIN pg_class c ON c.oid = conindid JOIN pg_am a ON a.oid = relam
	WHERE conname = 'u_def';
INSERT INTO u VALUES (3, 'z', 3, -2);
CREATE FUNCTION attach() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	ALTER TABLE con.u2 ADD CONSTRAINT u2_key UNIQUE USING INDEX u2_a;
	ALTER TABLE con.u2 DROP CONSTRAINT u2_key;
	CREATE UNIQUE INDEX u2_a ON con.u2 USING art (a);
END $$;
SELECT attach();
SELECT attach();
DROP TABLE u, u2;

-- deferrable unique constraints, beside btree's
CREATE TABLE bt_i (k int CONSTRAINT bt_i_k UNIQUE DEFERRABLE INITIALLY IMMEDIATE, t text);
CREATE TABLE bt_d (k int CONSTRAINT bt_d_k UNIQUE DEFERRABLE INITIALLY DEFERRED, t text);
CREATE TABLE bt_n (a int, b int, c int, CONSTRAINT bt_n_abc UNIQUE NULLS NOT DISTINCT (a, b, c) DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE bt_m (a int, b int, c int, CONSTRAINT bt_m_abc UNIQUE (a, b, c) DEFERRABLE INITIALLY DEFERRED);
SET client_min_messages = warning;
SET artidx.replace_btree = constraints;
CREATE TABLE art_i (k int CONSTRAINT art_i_k UNIQUE DEFERRABLE INITIALLY IMMEDIATE, t text);
CREATE TABLE art_d (k int CONSTRAINT art_d_k UNIQUE DEFERRABLE INITIALLY DEFERRED, t text);
CREATE TABLE art_n (a int, b int, c int, CONSTRAINT art_n_abc UNIQUE NULLS NOT DISTINCT (a, b, c) DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE art_m (a int, b int, c int, CONSTRAINT art_m_abc UNIQUE (a, b, c) DEFERRABLE INITIALLY DEFERRED);
RESET artidx.replace_btree;
RESET client_min_messages;
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = relam
	WHERE relname ~ '^art_' AND relnamespace = 'con'::regnamespace AND relkind = 'i' ORDER BY 1;

-- initially immediate: at the end of each statement
SELECT twins('INSERT INTO {}_i SELECT i, ''r'' || i FROM generate_series(1, 100) i');
SELECT twins('UPDATE {}_i SET k = k + 1');
SELECT twins('UPDATE {}_i SET k = 103 - k');
SELECT twins('UPDATE {}_i SET k = k % 100 + 1');
SELECT twins('UPDATE {}_i SET k = 7 WHERE k IN (7, 8, 9)');
SELECT twins('INSERT INTO {}_i VALUES (7, ''again'')');
SELECT twins('INSERT INTO {}_i VALUES (200, ''a''), (200, ''b'')');
SELECT twins('INSERT INTO {}_i VALUES (7, ''again'') ON CONFLICT (k) DO NOTHING');
SELECT twins('INSERT INTO {}_i VALUES (7, ''again'') ON CONFLICT DO NOTHING');
SELECT same('SELECT k, t FROM {}_i ORDER BY k');
-- ... or later
SELECT twins('SET CONSTRAINTS {}_i_k DEFERRED; INSERT INTO {}_i VALUES (7, ''x''); DELETE FROM {}_i WHERE k = 7 AND t <> ''x''; SET CONSTRAINTS {}_i_k IMMEDIATE');
SELECT twins('SET CONSTRAINTS {}_i_k DEFERRED; INSERT INTO {}_i VALUES (7, ''y''); SET CONSTRAINTS {}_i_k IMMEDIATE');
SELECT same('SELECT k, t FROM {}_i WHERE k BETWEEN 5 AND 9 ORDER BY k');

-- initially deferred: rows that come, change, go again before anybody looks
SELECT twins('INSERT INTO {}_d SELECT i, ''r'' || i FROM generate_series(1, 50) i; SET CONSTRAINTS {}_d_k IMMEDIATE');
SELECT twins('INSERT INTO {}_d VALUES (1, ''x''), (1, ''y''); SET CONSTRAINTS {}_d_k IMMEDIATE');
SELECT twins('INSERT INTO {}_d VALUES (1, ''x''), (1, ''y''); DELETE FROM {}_d WHERE k = 1 AND t <> ''y''; SET CONSTRAINTS {}_d_k IMMEDIATE');
SELECT twins('INSERT INTO {}_d VALUES (2, ''x''); UPDATE {}_d SET k = 60 WHERE t = ''x''; SET CONSTRAINTS {}_d_k IMMEDIATE');
SELECT twins('INSERT INTO {}_d VALUES (2, ''x2''); UPDATE {}_d SET t = ''x3'' WHERE t = ''x2''; SET CONSTRAINTS {}_d_k IMMEDIATE');
SELECT twins('INSERT INTO {}_d VALUES (3, ''x4''); UPDATE {}_d SET t = ''hot'' WHERE k = 3 AND t = ''r3''; DELETE FROM {}_d WHERE t = ''x4''; SET CONSTRAINTS {}_d_k IMMEDIATE');
SELECT twins('INSERT INTO {}_d VALUES (NULL, ''n''), (NULL, ''m''); SET CONSTRAINTS {}_d_k IMMEDIATE');
SELECT twins('UPDATE {}_d SET k = 4; SET CONSTRAINTS {}_d_k IMMEDIATE');
SELECT twins('UPDATE {}_d SET k = 4; UPDATE {}_d SET k = NULL; SET CONSTRAINTS {}_d_k IMMEDIATE');
SELECT same('SELECT k, t FROM {}_d ORDER BY k, t');
SELECT twins('TRUNCATE {}_d; INSERT INTO {}_d VALUES (1, ''a''), (1, ''b''); SET CONSTRAINTS {}_d_k IMMEDIATE');
SELECT twins('TRUNCATE {}_d; INSERT INTO {}_d SELECT i, ''r'' || i FROM generate_series(1, 50) i');

-- at COMMIT, and with savepoints
BEGIN;
INSERT INTO bt_d VALUES (1, 'x');
COMMIT;
BEGIN;
INSERT INTO art_d VALUES (1, 'x');
COMMIT;
BEGIN;
SELECT twins('INSERT INTO {}_d VALUES (2, ''kept'')');
SAVEPOINT a;
SELECT twins('INSERT INTO {}_d VALUES (3, ''gone'')');
SELECT twins('UPDATE {}_d SET t = ''gone'' WHERE k = 2');
ROLLBACK TO a;
SELECT twins('DELETE FROM {}_d WHERE k = 2 AND t = ''r2''');
SAVEPOINT b;
SELECT twins('UPDATE {}_d SET k = 51 - k');
RELEASE b;
COMMIT;
SELECT same('SELECT k, t FROM {}_d ORDER BY k, t');
BEGIN;
SELECT twins('INSERT INTO {}_d VALUES (49, ''again'')');
SAVEPOINT a;
SELECT twins('SET CONSTRAINTS {}_d_k IMMEDIATE');
ROLLBACK TO a;
SELECT twins('UPDATE {}_d SET k = 100 WHERE k = 49 AND t = ''again''');
SET CONSTRAINTS ALL IMMEDIATE;
SELECT twins('INSERT INTO {}_d VALUES (100, ''at once'')');
COMMIT;
SELECT same('SELECT k, t FROM {}_d WHERE k > 45 ORDER BY k, t');
-- vacuumed and pruned between the row and the check of it
BEGIN;
SELECT twins('INSERT INTO {}_d VALUES (5, ''p'')');
SELECT twins('UPDATE {}_d SET t = t || ''!'' WHERE k = 5');
SELECT twins('UPDATE {}_d SET t = t || ''!'' WHERE k = 5');
SELECT twins('DELETE FROM {}_d WHERE k = 5 AND t = ''r46!!''');
SELECT same('SELECT k, t FROM {}_d WHERE k < 7 ORDER BY k, t');
COMMIT;
REINDEX TABLE art_d;
SELECT twins('INSERT INTO {}_d VALUES (5, ''after REINDEX''); SET CONSTRAINTS {}_d_k IMMEDIATE');

-- a duplicate that the check is to meet in a structure that was built meanwhile
BEGIN;
SELECT twins('INSERT INTO {}_d VALUES (6, ''u'')');
SELECT artidx_unload('art_d_k');
SELECT twins('SET CONSTRAINTS {}_d_k IMMEDIATE');
SELECT twins('DELETE FROM {}_d WHERE t = ''u''');
COMMIT;
SELECT clean('art_d_k'), clean('art_i_k');

-- several columns, NULLs in some
SELECT twins('INSERT INTO {}_n SELECT nullif(a, 0), nullif(b, 0), nullif(c, 0) FROM generate_series(0, 2) a, generate_series(0, 2) b, generate_series(0, 2) c; SET CONSTRAINTS {}_n_abc IMMEDIATE');
SELECT twins('INSERT INTO {}_m SELECT * FROM {}_n; SET CONSTRAINTS {}_m_abc IMMEDIATE');
SELECT twins('INSERT INTO {}_n VALUES (NULL, 1, NULL); SET CONSTRAINTS {}_n_abc IMMEDIATE');
SELECT twins('INSERT INTO {}_m VALUES (NULL, 1, NULL); SET CONSTRAINTS {}_m_abc IMMEDIATE');
SELECT twins('INSERT INTO {}_n VALUES (NULL, NULL, NULL); SET CONSTRAINTS {}_n_abc IMMEDIATE');
SELECT twins('INSERT INTO {}_m VALUES (1, 2, NULL), (1, 2, 2); SET CONSTRAINTS {}_m_abc IMMEDIATE');
SELECT twins('UPDATE {}_n SET a = b, b = c, c = a; SET CONSTRAINTS {}_n_abc IMMEDIATE');
SELECT twins('UPDATE {}_n SET a = CASE WHEN a IS NULL THEN 1 WHEN a = 1 THEN 2 END; SET CONSTRAINTS {}_n_abc IMMEDIATE');
SELECT twins('UPDATE {}_n SET b = NULL WHERE b = 1; SET CONSTRAINTS {}_n_abc IMMEDIATE');
SELECT twins('UPDATE {}_m SET b = NULL WHERE b = 1; SET CONSTRAINTS {}_m_abc IMMEDIATE');
SELECT same('SELECT * FROM {}_n ORDER BY a, b, c');
SELECT same('SELECT * FROM {}_m ORDER BY a, b, c');
SELECT clean('art_n_abc'), clean('art_m_abc');

-- keys that are compared, and equal ones that differ in their bytes
CREATE TYPE record_t AS (x numeric, y text);
CREATE TABLE bt_c (k numeric CONSTRAINT bt_c_k UNIQUE DEFERRABLE INITIALLY DEFERRED, r record_t CONSTRAINT bt_c_r UNIQUE DEFERRABLE);
SET client_min_messages = warning;
SET artidx.replace_btree = constraints;
CREATE TABLE art_c (k numeric CONSTRAINT art_c_k UNIQUE DEFERRABLE INITIALLY DEFERRED, r record_t CONSTRAINT art_c_r UNIQUE DEFERRABLE);
RESET artidx.replace_btree;
RESET client_min_messages;
SELECT twins('INSERT INTO {}_c SELECT i, row(i, ''y'')::record_t FROM generate_series(1, 20) i; SET CONSTRAINTS {}_c_k, {}_c_r IMMEDIATE');
SELECT twins('INSERT INTO {}_c VALUES (1.00, row(0, ''y'')); SET CONSTRAINTS {}_c_k, {}_c_r IMMEDIATE');
SELECT twins('INSERT INTO {}_c VALUES (0, row(1.00, ''y'')); SET CONSTRAINTS {}_c_k, {}_c_r IMMEDIATE');
SELECT twins('UPDATE {}_c SET k = (21 - k)::numeric(8, 2), r = row((r).x + 1.0, ''y'')::record_t; SET CONSTRAINTS {}_c_k, {}_c_r IMMEDIATE');
SELECT twins('UPDATE {}_c SET r = row(1, ''y''); SET CONSTRAINTS {}_c_k, {}_c_r IMMEDIATE');
SELECT same('SELECT k, r FROM {}_c ORDER BY k');
SELECT clean('art_c_k'), clean('art_c_r');

-- EXCLUDE
CREATE TABLE bt_x (a int, t text, CONSTRAINT bt_x_a EXCLUDE USING btree (a WITH =) DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE bt_y (a int, b int, CONSTRAINT bt_y_ab EXCLUDE USING btree (a WITH =, (b % 10) WITH =) WHERE (a > 0));
CREATE TABLE art_x (a int, t text, CONSTRAINT art_x_a EXCLUDE USING art (a WITH =) DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE art_y (a int, b int, CONSTRAINT art_y_ab EXCLUDE USING art (a WITH =, (b % 10) WITH =) WHERE (a > 0));
SELECT twin.outcome('art', 'CREATE TABLE {}_z (a int, CONSTRAINT {}_z_a EXCLUDE USING art (a WITH <))');
SELECT twin.outcome('art', 'CREATE TABLE {}_z (a int, CONSTRAINT {}_z_a EXCLUDE USING art (a WITH <>))');
SELECT twins('INSERT INTO {}_x SELECT i, ''r'' || i FROM generate_series(1, 50) i; SET CONSTRAINTS {}_x_a IMMEDIATE');
SELECT twins('INSERT INTO {}_x VALUES (1, ''x''); SET CONSTRAINTS {}_x_a IMMEDIATE');
SELECT twins('INSERT INTO {}_x VALUES (1, ''x''); DELETE FROM {}_x WHERE t = ''r1''; SET CONSTRAINTS {}_x_a IMMEDIATE');
SELECT twins('UPDATE {}_x SET a = 51 - a; SET CONSTRAINTS {}_x_a IMMEDIATE');
SELECT twins('INSERT INTO {}_x VALUES (NULL, ''n''), (NULL, ''n''); SET CONSTRAINTS {}_x_a IMMEDIATE');
SELECT same('SELECT a, t FROM {}_x ORDER BY a, t');
SELECT twins('INSERT INTO {}_y SELECT i, i FROM generate_series(-5, 5) i');
SELECT twins('INSERT INTO {}_y VALUES (3, 13)');
SELECT twins('INSERT INTO {}_y VALUES (3, 14), (-3, -3), (4, NULL), (4, NULL)');
SELECT twins('INSERT INTO {}_y VALUES (3, 13) ON CONFLICT DO NOTHING');
SELECT twins('INSERT INTO {}_y VALUES (3, 13) ON CONFLICT ON CONSTRAINT {}_y_ab DO NOTHING');
SELECT twins('UPDATE {}_y SET a = 3 WHERE a = 4');
SELECT twins('UPDATE {}_y SET a = 3, b = 3 WHERE a = -3');
SELECT twins('UPDATE {}_y SET b = b + 10');
SELECT same('SELECT a, b FROM {}_y ORDER BY a, b');
SELECT clean('art_x_a'), clean('art_y_ab');

-- LIKE and COPY; a rewrite; a new constraint over rows that break it
CREATE TABLE art_l (LIKE art_d INCLUDING ALL);
SELECT amname, condeferrable, condeferred FROM pg_constraint JOIN pg_class c ON c.oid = conindid JOIN pg_am a ON a.oid = relam
	WHERE conrelid = 'art_l'::regclass;
BEGIN;
COPY art_l FROM stdin;
1	a
2	b
1	c
\.
DELETE FROM art_l WHERE t = 'a';
COMMIT;
COPY art_l FROM stdin;
3	d
2	e
\.
VACUUM FULL art_l;
INSERT INTO art_l VALUES (2, 'e');
SET artidx.replace_btree = constraints;
SET client_min_messages = warning;
ALTER TABLE art_l ADD CONSTRAINT art_l_t UNIQUE (t);
INSERT INTO art_l VALUES (9, 'c');
ALTER TABLE art_l DROP CONSTRAINT art_l_t;
INSERT INTO art_l VALUES (9, 'c');
ALTER TABLE art_l ADD CONSTRAINT art_l_t UNIQUE (t) DEFERRABLE INITIALLY DEFERRED;
RESET artidx.replace_btree;
-- an index that the same statement makes anew, which SET EXPRESSION does from 17 on
CREATE TABLE art_g (a int, g int GENERATED ALWAYS AS (a) STORED);
CREATE UNIQUE INDEX art_g_i ON art_g USING art (g);
DO $$BEGIN
	IF current_setting('server_version_num')::int >= 170000 THEN
		EXECUTE 'ALTER TABLE art_g ALTER g SET EXPRESSION AS (a + 1), ADD CONSTRAINT art_g_u UNIQUE USING INDEX art_g_i';
	ELSE
		ALTER TABLE art_g ADD CONSTRAINT art_g_u UNIQUE USING INDEX art_g_i;
	END IF;
END$$;
SELECT conindid::regclass, amname FROM pg_constraint JOIN pg_class c ON c.oid = conindid JOIN pg_am a ON a.oid = relam
	WHERE conname = 'art_g_u';
-- a key with a parameter of art's is art, for so it comes from a dump; and it loses that with its access method
CREATE TABLE art_p (id int PRIMARY KEY WITH (max_memory = '1GB', fillfactor = 80), a int, b int);
ALTER TABLE art_p ADD CONSTRAINT art_p_a UNIQUE (a) WITH (structure = btree, tail_buffer = off),
	ADD CONSTRAINT art_p_b UNIQUE (b) WITH (fillfactor = 70), ADD COLUMN c int UNIQUE WITH (sync = coarse);
CREATE TABLE art_q () INHERITS (art_p);
ALTER TABLE art_q ADD PRIMARY KEY (id) WITH (sync = rowex);
INSERT INTO art_p VALUES (1, 1, 1, 1);
CREATE VIEW art_keys AS SELECT conname, amname, reloptions FROM pg_constraint
	JOIN pg_class c ON c.oid = conindid JOIN pg_am a ON a.oid = relam WHERE conname ~ '^art_[pq]_' ORDER BY 1;
SELECT * FROM art_keys;
ALTER TABLE art_p ADD UNIQUE (a, b) WITH (no_such = 1, sync = olc);
ALTER TABLE art_p ALTER id TYPE bigint;
SELECT * FROM art_keys;
INSERT INTO art_p VALUES (1, 2, 2, 2);
INSERT INTO art_p VALUES (2, 1, 2, 2);
-- an exclusion constraint names its access method, and keeps both
CREATE TABLE art_e (a int, CONSTRAINT art_p_e EXCLUDE USING art (a WITH =) WITH (max_memory = '1GB'));
ALTER TABLE art_e ALTER a TYPE bigint;
SELECT * FROM art_keys WHERE conname = 'art_p_e';
-- a key that core wants of btree, until 18, goes without them
CREATE TABLE art_h (a int) PARTITION BY LIST (a);
CREATE TABLE art_h1 PARTITION OF art_h FOR VALUES IN (1);
SET client_min_messages = error;
ALTER TABLE art_h1 ADD CONSTRAINT art_q_h PRIMARY KEY (a) WITH (max_memory = '1GB', fillfactor = 60);
SET client_min_messages = warning;
SELECT conname, reloptions = CASE amname WHEN 'art' THEN '{max_memory=1GB,fillfactor=60}' ELSE '{fillfactor=60}' END::text[] AS fit
	FROM art_keys WHERE conname = 'art_q_h';
-- a primary key attached, and a foreign key to it in the same statement
CREATE TABLE art_f (id int NOT NULL, p int);
CREATE UNIQUE INDEX art_f_i ON art_f USING art (id);
INSERT INTO art_f VALUES (1, 1);
ALTER TABLE art_f ADD PRIMARY KEY USING INDEX art_f_i, ADD FOREIGN KEY (p) REFERENCES art_f;
INSERT INTO art_f VALUES (2, 3);
DROP SCHEMA con CASCADE;
RESET client_min_messages;
