-- Views of {store}, epoch {epoch}, for DuckDB. Times are UTC.
SET TimeZone = 'UTC';

-- Every URL: its number in this epoch, the urlkey of CDX indexes, its host (null where it has none).
CREATE OR REPLACE VIEW urls AS
SELECT uid, url, surt, nullif(regexp_extract(url, '^[a-z][a-z0-9+.-]*://(?:[^/?#@]*@)?(\[[^/]*\]|[^/:?#]*)', 1), '') AS host
FROM read_parquet([
    {urls}
]);

-- What each row of the store (part) has of a page.
CREATE OR REPLACE VIEW page_records AS
{records};

-- Captures as records have them, by their place in the list from 0; of several records of one second the newest counts, and
-- with the status 0 it says that the capture is removed. The column `changes` says nothing of blank ones. A capture tells which
-- links there are, unless they are unknown or the server failed.
CREATE OR REPLACE VIEW record_captures AS
WITH every AS (
    SELECT part, uid, blank, status_captures, statuses, revisits, generate_subscripts(timestamps, 1) - 1 AS place,
        unnest(timestamps) AS timestamp
    FROM page_records
), flagged AS (
    SELECT part, uid, place, timestamp, coalesce(list_contains(blank, place), false) AS blank,
        coalesce(statuses[len(list_filter(status_captures, lambda capture: capture <= place))], 200::USMALLINT) AS status,
        coalesce(list_contains(revisits, place), false) AS revisit
    FROM every
)
SELECT part, uid, place, timestamp, status, NOT blank OR status >= 400 AS known, revisit, blank,
    NOT blank OR (status BETWEEN 400 AND 499 AND status != 429) AS tells
FROM flagged
QUALIFY part = max(part) OVER (PARTITION BY uid, timestamp) AND status != 0;

-- Every capture: what the server answered, whether its links are known (a failure has none), and whether it is a revisit.
CREATE OR REPLACE VIEW captures AS
SELECT uid, timestamp, status, known, revisit FROM record_captures;

-- Every URL that was captured.
CREATE OR REPLACE VIEW pages AS
SELECT uid, any_value(url) AS url, count(*) AS captures, count(*) FILTER (known) AS known_captures,
    min(timestamp) AS first_capture, max(timestamp) AS last_capture
FROM captures JOIN urls USING (uid)
GROUP BY uid;

-- Runs of captures of a record that have a link, from place `start` to before `stop`: the column `changes` decoded, gaps in
-- LEB128 that add up to places, which are two halves for each link. A link without changes is in all captures.
CREATE OR REPLACE VIEW record_runs AS
WITH bytes AS (
    SELECT part, uid, len(timestamps) - 1 AS half, hex(changes) AS digits, unnest(range(octet_length(changes))) AS place
    FROM page_records WHERE changes IS NOT NULL
), numbered AS (
    SELECT part, uid, half, place, ('0x' || substr(digits, 2 * place + 1, 2))::UTINYINT::UBIGINT AS byte,
        count(*) FILTER (byte < 128)
            OVER (PARTITION BY part, uid ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS number
    FROM bytes
), gaps AS (
    SELECT part, uid, half, number,
        list_sum(list_transform(list(byte ORDER BY place), lambda byte, at_byte: (byte & 127) << (7 * (at_byte - 1)))) AS gap
    FROM numbered GROUP BY part, uid, half, number
), places AS (
    SELECT part, uid, half, (sum(gap + 1) OVER (PARTITION BY part, uid ORDER BY number) - 1)::UBIGINT AS place
    FROM gaps
), changed AS (
    SELECT part, uid, place // (2 * half) AS link, bool_or(place % (2 * half) >= half) AS late,
        list(place % half + 1 ORDER BY place) AS own
    FROM places GROUP BY part, uid, link
), every AS (
    SELECT part, uid, len(timestamps) AS captures, generate_subscripts(links, 1) - 1 AS link, unnest(links) AS dst
    FROM page_records
), bounds AS (
    SELECT part, uid, dst, (CASE WHEN late THEN [0, 0] ELSE [0] END) || coalesce(own, []) || [captures] AS own
    FROM every LEFT JOIN changed USING (part, uid, link)
), runs AS (
    SELECT part, uid, dst, unnest(list_transform(range(1, len(own), 2), lambda i: {start: own[i], stop: own[i + 1]}),
        recursive := true)
    FROM bounds
)
SELECT part, uid, dst, start, stop FROM runs WHERE start < stop;

-- Every capture with every link of it. Many times larger than the links: filter it.
CREATE OR REPLACE VIEW link_captures AS
SELECT uid AS src, dst, timestamp
FROM record_runs JOIN record_captures USING (part, uid)
WHERE NOT blank AND place >= start AND place < stop;

-- Every link of every page, a row for each run of captures that have it, which ends where a capture tells that it is gone. Pages
-- with one record and without statuses are read straight from its lists; of others the captures are counted through.
CREATE OR REPLACE VIEW link_intervals AS
WITH alone AS (
    SELECT uid FROM page_records GROUP BY uid HAVING count(*) = 1 AND count(statuses) = 0
), of_one AS (
    SELECT uid AS src, dst, CASE WHEN blank IS NULL THEN timestamps[start + 1:stop] ELSE list_filter(
        timestamps[start + 1:stop], lambda t, i: NOT list_contains(blank, start + i - 1)) END AS own
    FROM record_runs JOIN page_records USING (part, uid) SEMI JOIN alone USING (uid)
), ranked AS (
    SELECT uid AS src, timestamp, row_number() OVER (PARTITION BY uid ORDER BY timestamp) AS rank
    FROM record_captures ANTI JOIN alone USING (uid) WHERE tells
), of_many AS (
    SELECT src, dst, timestamp, rank - row_number() OVER (PARTITION BY src, dst ORDER BY timestamp) AS run
    FROM link_captures JOIN ranked USING (src, timestamp)
)
SELECT src, dst, own[1] AS first_seen, own[-1] AS last_seen, len(own)::UBIGINT AS captures
FROM of_one WHERE len(own) > 0
UNION ALL
SELECT src, dst, min(timestamp), max(timestamp), count(*)::UBIGINT FROM of_many GROUP BY src, dst, run;

-- Every link of every page once, with how many captures of the page tell which links it has, and how many of these have the
-- link. A failure of the server does not tell, and neither does a capture with unknown links.
CREATE OR REPLACE VIEW links AS
WITH seen AS (
    SELECT src, dst, min(first_seen) AS first_seen, max(last_seen) AS last_seen, sum(captures)::UBIGINT AS captures_with_link
    FROM link_intervals GROUP BY src, dst
), telling AS (
    SELECT uid AS src, count(*)::UBIGINT AS captures FROM record_captures WHERE tells GROUP BY uid
)
SELECT src, dst, first_seen, last_seen, captures, captures_with_link FROM seen JOIN telling USING (src);
