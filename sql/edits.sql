-- What editors decide: articles moved, stories split and merged, and the judgements that keep passes from undoing it.

-- has_verdict: whether somebody ever judged two articles different
SELECT EXISTS (SELECT FROM judgement WHERE verdict = 'different');

-- judged_apart: for some articles, those that they, or what is folded into either, were judged different from, and the stories of these
WITH own AS (
    SELECT a.id AS article_id, a.id AS member_id FROM unnest(%(article_ids)s::bigint[]) AS a (id)
    UNION ALL
    SELECT d.canonical_id, d.article_id FROM duplicate_link d
    WHERE d.canonical_id = ANY (%(article_ids)s) AND d.retracted_at IS NULL
), judged AS (
    SELECT o.article_id, j.b_id AS other_id
    FROM own o JOIN judgement j ON j.a_id = o.member_id AND j.verdict = 'different'
    UNION ALL
    SELECT o.article_id, j.a_id
    FROM own o JOIN judgement j ON j.b_id = o.member_id AND j.verdict = 'different'
)
SELECT DISTINCT g.article_id, coalesce(d.canonical_id, g.other_id) AS other_id, p.story_id
FROM judged g
LEFT JOIN duplicate_link d ON d.article_id = g.other_id AND d.retracted_at IS NULL
LEFT JOIN story_article p ON p.article_id = coalesce(d.canonical_id, g.other_id);

-- stories_apart: pairs of some stories that have articles, or what is folded into them, which somebody judged different
WITH member AS (
    SELECT p.story_id, p.article_id FROM story_article p WHERE p.story_id = ANY (%(story_ids)s)
    UNION ALL
    SELECT p.story_id, d.article_id
    FROM story_article p JOIN duplicate_link d ON d.canonical_id = p.article_id AND d.retracted_at IS NULL
    WHERE p.story_id = ANY (%(story_ids)s)
)
SELECT DISTINCT least(m.story_id, n.story_id) AS a_id, greatest(m.story_id, n.story_id) AS b_id
FROM member m
JOIN judgement j ON j.a_id = m.article_id AND j.verdict = 'different'
JOIN member n ON n.article_id = j.b_id AND n.story_id <> m.story_id;

-- articles_to_edit: some articles, what they are folded into, and where they are
SELECT a.id, a.event_time, d.canonical_id, p.article_id IS NOT NULL AS is_encoded, p.story_id
FROM article a
LEFT JOIN duplicate_link d ON d.article_id = a.id AND d.retracted_at IS NULL
LEFT JOIN story_article p ON p.article_id = a.id
WHERE a.id = ANY (%(article_ids)s);

-- articles_of: the articles of a story, and whether each is a member of it
SELECT article_id, pass <> 'attach' AS is_member FROM story_article WHERE story_id = %(story_id)s ORDER BY article_id;

-- judge_pairs: record what an edit says of pairs of articles over what was said before; who judged a pair so already is left alone
WITH said AS (
    SELECT n.a_id, n.b_id
    FROM unnest(%(a_ids)s::bigint[], %(b_ids)s::bigint[]) AS n (a_id, b_id)
    LEFT JOIN judgement j ON j.a_id = n.a_id AND j.b_id = n.b_id
    WHERE j.a_id IS NULL OR j.run_id <> %(run_id)s OR (j.run_id IS NULL AND j.verdict <> %(verdict)s)
), past AS (
    INSERT INTO past_judgement (a_id, b_id, verdict, judged_by, judged_at, run_id, replaced_by)
    SELECT j.a_id, j.b_id, j.verdict, j.judged_by, j.judged_at, j.run_id, %(run_id)s
    FROM judgement j JOIN said USING (a_id, b_id)
)
INSERT INTO judgement (a_id, b_id, verdict, judged_by, run_id)
SELECT a_id, b_id, %(verdict)s, %(judged_by)s, %(run_id)s FROM said
ON CONFLICT (a_id, b_id) DO UPDATE SET
    verdict = excluded.verdict, judged_by = excluded.judged_by, judged_at = excluded.judged_at, run_id = excluded.run_id;

-- different_between: the pairs judged different of an article on one side, or what is folded into it, and one on the other
WITH one AS (
    SELECT a.id AS article_id FROM unnest(%(article_ids)s::bigint[]) AS a (id)
    UNION
    SELECT d.article_id FROM duplicate_link d WHERE d.canonical_id = ANY (%(article_ids)s) AND d.retracted_at IS NULL
), other AS (
    SELECT a.id AS article_id FROM unnest(%(other_ids)s::bigint[]) AS a (id)
    UNION
    SELECT d.article_id FROM duplicate_link d WHERE d.canonical_id = ANY (%(other_ids)s) AND d.retracted_at IS NULL
)
SELECT j.a_id, j.b_id FROM one JOIN judgement j ON j.a_id = one.article_id JOIN other ON other.article_id = j.b_id
WHERE j.verdict = 'different'
UNION
SELECT j.a_id, j.b_id FROM one JOIN judgement j ON j.b_id = one.article_id JOIN other ON other.article_id = j.a_id
WHERE j.verdict = 'different'
ORDER BY a_id, b_id;

-- sign_run: remember who asked for a run
UPDATE run SET editor = %(editor)s WHERE id = %(run_id)s;

-- without_members: articles attached to some stories that have no member left
SELECT p.article_id
FROM story_article p
WHERE p.story_id = ANY (%(story_ids)s) AND NOT EXISTS (
    SELECT FROM story_article m WHERE m.story_id = p.story_id AND m.pass <> 'attach'
)
ORDER BY p.article_id;

-- live_among: those of some stories that are part of no other
SELECT id FROM story WHERE id = ANY (%(story_ids)s) AND merged_into IS NULL ORDER BY id;

-- recount_stories: bring stories without a centroid up to date: what became empty, and what is older than the space
UPDATE story s SET
    first_time = coalesce(n.first_time, s.first_time), latest_time = coalesce(n.latest_time, s.latest_time),
    size = n.size, languages = coalesce(n.languages, ARRAY[]::text[]), sources = story_sources(s.id),
    headline_id = coalesce(n.headline_id, s.headline_id)
FROM (
    SELECT
        k.id, min(p.event_time) AS first_time, max(p.event_time) AS latest_time, count(p.article_id) AS size,
        array_agg(DISTINCT a.language ORDER BY a.language) FILTER (WHERE a.id IS NOT NULL) AS languages,
        -- its own headline while that is in it, else the earliest member
        coalesce(
            max(p.article_id) FILTER (WHERE p.article_id = t.headline_id),
            (array_agg(p.article_id ORDER BY p.event_time, p.article_id) FILTER (WHERE p.pass <> 'attach'))[1]
        ) AS headline_id
    FROM unnest(%(story_ids)s::bigint[]) AS k (id)
    JOIN story t ON t.id = k.id
    LEFT JOIN story_article p ON p.story_id = k.id
    LEFT JOIN article a ON a.id = p.article_id
    GROUP BY k.id
) n
WHERE s.id = n.id AND NOT EXISTS (SELECT FROM {story_vectors} c WHERE c.story_id = s.id);
