-- Views of {store}, epoch {epoch}, for Spark 4.0 or later. Times are UTC. Lists are encoded in a way that only the
-- plain reader of Spark 4.0 knows. The time and the memory of a query rise in proportion to the layers that it reads
-- and the rows that it gives: no view repeats a list for each of its elements.
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

-- When each row of the store (part) has captures of a page.
CREATE OR REPLACE TEMPORARY VIEW time_records AS
{ts};

-- Captures as records have them, by their place in the list from 0. A code is the status, and 1000 times the reason if
-- the capture was cut. Of several records of one second the newest counts, and with the status 0 it says that the
-- capture is removed. The column `changes` says nothing of blank captures, the others `show` links. A capture `decides`
-- if no link of the page is unknown there: it is whole, or the page ended with it.
CREATE OR REPLACE TEMPORARY VIEW record_captures AS
WITH stretches AS (
    SELECT part, uid, inline(transform(status_captures, (start, at) -> struct(start,
        coalesce(get(status_captures, at + 1), size(timestamps)) AS stop, get(statuses, at) AS code)))
    FROM time_records WHERE statuses IS NOT NULL
), coded AS (
    SELECT part, uid, explode(sequence(start, stop - 1)) AS place, code FROM stretches WHERE code != 200
), blanks AS (
    SELECT part, uid, explode(blank) AS place, true AS blank FROM time_records WHERE blank IS NOT NULL
), found AS (
    {rv}
), again AS (
    SELECT part, uid, explode(revisits) AS place, true AS revisit FROM found WHERE revisits IS NOT NULL
), every AS (
    SELECT part, uid, posexplode(timestamps) AS (place, timestamp) FROM time_records
), several AS (
    SELECT uid FROM time_records GROUP BY uid HAVING count(*) > 1
), newest AS (
    SELECT uid, timestamp, max(part) AS newest FROM every LEFT SEMI JOIN several USING (uid)
    GROUP BY uid, timestamp HAVING count(*) > 1
), flagged AS (
    SELECT part, uid, place, timestamp, coalesce(code, 200) AS code, coalesce(blank, false) AS blank,
        coalesce(revisit, false) AS revisit, coalesce(part = newest, true) AND coalesce(code != 0, true) AS counts
    FROM every LEFT JOIN coded USING (part, uid, place) LEFT JOIN blanks USING (part, uid, place)
    LEFT JOIN again USING (part, uid, place) LEFT JOIN newest USING (uid, timestamp)
)
SELECT part, uid, place, timestamp, code, blank, revisit, counts, counts AND NOT blank AS shows,
    counts AND CASE WHEN blank THEN code BETWEEN 400 AND 499 AND code != 429 ELSE code < 1000 END AS decides
FROM flagged;

-- Every capture: what the server answered, why the capture was cut (null where it is whole), whether its links are
-- known (a failure has none, and of a cut capture those are known that were found), and whether it is a revisit.
CREATE OR REPLACE TEMPORARY VIEW captures AS
SELECT uid, timestamp, code % 1000 AS status,
    CASE code - code % 1000 WHEN 1000 THEN 'truncated' WHEN 2000 THEN 'short' WHEN 3000 THEN 'damaged'
        WHEN 4000 THEN 'encoding' WHEN 5000 THEN 'segments' WHEN 6000 THEN 'partial' END AS cut,
    NOT blank OR code BETWEEN 400 AND 999 AS known, revisit
FROM record_captures WHERE counts;

-- Every URL that was captured.
CREATE OR REPLACE TEMPORARY VIEW pages AS
SELECT uid, any_value(url) AS url, count(*) AS captures, count_if(known) AS known_captures,
    min(timestamp) AS first_capture, max(timestamp) AS last_capture
FROM captures JOIN urls USING (uid)
GROUP BY uid;

-- The links that not all captures of a record have, by their place in the list from 0, with the places of captures at
-- which they begin and end. The column `changes` is gaps in LEB128 that add up to places, two halves for each link.
CREATE OR REPLACE TEMPORARY VIEW record_changes AS
WITH presence AS (
    {bv}
), gaps AS (
    SELECT part, uid, captures,
        posexplode(regexp_extract_all(digits, '(?:[89A-F].)*[0-7].', 0)) AS (number, digits)
    FROM (
        SELECT part, uid, size(timestamps) AS captures, hex(changes) AS digits
        FROM presence JOIN time_records USING (part, uid) WHERE changes IS NOT NULL)
), places AS (
    SELECT part, uid, captures, sum(1 + aggregate(sequence(0, length(digits) DIV 2 - 1), 0L,
            (gap, byte) -> gap
                + shiftleft(CAST(conv(substring(digits, 2 * byte + 1, 2), 16, 10) AS BIGINT) & 127, 7 * byte)))
        OVER (PARTITION BY part, uid ORDER BY number ROWS UNBOUNDED PRECEDING) - 1 AS place
    FROM gaps
), halves AS (
    SELECT part, uid, captures, CAST(place DIV (2 * captures - 2) AS INT) AS link, place % (2 * captures - 2) AS place
    FROM places
), bounds AS (
    SELECT part, uid, link, concat(IF(min(place) >= captures - 1, array(0, 0), array(0)),
        sort_array(collect_list(CAST(place % (captures - 1) + 1 AS INT))), array(captures)) AS bounds
    FROM halves GROUP BY part, uid, captures, link
)
SELECT part, uid, link, transform(sequence(0, size(bounds) - 2, 2),
    at -> struct(get(bounds, at) AS start, get(bounds, at + 1) - 1 AS last)) AS runs
FROM bounds;

-- Every link of each record, by its place in the list from 0.
CREATE OR REPLACE TEMPORARY VIEW record_links AS
WITH lists AS (
    {ol}
)
SELECT part, uid, posexplode(links) AS (link, dst) FROM lists;

-- Runs of captures of a record that have a link that not all of them have.
CREATE OR REPLACE TEMPORARY VIEW record_runs AS
WITH runs AS (
    SELECT part, uid, dst, inline(runs) FROM record_links JOIN record_changes USING (part, uid, link)
)
SELECT part, uid, dst, start, last FROM runs WHERE start <= last;

-- Every capture with every link of it. Many times larger than the links: filter it.
CREATE OR REPLACE TEMPORARY VIEW link_captures AS
WITH showing AS (
    SELECT part, uid, place, timestamp FROM record_captures WHERE shows
), places AS (
    SELECT part, uid, dst, explode(sequence(start, last)) AS place FROM record_runs
)
SELECT uid AS src, dst, timestamp FROM places JOIN showing USING (part, uid, place)
UNION ALL
SELECT uid, dst, timestamp
FROM record_links LEFT ANTI JOIN record_changes USING (part, uid, link) JOIN showing USING (part, uid);

-- What a run of captures that begins or ends at a place of a record needs to know. The captures that show links are in
-- stretches: between two stretches, a capture of another row or the end of the page decides. `shown`, `whole` and
-- `decided` count the captures that show links, that show all links, and that decide: before the place in columns with
-- `from`, and up to it in those with `upto`. The next capture that shows links is at `first_seen`, and the last one up
-- to the place at `last_seen`.
CREATE OR REPLACE TEMPORARY VIEW record_marks AS
WITH counted AS (
    SELECT part, uid, place, timestamp, shows, IF(shows AND decides, 1, 0) AS whole,
        count_if(decides) OVER (PARTITION BY uid ORDER BY timestamp, part ROWS UNBOUNDED PRECEDING) AS decided
    FROM record_captures
), compared AS (
    SELECT *, max(IF(shows, decided, NULL))
        OVER (PARTITION BY part, uid ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM counted
), numbered AS (
    SELECT *, count_if(shows AND coalesce(decided - whole > before, true))
        OVER (PARTITION BY part, uid ORDER BY place ROWS UNBOUNDED PRECEDING) AS stretch
    FROM compared
)
SELECT part, uid, place, shows, min(IF(shows, timestamp, NULL)) OVER onward AS first_seen,
    max(IF(shows, timestamp, NULL)) OVER upto AS last_seen,
    min(IF(shows, stretch, NULL)) OVER onward AS stretch_from, stretch AS stretch_upto,
    (count_if(shows) OVER upto) - IF(shows, 1, 0) AS shown_from, count_if(shows) OVER upto AS shown_upto,
    (count_if(whole = 1) OVER upto) - whole AS whole_from, count_if(whole = 1) OVER upto AS whole_upto,
    min(IF(shows, decided - whole, NULL)) OVER onward AS decided_from,
    max(IF(shows, decided, NULL)) OVER upto AS decided_upto
FROM numbered WINDOW upto AS (PARTITION BY part, uid ORDER BY place ROWS UNBOUNDED PRECEDING),
    onward AS (PARTITION BY part, uid ORDER BY place DESC ROWS UNBOUNDED PRECEDING);

-- Every link of every page, a row for each run of captures that have it; `whole` of these are not cut. A run ends where
-- a capture decides that the link is not there. A piece is the part of a run of a record that is in one stretch. Pieces
-- are joined if no capture decides between them.
CREATE OR REPLACE TEMPORARY VIEW link_runs AS
WITH stretches AS (
    SELECT part, uid, stretch_upto AS stretch, min(first_seen) AS first_seen, max(last_seen) AS last_seen,
        min(shown_from) AS shown_from, max(shown_upto) AS shown_upto, min(whole_from) AS whole_from,
        max(whole_upto) AS whole_upto, min(decided_from) AS decided_from, max(decided_upto) AS decided_upto
    FROM record_marks WHERE shows GROUP BY part, uid, stretch_upto
), begun AS (
    SELECT runs.*, first_seen, stretch_from, shown_from, whole_from, decided_from
    FROM record_runs runs JOIN record_marks marks ON marks.part = runs.part AND marks.uid = runs.uid AND place = start
), ended AS (
    SELECT begun.*, marks.last_seen, marks.shown_upto, marks.whole_upto, marks.decided_upto,
        explode(sequence(begun.stretch_from, marks.stretch_upto)) AS stretch
    FROM begun JOIN record_marks marks ON marks.part = begun.part AND marks.uid = begun.uid AND place = last
    WHERE begun.shown_from < marks.shown_upto
), pieces AS (
    SELECT uid, dst, greatest(a.first_seen, b.first_seen) AS first_seen, least(a.last_seen, b.last_seen) AS last_seen,
        least(a.shown_upto, b.shown_upto) - greatest(a.shown_from, b.shown_from) AS captures,
        least(a.whole_upto, b.whole_upto) - greatest(a.whole_from, b.whole_from) AS whole,
        greatest(a.decided_from, b.decided_from) AS decided_from, least(a.decided_upto, b.decided_upto) AS decided_upto
    FROM ended a JOIN stretches b USING (part, uid, stretch)
    UNION ALL
    SELECT uid, dst, first_seen, last_seen, shown_upto - shown_from, whole_upto - whole_from, decided_from, decided_upto
    FROM record_links LEFT ANTI JOIN record_changes USING (part, uid, link) JOIN stretches USING (part, uid)
), compared AS (
    SELECT *, max(decided_upto)
        OVER (PARTITION BY uid, dst ORDER BY first_seen ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM pieces
), numbered AS (
    SELECT *, count_if(coalesce(decided_from > before, true))
        OVER (PARTITION BY uid, dst ORDER BY first_seen ROWS UNBOUNDED PRECEDING) AS run
    FROM compared
)
SELECT uid AS src, dst, min(first_seen) AS first_seen, max(last_seen) AS last_seen, sum(captures) AS captures,
    sum(whole) AS whole
FROM numbered GROUP BY uid, dst, run;

-- Every link of every page, a row for each run of captures that have it.
CREATE OR REPLACE TEMPORARY VIEW link_intervals AS
SELECT src, dst, first_seen, last_seen, captures
FROM link_runs;

-- Every link of every page once, with how many captures of the page say whether they have the link, and how many of
-- these have it. A failure of the server does not say it, nor a capture with unknown links, nor a cut one in which the
-- link was not found.
CREATE OR REPLACE TEMPORARY VIEW links AS
WITH seen AS (
    SELECT src, dst, min(first_seen) AS first_seen, max(last_seen) AS last_seen, sum(captures) AS captures_with_link,
        sum(captures - whole) AS of_cut
    FROM link_runs GROUP BY src, dst
), deciding AS (
    SELECT uid AS src, count(*) AS decided FROM record_captures WHERE decides GROUP BY uid
)
SELECT src, dst, first_seen, last_seen, coalesce(decided, 0) + of_cut AS captures, captures_with_link
FROM seen LEFT JOIN deciding USING (src);
