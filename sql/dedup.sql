-- The cascade: which stored articles share a key with new ones, and the links that follow.

-- entry_twins: pairs of a new article and another of its feed with the same title, body and address
SELECT a.id AS article_id, o.id AS other_id
FROM article a
JOIN article o ON o.feed_id = a.feed_id AND o.entry_hash = a.entry_hash AND o.id <> a.id
WHERE a.id = ANY (%(article_ids)s);

-- url_twins: pairs of a new article and another under the same normalised address
SELECT a.id AS article_id, o.id AS other_id
FROM article a
JOIN article o ON o.url_hash = a.url_hash AND o.id <> a.id
WHERE a.id = ANY (%(article_ids)s);

-- content_twins: pairs of a new article and another with the same text within the feed's window
SELECT a.id AS article_id, o.id AS other_id
FROM article a
JOIN feed f ON f.id = a.feed_id
JOIN article o ON o.content_hash = a.content_hash AND o.id <> a.id
    AND o.event_time BETWEEN a.event_time - f.duplicate_window AND a.event_time + f.duplicate_window
WHERE a.id = ANY (%(article_ids)s);

-- simhash_twins: pairs of a new article and those whose body shares a band and most bits with its own within the feed's window, the nearest of each
SELECT p.article_id, p.other_id
FROM (
    SELECT
        a.id AS article_id, o.id AS other_id,
        row_number() OVER (PARTITION BY a.id ORDER BY bit_count((o.simhash # a.simhash)::bit(64)), o.id) AS place
    FROM article a
    JOIN feed f ON f.id = a.feed_id
    CROSS JOIN LATERAL (
        SELECT id, simhash FROM article WHERE band_1 = a.band_1
            AND event_time BETWEEN a.event_time - f.duplicate_window AND a.event_time + f.duplicate_window
        UNION
        SELECT id, simhash FROM article WHERE band_2 = a.band_2
            AND event_time BETWEEN a.event_time - f.duplicate_window AND a.event_time + f.duplicate_window
        UNION
        SELECT id, simhash FROM article WHERE band_3 = a.band_3
            AND event_time BETWEEN a.event_time - f.duplicate_window AND a.event_time + f.duplicate_window
        UNION
        SELECT id, simhash FROM article WHERE band_4 = a.band_4
            AND event_time BETWEEN a.event_time - f.duplicate_window AND a.event_time + f.duplicate_window
    ) o
    WHERE a.id = ANY (%(article_ids)s) AND o.id <> a.id
        AND bit_count((o.simhash # a.simhash)::bit(64)) <= %(radius)s
) p
WHERE p.place <= %(most)s;

-- bodies: the bodies of articles
SELECT id, body FROM article WHERE id = ANY (%(article_ids)s);

-- flag_titles: put pairs of a new article and one of a like title within the feed's window into the review queue
-- The new ones on their own first: beside the cost that the planner sees in what follows, it finds all articles of a feed cheap.
WITH fresh AS MATERIALIZED (
    SELECT a.id, a.title_sketch, a.event_time, f.duplicate_window
    FROM article a JOIN feed f ON f.id = a.feed_id
    WHERE a.id = ANY (%(article_ids)s)
)
INSERT INTO review_flag (a_id, b_id, stage, score, threshold, run_id)
SELECT DISTINCT least(a.id, o.id), greatest(a.id, o.id), 'title', s.score, %(threshold)s::real, %(run_id)s
FROM fresh a
CROSS JOIN LATERAL (
    SELECT o.id, o.title_sketch
    FROM article o
    -- Whoever shares the threshold's part of a sketch has one of any hashes more than the rest of it.
    WHERE sketch_keys(o.title_sketch, o.event_time, o.event_time) && sketch_keys(
        a.title_sketch[
            : cardinality(a.title_sketch) - ceil(cardinality(a.title_sketch) * %(threshold)s::double precision - 0.001)::integer + 1
        ],
        a.event_time - a.duplicate_window,
        a.event_time + a.duplicate_window
    )
    AND o.event_time BETWEEN a.event_time - a.duplicate_window AND a.event_time + a.duplicate_window
    AND o.id <> a.id
    OFFSET 0 -- the index first: to the planner the window alone looks as narrow
) o
CROSS JOIN LATERAL (
    SELECT count(*)::double precision AS shared FROM unnest(a.title_sketch) AS hash WHERE hash = ANY (o.title_sketch)
) c
CROSS JOIN LATERAL (
    SELECT c.shared / (cardinality(a.title_sketch) + cardinality(o.title_sketch) - c.shared) AS score
) s
WHERE s.score >= %(threshold)s::double precision
    AND NOT EXISTS (SELECT FROM duplicate_link d WHERE d.article_id = o.id AND d.retracted_at IS NULL)
ON CONFLICT (a_id, b_id, stage) DO NOTHING;

-- canonicals: for each article its canonical one (itself where it is no duplicate), with the times that rank them
SELECT
    a.id AS article_id, c.id AS canonical_id, c.event_time,
    EXISTS (SELECT FROM story_article p WHERE p.article_id = c.id) AS settled
FROM article a
LEFT JOIN duplicate_link d ON d.article_id = a.id AND d.retracted_at IS NULL
JOIN article c ON c.id = coalesce(d.canonical_id, a.id)
WHERE a.id = ANY (%(article_ids)s);

-- link_duplicates: fold articles into their canonical ones
INSERT INTO duplicate_link (article_id, canonical_id, folded_into, stage, score, threshold, run_id)
SELECT n.article_id, n.canonical_id, n.canonical_id, %(stage)s, n.score, %(threshold)s, %(run_id)s
FROM unnest(%(article_ids)s::bigint[], %(canonical_ids)s::bigint[], %(scores)s::real[])
    AS n (article_id, canonical_id, score);

-- follow_canonicals: let what was folded into articles that become duplicates themselves lead to their canonical ones
UPDATE duplicate_link d SET canonical_id = n.canonical_id
FROM unnest(%(article_ids)s::bigint[], %(canonical_ids)s::bigint[]) AS n (article_id, canonical_id)
WHERE d.canonical_id = n.article_id AND d.retracted_at IS NULL;

-- spare_encoding: duplicates are never encoded
UPDATE article SET encode_due = false WHERE id = ANY (%(article_ids)s) AND encode_due;

-- held_apart: those of some canonical articles whose groups must not become one: a judgement says that they report different events, or a link of one of these stages between them was undone
WITH member AS (
    SELECT c.id AS canonical_id, c.id AS article_id FROM unnest(%(canonical_ids)s::bigint[]) AS c (id)
    UNION ALL
    SELECT d.canonical_id, d.article_id FROM duplicate_link d
    WHERE d.canonical_id = ANY (%(canonical_ids)s) AND d.retracted_at IS NULL
)
SELECT m.canonical_id AS a_id, n.canonical_id AS b_id
FROM member m
JOIN judgement j ON j.a_id = m.article_id AND j.verdict = 'different'
JOIN member n ON n.article_id = j.b_id
UNION
SELECT m.canonical_id, n.canonical_id
FROM member m
JOIN duplicate_link d
    ON d.article_id = m.article_id AND d.stage = ANY (%(stages)s::text[]) AND d.retracted_at IS NOT NULL AND NOT d.lapsed
JOIN member n ON n.article_id IN (d.canonical_id, d.folded_into);

-- duplicate_links: links between duplicates and canonical articles that meet all conditions given, the latest first
SELECT
    d.id, d.article_id, d.canonical_id, coalesce(d.folded_into, d.canonical_id) AS folded_into, d.stage, d.score,
    d.threshold, d.run_id, d.made_at, d.retracted_at, d.lapsed, f.address AS source, a.title, a.url, a.event_time,
    cf.address AS canonical_source, c.title AS canonical_title
FROM duplicate_link d
JOIN article a ON a.id = d.article_id
JOIN feed f ON f.id = a.feed_id
JOIN article c ON c.id = d.canonical_id
JOIN feed cf ON cf.id = c.feed_id
WHERE (d.retracted_at IS NOT NULL) = %(taken_back)s::boolean
  AND (%(link_ids)s::bigint[] IS NULL OR d.id = ANY (%(link_ids)s))
  AND (%(article_ids)s::bigint[] IS NULL OR d.article_id = ANY (%(article_ids)s) OR d.canonical_id = ANY (%(article_ids)s))
  AND (%(stage)s::text IS NULL OR d.stage = %(stage)s)
  AND (%(run_id)s::bigint IS NULL OR d.run_id = %(run_id)s)
  AND (%(since)s::timestamptz IS NULL OR d.made_at >= %(since)s)
ORDER BY d.id DESC
LIMIT %(most)s;

-- links_into: the links that lead to some canonical articles
SELECT article_id, coalesce(folded_into, canonical_id) AS folded_into, canonical_id
FROM duplicate_link WHERE canonical_id = ANY (%(canonical_ids)s) AND retracted_at IS NULL;

-- retract_links: take links back
UPDATE duplicate_link SET retracted_at = now(), retracted_run_id = %(run_id)s, lapsed = %(lapsed)s::boolean
WHERE id = ANY (%(link_ids)s);

-- move_links: let duplicates lead to other canonical articles
UPDATE duplicate_link d SET canonical_id = n.canonical_id
FROM unnest(%(article_ids)s::bigint[], %(canonical_ids)s::bigint[]) AS n (article_id, canonical_id)
WHERE d.article_id = n.article_id AND d.retracted_at IS NULL;

-- free_articles: articles that are duplicates no more wait to be encoded
UPDATE article SET encode_due = true WHERE id = ANY (%(article_ids)s) AND NOT encode_due;
