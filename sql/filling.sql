-- Filling a space beside the active one, and making it the active one. {article_vectors} is the table
-- of the space that is filled.

-- try_space_lock: take the lock of the one process that may fill a space, until the end of the transaction
SELECT pg_try_advisory_xact_lock(hashtextextended('story-clustering space ' || %(space)s::text, 0));

-- articles_missing: articles that a space lacks in their current revision, the latest first; those due wait for the next run
SELECT p.article_id AS id, a.title, left(a.body, %(lede_chars)s) AS lede, a.language, p.event_time, a.revision
FROM story_article p JOIN article a ON a.id = p.article_id
WHERE (p.event_time, p.article_id) < (%(before_time)s, %(before_id)s) AND p.event_time >= %(since)s
  AND NOT a.encode_due AND NOT EXISTS (
    SELECT FROM {article_vectors} v
    WHERE v.article_id = p.article_id AND v.event_time = p.event_time AND v.revision = a.revision
  )
ORDER BY p.event_time DESC, p.article_id DESC
LIMIT %(most)s;

-- count_missing: how many encoded articles a space lacks, of those from some time on and those of stories that went on then
SELECT count(*) AS wanted, count(*) FILTER (WHERE v.article_id IS NULL) AS missing
FROM (
    SELECT article_id, event_time FROM story_article WHERE event_time >= %(since)s
    UNION
    SELECT p.article_id, p.event_time
    FROM story s JOIN story_article p ON p.story_id = s.id
    WHERE s.latest_time >= %(since)s AND s.merged_into IS NULL
) p
JOIN article a ON a.id = p.article_id AND NOT a.encode_due
LEFT JOIN {article_vectors} v
    ON v.article_id = p.article_id AND v.event_time = p.event_time AND v.revision = a.revision;

-- like_spaces: other spaces with the same raw vectors as some space
SELECT o.name
FROM space s JOIN space o
    ON (o.model, o.revision, o.dimension, o.prefix, o.recipe) = (s.model, s.revision, s.dimension, s.prefix, s.recipe)
WHERE s.name = %(space)s AND o.name <> s.name
ORDER BY o.active DESC, o.id DESC;

-- raw_of_articles: the raw vectors that another space has of some revisions of articles
SELECT v.article_id, v.raw
FROM {raw_source} v
JOIN unnest(%(article_ids)s::bigint[], %(event_times)s::timestamptz[], %(revisions)s::integer[]) AS n (article_id, event_time, revision)
    ON v.article_id = n.article_id AND v.event_time = n.event_time AND v.revision = n.revision
WHERE v.event_time BETWEEN %(first)s AND %(last)s;

-- count_vectors: how many articles a space has
SELECT count(*) FROM {article_vectors};

-- time_of_latest: event time of the article before which so many later ones come in a space, or NULL
SELECT event_time FROM {article_vectors} ORDER BY event_time DESC OFFSET %(articles)s LIMIT 1;

-- live_since: from when on articles and stories can still change; nothing where no article is encoded
SELECT least(max(event_time), min(event_time) FILTER (WHERE pass = 'pending')) - %(span)s::interval
FROM story_article;

-- deactivate_spaces: let no space serve
UPDATE space SET active = false WHERE active;

-- activate_space: let a space serve; no other may
UPDATE space SET active = true WHERE name = %(space)s;

-- drop_all_centroids: forget the centroids of a space
DELETE FROM {story_vectors};

-- stories_since: stories that went on after some time
SELECT id FROM story WHERE merged_into IS NULL AND latest_time >= %(since)s ORDER BY id;

-- stories_without_centroid: the latest stories that have none in a space although it has their articles
SELECT s.id
FROM story s
WHERE s.merged_into IS NULL AND s.id < %(before)s
  AND NOT EXISTS (SELECT FROM {story_vectors} c WHERE c.story_id = s.id)
  AND EXISTS (
    SELECT FROM story_article p
    JOIN {article_vectors} v ON v.article_id = p.article_id AND v.event_time = p.event_time
    WHERE p.story_id = s.id
  )
ORDER BY s.id DESC
LIMIT %(most)s;

-- space_state: what is known of a space beside its vectors
SELECT
    s.active, s.created_at, s.running_articles, s.background_mean, s.background_deviation, s.background_articles,
    cardinality(s.language_basis) / s.dimension AS language_directions,
    (SELECT max(version) FROM domain_mean m WHERE m.space_id = s.id) AS mean_version
FROM space s
WHERE s.name = %(space)s;

-- space_bytes: what the tables and indexes of a space take on the disk
SELECT sum(pg_total_relation_size(relid))
FROM (
    SELECT relid FROM pg_partition_tree(to_regclass(quote_ident(%(article_table)s::text)))
    UNION ALL SELECT to_regclass(quote_ident(%(story_table)s::text))
) tables;

-- background_sample: the same share of the articles from some time on, whatever their order
SELECT v.event_time, v.aligned
FROM (
    SELECT article_id, event_time FROM {article_vectors}
    WHERE event_time >= %(since)s
    ORDER BY hashint8(article_id), article_id LIMIT %(most)s
) n
JOIN {article_vectors} v USING (article_id, event_time);

-- set_background: remember what unrelated articles look like in a space
UPDATE space SET
    background_mean = %(mean)s, background_deviation = %(deviation)s, background_articles = %(articles)s
WHERE name = %(space)s;

-- drop_article_vectors: free what a space's articles take
DROP TABLE {article_vectors};

-- drop_story_vectors: free what a space's centroids take
DROP TABLE {story_vectors};

-- forget_space: forget a space that does not serve
WITH gone AS (
    SELECT id FROM space WHERE name = %(space)s AND NOT active
), means AS (
    DELETE FROM domain_mean m USING gone WHERE m.space_id = gone.id
)
DELETE FROM space s USING gone WHERE s.id = gone.id;
