-- Why an article is where it is: nothing here writes.

-- why_article: an article with its placement, and the article that it is folded into
SELECT
    a.id, a.title, a.event_time, split_part(a.language, '-', 1) AS language, d.canonical_id, d.stage, p.story_id,
    p.pass AS placed_by, p.score, p.threshold, p.run_id, r.editor
FROM article a
LEFT JOIN duplicate_link d ON d.article_id = a.id AND d.retracted_at IS NULL
LEFT JOIN story_article p ON p.article_id = a.id
LEFT JOIN run r ON r.id = p.run_id
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

-- who_parted: stories that an article must not join, and who judged it, or what is folded into it, different from one there
WITH own AS (
    SELECT %(article_id)s::bigint AS id
    UNION ALL
    SELECT article_id FROM duplicate_link WHERE canonical_id = %(article_id)s AND retracted_at IS NULL
), judged AS (
    SELECT j.b_id AS other_id, j.judged_by FROM own o JOIN judgement j ON j.a_id = o.id AND j.verdict = 'different'
    UNION ALL
    SELECT j.a_id, j.judged_by FROM own o JOIN judgement j ON j.b_id = o.id AND j.verdict = 'different'
)
SELECT DISTINCT ON (p.story_id) p.story_id, g.judged_by
FROM judged g
LEFT JOIN duplicate_link d ON d.article_id = g.other_id AND d.retracted_at IS NULL
JOIN story_article p ON p.article_id = coalesce(d.canonical_id, g.other_id)
WHERE p.story_id IS NOT NULL
ORDER BY p.story_id, g.judged_by;
