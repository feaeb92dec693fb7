--
-- Unique indexes: the errors of nbtree, to the letter, and ON CONFLICT.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set twin :abs_srcdir '/test/twin.sql'
\i :twin
\set ECHO all

CREATE SCHEMA uniq;
SET search_path = uniq, public;

SELECT twins('CREATE TABLE {}_t (id int, a int, b text, c int)');
CREATE UNIQUE INDEX bt_t_id ON bt_t USING btree (id);
CREATE UNIQUE INDEX art_t_id ON art_t USING art (id);
CREATE UNIQUE INDEX bt_t_ab ON bt_t USING btree (a, b COLLATE "C");
CREATE UNIQUE INDEX art_t_ab ON art_t USING art (a, b COLLATE "C");

-- plain inserts and updates
SELECT twins('INSERT INTO {}_t VALUES (1, 1, ''x'', 0), (2, 1, ''y'', 0), (3, 2, ''x'', 0)');
SELECT twins('INSERT INTO {}_t VALUES (1, 9, ''x'', 0)');
SELECT twins('INSERT INTO {}_t VALUES (4, 1, ''y'', 0)');
SELECT twins('INSERT INTO {}_t VALUES (4, 5, ''y'', 0), (4, 6, ''z'', 0)');
SELECT twins('UPDATE {}_t SET id = 2 WHERE id = 3');
SELECT twins('UPDATE {}_t SET id = id + 1');
SELECT twins('UPDATE {}_t SET id = id + 100');
SELECT twins('UPDATE {}_t SET id = id - 100');
SELECT twins('UPDATE {}_t SET id = id');
SELECT twins('UPDATE {}_t SET b = b, c = c + 1');
SELECT same('SELECT * FROM {}_t ORDER BY id');

-- NULLs are distinct ...
SELECT twins('INSERT INTO {}_t VALUES (NULL, NULL, ''x'', 0), (NULL, NULL, ''x'', 0), (NULL, 7, NULL, 0), (NULL, 7, NULL, 0)');
-- ... unless they are not
SELECT twins('CREATE TABLE {}_n (a int, b int)');
CREATE UNIQUE INDEX bt_n_ab ON bt_n USING btree (a, b) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX art_n_ab ON art_n USING art (a, b) NULLS NOT DISTINCT;
SELECT twins('INSERT INTO {}_n VALUES (1, NULL), (NULL, 1), (2, 2)');
SELECT twins('INSERT INTO {}_n VALUES (1, NULL)');
SELECT twins('INSERT INTO {}_n VALUES (NULL, NULL)');
SELECT twins('INSERT INTO {}_n VALUES (NULL, NULL)');
SELECT twins('UPDATE {}_n SET a = NULL WHERE a = 1');
SELECT twins('INSERT INTO {}_n VALUES (NULL, NULL) ON CONFLICT DO NOTHING');
SELECT twins('INSERT INTO {}_n VALUES (NULL, 1) ON CONFLICT (a, b) DO UPDATE SET b = 77');
SELECT same('SELECT * FROM {}_n ORDER BY a, b');

-- a key is free again after delete, rollback, and VACUUM
SELECT twins('DELETE FROM {}_t WHERE id = 1');
SELECT twins('INSERT INTO {}_t VALUES (1, 11, ''x'', 0)');
SELECT twins('INSERT INTO {}_t VALUES (1, 12, ''x'', 0)');
BEGIN;
SELECT twins('DELETE FROM {}_t WHERE id = 1');
SELECT twins('INSERT INTO {}_t VALUES (1, 13, ''in the transaction'', 0)');
SAVEPOINT s;
SELECT twins('DELETE FROM {}_t WHERE id = 1');
SELECT twins('INSERT INTO {}_t VALUES (1, 14, ''in the subtransaction'', 0)');
ROLLBACK TO s;
INSERT INTO art_t VALUES (1, 15, 'again', 0);
ROLLBACK;
SELECT same('SELECT id, a, b FROM {}_t WHERE id = 1');
BEGIN;
INSERT INTO art_t VALUES (50, 50, '', 0);
ROLLBACK;
INSERT INTO art_t VALUES (50, 50, '', 0);
INSERT INTO bt_t VALUES (50, 50, '', 0);
SELECT twins('DELETE FROM {}_t WHERE id = 50');
VACUUM bt_t, art_t;
SELECT twins('INSERT INTO {}_t VALUES (50, 50, '''', 0)');

-- many updates of the same key: versions of one key pile up
SELECT twins('CREATE TABLE {}_v (id int, x int) WITH (fillfactor = 100)');
CREATE UNIQUE INDEX bt_v_id ON bt_v USING btree (id);
CREATE UNIQUE INDEX art_v_id ON art_v USING art (id);
CREATE INDEX bt_v_x ON bt_v USING btree (x);
CREATE INDEX art_v_x ON art_v USING art (x);
SELECT twins('INSERT INTO {}_v SELECT i, 0 FROM generate_series(1, 20) i');
DO $$
BEGIN
	FOR i IN 1 .. 200 LOOP
		UPDATE bt_v SET x = i WHERE id = i % 20 + 1;
		UPDATE art_v SET x = i WHERE id = i % 20 + 1;
	END LOOP;
END $$;
SELECT same('SELECT * FROM {}_v ORDER BY id');
SELECT same('SELECT * FROM {}_v ORDER BY x');
SELECT twins('INSERT INTO {}_v VALUES (7, 0)');

-- the build finds duplicates, and says so as nbtree does; dead rows are none
SELECT twins('CREATE TABLE {}_b (k int, t text)');
SELECT twins('INSERT INTO {}_b SELECT i, ''t'' || i FROM generate_series(1, 1000) i');
SELECT twins('UPDATE {}_b SET k = k, t = t || ''!'' WHERE k % 3 = 0');
CREATE UNIQUE INDEX bt_b_k ON bt_b USING btree (k);
CREATE UNIQUE INDEX art_b_k ON art_b USING art (k);
SELECT twins('DROP INDEX {}_b_k');
SELECT twins('INSERT INTO {}_b VALUES (500, ''twice'')');
SELECT twin.outcome('bt', 'CREATE UNIQUE INDEX {}_b_k ON {}_b USING btree (k)')
	= twin.outcome('art', 'CREATE UNIQUE INDEX {}_b_k ON {}_b USING art (k)') AS same_error;
CREATE UNIQUE INDEX art_b_k ON art_b USING art (k);
CREATE UNIQUE INDEX art_b_kt ON art_b USING art (k, t COLLATE "C");
SELECT twins('UPDATE {}_b SET t = NULL WHERE k = 500');
CREATE UNIQUE INDEX art_b_kt2 ON art_b USING art (k, t COLLATE "C");
CREATE UNIQUE INDEX bt_b_kt3 ON bt_b USING btree (k, t) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX art_b_kt3 ON art_b USING art (k, t) NULLS NOT DISTINCT;
SELECT clean('art_b_kt'), clean('art_b_kt2'), clean('art_t_id'), clean('art_t_ab'), clean('art_v_id'), clean('art_v_x');

-- a unique index on an expression, and a partial one
SELECT twins('CREATE TABLE {}_p (k int, done bool)');
CREATE UNIQUE INDEX bt_p_k ON bt_p USING btree (abs(k)) WHERE NOT done;
CREATE UNIQUE INDEX art_p_k ON art_p USING art (abs(k)) WHERE NOT done;
SELECT twins('INSERT INTO {}_p VALUES (1, false), (1, true), (1, true)');
SELECT twins('INSERT INTO {}_p VALUES (-1, false)');
SELECT twins('UPDATE {}_p SET done = false');
SELECT twins('INSERT INTO {}_p VALUES (-1, false) ON CONFLICT DO NOTHING');
SELECT twins('INSERT INTO {}_p VALUES (-1, false) ON CONFLICT (abs(k)) WHERE NOT done DO UPDATE SET k = 5');
SELECT twins('INSERT INTO {}_p VALUES (-5, false) ON CONFLICT (abs(k)) DO NOTHING');
SELECT same('SELECT * FROM {}_p ORDER BY k, done');

-- ON CONFLICT with art as the arbiter
TRUNCATE bt_t, art_t;
SELECT twins('INSERT INTO {}_t VALUES (1, 1, ''x'', 0), (2, 1, ''y'', 0), (3, 2, ''x'', 0)');
SELECT twins('INSERT INTO {}_t VALUES (1, 1, ''q'', 1) ON CONFLICT DO NOTHING');
SELECT twins('INSERT INTO {}_t VALUES (9, 1, ''y'', 1) ON CONFLICT DO NOTHING');
SELECT twins('INSERT INTO {}_t VALUES (1, 50, ''q'', 1) ON CONFLICT (id) DO NOTHING');
SELECT twins('INSERT INTO {}_t VALUES (4, 1, ''x'', 1) ON CONFLICT (id) DO NOTHING');
SELECT twins('INSERT INTO {}_t VALUES (1, 9, ''new'', 1) ON CONFLICT (id) DO UPDATE SET c = {}_t.c + 10, b = excluded.b');
SELECT twins('INSERT INTO {}_t VALUES (7, 1, ''y'', 1) ON CONFLICT (a, b) DO UPDATE SET c = 99');
SELECT twins('INSERT INTO {}_t VALUES (7, 1, ''y'', 1) ON CONFLICT (b, a) DO UPDATE SET c = 100 WHERE {}_t.c = 99');
SELECT twins('INSERT INTO {}_t VALUES (7, 1, ''y'', 1) ON CONFLICT (b, a) DO UPDATE SET c = 101 WHERE {}_t.c = 99');
SELECT twins('INSERT INTO {}_t VALUES (2, 1, ''y'', 1) ON CONFLICT (id) DO UPDATE SET id = 3');
SELECT twins('INSERT INTO {}_t VALUES (10, 10, ''a'', 0), (10, 11, ''b'', 0) ON CONFLICT (id) DO NOTHING');
SELECT twins('INSERT INTO {}_t VALUES (12, 12, ''a'', 0), (12, 13, ''b'', 0) ON CONFLICT (id) DO UPDATE SET c = 1');
SELECT twins('INSERT INTO {}_t SELECT i % 20, i + 100, ''many'', i FROM generate_series(1, 100) i ON CONFLICT (id) DO NOTHING');
SELECT twins('INSERT INTO {}_t VALUES (1, 1, ''x'', 0) ON CONFLICT (c) DO NOTHING');
SELECT same('SELECT * FROM {}_t ORDER BY id');
SELECT same('WITH ins AS (INSERT INTO {}_t VALUES (1, 500, ''cte'', 0), (30, 501, ''cte'', 0)
	ON CONFLICT (id) DO UPDATE SET b = excluded.b RETURNING id, b) SELECT * FROM ins') WHERE false;
WITH ins AS (INSERT INTO art_t VALUES (1, 500, 'cte', 0), (30, 501, 'cte', 0)
	ON CONFLICT (id) DO UPDATE SET b = excluded.b RETURNING id, b)
	SELECT * FROM ins ORDER BY id;
WITH ins AS (INSERT INTO bt_t VALUES (1, 500, 'cte', 0), (30, 501, 'cte', 0)
	ON CONFLICT (id) DO UPDATE SET b = excluded.b RETURNING id, b)
	SELECT * FROM ins ORDER BY id;
PREPARE up (int) AS INSERT INTO art_t VALUES ($1, $1 + 1000, 'prep', 0)
	ON CONFLICT (id) DO UPDATE SET c = art_t.c + 1 RETURNING id, c;
EXECUTE up (31);
EXECUTE up (31);
EXECUTE up (31);
EXPLAIN (COSTS OFF) EXECUTE up (31);
DEALLOCATE up;
CREATE FUNCTION upsert(int) RETURNS int LANGUAGE sql AS $$
	INSERT INTO art_t VALUES ($1, $1 + 1000, 'prep', 0)
	ON CONFLICT (id) DO UPDATE SET c = art_t.c + 1 RETURNING c $$;
SELECT upsert(31), upsert(32), upsert(32);
CREATE VIEW art_w AS SELECT id, a, b FROM art_t;
INSERT INTO art_w VALUES (31, 1, 'view') ON CONFLICT (id) DO UPDATE SET b = excluded.b RETURNING *;
DELETE FROM art_t WHERE id IN (31, 32);

-- the operator class named: btree's of the same name is meant
SELECT twins('INSERT INTO {}_t VALUES (1, 900, ''o'', 0) ON CONFLICT (id int4_ops) DO NOTHING');
SELECT twins('INSERT INTO {}_t VALUES (1, 901, ''o'', 0) ON CONFLICT (id int8_ops) DO NOTHING');
SELECT twins('INSERT INTO {}_t VALUES (5, 1, ''new'', 0) ON CONFLICT (a int4_ops, b COLLATE "C") DO NOTHING');
SELECT twins('WITH x AS (INSERT INTO {}_t VALUES (1, 902, ''o'', 0) ON CONFLICT (id int4_ops) DO NOTHING RETURNING 1) SELECT * FROM x');

-- art as a bystander of a primary key
SELECT twins('CREATE TABLE {}_k (id int PRIMARY KEY, x int)');
CREATE UNIQUE INDEX bt_k_x ON bt_k USING btree (x);
CREATE UNIQUE INDEX art_k_x ON art_k USING art (x);
SELECT twins('INSERT INTO {}_k VALUES (1, 1), (2, 2)');
SELECT twins('INSERT INTO {}_k VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET x = excluded.x');
SELECT twins('INSERT INTO {}_k VALUES (3, 2) ON CONFLICT (id) DO UPDATE SET x = excluded.x');
SELECT twins('INSERT INTO {}_k VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET x = excluded.x');
SELECT twins('INSERT INTO {}_k VALUES (3, 2) ON CONFLICT ON CONSTRAINT {}_k_pkey DO NOTHING');
SELECT twins('INSERT INTO {}_k VALUES (3, 2) ON CONFLICT DO NOTHING');
SELECT same('SELECT * FROM {}_k ORDER BY id');

-- MERGE
SELECT twins('MERGE INTO {}_t t USING (VALUES (1, ''m''), (77, ''m'')) s (id, b) ON t.id = s.id
	WHEN MATCHED THEN UPDATE SET b = s.b
	WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.id, s.b, 0)');
SELECT twins('MERGE INTO {}_t t USING (VALUES (78), (78)) s (id) ON t.id = s.id
	WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.id, s.id::text, 0)');

-- COPY
COPY art_t FROM stdin;
201	201	copy	0
202	202	copy	0
\.
COPY art_t FROM stdin;
203	203	copy	0
201	204	copy	0
\.
COPY bt_t FROM stdin;
201	201	copy	0
202	202	copy	0
\.
COPY bt_t FROM stdin;
203	203	copy	0
201	204	copy	0
\.
SELECT twins('SELECT FROM {}_t WHERE id > 200');
SELECT twins('DELETE FROM {}_t WHERE id > 200');
SELECT same('SELECT * FROM {}_t ORDER BY id');

-- rows routed to a partition with a unique art index: as with btree, but for
-- ON CONFLICT, for which core leaves no way before 18
SELECT twins('CREATE TABLE {}_r (p int, k int) PARTITION BY LIST (p)');
SELECT twins('CREATE TABLE {}_r1 PARTITION OF {}_r FOR VALUES IN (1)');
SELECT twins('CREATE TABLE {}_r2 PARTITION OF {}_r FOR VALUES IN (2)');
CREATE UNIQUE INDEX bt_r1_k ON bt_r1 USING btree (k);
CREATE UNIQUE INDEX art_r1_k ON art_r1 USING art (k);
SELECT twins('INSERT INTO {}_r VALUES (1, 1), (1, 2), (2, 1), (2, 1)');
SELECT twins('INSERT INTO {}_r VALUES (1, 1)');
SELECT twins('UPDATE {}_r SET p = 1');
SELECT twins('INSERT INTO {}_r VALUES (2, 2) ON CONFLICT DO NOTHING');
SELECT twins('INSERT INTO {}_r1 VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET k = 3');
INSERT INTO bt_r VALUES (1, 1) ON CONFLICT DO NOTHING;
INSERT INTO art_r VALUES (1, 1) ON CONFLICT DO NOTHING;
WITH x AS (INSERT INTO art_r VALUES (1, 1) ON CONFLICT DO NOTHING RETURNING p) SELECT * FROM x;
SELECT same('SELECT * FROM {}_r ORDER BY p, k');

-- exclusion constraints
CREATE TABLE bt_x (k int, EXCLUDE USING btree (k WITH =));
CREATE TABLE art_x (k int, EXCLUDE USING art (k WITH =));
SELECT twins('INSERT INTO {}_x VALUES (1), (2), (NULL), (NULL)');
SELECT twins('INSERT INTO {}_x VALUES (3), (1)');
SELECT twins('INSERT INTO {}_x VALUES (1) ON CONFLICT DO NOTHING');
SELECT twins('UPDATE {}_x SET k = k + 1');
SELECT twins('UPDATE {}_x SET k = k + 10');
SELECT twins('ALTER TABLE {}_x DROP CONSTRAINT {}_x_k_excl');
SELECT twins('INSERT INTO {}_x VALUES (11)');
SELECT twin.outcome('bt', 'ALTER TABLE {}_x ADD EXCLUDE USING btree (k WITH =)')
	= twin.outcome('art', 'ALTER TABLE {}_x ADD EXCLUDE USING art (k WITH =)') AS same_error;
ALTER TABLE art_x ADD EXCLUDE USING art (k WITH =);
SELECT twins('DELETE FROM {}_x WHERE k = 11');
ALTER TABLE bt_x ADD CONSTRAINT bt_x_late EXCLUDE USING btree (k WITH =) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE art_x ADD CONSTRAINT art_x_late EXCLUDE USING art (k WITH =) DEFERRABLE INITIALLY DEFERRED;
BEGIN;
INSERT INTO art_x VALUES (12);
DELETE FROM art_x WHERE k = 12;
INSERT INTO art_x VALUES (12);
COMMIT;
BEGIN;
INSERT INTO art_x VALUES (12);
COMMIT;
SELECT * FROM art_x ORDER BY k;

-- more versions of a row than are looked at at once, and none of them can go yet
CREATE TABLE art_long (k int, v int) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX art_long_k ON art_long USING art (k);
CREATE INDEX art_long_v ON art_long USING btree (v);
INSERT INTO art_long VALUES (1, 0);
BEGIN;
DO $$ BEGIN FOR i IN 1..100 LOOP UPDATE art_long SET v = i; END LOOP; END $$;
SAVEPOINT s;
INSERT INTO art_long VALUES (1, -1);
ROLLBACK TO s;
COMMIT;

-- proofs of uniqueness: the join goes away
SELECT twins('CREATE TABLE {}_j (x int)');
VACUUM ANALYZE art_t, bt_t;
EXPLAIN (COSTS OFF) SELECT j.x FROM bt_j j LEFT JOIN bt_t t ON t.id = j.x;
EXPLAIN (COSTS OFF) SELECT j.x FROM art_j j LEFT JOIN art_t t ON t.id = j.x;

SELECT clean('art_t_id'), clean('art_t_ab'), clean('art_n_ab'), clean('art_p_k'),
	clean('art_k_x'), clean('art_r1_k'), clean('art_x_late');
SET client_min_messages = warning;
DROP SCHEMA uniq CASCADE;
