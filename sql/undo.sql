-- Taking a run back. A decision is a placement or a merge; it was built on a run when it is younger and about an
-- article or a story that the run, or what was built on it, decided about.

-- run_to_undo: a run that is to be taken back
SELECT id, command, undone_by FROM run WHERE id = %(run_id)s;

-- edits_among: those of some runs that are edits
SELECT id FROM run WHERE id = ANY (%(run_ids)s) AND command IN ('move', 'split', 'merge') ORDER BY id;

-- note_undone: remember by which run another was taken back
UPDATE run SET undone_by = %(undo_run_id)s WHERE id = %(run_id)s;

-- decisions_of_run: placements and merges that a run made
SELECT run_id, article_id, placed_in AS story_id, NULL::bigint AS survivor_id FROM story_article WHERE run_id = %(run_id)s
UNION ALL
SELECT run_id, article_id, placed_in, NULL FROM past_placement WHERE run_id = %(run_id)s
UNION ALL
SELECT run_id, NULL, absorbed_id, survivor_id FROM story_merge WHERE run_id = %(run_id)s;

-- decisions_about: placements and merges since a run that are about some articles or stories
WITH found AS (
    SELECT id, coalesce(merged_into, id) AS root FROM story WHERE id = ANY (%(story_ids)s)
)
SELECT run_id, article_id, placed_in AS story_id, NULL::bigint AS survivor_id FROM story_article
WHERE article_id = ANY (%(article_ids)s) AND run_id >= %(run_id)s
UNION
SELECT p.run_id, p.article_id, p.placed_in, NULL
FROM story_article p JOIN found f ON f.id = p.placed_in
WHERE p.story_id IN (SELECT root FROM found) AND p.run_id >= %(run_id)s
UNION
SELECT run_id, article_id, placed_in, NULL FROM past_placement
WHERE article_id = ANY (%(article_ids)s) AND run_id >= %(run_id)s
UNION
SELECT run_id, article_id, placed_in, NULL FROM past_placement
WHERE placed_in = ANY (%(story_ids)s) AND run_id >= %(run_id)s
UNION
SELECT run_id, NULL, absorbed_id, survivor_id FROM story_merge
WHERE absorbed_id = ANY (%(story_ids)s) AND run_id >= %(run_id)s
UNION
SELECT run_id, NULL, absorbed_id, survivor_id FROM story_merge
WHERE survivor_id = ANY (%(story_ids)s) AND run_id >= %(run_id)s;

-- story_families: some stories and all that are one with any of them
SELECT s.id
FROM (SELECT DISTINCT coalesce(merged_into, id) AS root FROM story WHERE id = ANY (%(story_ids)s)) r
JOIN story s ON s.id = r.root OR s.merged_into = r.root
ORDER BY s.id;

-- keep_undone_placements: write down the placements that are taken back
INSERT INTO undone_decision (undo_run_id, run_id, kind, decided)
SELECT %(undo_run_id)s, p.run_id, 'placement', to_jsonb(p)
FROM story_article p WHERE p.article_id = ANY (%(article_ids)s) AND p.run_id >= %(run_id)s
UNION ALL
SELECT %(undo_run_id)s, p.run_id, 'placement', to_jsonb(p)
FROM past_placement p WHERE p.article_id = ANY (%(article_ids)s) AND p.run_id >= %(run_id)s;

-- restore_placements: bring back what was decided of articles before a run; what nothing was decided of waits again
UPDATE story_article p SET
    story_id = b.placed_in, placed_in = b.placed_in, pass = coalesce(b.pass, 'pending'), score = b.score,
    threshold = b.threshold, nearest_id = b.nearest_id, run_id = b.run_id
FROM unnest(%(article_ids)s::bigint[]) AS n (article_id)
LEFT JOIN LATERAL (
    SELECT * FROM past_placement q WHERE q.article_id = n.article_id AND q.run_id < %(run_id)s
    ORDER BY q.run_id DESC LIMIT 1
) b ON true
WHERE p.article_id = n.article_id;

-- forget_past_placements: what is in force again, and what came after, is past no more
DELETE FROM past_placement q USING story_article p
WHERE p.article_id = ANY (%(article_ids)s) AND q.article_id = p.article_id AND (p.run_id IS NULL OR q.run_id >= p.run_id);

-- take_merges_back: let absorbed stories be stories of their own again, and write down the merges
WITH gone AS (
    DELETE FROM story_merge m WHERE m.absorbed_id = ANY (%(absorbed_ids)s) RETURNING m.*
)
INSERT INTO undone_decision (undo_run_id, run_id, kind, decided)
SELECT %(undo_run_id)s, g.run_id, 'merge', to_jsonb(g) FROM gone g;

-- redirect_again: let stories lead where the merges that hold lead
WITH RECURSIVE path AS (
    SELECT id AS story_id, id AS reached FROM story WHERE id = ANY (%(story_ids)s)
    UNION ALL
    SELECT p.story_id, m.survivor_id FROM path p JOIN story_merge m ON m.absorbed_id = p.reached
), root AS (
    SELECT p.story_id, nullif(p.reached, p.story_id) AS merged_into
    FROM path p WHERE NOT EXISTS (SELECT FROM story_merge m WHERE m.absorbed_id = p.reached)
)
UPDATE story s SET merged_into = r.merged_into
FROM root r
WHERE s.id = r.story_id AND s.merged_into IS DISTINCT FROM r.merged_into;

-- regroup_articles: put articles into the story that the one which was chosen for them leads to
UPDATE story_article p SET story_id = coalesce(s.merged_into, s.id)
FROM story s
WHERE (p.story_id = ANY (%(story_ids)s) OR p.article_id = ANY (%(article_ids)s))
  AND s.id = p.placed_in AND p.story_id <> coalesce(s.merged_into, s.id);

-- stories_of_articles: the stories that some articles are in
SELECT DISTINCT story_id FROM story_article WHERE article_id = ANY (%(article_ids)s) AND story_id IS NOT NULL;

-- take_judgements_back: forget what edits said of pairs, and bring back what had been said before
WITH gone AS (
    DELETE FROM judgement j WHERE j.run_id = ANY (%(run_ids)s) RETURNING j.*
), kept AS (
    INSERT INTO undone_decision (undo_run_id, run_id, kind, decided)
    SELECT %(undo_run_id)s, g.run_id, 'judgement', to_jsonb(g) FROM gone g
), stale AS (
    DELETE FROM past_judgement p WHERE p.run_id = ANY (%(run_ids)s) AND p.replaced_by <> ALL (%(run_ids)s)
)
SELECT a_id, b_id FROM gone;

-- bring_judgements_back: judgements that edits had replaced, where nobody has judged the pair since
WITH past AS (
    DELETE FROM past_judgement WHERE replaced_by = ANY (%(run_ids)s) RETURNING *
)
INSERT INTO judgement (a_id, b_id, verdict, judged_by, judged_at, run_id)
SELECT DISTINCT ON (a_id, b_id) a_id, b_id, verdict, judged_by, judged_at, run_id
FROM past WHERE run_id IS NULL OR run_id <> ALL (%(run_ids)s)
ORDER BY a_id, b_id, replaced_by
ON CONFLICT (a_id, b_id) DO NOTHING;

-- event_decisions_of_run: links and merges of events that a run made, and those since then about some stories
SELECT run_id, story_id, placed_in AS event_id, NULL::bigint AS survivor_id FROM event_story WHERE run_id = %(run_id)s
UNION
SELECT run_id, story_id, placed_in, NULL FROM event_story WHERE story_id = ANY (%(story_ids)s) AND run_id >= %(run_id)s
UNION
SELECT run_id, NULL, absorbed_id, survivor_id FROM event_merge WHERE run_id = %(run_id)s;

-- event_decisions_about: links and merges of events since a run that are about some events
WITH found AS (
    SELECT id, coalesce(merged_into, id) AS root FROM event WHERE id = ANY (%(event_ids)s)
)
SELECT e.run_id, e.story_id, e.placed_in AS event_id, NULL::bigint AS survivor_id
FROM event_story e JOIN found f ON f.id = e.placed_in
WHERE e.event_id IN (SELECT root FROM found) AND e.run_id >= %(run_id)s
UNION
SELECT run_id, NULL, absorbed_id, survivor_id FROM event_merge
WHERE absorbed_id = ANY (%(event_ids)s) AND run_id >= %(run_id)s
UNION
SELECT run_id, NULL, absorbed_id, survivor_id FROM event_merge
WHERE survivor_id = ANY (%(event_ids)s) AND run_id >= %(run_id)s;

-- event_families: some events and all that are one with any of them
SELECT e.id
FROM (SELECT DISTINCT coalesce(merged_into, id) AS root FROM event WHERE id = ANY (%(event_ids)s)) r
JOIN event e ON e.id = r.root OR e.merged_into = r.root
ORDER BY e.id;

-- take_event_links_back: let stories be in no event, and write down why they were
WITH gone AS (
    DELETE FROM event_story e WHERE e.story_id = ANY (%(story_ids)s) RETURNING e.*
)
INSERT INTO undone_decision (undo_run_id, run_id, kind, decided)
SELECT %(undo_run_id)s, g.run_id, 'event link', to_jsonb(g) FROM gone g;

-- take_event_merges_back: let absorbed events be events of their own again, and write down the merges
WITH gone AS (
    DELETE FROM event_merge m WHERE m.absorbed_id = ANY (%(absorbed_ids)s) RETURNING m.*
)
INSERT INTO undone_decision (undo_run_id, run_id, kind, decided)
SELECT %(undo_run_id)s, g.run_id, 'event merge', to_jsonb(g) FROM gone g;

-- redirect_events_again: let events lead where the merges that hold lead
WITH RECURSIVE path AS (
    SELECT id AS event_id, id AS reached FROM event WHERE id = ANY (%(event_ids)s)
    UNION ALL
    SELECT p.event_id, m.survivor_id FROM path p JOIN event_merge m ON m.absorbed_id = p.reached
), root AS (
    SELECT p.event_id, nullif(p.reached, p.event_id) AS merged_into
    FROM path p WHERE NOT EXISTS (SELECT FROM event_merge m WHERE m.absorbed_id = p.reached)
)
UPDATE event e SET merged_into = r.merged_into
FROM root r
WHERE e.id = r.event_id AND e.merged_into IS DISTINCT FROM r.merged_into;

-- regroup_stories: put stories into the event that the one which was chosen for them leads to
UPDATE event_story p SET event_id = coalesce(e.merged_into, e.id)
FROM event e
WHERE p.event_id = ANY (%(event_ids)s) AND e.id = p.placed_in AND p.event_id <> coalesce(e.merged_into, e.id);

-- shrink_events: bring the extent of events up to date that lost stories
UPDATE event v SET first_time = n.first_time, latest_time = n.latest_time
FROM (
    SELECT e.event_id, min(s.first_time) AS first_time, max(s.latest_time) AS latest_time
    FROM event_story e JOIN story s ON s.id = e.story_id AND s.merged_into IS NULL AND s.size > 0
    WHERE e.event_id = ANY (%(event_ids)s)
    GROUP BY e.event_id
) n
WHERE v.id = n.event_id AND (v.first_time, v.latest_time) IS DISTINCT FROM (n.first_time, n.latest_time);

-- touch_stories: count stories as changed, for events to be found for them anew
UPDATE story SET change = nextval('story_change') WHERE id = ANY (%(story_ids)s) AND merged_into IS NULL;
