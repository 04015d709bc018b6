-- Feeds, articles, what was folded into what, spaces, stories and runs.
-- The vector tables depend on the space's dimension: sql/spaces.sql makes them.

CREATE TABLE schema_migration (
    number integer PRIMARY KEY,
    name text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE feed (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    address text NOT NULL UNIQUE,
    title text,
    language text,
    kind text NOT NULL DEFAULT 'normal' CHECK (kind IN ('normal', 'live')),
    duplicate_window interval NOT NULL DEFAULT '48 hours',
    identity_params text[] NOT NULL DEFAULT '{}',
    etag text,
    last_modified text
);

-- One call that changed something: every decision names its run.
CREATE TABLE run (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    command text NOT NULL,
    started_at timestamptz NOT NULL,
    finished_at timestamptz,
    settings jsonb NOT NULL,
    counts jsonb,
    seconds jsonb,
    outcome text NOT NULL DEFAULT 'running' CHECK (outcome IN ('running', 'done', 'failed'))
);

CREATE TABLE article (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    feed_id bigint NOT NULL REFERENCES feed,
    guid text NOT NULL,
    url text,
    title text NOT NULL,
    body text NOT NULL,
    author text,
    language text NOT NULL,
    language_confidence real NOT NULL,
    published_at timestamptz,
    event_time timestamptz NOT NULL,
    first_seen timestamptz NOT NULL,
    revision integer NOT NULL DEFAULT 1,
    entry_hash uuid NOT NULL,
    url_hash uuid,
    content_hash uuid,
    -- true until the current revision's text is encoded; a duplicate's never is
    encode_due boolean NOT NULL DEFAULT true,
    run_id bigint NOT NULL REFERENCES run,
    changed_run_id bigint REFERENCES run,
    UNIQUE (feed_id, guid)
);
CREATE INDEX article_entry_hash ON article (feed_id, entry_hash);
CREATE INDEX article_url_hash ON article (url_hash) WHERE url_hash IS NOT NULL;
CREATE INDEX article_content_hash ON article (content_hash, event_time) WHERE content_hash IS NOT NULL;
CREATE INDEX article_encode_due ON article (event_time, id) WHERE encode_due;
COMMENT ON COLUMN article.event_time IS
    'published_at when it is from 30 days before to 1 hour after first_seen, else first_seen';

CREATE TABLE duplicate_link (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    article_id bigint NOT NULL REFERENCES article,
    canonical_id bigint NOT NULL REFERENCES article,
    stage text NOT NULL CHECK (stage IN ('entry', 'url', 'content')),
    score real NOT NULL,
    threshold real NOT NULL,
    run_id bigint NOT NULL REFERENCES run,
    made_at timestamptz NOT NULL DEFAULT now(),
    retracted_at timestamptz,
    CHECK (article_id <> canonical_id)
);
CREATE UNIQUE INDEX duplicate_link_article ON duplicate_link (article_id) WHERE retracted_at IS NULL;
CREATE INDEX duplicate_link_canonical ON duplicate_link (canonical_id) WHERE retracted_at IS NULL;

CREATE TABLE space (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name ~ '^[a-z0-9_]{1,40}$'),
    model text NOT NULL,
    revision text NOT NULL,
    dimension integer NOT NULL CHECK (dimension BETWEEN 1 AND 4000),
    prefix text NOT NULL,
    recipe text NOT NULL,
    alignment text NOT NULL,
    active boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- mean of the language-centred vectors encoded so far, and how many articles it stands for
    running_mean double precision[] NOT NULL,
    running_articles double precision NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX space_active ON space (active) WHERE active;

-- What is subtracted from every vector of a space; the last version is in force.
CREATE TABLE domain_mean (
    space_id integer NOT NULL REFERENCES space,
    version integer NOT NULL,
    mean double precision[] NOT NULL,
    articles double precision NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (space_id, version)
);

CREATE TABLE story (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT now(),
    first_time timestamptz NOT NULL,
    latest_time timestamptz NOT NULL,
    size integer NOT NULL,
    languages text[] NOT NULL,
    sources integer NOT NULL,
    headline_id bigint NOT NULL REFERENCES article,
    -- the story that this one became part of: ids once given out redirect for ever
    merged_into bigint REFERENCES story,
    run_id bigint NOT NULL REFERENCES run
);
CREATE INDEX story_latest ON story (latest_time) WHERE merged_into IS NULL;
CREATE INDEX story_merged ON story (merged_into) WHERE merged_into IS NOT NULL;

-- One row for each encoded article; story_id is NULL until, and unless, a pass places it.
CREATE TABLE story_article (
    article_id bigint PRIMARY KEY REFERENCES article,
    event_time timestamptz NOT NULL,
    story_id bigint REFERENCES story,
    -- the story that the pass chose, before any merge: undoing a merge restores story_id from it
    placed_in bigint REFERENCES story,
    pass text NOT NULL DEFAULT 'pending' CHECK (pass IN ('pending', 'none', 'match', 'discover')),
    score real,
    threshold real,
    nearest_id bigint REFERENCES article,
    run_id bigint REFERENCES run,
    CHECK ((story_id IS NULL) = (pass IN ('pending', 'none')))
);
CREATE INDEX story_article_story ON story_article (story_id, event_time);
CREATE INDEX story_article_unplaced ON story_article (event_time, article_id) WHERE story_id IS NULL;
CREATE INDEX story_article_processed ON story_article (event_time) WHERE pass <> 'pending';
CREATE INDEX story_article_pending ON story_article (event_time, article_id) WHERE pass = 'pending';

CREATE TABLE story_merge (
    absorbed_id bigint PRIMARY KEY REFERENCES story,
    survivor_id bigint NOT NULL REFERENCES story,
    score real NOT NULL,
    threshold real NOT NULL,
    run_id bigint NOT NULL REFERENCES run,
    made_at timestamptz NOT NULL DEFAULT now()
);

-- How many feeds tell a story: those of its articles and of the duplicates folded into them.
CREATE FUNCTION story_sources(wanted bigint) RETURNS integer LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT count(DISTINCT a.feed_id)::integer
    FROM story_article p
    LEFT JOIN duplicate_link d ON d.canonical_id = p.article_id AND d.retracted_at IS NULL
    JOIN article a ON a.id IN (p.article_id, d.article_id)
    WHERE p.story_id = wanted;
END;
