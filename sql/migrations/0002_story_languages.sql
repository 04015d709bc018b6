-- The share of each language (without script or region) among the members that a centroid averages.
DO $$
DECLARE
    space_name text;
BEGIN
    FOR space_name IN SELECT name FROM space LOOP
        EXECUTE format('ALTER TABLE %I ADD COLUMN languages jsonb NOT NULL DEFAULT ''{}''', 'story_vector_' || space_name);
        EXECUTE format(
            'UPDATE %I v SET languages = n.languages FROM ('
            '  SELECT story_id, jsonb_object_agg(language, share) AS languages FROM ('
            '    SELECT p.story_id, split_part(a.language, ''-'', 1) AS language,'
            '      count(*)::real / sum(count(*)) OVER (PARTITION BY p.story_id) AS share'
            '    FROM story_article p JOIN article a ON a.id = p.article_id WHERE p.story_id IS NOT NULL GROUP BY 1, 2'
            '  ) shares GROUP BY story_id'
            ') n WHERE n.story_id = v.story_id',
            'story_vector_' || space_name
        );
        EXECUTE format('ALTER TABLE %I ALTER COLUMN languages DROP DEFAULT', 'story_vector_' || space_name);
    END LOOP;
END
$$;
