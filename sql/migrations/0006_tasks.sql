-- Tasks for what comes after the stories, scores to sort stories by, and the order of changes.

-- What a task's worker sees of a story: what a later state of it is compared with.
CREATE TYPE story_seen AS (
    size integer,
    languages text[],
    headline_id bigint,
    absorbed bigint[]
);

-- A story without a row is pending. An absorbed story keeps its rows, at hand for its survivor.
CREATE TABLE task (
    name text NOT NULL CHECK (name ~ '^[a-z][a-z0-9_-]{0,62}$'),
    story_id bigint NOT NULL REFERENCES story ON DELETE CASCADE,
    -- failed: permanently; one that is tried again is waiting
    state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'leased', 'done', 'failed')),
    -- failures and leases that ran out, since the last success or retry
    attempts integer NOT NULL DEFAULT 0,
    error text,
    -- when it may be handed out: waiting, after a failure; leased, when the lease runs out
    due_at timestamptz NOT NULL DEFAULT now(),
    token uuid,
    leased_as story_seen,
    -- the last success, kept while the task is done again
    result jsonb,
    done_as story_seen,
    done_at timestamptz,
    PRIMARY KEY (story_id, name),
    CHECK ((state = 'leased') = (token IS NOT NULL))
);
CREATE INDEX task_troubled ON task (name, story_id) WHERE attempts > 0;

CREATE TABLE story_score (
    story_id bigint NOT NULL REFERENCES story ON DELETE CASCADE,
    -- as one sorts by it: the task's own name, or task.key
    name text NOT NULL,
    value double precision NOT NULL,
    task text NOT NULL,
    PRIMARY KEY (story_id, name)
);
CREATE INDEX story_score_value ON story_score (name, value DESC, story_id DESC);

-- Changes of stories in the order in which they became visible: only the holder of the run lock
-- writes stories, so that numbers of the sequence are committed in their order.
CREATE SEQUENCE story_change;
ALTER TABLE story
    ADD COLUMN change bigint NOT NULL DEFAULT nextval('story_change'),
    ADD COLUMN first_change bigint;
UPDATE story SET first_change = change;
ALTER TABLE story ALTER COLUMN first_change SET NOT NULL;
-- Not unique: an update of a unique key would lock tasks out, which refer to stories.
CREATE INDEX story_by_change ON story (change);
COMMENT ON COLUMN story.change IS 'number of its last change that a reader can see';
COMMENT ON COLUMN story.first_change IS 'number of the change that made it';

-- Numbers a change and wakes whoever listens; a transaction's equal notifications are sent as one.
CREATE FUNCTION note_story_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        NEW.change := nextval('story_change');
    ELSE
        NEW.first_change := NEW.change;
    END IF;
    PERFORM pg_notify('story_change', '');
    RETURN NEW;
END
$$;
CREATE TRIGGER story_added BEFORE INSERT ON story
    FOR EACH ROW EXECUTE FUNCTION note_story_change();
CREATE TRIGGER story_changed BEFORE UPDATE ON story
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION note_story_change();
