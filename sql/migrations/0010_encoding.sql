-- Who encodes which articles, so that several can: a row is a lease until it has a vector, and goes when
-- a run takes the vector over. A small table whose rows live for minutes.
CREATE TABLE encoding (
    article_id bigint PRIMARY KEY REFERENCES article ON DELETE CASCADE,
    space_id integer NOT NULL REFERENCES space ON DELETE CASCADE,
    revision integer NOT NULL,
    worker uuid NOT NULL,
    -- on the server's clock; then another may take over
    leased_until timestamptz NOT NULL,
    raw halfvec
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
