-- Why an article is where it is: nothing here writes.

-- why_article: an article with its placement, and the article that it is folded into
SELECT
    a.id, a.title, a.event_time, split_part(a.language, '-', 1) AS language, d.canonical_id, d.stage, p.story_id,
    p.pass AS placed_by, p.score, p.threshold, p.run_id
FROM article a
LEFT JOIN duplicate_link d ON d.article_id = a.id AND d.retracted_at IS NULL
LEFT JOIN story_article p ON p.article_id = a.id
WHERE a.id = %(article_id)s;

-- why_candidates: the stories near an article in meaning and time, and one that is asked for by its id; the columns of story_candidates, and headlines
SELECT
    q.article_id, q.event_time, %(language)s::text AS language, (1 - s.distance) * s.mean_norm AS similarity,
    s.story_id, s.first_time, s.latest_time, s.size, s.cohesion, s.languages, a.title AS headline
FROM (
    SELECT v.article_id, v.event_time, v.aligned
    FROM {article_vectors} v
    WHERE v.article_id = %(article_id)s AND v.event_time = %(event_time)s::timestamptz
) q
CROSS JOIN LATERAL (
    (
        SELECT c.*, c.centroid <=> q.aligned AS distance
        FROM {story_vectors} c
        WHERE c.latest_time >= q.event_time - %(around)s::interval AND c.first_time <= q.event_time + %(around)s::interval
        ORDER BY c.centroid <=> q.aligned
        LIMIT %(most)s
    )
    UNION
    SELECT c.*, c.centroid <=> q.aligned FROM {story_vectors} c WHERE c.story_id = %(story_id)s::bigint
) s
JOIN story t ON t.id = s.story_id
JOIN article a ON a.id = t.headline_id
ORDER BY s.distance, s.story_id;
