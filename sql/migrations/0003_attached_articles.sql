-- Articles that joined no story may be attached to the one they fit best, until a better place is found.
ALTER TABLE story_article DROP CONSTRAINT story_article_pass_check;
ALTER TABLE story_article ADD CONSTRAINT story_article_pass_check
    CHECK (pass IN ('pending', 'none', 'match', 'discover', 'attach'));
DROP INDEX story_article_unplaced;
CREATE INDEX story_article_loose ON story_article (event_time, article_id) WHERE pass IN ('none', 'attach');
