-- Views of {store}, epoch {epoch}, for Spark 4.0 or later. Times are UTC. Lists are encoded in a way that only the plain reader of
-- Spark 4.0 knows.
SET TIME ZONE 'UTC';
SET spark.sql.parquet.enableNestedColumnVectorizedReader = false;

-- The layers of each row, their numbers as signed ones: unsigned ones Spark would read as decimals.
{layers}

-- Every URL: its number in this epoch, the urlkey of CDX indexes, its host (null where it has none).
CREATE OR REPLACE TEMPORARY VIEW urls AS
WITH records AS (
    {url}
)
SELECT uid, url, surt, nullif(
    regexp_extract(url, '^[a-z][a-z0-9+.-]*://(?:[^/?#@]*@)?(\\[[^/]*\\]|[^/:?#]*)', 1), '') AS host
FROM records;

-- When each row of the store (part) has captures of a page, in how many rows the page is, and whether it has statuses.
CREATE OR REPLACE TEMPORARY VIEW time_records AS
WITH records AS (
    {ts}
)
SELECT part, uid, timestamps, blank, status_captures, statuses,
    count(*) OVER (PARTITION BY uid) = 1 AND count(statuses) OVER (PARTITION BY uid) = 0 AS alone
FROM records;

-- What each row of the store has of a page and its links.
CREATE OR REPLACE TEMPORARY VIEW link_records AS
WITH lists AS (
    {ol}
), presence AS (
    {bv}
)
SELECT part, uid, alone, timestamps, blank, links, changes
FROM time_records JOIN lists USING (part, uid) JOIN presence USING (part, uid);

-- Captures as records have them, by their place in the list from 0. Of several records of one second the newest counts, and
-- with the status 0 it says that the capture is removed. The column `changes` says nothing of blank ones. A capture tells which
-- links there are, unless they are unknown or the server failed.
CREATE OR REPLACE TEMPORARY VIEW record_captures AS
WITH found AS (
    {rv}
), every AS (
    SELECT part, uid, alone, blank, status_captures, statuses, revisits, posexplode(timestamps) AS (place, timestamp)
    FROM time_records JOIN found USING (part, uid)
), flagged AS (
    SELECT part, uid, alone, place, timestamp, coalesce(array_contains(blank, place), false) AS blank,
        coalesce(try_element_at(statuses, nullif(size(filter(status_captures, capture -> capture <= place)), 0)), 200) AS status,
        coalesce(array_contains(revisits, place), false) AS revisit, max(part) OVER (PARTITION BY uid, timestamp) AS newest
    FROM every
)
SELECT part, uid, alone, place, timestamp, status, NOT blank OR status >= 400 AS known, revisit, blank,
    NOT blank OR (status BETWEEN 400 AND 499 AND status != 429) AS tells
FROM flagged WHERE part = newest AND status != 0;

-- Every capture: what the server answered, whether its links are known (a failure has none), and whether it is a revisit.
CREATE OR REPLACE TEMPORARY VIEW captures AS
SELECT uid, timestamp, status, known, revisit FROM record_captures;

-- Every URL that was captured.
CREATE OR REPLACE TEMPORARY VIEW pages AS
SELECT uid, any_value(url) AS url, count(*) AS captures, count_if(known) AS known_captures,
    min(timestamp) AS first_capture, max(timestamp) AS last_capture
FROM captures JOIN urls USING (uid)
GROUP BY uid;

-- The links of a record that not all its captures have, by their place in the list from 0, each with the places of captures at
-- which it begins and ends: the column `changes` decoded, gaps in LEB128 that add up to places, which are two halves for each
-- link. A byte adds its part of a gap, and the last one of a gap 1 more.
CREATE OR REPLACE TEMPORARY VIEW record_changes AS
WITH bytes AS (
    SELECT part, uid, size(timestamps) - 1 AS half, posexplode(transform(sequence(1, length(changes)),
        at -> CAST(conv(hex(substring(changes, at, 1)), 16, 10) AS BIGINT))) AS (at, byte)
    FROM link_records WHERE length(changes) > 0
), gaps AS (
    SELECT part, uid, half, at, byte, coalesce(max(IF(byte < 128, at, NULL)) OVER (PARTITION BY part, uid ORDER BY at
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), -1) AS before
    FROM bytes
), places AS (
    SELECT part, uid, half, byte, sum(shiftleft(byte & 127, 7 * (at - before - 1)) + IF(byte < 128, 1, 0))
        OVER (PARTITION BY part, uid ORDER BY at ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) - 1 AS place
    FROM gaps
), changed AS (
    SELECT part, uid, CAST(place DIV (2 * half) AS INT) AS link,
        concat(IF(bool_or(place % (2 * half) >= half), array(0, 0), array(0)),
            sort_array(collect_list(CAST(place % half + 1 AS INT)))) AS bounds
    FROM places WHERE byte < 128
    GROUP BY part, uid, CAST(place DIV (2 * half) AS INT)
)
SELECT part, uid, collect_list(link) AS changed, collect_list(struct(link, bounds)) AS lists FROM changed GROUP BY part, uid;

-- Runs of captures of a record that have a link, from place `start` to before `stop`. A link without changes is in all.
CREATE OR REPLACE TEMPORARY VIEW record_runs AS
WITH every AS (
    SELECT part, uid, alone, timestamps, blank, links, inline(concat(coalesce(lists, array()), transform(
        array_except(sequence(0, size(links) - 1), coalesce(changed, array())), link -> struct(link, array(0) AS bounds))))
    FROM link_records LEFT JOIN record_changes USING (part, uid) WHERE size(links) > 0
), runs AS (
    SELECT part, uid, alone, timestamps, blank, links[link] AS dst, inline(transform(sequence(0, size(bounds) - 1, 2),
        at -> struct(bounds[at] AS start, IF(at + 1 < size(bounds), bounds[at + 1], size(timestamps)) AS stop)))
    FROM every
)
SELECT part, uid, alone, timestamps, blank, dst, start, stop FROM runs WHERE start < stop;

-- Every capture with every link of it. Many times larger than the links: filter it.
CREATE OR REPLACE TEMPORARY VIEW link_captures AS
SELECT uid AS src, dst, timestamp
FROM (SELECT part, uid, dst, start, stop FROM record_runs)
JOIN (SELECT part, uid, place, timestamp FROM record_captures WHERE NOT blank) USING (part, uid)
WHERE place >= start AND place < stop;

-- Every link of every page, a row for each run of captures that have it, which ends where a capture tells that it is gone. Pages
-- with one record and without statuses are read straight from its lists; of others the captures are counted through.
CREATE OR REPLACE TEMPORARY VIEW link_intervals AS
WITH of_one AS (
    SELECT uid AS src, dst, IF(blank IS NULL, slice(timestamps, start + 1, stop - start), transform(
        filter(sequence(start, stop - 1), place -> NOT array_contains(blank, place)), place -> timestamps[place])) AS own
    FROM record_runs WHERE alone
), ranked AS (
    SELECT part, uid, place, timestamp, blank, row_number() OVER (PARTITION BY uid ORDER BY timestamp) AS rank
    FROM record_captures WHERE tells AND NOT alone
), of_many AS (
    SELECT uid AS src, dst, timestamp, rank - row_number() OVER (PARTITION BY uid, dst ORDER BY timestamp) AS run
    FROM (SELECT part, uid, dst, start, stop FROM record_runs WHERE NOT alone) JOIN ranked USING (part, uid)
    WHERE NOT blank AND place >= start AND place < stop
)
SELECT src, dst, own[0] AS first_seen, own[size(own) - 1] AS last_seen, CAST(size(own) AS BIGINT) AS captures
FROM of_one WHERE size(own) > 0
UNION ALL
SELECT src, dst, min(timestamp), max(timestamp), count(*) FROM of_many GROUP BY src, dst, run;

-- Every link of every page once, with how many captures of the page tell which links it has, and how many of these have the
-- link. A failure of the server does not tell, and neither does a capture with unknown links.
CREATE OR REPLACE TEMPORARY VIEW links AS
WITH seen AS (
    SELECT src, dst, min(first_seen) AS first_seen, max(last_seen) AS last_seen, sum(captures) AS captures_with_link
    FROM link_intervals GROUP BY src, dst
), telling AS (
    SELECT uid AS src, count(*) AS captures FROM record_captures WHERE tells GROUP BY uid
)
SELECT src, dst, first_seen, last_seen, captures, captures_with_link FROM seen JOIN telling USING (src);
