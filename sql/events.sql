-- Events: stories to events as articles to stories. A cluster is an event (its id) or a story that is in none (its id, negative).

-- changed_stories: the next stories that changed since events were brought up to date, in order of change
SELECT s.id, s.change, s.merged_into
FROM story s
WHERE s.change > (SELECT change FROM event_progress)
ORDER BY s.change
LIMIT %(most)s;

-- note_event_progress: remember up to which change events are up to date
UPDATE event_progress SET change = %(change)s;

-- inherit_events: where an absorbed story was in an event and its survivor is in none, the survivor takes its place
INSERT INTO event_story (story_id, event_id, placed_in, score, threshold, nearest_id, run_id)
SELECT DISTINCT ON (s.merged_into) s.merged_into, e.event_id, e.event_id, e.score, e.threshold, s.id, %(run_id)s
FROM story s JOIN event_story e ON e.story_id = s.id
WHERE s.id = ANY (%(absorbed_ids)s)
  AND NOT EXISTS (SELECT FROM event_story o WHERE o.story_id = s.merged_into)
ORDER BY s.merged_into, e.event_id;

-- emptied_events: events whose last story was absorbed by one of another event, and the merge of the two stories
SELECT DISTINCT ON (e.event_id) e.event_id AS absorbed_id, k.event_id AS survivor_id, m.score, m.threshold
FROM event_story e
JOIN story s ON s.id = e.story_id
JOIN event_story k ON k.story_id = s.merged_into AND k.event_id <> e.event_id
JOIN story_merge m ON m.absorbed_id = s.id
WHERE e.story_id = ANY (%(absorbed_ids)s)
  AND NOT EXISTS (
      SELECT FROM event_story o JOIN story l ON l.id = o.story_id
      WHERE o.event_id = e.event_id AND l.merged_into IS NULL AND l.size > 0
  )
ORDER BY e.event_id, e.story_id DESC;

-- refresh_events: bring the extent of the events of some stories up to date
UPDATE event v SET first_time = n.first_time, latest_time = n.latest_time
FROM (
    SELECT e.event_id, min(s.first_time) AS first_time, max(s.latest_time) AS latest_time
    FROM event_story e JOIN story s ON s.id = e.story_id AND s.merged_into IS NULL AND s.size > 0
    WHERE e.event_id IN (SELECT event_id FROM event_story WHERE story_id = ANY (%(story_ids)s))
    GROUP BY e.event_id
) n
WHERE v.id = n.event_id AND (v.first_time, v.latest_time) IS DISTINCT FROM (n.first_time, n.latest_time);

-- clusters_of: the clusters of those of some stories that are large enough for an event; of an absorbed one, the event that lost it
SELECT DISTINCT coalesce(e.event_id, -s.id) AS cluster
FROM story s
LEFT JOIN event_story e ON e.story_id = s.id
LEFT JOIN {story_vectors} v ON v.story_id = s.id
WHERE s.id = ANY (%(story_ids)s) AND (v.size >= %(least)s OR e.event_id IS NOT NULL)
ORDER BY cluster;

-- near_clusters: how near some clusters are to those around them: the mean score over pairs of their stories, of an event those of its last days
WITH own AS (
    SELECT k.cluster, v.story_id, v.first_time, v.latest_time, v.centroid
    FROM unnest(%(clusters)s::bigint[]) AS k (cluster)
    CROSS JOIN LATERAL (
        SELECT s.story_id FROM event_story s WHERE k.cluster > 0 AND s.event_id = k.cluster
        UNION ALL
        SELECT -k.cluster WHERE k.cluster < 0
    ) m
    JOIN {story_vectors} v ON v.story_id = m.story_id
    LEFT JOIN event e ON e.id = k.cluster
    WHERE e.id IS NULL OR v.latest_time >= e.latest_time - %(window)s::interval
), near AS (
    SELECT DISTINCT
        o.cluster AS a,
        -- asked for each neighbour: a join would read the events of all time into a hash table
        coalesce((SELECT e.event_id FROM event_story e WHERE e.story_id = n.story_id), -n.story_id) AS b
    FROM own o
    CROSS JOIN LATERAL (
        SELECT c.story_id FROM {story_vectors} c
        WHERE c.latest_time >= o.first_time - %(window)s::interval
          AND c.first_time <= o.latest_time + %(window)s::interval
          AND c.size >= %(least)s
        ORDER BY c.centroid <=> o.centroid
        LIMIT %(most)s
    ) n
), other AS (
    SELECT k.b AS cluster, v.story_id, v.first_time, v.latest_time, v.centroid
    FROM (SELECT DISTINCT b FROM near WHERE a <> b) k
    CROSS JOIN LATERAL (
        SELECT s.story_id FROM event_story s WHERE k.b > 0 AND s.event_id = k.b
        UNION ALL
        SELECT -k.b WHERE k.b < 0
    ) m
    JOIN {story_vectors} v ON v.story_id = m.story_id
    LEFT JOIN event e ON e.id = k.b
    WHERE e.id IS NULL OR v.latest_time >= e.latest_time - %(window)s::interval
), scored AS (
    SELECT
        n.a, n.b, o.story_id AS a_story, x.story_id AS b_story,
        1 - (o.centroid <=> x.centroid) - %(penalty)s * ln(1 + greatest(
            extract(epoch FROM o.first_time - x.latest_time), extract(epoch FROM x.first_time - o.latest_time), 0
        ) / 86400) AS score
    FROM near n
    JOIN own o ON o.cluster = n.a
    JOIN other x ON x.cluster = n.b
    WHERE n.a <> n.b
      AND x.latest_time >= o.first_time - %(window)s::interval AND x.first_time <= o.latest_time + %(window)s::interval
)
SELECT
    a, b, avg(score)::float8 AS score,
    (array_agg(a_story ORDER BY score DESC, a_story, b_story))[1] AS a_story,
    (array_agg(b_story ORDER BY score DESC, a_story, b_story))[1] AS b_story
FROM scored
GROUP BY a, b
ORDER BY a, b;

-- add_event: make an event of two stories
INSERT INTO event (first_time, latest_time, run_id)
SELECT min(first_time), max(latest_time), %(run_id)s FROM story WHERE id = ANY (%(story_ids)s)
RETURNING id;

-- join_event: put a story into an event
INSERT INTO event_story (story_id, event_id, placed_in, score, threshold, nearest_id, run_id)
VALUES (%(story_id)s, %(event_id)s, %(event_id)s, %(score)s::real, %(threshold)s, %(nearest_id)s, %(run_id)s);

-- merge_events: record that an event became part of another
INSERT INTO event_merge (absorbed_id, survivor_id, score, threshold, run_id)
VALUES (%(absorbed_id)s, %(survivor_id)s, %(score)s::real, %(threshold)s::real, %(run_id)s);

-- redirect_events: let an absorbed id, and those absorbed by it before, lead to the survivor
UPDATE event SET merged_into = %(survivor_id)s WHERE id = %(absorbed_id)s OR merged_into = %(absorbed_id)s;

-- move_stories: put the stories of an absorbed event into the survivor
UPDATE event_story SET event_id = %(survivor_id)s WHERE event_id = %(absorbed_id)s;

-- list_events: events that were alive in a span of time, the latest first; an event is named by the headline of its largest story
SELECT
    v.id, h.headline, c.stories, c.articles, l.languages, v.first_time, v.latest_time, v.latest_time >= o.since AS open
FROM event v
CROSS JOIN (SELECT max(latest_time) - %(window)s::interval AS since FROM story WHERE merged_into IS NULL AND size > 0) o
CROSS JOIN LATERAL (
    SELECT count(*) AS stories, sum(s.size)::bigint AS articles
    FROM event_story e JOIN story s ON s.id = e.story_id AND s.merged_into IS NULL AND s.size > 0
    WHERE e.event_id = v.id
) c
CROSS JOIN LATERAL (
    SELECT array_agg(DISTINCT spoken.language ORDER BY spoken.language) AS languages
    FROM event_story e
    JOIN story s ON s.id = e.story_id AND s.merged_into IS NULL AND s.size > 0
    CROSS JOIN LATERAL unnest(s.languages) AS spoken (language)
    WHERE e.event_id = v.id
) l
CROSS JOIN LATERAL (
    SELECT a.title AS headline
    FROM event_story e
    JOIN story s ON s.id = e.story_id AND s.merged_into IS NULL AND s.size > 0
    JOIN article a ON a.id = s.headline_id
    WHERE e.event_id = v.id
    ORDER BY s.size DESC, s.id
    LIMIT 1
) h
WHERE v.merged_into IS NULL AND c.stories >= %(min_stories)s
  AND v.latest_time >= coalesce(%(since)s::timestamptz, '-infinity')
  AND v.first_time <= coalesce(%(until)s::timestamptz, 'infinity')
  AND (v.latest_time >= o.since OR NOT %(only_open)s::boolean)
  AND (%(event_id)s::bigint IS NULL OR v.id = (SELECT coalesce(merged_into, id) FROM event WHERE id = %(event_id)s::bigint))
ORDER BY v.latest_time DESC, v.id DESC
LIMIT %(most)s;

-- event_timeline: the stories of some events in order of time, each with the decision that put it there
SELECT
    e.event_id, s.id, a.title AS headline, s.size, s.sources, s.languages, s.first_time, s.latest_time,
    e.score, e.threshold, e.nearest_id, e.run_id
FROM event_story e
JOIN story s ON s.id = e.story_id AND s.merged_into IS NULL AND s.size > 0
JOIN article a ON a.id = s.headline_id
WHERE e.event_id = ANY (%(event_ids)s)
ORDER BY e.event_id, s.first_time, s.id;

-- absorbed_events: the merges that made some events what they are
SELECT m.absorbed_id, v.merged_into AS event_id, m.score, m.threshold, m.run_id
FROM event_merge m JOIN event v ON v.id = m.absorbed_id
WHERE v.merged_into = ANY (%(event_ids)s)
ORDER BY m.absorbed_id;

-- events_of_stories: the event of every live story that is in one
SELECT e.story_id, e.event_id FROM event_story e JOIN story s ON s.id = e.story_id WHERE s.merged_into IS NULL;

-- make_trial: empty tables of events in a schema of their own, for another threshold beside that of the database
CREATE SCHEMA {trial}
    CREATE TABLE event (LIKE public.event INCLUDING ALL)
    CREATE TABLE event_story (LIKE public.event_story INCLUDING ALL)
    CREATE TABLE event_merge (LIKE public.event_merge INCLUDING ALL)
    CREATE TABLE event_progress (LIKE public.event_progress INCLUDING ALL);

-- begin_event_progress: nothing is linked yet
INSERT INTO event_progress (change) VALUES (0);

-- look_first_in: find tables in a schema before any other, until the transaction ends
SELECT set_config('search_path', quote_ident(%(trial)s::text) || ', ' || current_setting('search_path'), true);
