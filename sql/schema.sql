-- Statements about the schema itself: migrations, extension, settings.

-- set_local: set one setting until the end of the transaction
SELECT set_config(%(setting)s, %(value)s, true);

-- has_migration_table: whether the schema was ever migrated; read from the catalogue, as to_regclass may answer from before the wait for the lock
SELECT EXISTS (SELECT FROM pg_catalog.pg_class WHERE relname = 'schema_migration' AND pg_table_is_visible(oid));

-- last_migration: number of the last migration, 0 where there is none
SELECT coalesce(max(number), 0) FROM schema_migration;

-- lock_migrations: let one process at a time migrate, until the end of the transaction
SELECT pg_advisory_xact_lock(hashtextextended('story-clustering migrate', 0));

-- record_migration: remember that a migration was applied
INSERT INTO schema_migration (number, name) VALUES (%(number)s, %(name)s);

-- offered_pgvector: version of pgvector that the server would install, NULL where it has none
SELECT default_version FROM pg_available_extensions WHERE name = 'vector';

-- installed_pgvector: version of pgvector in this database, NULL where it is not created
SELECT extversion FROM pg_extension WHERE extname = 'vector';

-- create_pgvector: create the extension in this database
CREATE EXTENSION IF NOT EXISTS vector;

-- try_run_lock: take the lock of the one running run, until the end of the transaction
SELECT pg_try_advisory_xact_lock(hashtextextended('story-clustering run', 0));

-- is_replica: whether the server replays another's changes and cannot be written
SELECT pg_is_in_recovery();

-- has_database: whether the server has a database
SELECT EXISTS (SELECT FROM pg_database WHERE datname = %(name)s);

-- create_database: create a database
CREATE DATABASE {name};

-- drop_database: drop a database with whoever is connected to it
DROP DATABASE IF EXISTS {name} WITH (FORCE);
