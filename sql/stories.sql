-- Reading stories.

-- list_stories: stories that were alive in a span of time, the latest first
SELECT s.id, s.headline_id, a.title AS headline, s.languages, s.sources, s.size, s.first_time, s.latest_time, e.event_id
FROM story s JOIN article a ON a.id = s.headline_id LEFT JOIN event_story e ON e.story_id = s.id
WHERE s.merged_into IS NULL AND s.size >= %(min_size)s
  AND s.latest_time >= coalesce(%(since)s::timestamptz, '-infinity')
  AND s.first_time <= coalesce(%(until)s::timestamptz, 'infinity')
ORDER BY s.latest_time DESC, s.id DESC
LIMIT %(most)s;

-- story_by_id: one story; an absorbed one leads to its survivor
SELECT s.id, s.headline_id, a.title AS headline, s.languages, s.sources, s.size, s.first_time, s.latest_time, e.event_id
FROM story asked
JOIN story s ON s.id = coalesce(asked.merged_into, asked.id)
JOIN article a ON a.id = s.headline_id
LEFT JOIN event_story e ON e.story_id = s.id
WHERE asked.id = %(story_id)s;

-- story_members: the articles of some stories, each with the decision that put it there
SELECT
    p.story_id, a.id, f.address AS source, a.guid, a.url, a.title, a.body, a.author, a.language, a.published_at,
    a.event_time, a.first_seen, p.pass AS pass_name, p.score, p.threshold, p.nearest_id, p.run_id, r.editor, r.started_at
FROM story_article p
JOIN article a ON a.id = p.article_id
JOIN feed f ON f.id = a.feed_id
JOIN run r ON r.id = p.run_id
WHERE p.story_id = ANY (%(story_ids)s)
ORDER BY a.event_time, a.id;

-- story_duplicates: what is folded into the articles of some stories
SELECT
    d.canonical_id, a.id, f.address AS source, a.guid, a.url, a.title, a.event_time, d.stage, d.score, d.run_id
FROM story_article p
JOIN duplicate_link d ON d.canonical_id = p.article_id AND d.retracted_at IS NULL
JOIN article a ON a.id = d.article_id
JOIN feed f ON f.id = a.feed_id
WHERE p.story_id = ANY (%(story_ids)s)
ORDER BY a.event_time, a.id;

-- story_centroids: the centroids of some stories
SELECT story_id, centroid FROM {story_vectors} WHERE story_id = ANY (%(story_ids)s);

-- absorbed_stories: the merges that made some stories what they are
SELECT s.merged_into AS survivor_id, m.absorbed_id AS story_id, m.score, m.threshold, m.run_id, r.editor
FROM story_merge m JOIN story s ON s.id = m.absorbed_id JOIN run r ON r.id = m.run_id
WHERE s.merged_into = ANY (%(story_ids)s)
ORDER BY m.absorbed_id;

-- assignments: the story of every article by its feed's own id, duplicates in that of their canonical
SELECT
    f.address AS source, a.guid, p.story_id,
    CASE WHEN d.article_id IS NULL THEN p.pass ELSE 'duplicate' END AS pass_name, e.event_id
FROM article a
JOIN feed f ON f.id = a.feed_id
LEFT JOIN duplicate_link d ON d.article_id = a.id AND d.retracted_at IS NULL
LEFT JOIN story_article p ON p.article_id = coalesce(d.canonical_id, a.id)
LEFT JOIN event_story e ON e.story_id = p.story_id;

-- totals: how much there is of everything
SELECT
    (SELECT count(*) FROM feed) AS feeds,
    (SELECT count(*) FROM article) AS articles,
    (SELECT count(*) FROM duplicate_link WHERE retracted_at IS NULL) AS duplicates,
    (SELECT count(*) FROM article WHERE encode_due) AS waiting,
    (SELECT count(*) FROM story_article WHERE story_id IS NOT NULL) AS placed,
    (SELECT count(*) FROM story_article WHERE story_id IS NULL) AS unplaced,
    (SELECT count(*) FROM story WHERE merged_into IS NULL AND size > 0) AS stories,
    (SELECT count(*) FROM story_merge) AS merges,
    (SELECT count(*) FROM run) AS runs;

-- placements_by_day: how each pass placed articles, by day of their time; scores tell when a threshold has drifted
SELECT
    to_char(event_time AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, pass AS stage, count(*) AS articles,
    min(score) AS least, percentile_cont(0.5) WITHIN GROUP (ORDER BY score) AS median, max(score) AS most
FROM story_article
WHERE pass <> 'pending' AND event_time >= (SELECT max(event_time) FROM story_article) - %(span)s::interval
GROUP BY 1, 2 ORDER BY 1, 2;

-- links_by_day: how each stage folded duplicates, by day of their time
SELECT
    to_char(a.event_time AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, d.stage, count(*) AS articles,
    min(d.score) AS least, percentile_cont(0.5) WITHIN GROUP (ORDER BY d.score) AS median, max(d.score) AS most
FROM duplicate_link d JOIN article a ON a.id = d.article_id
WHERE d.retracted_at IS NULL AND a.event_time >= (SELECT max(event_time) FROM article) - %(span)s::interval
GROUP BY 1, 2 ORDER BY 1, 2;

-- links_by_band: how many duplicates each stage folded at which score, by day of their time, in bands of .05; when the share just above a threshold grows, it has drifted
SELECT
    to_char(a.event_time AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, d.stage,
    -- real to numeric is by decimal digits, so that .95 is in the band of .95
    (floor(d.score::numeric * 20) / 20)::real AS band, max(d.threshold) AS threshold,
    count(*) FILTER (WHERE d.retracted_at IS NULL) AS articles,
    count(*) FILTER (WHERE d.retracted_at IS NOT NULL AND NOT d.lapsed) AS undone
FROM duplicate_link d JOIN article a ON a.id = d.article_id
WHERE NOT (d.retracted_at IS NOT NULL AND d.lapsed)
  AND a.event_time >= (SELECT max(event_time) FROM article) - %(span)s::interval
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;

-- largest_stories: stories that were alive lately with most articles, and the share of all articles since then that is in each; one that swallows a day shows here
WITH since AS (SELECT max(event_time) - %(span)s::interval AS time FROM story_article),
lately AS (
    SELECT story_id, count(*) AS articles
    FROM story_article, since
    WHERE event_time >= since.time
    GROUP BY story_id
)
SELECT
    s.id AS story, s.size AS articles, (l.articles / (SELECT sum(articles) FROM lately))::float8 AS share,
    s.sources, round((extract(epoch FROM s.latest_time - s.first_time) / 3600)::numeric, 1)::float8 AS hours,
    a.title AS headline
FROM lately l
JOIN story s ON s.id = l.story_id
JOIN article a ON a.id = s.headline_id
ORDER BY s.size DESC, s.id
LIMIT %(most)s;

-- closest_calls: the placements and merges of late that least exceeded what they had to reach
SELECT story, stage, article, score, threshold, score - threshold AS margin, title
FROM (
    SELECT
        m.story_id AS story, m.pass AS stage, m.article_id AS article, m.score::float8 AS score,
        m.threshold::float8 AS threshold, a.title
    FROM story_article m
    JOIN article a ON a.id = m.article_id
    WHERE m.story_id IS NOT NULL AND m.score >= m.threshold
      AND m.event_time >= (SELECT max(event_time) FROM story_article) - %(span)s::interval
    UNION ALL
    SELECT g.survivor_id, 'merge', NULL, g.score, g.threshold, a.title
    FROM story_merge g
    JOIN story s ON s.id = g.absorbed_id
    JOIN article a ON a.id = s.headline_id
    WHERE g.score IS NOT NULL
      AND s.latest_time >= (SELECT max(event_time) FROM story_article) - %(span)s::interval
) decided
ORDER BY margin, story, article
LIMIT %(most)s;

-- latest_runs: the last runs that changed something
SELECT id, command, editor, started_at, finished_at, outcome, undone_by, counts, seconds FROM run ORDER BY id DESC LIMIT %(most)s;

-- list_stories_by_score: stories that were alive in a span of time and have a score, the highest first
SELECT
    s.id, s.headline_id, a.title AS headline, s.languages, s.sources, s.size, s.first_time, s.latest_time, e.event_id, x.value AS score
FROM story_score x
JOIN story s ON s.id = x.story_id
JOIN article a ON a.id = s.headline_id
LEFT JOIN event_story e ON e.story_id = s.id
WHERE x.name = %(score)s AND s.merged_into IS NULL AND s.size >= %(min_size)s
  AND s.latest_time >= coalesce(%(since)s::timestamptz, '-infinity')
  AND s.first_time <= coalesce(%(until)s::timestamptz, 'infinity')
ORDER BY x.value DESC, x.story_id DESC
LIMIT %(most)s;

-- stories_by_ids: some stories, the latest first; absorbed ones are left out
SELECT s.id, s.headline_id, a.title AS headline, s.languages, s.sources, s.size, s.first_time, s.latest_time, e.event_id
FROM story s JOIN article a ON a.id = s.headline_id LEFT JOIN event_story e ON e.story_id = s.id
WHERE s.id = ANY (%(story_ids)s) AND s.merged_into IS NULL
ORDER BY s.latest_time DESC, s.id DESC;

-- page_of_stories: stories that were alive in a span of time, the oldest first, from one of them on
SELECT s.id, s.headline_id, a.title AS headline, s.languages, s.sources, s.size, s.first_time, s.latest_time, e.event_id
FROM story s JOIN article a ON a.id = s.headline_id LEFT JOIN event_story e ON e.story_id = s.id
WHERE s.merged_into IS NULL AND s.size >= %(min_size)s
  AND s.latest_time >= greatest(%(since)s::timestamptz, %(after_time)s::timestamptz)
  AND (s.latest_time > %(after_time)s::timestamptz OR s.id > %(after_id)s)
  AND s.first_time <= coalesce(%(until)s::timestamptz, 'infinity')
ORDER BY s.latest_time, s.id
LIMIT %(most)s;
