-- Spaces and their vector tables. {article_vectors} and {story_vectors} are the tables of the space in use.

-- space_named: one space by its name
SELECT name, model, revision, dimension, prefix, recipe, alignment, fit FROM space WHERE name = %(name)s;

-- active_space: the space that new articles are encoded in
SELECT name, model, revision, dimension, prefix, recipe, alignment, fit FROM space WHERE active;

-- all_spaces: every space, the oldest first
SELECT name, model, revision, dimension, prefix, recipe, alignment, fit FROM space ORDER BY id;

-- add_space: register a space
WITH added AS (
    INSERT INTO space (
        name, model, revision, dimension, prefix, recipe, alignment, fit, active, running_mean, running_articles, language_basis
    )
    VALUES (
        %(name)s, %(model)s, %(revision)s, %(dimension)s, %(prefix)s, %(recipe)s, %(alignment)s, %(fit)s, %(active)s,
        %(mean)s::double precision[], %(articles)s, %(basis)s::double precision[]
    )
    RETURNING id, running_mean, running_articles
)
INSERT INTO domain_mean (space_id, version, mean, articles)
SELECT id, 1, running_mean, running_articles FROM added;

-- domain_mean: the mean in force in a space, and the running mean that may replace it
SELECT m.version, m.mean, s.running_mean, s.running_articles, s.fit <> '' AS fixed, s.alignment
FROM space s JOIN domain_mean m ON m.space_id = s.id
WHERE s.name = %(space)s
ORDER BY m.version DESC LIMIT 1;

-- update_running_mean: take newly encoded articles into the running mean
UPDATE space SET running_mean = %(running_mean)s::double precision[], running_articles = %(running_articles)s
WHERE name = %(space)s;

-- add_domain_mean: put a new mean in force
INSERT INTO domain_mean (space_id, version, mean, articles)
SELECT id, %(version)s, %(mean)s::double precision[], %(articles)s FROM space WHERE name = %(space)s;

-- language_basis: the directions that are taken out of a space whose model has no language offsets
SELECT language_basis FROM space WHERE name = %(space)s;

-- set_language_basis: take directions out of a space from now on
UPDATE space SET language_basis = %(basis)s::double precision[] WHERE name = %(space)s;

-- raw_vectors: the next raw vectors from some article on, in order of time
SELECT v.article_id, v.event_time, v.raw, a.language, least(length(a.body), %(lede_chars)s) AS lede_chars
FROM {article_vectors} v JOIN article a ON a.id = v.article_id
WHERE v.event_time >= %(since)s AND (v.event_time, v.article_id) > (%(after_time)s, %(after_id)s)
ORDER BY v.event_time, v.article_id
LIMIT %(most)s;

-- realign_vectors: write vectors aligned by another mean
UPDATE {article_vectors} v SET aligned = n.aligned::halfvec
FROM unnest(%(article_ids)s::bigint[], %(event_times)s::timestamptz[], %(aligned)s::text[]) AS n (article_id, event_time, aligned)
WHERE v.article_id = n.article_id AND v.event_time = n.event_time
  AND v.event_time BETWEEN %(first)s AND %(last)s;

-- live_stories: the stories with a centroid that were alive at some time or later
SELECT story_id FROM {story_vectors} WHERE latest_time >= %(since)s ORDER BY story_id;

-- make_article_vectors: the vectors of a space, one partition a day
CREATE TABLE {article_vectors} (
    article_id bigint NOT NULL,
    event_time timestamptz NOT NULL,
    revision integer NOT NULL,
    raw halfvec({dimension}) NOT NULL,
    aligned halfvec({dimension}) NOT NULL,
    PRIMARY KEY (article_id, event_time)
) PARTITION BY RANGE (event_time);

-- index_article_vectors: the index that each partition gets
CREATE INDEX ON {article_vectors} USING hnsw (aligned halfvec_cosine_ops) WITH (m = 16, ef_construction = 64);

-- index_article_times: finds a slice of a day without reading its vectors
CREATE INDEX ON {article_vectors} (event_time);

-- make_story_vectors: the centroids of live stories, a small table because each update leaves a dead row
CREATE TABLE {story_vectors} (
    story_id bigint PRIMARY KEY REFERENCES story,
    -- of its members, as all that follows: attached articles have no part in it
    first_time timestamptz NOT NULL,
    latest_time timestamptz NOT NULL,
    size integer NOT NULL,
    -- mean cosine of two members, from -1 to 1
    cohesion real NOT NULL,
    -- share of each language, without script or region, among the members that the centroid averages
    languages jsonb NOT NULL,
    -- length of the mean of unit vectors that the centroid was scaled from: times a cosine to the
    -- centroid it gives the mean cosine to the members
    mean_norm real NOT NULL,
    centroid halfvec({dimension}) NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, fillfactor = 70);

-- index_story_vectors: finds the live stories
CREATE INDEX ON {story_vectors} (latest_time);

-- missing_partitions: those of some tables that do not exist
SELECT n.name FROM unnest(%(names)s::text[]) AS n (name) WHERE to_regclass(quote_ident(n.name)) IS NULL;

-- make_partition: one day's partition
CREATE TABLE IF NOT EXISTS {partition} PARTITION OF {article_vectors} FOR VALUES FROM ({first}) TO ({last});

-- day_partitions: the days of a space and what each takes on the disk
SELECT c.relname AS name, pg_total_relation_size(c.oid) AS size_bytes
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = to_regclass(quote_ident(%(article_table)s::text))
ORDER BY c.relname;

-- detach_partition: take a day out of a space
ALTER TABLE {article_vectors} DETACH PARTITION {partition};

-- drop_partition: free what a detached day takes
DROP TABLE {partition};

-- lost_vectors: how many of some articles would wait for the passes without a vector
SELECT count(*) FROM story_article p
WHERE p.article_id = ANY (%(article_ids)s) AND p.story_id IS NULL
  AND NOT EXISTS (SELECT FROM {article_vectors} v WHERE v.article_id = p.article_id AND v.event_time = p.event_time);

-- drop_old_vectors: remove the vectors of articles that are encoded again
DELETE FROM {article_vectors} v
USING unnest(%(article_ids)s::bigint[], %(event_times)s::timestamptz[]) AS n (article_id, event_time)
WHERE v.article_id = n.article_id AND v.event_time = n.event_time
  AND v.event_time BETWEEN %(first)s AND %(last)s;

-- copy_vectors: write vectors in bulk
COPY {article_vectors} (article_id, event_time, revision, raw, aligned) FROM STDIN (FORMAT binary);
