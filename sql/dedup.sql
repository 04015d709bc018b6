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

-- canonicals: for each article its canonical one (itself where it is no duplicate), with the times that rank them
SELECT a.id AS article_id, c.id AS canonical_id, c.event_time
FROM article a
LEFT JOIN duplicate_link d ON d.article_id = a.id AND d.retracted_at IS NULL
JOIN article c ON c.id = coalesce(d.canonical_id, a.id)
WHERE a.id = ANY (%(article_ids)s);

-- link_duplicates: fold articles into their canonical ones
INSERT INTO duplicate_link (article_id, canonical_id, stage, score, threshold, run_id)
SELECT n.article_id, n.canonical_id, %(stage)s, 1, 1, %(run_id)s
FROM unnest(%(article_ids)s::bigint[], %(canonical_ids)s::bigint[]) AS n (article_id, canonical_id);

-- follow_canonicals: let what was folded into articles that become duplicates themselves lead to their canonical ones
UPDATE duplicate_link d SET canonical_id = n.canonical_id
FROM unnest(%(article_ids)s::bigint[], %(canonical_ids)s::bigint[]) AS n (article_id, canonical_id)
WHERE d.canonical_id = n.article_id AND d.retracted_at IS NULL;

-- spare_encoding: duplicates are never encoded
UPDATE article SET encode_due = false WHERE id = ANY (%(article_ids)s) AND encode_due;
