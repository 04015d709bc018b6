-- The passes of one slice. Each KNN sub-query is a bare ORDER BY distance LIMIT: anything more and
-- the vector index is not used.

-- next_slice: the earliest articles that wait for the passes, to the end of their slice of time
WITH earliest AS (
    SELECT event_time FROM story_article
    WHERE pass = 'pending' AND event_time <= %(as_of)s
    ORDER BY event_time, article_id LIMIT 1
)
SELECT p.article_id, p.event_time
FROM earliest e
JOIN story_article p ON p.pass = 'pending' AND p.event_time >= e.event_time AND p.event_time <= %(as_of)s
    AND p.event_time < date_bin(%(step)s, e.event_time, %(origin)s) + %(step)s
ORDER BY p.event_time, p.article_id;

-- count_pending: how many articles wait for the passes
SELECT count(*) FROM story_article WHERE pass = 'pending' AND event_time <= %(as_of)s;

-- story_candidates: the live stories nearest to each of some articles, with its mean cosine to their members
SELECT q.article_id, s.story_id, (1 - s.distance) * s.mean_norm AS similarity
FROM (
    SELECT v.article_id, v.event_time, v.aligned
    FROM {article_vectors} v
    WHERE v.article_id = ANY (%(article_ids)s) AND v.event_time BETWEEN %(first)s AND %(last)s
) q
CROSS JOIN LATERAL (
    SELECT c.story_id, c.mean_norm, c.centroid <=> q.aligned AS distance
    FROM {story_vectors} c
    WHERE c.latest_time >= q.event_time - %(gap)s::interval
      AND c.first_time BETWEEN q.event_time - %(age)s::interval AND q.event_time + %(gap)s::interval
    ORDER BY c.centroid <=> q.aligned
    LIMIT %(most)s
) s;

-- story_shapes: what the passes need to know of some live stories
SELECT story_id, first_time, latest_time, size, cohesion, languages FROM {story_vectors} WHERE story_id = ANY (%(story_ids)s);

-- languages_of: the languages of some articles, without script or region
SELECT id, split_part(language, '-', 1) FROM article WHERE id = ANY (%(article_ids)s);

-- latest_processed: event time of the latest article that went through the passes
SELECT event_time FROM story_article WHERE pass <> 'pending' ORDER BY event_time DESC LIMIT 1;

-- article_neighbours: the articles of the window nearest to each of some articles; days from which the window has but some hours are scanned, as a filter discards nearly all that their index finds
WITH q AS (
    SELECT v.article_id, v.aligned
    FROM {article_vectors} v
    WHERE v.article_id = ANY (%(article_ids)s) AND v.event_time BETWEEN %(first)s AND %(last)s
), edge AS MATERIALIZED (
    SELECT v.article_id, v.aligned
    FROM {article_vectors} v
    WHERE v.event_time BETWEEN %(window_first)s AND %(window_last)s
      AND (v.event_time < %(searched_from)s OR v.event_time >= %(searched_to)s)
)
SELECT q.article_id, n.article_id AS other_id, 1 - n.distance AS similarity
FROM q
CROSS JOIN LATERAL (
    (SELECT o.article_id, o.aligned <=> q.aligned AS distance
    FROM {article_vectors} o
    WHERE o.event_time >= %(searched_from)s AND o.event_time < %(searched_to)s
      AND o.event_time BETWEEN %(window_first)s AND %(window_last)s
    ORDER BY o.aligned <=> q.aligned
    LIMIT %(most)s)
    UNION ALL
    (SELECT e.article_id, e.aligned <=> q.aligned AS distance
    FROM edge e
    ORDER BY e.aligned <=> q.aligned
    LIMIT %(most)s)
    ORDER BY distance
    LIMIT %(most)s
) n
WHERE n.article_id <> q.article_id;

-- loose_near: the articles of the window that are no members of a story, and the stories among some that can score enough: a story of less than the tightest cohesion gains by that
SELECT
    p.article_id, p.event_time, c.story_id, (1 - (c.centroid <=> v.aligned)) * c.mean_norm AS similarity,
    CASE WHEN p.pass = 'attach' THEN p.score END AS held_score
FROM story_article p
JOIN {article_vectors} v ON v.article_id = p.article_id AND v.event_time = p.event_time
JOIN {story_vectors} c ON (1 - (c.centroid <=> v.aligned)) * c.mean_norm
    >= %(least)s - %(penalty)s::double precision * greatest(0, %(tightest)s::double precision - c.cohesion)
WHERE p.pass IN ('none', 'attach') AND c.story_id = ANY (%(story_ids)s)
  AND p.event_time BETWEEN %(window_first)s AND %(window_last)s
  AND v.event_time BETWEEN %(window_first)s AND %(window_last)s;

-- loose: which of some articles went through the passes and are no members of a story; some are attached to one
SELECT p.article_id, p.event_time, split_part(a.language, '-', 1) AS language, p.story_id
FROM story_article p JOIN article a ON a.id = p.article_id
WHERE p.article_id = ANY (%(article_ids)s) AND p.pass IN ('none', 'attach');

-- memberships: the story of each of some articles that is a member of one
SELECT article_id, story_id FROM story_article
WHERE article_id = ANY (%(article_ids)s) AND pass IN ('match', 'discover', 'editor');

-- article_similarities: cosines of all pairs of some articles
SELECT a.article_id AS a, b.article_id AS b, 1 - (a.aligned <=> b.aligned) AS similarity
FROM {article_vectors} a
JOIN {article_vectors} b ON b.article_id > a.article_id
WHERE a.article_id = ANY (%(article_ids)s) AND a.event_time BETWEEN %(first)s AND %(last)s
  AND b.article_id = ANY (%(article_ids)s) AND b.event_time BETWEEN %(first)s AND %(last)s;

-- place_articles: record where a pass put articles, or that none did and how near it was, and keep what an earlier run decided; gives the stories they were in
WITH n AS (
    SELECT * FROM unnest(
        %(article_id)s::bigint[], %(story_id)s::bigint[], %(pass)s::text[], %(score)s::real[],
        %(threshold)s::real[], %(nearest_id)s::bigint[]
    ) AS n (article_id, story_id, pass, score, threshold, nearest_id)
), past AS (
    INSERT INTO past_placement (article_id, run_id, placed_in, pass, score, threshold, nearest_id)
    SELECT p.article_id, p.run_id, p.placed_in, p.pass, p.score, p.threshold, p.nearest_id
    FROM story_article p JOIN n USING (article_id)
    WHERE p.run_id <> %(run_id)s
), placed AS (
    UPDATE story_article p SET
        story_id = n.story_id, placed_in = n.story_id, pass = n.pass, score = n.score,
        threshold = n.threshold, nearest_id = n.nearest_id, run_id = %(run_id)s
    FROM n
    WHERE p.article_id = n.article_id
)
SELECT DISTINCT p.story_id FROM story_article p JOIN n USING (article_id) WHERE p.story_id IS NOT NULL;

-- add_stories: make stories of their first articles, ids in the order given; refresh_stories fills in the rest
INSERT INTO story (first_time, latest_time, size, languages, sources, headline_id, run_id)
SELECT n.first_time, n.latest_time, 0, ARRAY[]::text[], 0, n.headline_id, %(run_id)s
FROM unnest(%(first_times)s::timestamptz[], %(latest_times)s::timestamptz[], %(headline_ids)s::bigint[])
    WITH ORDINALITY AS n (first_time, latest_time, headline_id, place)
ORDER BY n.place
RETURNING id;

-- nearest_stories: the live stories nearest to each of some stories, of those that can score enough to merge: where both are of less than the tightest cohesion they gain by that
SELECT q.story_id AS a_id, n.story_id AS b_id, 1 - n.distance AS similarity
FROM {story_vectors} q
CROSS JOIN LATERAL (
    SELECT c.story_id, c.cohesion, c.centroid <=> q.centroid AS distance
    FROM {story_vectors} c
    WHERE c.latest_time >= %(live_from)s AND c.first_time <= %(live_to)s AND c.story_id <> q.story_id
    ORDER BY c.centroid <=> q.centroid
    LIMIT %(most)s
) n
WHERE q.story_id = ANY (%(story_ids)s)
  AND 1 - n.distance >= %(least)s - %(penalty)s::double precision * greatest(0, %(tightest)s::double precision - greatest(q.cohesion, n.cohesion));

-- merge_stories: record merges
INSERT INTO story_merge (absorbed_id, survivor_id, score, threshold, run_id)
SELECT n.absorbed_id, n.survivor_id, n.score, %(threshold)s, %(run_id)s
FROM unnest(%(absorbed_id)s::bigint[], %(survivor_id)s::bigint[], %(score)s::real[]) AS n (absorbed_id, survivor_id, score);

-- redirect_stories: let absorbed ids, and those absorbed by them before, lead to the survivor
UPDATE story s SET merged_into = n.survivor_id
FROM unnest(%(absorbed_id)s::bigint[], %(survivor_id)s::bigint[]) AS n (absorbed_id, survivor_id)
WHERE s.id = n.absorbed_id OR s.merged_into = n.absorbed_id;

-- move_members: put the articles of absorbed stories into the survivor
UPDATE story_article p SET story_id = n.survivor_id
FROM unnest(%(absorbed_id)s::bigint[], %(survivor_id)s::bigint[]) AS n (absorbed_id, survivor_id)
WHERE p.story_id = n.absorbed_id;

-- drop_centroids: absorbed stories are live no more
DELETE FROM {story_vectors} WHERE story_id = ANY (%(absorbed_id)s);

-- refresh_centroids: average the most recent members of stories anew
WITH ranked AS (
    SELECT
        p.story_id, p.article_id, p.event_time,
        row_number() OVER (PARTITION BY p.story_id ORDER BY p.event_time DESC, p.article_id DESC) AS recency
    FROM story_article p
    WHERE p.story_id = ANY (%(story_ids)s) AND p.pass <> 'attach'
), mean AS (
    SELECT r.story_id, count(*) AS members, avg(v.aligned::vector ORDER BY r.recency) AS vector
    FROM ranked r
    JOIN {article_vectors} v ON v.article_id = r.article_id AND v.event_time = r.event_time
    WHERE r.recency <= %(members)s
    GROUP BY r.story_id
), share AS (
    SELECT
        r.story_id, split_part(a.language, '-', 1) AS language,
        count(*)::real / sum(count(*)) OVER (PARTITION BY r.story_id) AS share
    FROM ranked r JOIN article a ON a.id = r.article_id
    WHERE r.recency <= %(members)s
    GROUP BY r.story_id, split_part(a.language, '-', 1)
), spoken AS (
    SELECT story_id, jsonb_object_agg(language, share) AS languages FROM share GROUP BY story_id
), extent AS (
    SELECT story_id, min(event_time) AS first_time, max(event_time) AS latest_time, count(*) AS size
    FROM ranked GROUP BY story_id
)
INSERT INTO {story_vectors} (story_id, first_time, latest_time, size, cohesion, languages, mean_norm, centroid)
SELECT
    e.story_id, e.first_time, e.latest_time, e.size,
    -- the squared norm of a mean of n unit vectors is (1 + (n - 1) * mean cosine of two of them) / n
    CASE WHEN m.members > 1 THEN (m.members * vector_norm(m.vector) ^ 2 - 1) / (m.members - 1) ELSE 1 END,
    s.languages, vector_norm(m.vector), l2_normalize(m.vector)::halfvec
FROM extent e JOIN mean m USING (story_id) JOIN spoken s USING (story_id)
ORDER BY e.story_id
ON CONFLICT (story_id) DO UPDATE SET
    first_time = excluded.first_time, latest_time = excluded.latest_time, size = excluded.size,
    cohesion = excluded.cohesion, languages = excluded.languages, mean_norm = excluded.mean_norm, centroid = excluded.centroid;

-- refresh_stories: bring what readers see of stories up to date, attached articles among it; the headline is the member nearest to the centroid
UPDATE story s SET
    first_time = n.first_time, latest_time = n.latest_time, size = n.size, languages = n.languages,
    sources = n.sources, headline_id = n.headline_id
FROM (
    SELECT
        c.story_id, w.first_time, w.latest_time, w.size, w.languages,
        story_sources(c.story_id) AS sources,
        (
            SELECT v.article_id
            FROM story_article p
            JOIN {article_vectors} v ON v.article_id = p.article_id AND v.event_time = p.event_time
            WHERE p.story_id = c.story_id AND p.pass <> 'attach'
            ORDER BY v.aligned <=> c.centroid, v.event_time, v.article_id
            LIMIT 1
        ) AS headline_id
    FROM {story_vectors} c
    CROSS JOIN LATERAL (
        SELECT
            min(p.event_time) AS first_time, max(p.event_time) AS latest_time, count(*) AS size,
            array_agg(DISTINCT a.language ORDER BY a.language) AS languages
        FROM story_article p JOIN article a ON a.id = p.article_id
        WHERE p.story_id = c.story_id
    ) w
    WHERE c.story_id = ANY (%(story_ids)s)
) n
WHERE s.id = n.story_id;

-- recount_sources: bring the sources of the stories of some articles up to date
UPDATE story s SET sources = n.sources
FROM (
    SELECT p.story_id, story_sources(p.story_id) AS sources
    FROM story_article p WHERE p.article_id = ANY (%(article_ids)s) AND p.story_id IS NOT NULL
    GROUP BY p.story_id
) n
WHERE s.id = n.story_id AND s.sources IS DISTINCT FROM n.sources;
