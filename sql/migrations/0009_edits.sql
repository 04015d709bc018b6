-- What editors decide about stories, and what taking a run back goes by.

ALTER TABLE run
    -- who asked for it, where a person did: of move, split, merge and undo
    ADD COLUMN editor text,
    ADD COLUMN undone_by bigint REFERENCES run;

ALTER TABLE story_article DROP CONSTRAINT story_article_pass_check;
ALTER TABLE story_article ADD CONSTRAINT story_article_pass_check
    CHECK (pass IN ('pending', 'none', 'match', 'discover', 'attach', 'editor'));
CREATE INDEX story_article_run ON story_article (run_id) WHERE run_id IS NOT NULL;

-- The placements that an article had before the one in story_article, one for each run: undoing that one brings
-- back the last of them. What was replaced before this migration is not known: there the article waits again.
CREATE TABLE past_placement (
    article_id bigint NOT NULL REFERENCES article,
    run_id bigint NOT NULL REFERENCES run,
    placed_in bigint REFERENCES story,
    pass text NOT NULL,
    score real,
    threshold real,
    nearest_id bigint REFERENCES article,
    PRIMARY KEY (article_id, run_id)
);
CREATE INDEX past_placement_run ON past_placement (run_id);
CREATE INDEX past_placement_story ON past_placement (placed_in) WHERE placed_in IS NOT NULL;

-- An editor's merge has no score.
ALTER TABLE story_merge ALTER COLUMN score DROP NOT NULL, ALTER COLUMN threshold DROP NOT NULL;
ALTER TABLE event_merge ALTER COLUMN score DROP NOT NULL, ALTER COLUMN threshold DROP NOT NULL;
CREATE INDEX story_merge_run ON story_merge (run_id);
CREATE INDEX story_merge_survivor ON story_merge (survivor_id);
CREATE INDEX event_merge_run ON event_merge (run_id);
CREATE INDEX event_merge_survivor ON event_merge (survivor_id);
CREATE INDEX event_story_run ON event_story (run_id);

-- The edit that a judgement follows from; NULL where somebody judged the pair itself.
ALTER TABLE judgement ADD COLUMN run_id bigint REFERENCES run;
CREATE INDEX judgement_run ON judgement (run_id) WHERE run_id IS NOT NULL;
-- Judgements that an edit replaced: undoing it brings them back.
CREATE TABLE past_judgement (
    a_id bigint NOT NULL REFERENCES article,
    b_id bigint NOT NULL REFERENCES article,
    verdict text NOT NULL,
    judged_by text NOT NULL,
    judged_at timestamptz NOT NULL,
    run_id bigint REFERENCES run,
    replaced_by bigint NOT NULL REFERENCES run,
    PRIMARY KEY (replaced_by, a_id, b_id)
);

-- Decisions that were taken back, as their rows were.
CREATE TABLE undone_decision (
    undo_run_id bigint NOT NULL REFERENCES run,
    run_id bigint NOT NULL REFERENCES run,
    kind text NOT NULL CHECK (kind IN ('placement', 'merge', 'event link', 'event merge', 'judgement')),
    decided jsonb NOT NULL
);
CREATE INDEX undone_decision_undo ON undone_decision (undo_run_id);
CREATE INDEX undone_decision_run ON undone_decision (run_id);
