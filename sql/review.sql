-- The review queue and the judgements that answer it.

-- review_queue: flagged pairs, those that wait or those that somebody decided, the latest first
SELECT
    a.id AS a_id, af.address AS a_source, a.title AS a_title, a.url AS a_url, a.event_time AS a_time,
    b.id AS b_id, bf.address AS b_source, b.title AS b_title, b.url AS b_url, b.event_time AS b_time,
    r.stage, r.score, r.threshold, r.run_id, r.made_at, j.verdict, j.judged_by, j.judged_at
FROM review_flag r
LEFT JOIN judgement j ON j.a_id = r.a_id AND j.b_id = r.b_id
JOIN article a ON a.id = r.a_id
JOIN feed af ON af.id = a.feed_id
JOIN article b ON b.id = r.b_id
JOIN feed bf ON bf.id = b.feed_id
WHERE (j.verdict IS NOT NULL) = %(decided)s::boolean
ORDER BY r.id DESC
LIMIT %(most)s;

-- judge: record whether two articles report one event; a later verdict replaces an earlier one
INSERT INTO judgement (a_id, b_id, verdict, judged_by)
VALUES (%(a_id)s, %(b_id)s, %(verdict)s, %(judged_by)s)
ON CONFLICT (a_id, b_id) DO UPDATE SET
    verdict = excluded.verdict, judged_by = excluded.judged_by, judged_at = excluded.judged_at, run_id = NULL
WHERE (judgement.verdict, judgement.judged_by) IS DISTINCT FROM (excluded.verdict, excluded.judged_by);

-- ranks: some articles with their own time and the canonical article that each leads to
SELECT a.id AS article_id, a.event_time, coalesce(d.canonical_id, a.id) AS canonical_id
FROM article a
LEFT JOIN duplicate_link d ON d.article_id = a.id AND d.retracted_at IS NULL
WHERE a.id = ANY (%(article_ids)s);

-- judgements_by_stage: how the flags of each stage were answered
SELECT r.stage, count(*) AS flags, count(*) FILTER (WHERE j.verdict = 'same') AS same,
    count(*) FILTER (WHERE j.verdict = 'different') AS different
FROM review_flag r
LEFT JOIN judgement j ON j.a_id = r.a_id AND j.b_id = r.b_id
GROUP BY r.stage ORDER BY r.stage;

-- judged_pairs: what people decided about pairs, with what is encoded of both articles and the hours between them, in order of decision; of an edit, which follows from the whole of a story, a few pairs
WITH said AS (
    SELECT
        a_id, b_id, verdict, judged_at, run_id,
        row_number() OVER (PARTITION BY run_id, verdict ORDER BY hashint8extended(a_id, b_id), a_id, b_id) AS place
    FROM judgement
)
SELECT
    a.title AS a_title, a.body AS a_body, a.language AS a_language,
    b.title AS b_title, b.body AS b_body, b.language AS b_language,
    abs(extract(epoch FROM a.event_time - b.event_time))::float8 / 3600 AS hours, j.verdict
FROM said j
JOIN article a ON a.id = j.a_id
JOIN article b ON b.id = j.b_id
WHERE j.run_id IS NULL OR j.place <= %(most_of_edit)s
ORDER BY j.judged_at, j.a_id, j.b_id;
