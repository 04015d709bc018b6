-- Tasks for what comes after the stories: who works on which, what came of it, and who is told of changes.

-- latest_story: time of the latest story, NULL where there is none
SELECT latest_time FROM story WHERE merged_into IS NULL AND size > 0 ORDER BY latest_time DESC LIMIT 1;

-- enrol_stories: begin a task for stories that have none of its name yet, the latest first; how many there were
WITH fresh AS (
    SELECT s.id FROM story s
    WHERE s.merged_into IS NULL AND s.latest_time >= %(since)s AND s.size >= %(min_size)s
      AND (%(languages)s::text[] IS NULL OR s.languages && %(languages)s::text[])
      AND NOT EXISTS (SELECT FROM task t WHERE t.name = %(name)s AND t.story_id = s.id)
    ORDER BY s.latest_time DESC, s.id DESC
    LIMIT %(most)s
), enrolled AS (
    INSERT INTO task (name, story_id) SELECT %(name)s, id FROM fresh ORDER BY id ON CONFLICT DO NOTHING
)
SELECT count(*) FROM fresh;

-- lease_tasks: hand the tasks of the latest stories to one worker, past those that another is being handed
WITH due AS (
    SELECT t.story_id, s.size, s.languages, s.headline_id, c.changes
    FROM story s
    JOIN task t ON t.name = %(name)s AND t.story_id = s.id
    CROSS JOIN LATERAL (
        SELECT array_remove(ARRAY[
            CASE WHEN 2 * s.size >= 3 * (t.done_as).size THEN 'grew' END,
            CASE WHEN 3 * s.size <= 2 * (t.done_as).size THEN 'shrank' END,
            CASE WHEN NOT s.languages <@ (t.done_as).languages THEN 'language' END,
            CASE WHEN s.headline_id <> (t.done_as).headline_id THEN 'headline' END,
            CASE WHEN EXISTS (
                SELECT FROM story a WHERE a.merged_into = s.id AND a.id <> ALL ((t.done_as).absorbed)
            ) THEN 'merged' END,
            CASE WHEN EXISTS (
                SELECT FROM story a WHERE a.id = ANY ((t.done_as).absorbed) AND a.merged_into IS DISTINCT FROM s.id
            ) THEN 'parted' END
        ], NULL) AS changes
    ) c
    WHERE s.merged_into IS NULL AND s.latest_time >= %(since)s AND s.size >= %(min_size)s
      AND (%(languages)s::text[] IS NULL OR s.languages && %(languages)s::text[])
      AND CASE t.state
          WHEN 'done' THEN cardinality(c.changes) > 0
          WHEN 'failed' THEN false
          ELSE t.due_at <= now()
      END
    ORDER BY s.latest_time DESC, s.id DESC
    LIMIT %(most)s
    FOR UPDATE OF t SKIP LOCKED
)
UPDATE task t SET
    state = 'leased', token = gen_random_uuid(), due_at = now() + %(lease)s::interval,
    attempts = t.attempts + (t.state = 'leased')::integer,
    error = CASE t.state WHEN 'leased' THEN 'its worker let the lease run out' ELSE t.error END,
    leased_as = ROW(
        d.size, d.languages, d.headline_id,
        ARRAY(SELECT a.id FROM story a WHERE a.merged_into = d.story_id ORDER BY a.id)
    )::story_seen
FROM due d
WHERE t.name = %(name)s AND t.story_id = d.story_id
RETURNING t.name AS task, t.story_id, t.token, t.due_at AS leased_until, t.attempts, d.changes, t.result AS earlier;

-- results_of_absorbed: results of a task for stories that became part of some others
SELECT a.merged_into AS story_id, a.id AS absorbed_id, t.result
FROM story a JOIN task t ON t.name = %(name)s AND t.story_id = a.id
WHERE a.merged_into = ANY (%(story_ids)s) AND t.done_at IS NOT NULL
ORDER BY a.id;

-- return_task: give a leased task back as it was
UPDATE task SET state = 'waiting', due_at = now(), token = NULL, leased_as = NULL
WHERE name = %(name)s AND story_id = %(story_id)s AND token = %(token)s;

-- complete_task: keep a result, where the lease still holds
UPDATE task SET
    state = 'done', attempts = 0, error = NULL, result = %(result)s, done_as = leased_as, done_at = now(),
    token = NULL, leased_as = NULL
WHERE name = %(name)s AND story_id = %(story_id)s AND token = %(token)s;

-- drop_scores: forget the scores that a task gave a story before
DELETE FROM story_score WHERE story_id = %(story_id)s AND task = %(task)s;

-- add_scores: keep the scores that a task gives a story
INSERT INTO story_score (story_id, name, value, task)
SELECT %(story_id)s, n.name, n.value, %(task)s
FROM unnest(%(names)s::text[], %(values)s::double precision[]) AS n (name, value);

-- fail_task: count a failure, where the lease still holds
UPDATE task SET
    state = %(state)s, attempts = attempts + 1, error = %(error)s, due_at = now() + %(wait)s::interval,
    token = NULL, leased_as = NULL
WHERE name = %(name)s AND story_id = %(story_id)s AND token = %(token)s;

-- retry_tasks: hand failed tasks out again at once, permanently failed ones too
UPDATE task SET state = 'waiting', attempts = 0, due_at = now()
WHERE name = %(name)s AND attempts > 0 AND state IN ('waiting', 'failed')
  AND (%(story_ids)s::bigint[] IS NULL OR story_id IN (
      SELECT coalesce(merged_into, id) FROM story WHERE id = ANY (%(story_ids)s::bigint[])
  ));

-- list_tasks: tasks with their state, those of the youngest stories first
SELECT t.name, t.story_id, t.state, t.attempts, t.due_at, t.error, t.done_at, t.result
FROM task t
WHERE (%(name)s::text IS NULL OR t.name = %(name)s::text) AND (%(state)s::text IS NULL OR t.state = %(state)s::text)
ORDER BY t.story_id DESC, t.name DESC
LIMIT %(most)s;

-- story_scores: the scores of some stories
SELECT story_id, name, value FROM story_score WHERE story_id = ANY (%(story_ids)s) ORDER BY story_id, name;

-- latest_change: number of the last change of a story, 0 where there is none
SELECT coalesce(max(change), 0) FROM story;

-- changes_after: stories that changed after a change, in the order of their last ones
SELECT
    s.change, CASE WHEN s.merged_into IS NOT NULL THEN 'merged' WHEN s.size = 0 THEN 'emptied' WHEN s.first_change > %(known)s THEN 'new' ELSE 'changed' END AS kind,
    s.id, s.merged_into, a.title AS headline, s.languages, s.sources, s.size, s.first_time, s.latest_time
FROM story s JOIN article a ON a.id = s.headline_id
WHERE s.change > %(after)s
ORDER BY s.change
LIMIT %(most)s;

-- listen_for_changes: be told when stories change
LISTEN story_change;

-- backend_pid: process that serves this connection
SELECT pg_backend_pid();

-- read_one_state: let every query of a transaction see the same state of the database
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
