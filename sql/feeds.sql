-- Settings of feeds, and articles that are known by their address.

-- feed_settings: the settings of all feeds
SELECT address, title, language, kind, duplicate_window, identity_params FROM feed ORDER BY address;

-- feed_settings_of: the settings of one feed
SELECT address, title, language, kind, duplicate_window, identity_params FROM feed WHERE address = %(address)s;

-- special_feeds: the feeds whose settings change how their entries are told apart
SELECT address, title, language, kind, duplicate_window, identity_params FROM feed
WHERE kind <> 'normal' OR cardinality(identity_params) > 0;

-- set_feed: write the settings of a feed; unchanged ones are not written
UPDATE feed SET kind = %(kind)s, duplicate_window = %(duplicate_window)s::interval, identity_params = %(identity_params)s::text[]
WHERE address = %(address)s
  AND (kind, duplicate_window, identity_params) IS DISTINCT FROM (%(kind)s::text, %(duplicate_window)s::interval, %(identity_params)s::text[]);

-- articles_of_feed: the next articles of a feed that have an address, in order of guid
SELECT a.id, a.guid, a.url, a.url_hash
FROM article a JOIN feed f ON f.id = a.feed_id
WHERE f.address = %(address)s AND a.guid > %(after)s::text AND a.url IS NOT NULL
ORDER BY a.guid LIMIT %(most)s;

-- rekey_articles: write other hashes of their addresses over articles
UPDATE article a SET url_hash = n.url_hash
FROM unnest(%(article_ids)s::bigint[], %(url_hashes)s::uuid[]) AS n (id, url_hash)
WHERE a.id = n.id;

-- rename_articles: write other guids over articles whose guid is their address, but where another has that guid
UPDATE article a SET guid = n.guid
FROM unnest(%(article_ids)s::bigint[], %(guids)s::text[]) AS n (id, guid)
WHERE a.id = n.id
  AND NOT EXISTS (SELECT FROM article o WHERE o.feed_id = a.feed_id AND o.guid = n.guid);

-- addressed_articles: for addresses of feeds the guids of the articles that are keyed by them, those that stand first
SELECT a.feed_id, a.url_hash, a.guid
FROM unnest(%(feed_ids)s::bigint[], %(url_hashes)s::uuid[]) AS n (feed_id, url_hash)
JOIN article a ON a.url_hash = n.url_hash AND a.feed_id = n.feed_id
JOIN feed f ON f.id = a.feed_id
LEFT JOIN duplicate_link d ON d.article_id = a.id AND d.retracted_at IS NULL
WHERE f.kind = 'live' OR a.live_since IS NOT NULL
ORDER BY d.id IS NOT NULL, a.id;

-- mark_live: the articles of live feeds are live
UPDATE article a SET live_since = a.first_seen
FROM feed f
WHERE a.id = ANY (%(article_ids)s) AND a.live_since IS NULL AND f.id = a.feed_id AND f.kind = 'live';

-- count_edits: count the edits of articles within a day; who has many becomes live
UPDATE article a SET edits = n.edits, edits_since = n.edits_since,
    live_since = CASE WHEN n.edits >= %(least)s THEN n.seen_at END
FROM (
    SELECT
        b.id, e.seen_at,
        CASE WHEN b.edits_since > e.seen_at - %(span)s::interval THEN b.edits_since ELSE e.seen_at END AS edits_since,
        CASE WHEN b.edits_since > e.seen_at - %(span)s::interval THEN b.edits + e.edits ELSE e.edits END AS edits
    FROM unnest(%(article_ids)s::bigint[], %(times)s::timestamptz[], %(edits)s::integer[]) AS e (id, seen_at, edits)
    JOIN article b USING (id)
) n
WHERE a.id = n.id AND a.live_since IS NULL;

-- reissues: how often feeds gave an address again under another guid, by the canonical article and when it was seen last
SELECT c.id AS article_id, max(a.first_seen) AS seen_at, count(*)::integer AS edits
FROM unnest(%(article_ids)s::bigint[], %(canonical_ids)s::bigint[]) AS n (article_id, canonical_id)
JOIN article a ON a.id = n.article_id
JOIN article c ON c.id = n.canonical_id AND c.feed_id = a.feed_id
GROUP BY c.id ORDER BY c.id;
