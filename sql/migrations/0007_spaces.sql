-- Several spaces in one database: what was fitted on the user's own corpus, and what a space without
-- thresholds of its own knows of its background.
ALTER TABLE space
    -- version of a domain mean that was fitted once and stays; empty where it is learned as articles come
    ADD COLUMN fit text NOT NULL DEFAULT '',
    -- orthonormal rows that span what tells the corpus' languages apart, for a model without offsets
    ADD COLUMN language_basis double precision[],
    -- cosines of articles that have nothing to do with each other, and how many articles they were taken of
    ADD COLUMN background_mean double precision,
    ADD COLUMN background_deviation double precision,
    ADD COLUMN background_articles integer;
-- Walks the encoded articles from the latest to the earliest, whatever became of them.
CREATE INDEX story_article_time ON story_article (event_time, article_id);
