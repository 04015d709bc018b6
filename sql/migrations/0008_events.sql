-- Events: stories about one affair that runs over days.
CREATE TABLE event (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT now(),
    first_time timestamptz NOT NULL,
    latest_time timestamptz NOT NULL,
    -- the event that this one became part of: ids once given out redirect for ever
    merged_into bigint REFERENCES event,
    run_id bigint NOT NULL REFERENCES run
);
CREATE INDEX event_latest ON event (latest_time) WHERE merged_into IS NULL;
CREATE INDEX event_merged ON event (merged_into) WHERE merged_into IS NOT NULL;

-- One row for each story that is part of an event. The row of an absorbed story stays as a record of the decision.
CREATE TABLE event_story (
    story_id bigint PRIMARY KEY REFERENCES story,
    event_id bigint NOT NULL REFERENCES event,
    -- the event that was chosen, before any merge
    placed_in bigint NOT NULL REFERENCES event,
    score real NOT NULL,
    threshold real NOT NULL,
    nearest_id bigint NOT NULL REFERENCES story,
    run_id bigint NOT NULL REFERENCES run,
    made_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX event_story_event ON event_story (event_id);

CREATE TABLE event_merge (
    absorbed_id bigint PRIMARY KEY REFERENCES event,
    survivor_id bigint NOT NULL REFERENCES event,
    score real NOT NULL,
    threshold real NOT NULL,
    run_id bigint NOT NULL REFERENCES run,
    made_at timestamptz NOT NULL DEFAULT now()
);

-- Up to which change of a story events were brought up to date; one row.
CREATE TABLE event_progress (
    change bigint NOT NULL,
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row)
);
INSERT INTO event_progress (change) VALUES (0);
