-- What people decide about pairs of articles, links that are taken back, and articles that change again and again.

-- Whether two articles report one event: the answers to the review queue, and labels for a calibration.
CREATE TABLE judgement (
    a_id bigint NOT NULL REFERENCES article,
    b_id bigint NOT NULL REFERENCES article,
    verdict text NOT NULL CHECK (verdict IN ('same', 'different')),
    judged_by text NOT NULL,
    judged_at timestamptz NOT NULL DEFAULT now(),
    CHECK (a_id < b_id),
    PRIMARY KEY (a_id, b_id)
);
CREATE INDEX judgement_b ON judgement (b_id);

ALTER TABLE duplicate_link
    -- the article that the stage chose; canonical_id is where that one leads by now, and goes back to it
    -- when what came between is taken back
    ADD COLUMN folded_into bigint REFERENCES article,
    -- ended because an edit or a judgement left nothing of it: unlike one that was undone, it bars no stage
    ADD COLUMN lapsed boolean NOT NULL DEFAULT false,
    ADD COLUMN retracted_run_id bigint REFERENCES run;
UPDATE duplicate_link SET folded_into = canonical_id;
CREATE INDEX duplicate_link_run ON duplicate_link (run_id);
CREATE INDEX duplicate_link_undone ON duplicate_link (article_id) WHERE retracted_at IS NOT NULL AND NOT lapsed;

ALTER TABLE article
    -- edits seen within a day from edits_since on
    ADD COLUMN edits integer NOT NULL DEFAULT 0,
    ADD COLUMN edits_since timestamptz,
    -- since when its feed keys it by its address, and its text is encoded at most once an hour
    ADD COLUMN live_since timestamptz,
    -- of a live article
    ADD COLUMN encoded_at timestamptz;
