-- Feeds and articles: what ingest writes and what the encoder reads.

-- feed_ids: the ids of feeds by address
SELECT address, id FROM feed WHERE address = ANY (%(addresses)s);

-- feed_validators: what conditional requests need
SELECT address, title, language, etag, last_modified FROM feed WHERE etag IS NOT NULL OR last_modified IS NOT NULL;

-- add_feeds: add feeds that are not there yet
INSERT INTO feed (address)
SELECT DISTINCT n.address
FROM unnest(%(addresses)s::text[]) AS n (address)
WHERE NOT EXISTS (SELECT FROM feed f WHERE f.address = n.address)
ON CONFLICT (address) DO NOTHING;

-- update_feed: remember what a feed says of itself; an unchanged feed is not written
UPDATE feed SET
    title = coalesce(%(title)s::text, title),
    language = coalesce(%(language)s::text, language),
    etag = %(etag)s::text,
    last_modified = %(last_modified)s::text
WHERE address = %(address)s
  AND (title, language, etag, last_modified) IS DISTINCT FROM (
    coalesce(%(title)s::text, title), coalesce(%(language)s::text, language), %(etag)s::text, %(last_modified)s::text
  );

-- known_articles: the stored state of articles by feed and guid
SELECT
    a.id, a.feed_id, a.guid, a.url, a.title, a.body, a.author, a.published_at, a.live_since,
    EXISTS (SELECT FROM duplicate_link d WHERE d.article_id = a.id AND d.retracted_at IS NULL) AS is_duplicate
FROM article a
JOIN unnest(%(feed_ids)s::bigint[], %(guids)s::text[]) AS n (feed_id, guid) USING (feed_id, guid);

-- add_articles: add new articles and return their ids
INSERT INTO article (
    feed_id, guid, url, title, body, author, language, language_confidence,
    published_at, event_time, first_seen, entry_hash, url_hash, content_hash,
    simhash, band_1, band_2, band_3, band_4, title_sketch, run_id
)
SELECT
    n.feed_id, n.guid, n.url, n.title, n.body, n.author, n.language, n.language_confidence,
    n.published_at, n.event_time, n.first_seen, n.entry_hash, n.url_hash, n.content_hash,
    n.simhash, n.band_1, n.band_2, n.band_3, n.band_4, n.title_sketch::bigint[], %(run_id)s
FROM unnest(
    %(feed_id)s::bigint[], %(guid)s::text[], %(url)s::text[], %(title)s::text[], %(body)s::text[], %(author)s::text[],
    %(language)s::text[], %(language_confidence)s::real[], %(published_at)s::timestamptz[], %(event_time)s::timestamptz[],
    %(first_seen)s::timestamptz[], %(entry_hash)s::uuid[], %(url_hash)s::uuid[], %(content_hash)s::uuid[],
    %(simhash)s::bigint[], %(band_1)s::bigint[], %(band_2)s::bigint[], %(band_3)s::bigint[], %(band_4)s::bigint[],
    %(title_sketch)s::text[]
) AS n (
    feed_id, guid, url, title, body, author, language, language_confidence,
    published_at, event_time, first_seen, entry_hash, url_hash, content_hash,
    simhash, band_1, band_2, band_3, band_4, title_sketch
)
ORDER BY n.event_time, n.feed_id, n.guid
RETURNING id;

-- change_articles: write changed content over stored articles; text that changed is encoded again
UPDATE article a SET
    url = n.url, title = n.title, body = n.body, author = n.author, published_at = n.published_at,
    language = n.language, language_confidence = n.language_confidence,
    entry_hash = n.entry_hash, url_hash = n.url_hash, content_hash = n.content_hash,
    simhash = n.simhash, band_1 = n.band_1, band_2 = n.band_2, band_3 = n.band_3, band_4 = n.band_4,
    title_sketch = n.title_sketch::bigint[],
    revision = a.revision + 1,
    encode_due = a.encode_due OR (
        (a.title, a.body) IS DISTINCT FROM (n.title, n.body)
        AND NOT EXISTS (SELECT FROM duplicate_link d WHERE d.article_id = a.id AND d.retracted_at IS NULL)
    ),
    changed_run_id = %(run_id)s
FROM unnest(
    %(ids)s::bigint[], %(url)s::text[], %(title)s::text[], %(body)s::text[], %(author)s::text[],
    %(published_at)s::timestamptz[], %(language)s::text[], %(language_confidence)s::real[],
    %(entry_hash)s::uuid[], %(url_hash)s::uuid[], %(content_hash)s::uuid[],
    %(simhash)s::bigint[], %(band_1)s::bigint[], %(band_2)s::bigint[], %(band_3)s::bigint[], %(band_4)s::bigint[],
    %(title_sketch)s::text[]
) AS n (
    id, url, title, body, author, published_at, language, language_confidence, entry_hash, url_hash, content_hash,
    simhash, band_1, band_2, band_3, band_4, title_sketch
)
WHERE a.id = n.id;

-- articles_due: the next articles to encode, in the order of their time; a live one once in an hour of the clock
SELECT a.id, a.title, left(a.body, %(lede_chars)s) AS lede, a.language, a.event_time, a.revision
FROM article a
WHERE a.encode_due AND a.event_time <= %(as_of)s
  AND (a.encoded_at IS NULL OR a.live_since IS NULL OR a.encoded_at < date_bin('1 hour', %(now)s::timestamptz, '2000-01-01T00:00Z'))
ORDER BY a.event_time, a.id
LIMIT %(most)s;

-- count_due: how many articles wait to be encoded
SELECT count(*) FROM article
WHERE encode_due AND event_time <= %(as_of)s
  AND (encoded_at IS NULL OR live_since IS NULL OR encoded_at < date_bin('1 hour', %(now)s::timestamptz, '2000-01-01T00:00Z'));

-- mark_encoded: these revisions are encoded; a row edited meanwhile stays due
UPDATE article a SET encode_due = false
FROM unnest(%(article_ids)s::bigint[], %(revisions)s::integer[]) AS n (id, revision)
WHERE a.id = n.id AND a.revision = n.revision;

-- queue_for_clustering: hand encoded articles to the passes
INSERT INTO story_article (article_id, event_time)
SELECT * FROM unnest(%(article_ids)s::bigint[], %(event_times)s::timestamptz[])
ON CONFLICT (article_id) DO NOTHING;

-- rehearsed_articles: what clustering needs to know of every article, in order of time, with the canonical one it is folded into
SELECT
    a.id, f.address AS source, a.guid, coalesce(d.canonical_id, a.id) AS canonical_id, a.language, a.event_time,
    least(length(a.body), %(lede_chars)s) AS lede_chars
FROM article a
JOIN feed f ON f.id = a.feed_id
LEFT JOIN duplicate_link d ON d.article_id = a.id AND d.retracted_at IS NULL
ORDER BY a.event_time, a.id;

-- note_encoding: remember when live articles were encoded
UPDATE article SET encoded_at = %(now)s::timestamptz
WHERE id = ANY (%(article_ids)s) AND live_since IS NOT NULL;
