-- Near copies of bodies, and titles that resemble each other. Rows stored before have none of the new keys
-- and are found by the exact stages alone.

ALTER TABLE article
    ADD COLUMN simhash bigint,
    -- hashes of which near copies of a body share most
    ADD COLUMN band_1 bigint,
    ADD COLUMN band_2 bigint,
    ADD COLUMN band_3 bigint,
    ADD COLUMN band_4 bigint,
    -- the 32 smallest hashes of the title's shingles, ascending
    ADD COLUMN title_sketch bigint[];
CREATE INDEX article_band_1 ON article (band_1, event_time) WHERE band_1 IS NOT NULL;
CREATE INDEX article_band_2 ON article (band_2, event_time) WHERE band_2 IS NOT NULL;
CREATE INDEX article_band_3 ON article (band_3, event_time) WHERE band_3 IS NOT NULL;
CREATE INDEX article_band_4 ON article (band_4, event_time) WHERE band_4 IS NOT NULL;

-- GIN knows no ranges: a hash is looked up together with the span of four days that its article lies in, so
-- that a phrase of ten years' headlines costs no more than one of this week's. Spans count from 1970.
CREATE FUNCTION sketch_keys(sketch bigint[], earliest timestamptz, latest timestamptz) RETURNS bigint[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(
    SELECT hash # (span << 40)
    FROM unnest(sketch) AS hash, generate_series(
        floor(extract(epoch FROM earliest) / 345600)::bigint, floor(extract(epoch FROM latest) / 345600)::bigint
    ) AS span
);
-- Without a list of pending entries: that would be read from end to end by every search.
CREATE INDEX article_title_sketch ON article USING gin (sketch_keys(title_sketch, event_time, event_time))
    WITH (fastupdate = off);

ALTER TABLE duplicate_link DROP CONSTRAINT duplicate_link_stage_check;
ALTER TABLE duplicate_link ADD CONSTRAINT duplicate_link_stage_check
    CHECK (stage IN ('entry', 'url', 'content', 'simhash'));

-- Pairs that resemble each other too little to be folded: a person decides.
CREATE TABLE review_flag (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    a_id bigint NOT NULL REFERENCES article,
    b_id bigint NOT NULL REFERENCES article,
    stage text NOT NULL CHECK (stage = 'title'),
    score real NOT NULL,
    threshold real NOT NULL,
    run_id bigint NOT NULL REFERENCES run,
    made_at timestamptz NOT NULL DEFAULT now(),
    CHECK (a_id < b_id),
    UNIQUE (a_id, b_id, stage)
);
CREATE INDEX review_flag_b ON review_flag (b_id);
