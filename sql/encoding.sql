-- Sharing the work of encoding: leases, and the vectors that workers encode before a run takes them.

-- lease_due: take the next articles to encode that nobody has, in the order of their time; the rules of articles_due
WITH this AS (
    SELECT id FROM space WHERE name = %(space)s
), due AS (
    SELECT a.id, a.title, left(a.body, %(lede_chars)s) AS lede, a.revision
    FROM article a
    LEFT JOIN encoding e ON e.article_id = a.id AND e.space_id = (SELECT id FROM this) AND e.revision = a.revision
    WHERE a.encode_due
      AND (a.encoded_at IS NULL OR a.live_since IS NULL OR a.encoded_at < date_bin('1 hour', now(), '2000-01-01T00:00Z'))
      AND (e.article_id IS NULL OR (e.raw IS NULL AND e.leased_until <= now()))
    ORDER BY a.event_time, a.id
    LIMIT %(most)s
    FOR NO KEY UPDATE OF a SKIP LOCKED
), taken AS (
    INSERT INTO encoding AS e (article_id, space_id, revision, worker, leased_until)
    SELECT d.id, this.id, d.revision, %(worker)s::uuid, now() + %(lease)s::interval FROM due d, this
    ORDER BY d.id  -- all insert in one order, or two would wait for each other
    ON CONFLICT (article_id) DO UPDATE SET
        space_id = excluded.space_id, revision = excluded.revision, worker = excluded.worker,
        leased_until = excluded.leased_until, raw = NULL
    WHERE (e.space_id, e.revision) <> (excluded.space_id, excluded.revision) OR (e.raw IS NULL AND e.leased_until <= now())
    RETURNING e.article_id
)
SELECT d.id, d.title, d.lede FROM due d JOIN taken t ON t.article_id = d.id ORDER BY d.id;

-- lease_articles: take those of some articles that nobody has, or that the same worker had; of the others a live worker is at work, or done
INSERT INTO encoding AS e (article_id, space_id, revision, worker, leased_until)
SELECT n.article_id, s.id, n.revision, %(worker)s::uuid, now() + %(lease)s::interval
FROM unnest(%(article_ids)s::bigint[], %(revisions)s::integer[]) AS n (article_id, revision)
JOIN space s ON s.name = %(space)s
ORDER BY n.article_id
ON CONFLICT (article_id) DO UPDATE SET
    space_id = excluded.space_id, revision = excluded.revision, worker = excluded.worker,
    leased_until = excluded.leased_until, raw = NULL
WHERE (e.space_id, e.revision) <> (excluded.space_id, excluded.revision)
   OR (e.raw IS NULL AND (e.leased_until <= now() OR e.worker = excluded.worker))
RETURNING e.article_id;

-- store_raw: hand in what a worker encoded; what another has taken over meanwhile is left to that one
UPDATE encoding e SET raw = n.raw::halfvec
FROM unnest(%(article_ids)s::bigint[], %(raw)s::text[]) AS n (article_id, raw)
WHERE e.article_id = n.article_id AND e.worker = %(worker)s::uuid AND e.raw IS NULL;

-- encoded_raws: the vectors that workers have handed in, of some revisions of articles
SELECT e.article_id, e.raw
FROM encoding e
JOIN unnest(%(article_ids)s::bigint[], %(revisions)s::integer[]) AS n (article_id, revision) USING (article_id, revision)
JOIN space s ON s.id = e.space_id AND s.name = %(space)s
WHERE e.raw IS NOT NULL;

-- end_leases: forget the leases and vectors of articles that a run has stored
DELETE FROM encoding WHERE article_id = ANY (%(article_ids)s);

-- release_leases: let go of what a worker has not encoded
DELETE FROM encoding WHERE worker = %(worker)s::uuid AND raw IS NULL;

-- forget_stale_encodings: forget leases and vectors of texts that are no longer to be encoded
DELETE FROM encoding e USING article a
WHERE a.id = e.article_id AND (NOT a.encode_due OR a.revision <> e.revision);
