-- Views of {store}, epoch {epoch}, for DuckDB. Times are UTC. The time and the memory of a query rise in proportion to
-- the layers that it reads and the rows that it gives: no view repeats a list for each of its elements.
SET TimeZone = 'UTC';

-- Every URL: its number in this epoch, the urlkey of CDX indexes, its host (null where it has none).
CREATE OR REPLACE VIEW urls AS
WITH records AS (
    {url}
)
SELECT uid, url, surt, nullif(
    regexp_extract(url, '^[a-z][a-z0-9+.-]*://(?:[^/?#@]*@)?(\[[^/]*\]|[^/:?#]*)', 1), '') AS host
FROM records;

-- When each row of the store (part) has captures of a page.
CREATE OR REPLACE VIEW time_records AS
{ts};

-- What each row of the store has of a page and its links. A plain page is in one row and has no statuses.
CREATE OR REPLACE VIEW link_records AS
WITH lists AS (
    {ol}
), plain AS (
    SELECT uid, count(*) = 1 AND count(statuses) = 0 AS plain FROM time_records GROUP BY uid
)
SELECT part, uid, plain, links FROM lists JOIN plain USING (uid);

-- Captures as records have them, by their place in the list from 0. A code is the status, and 1000 times the reason if
-- the capture was cut. Of several records of one second the newest counts, and with the status 0 it says that the
-- capture is removed. The column `changes` says nothing of blank captures, the others `show` links. A capture `decides`
-- if no link of the page is unknown there: it is whole, or the page ended with it.
CREATE OR REPLACE VIEW record_captures AS
WITH stretches AS (
    SELECT part, uid, unnest(status_captures) AS start, unnest(status_captures[2:] || [len(timestamps)]) AS stop,
        unnest(statuses) AS code
    FROM time_records WHERE statuses IS NOT NULL
), coded AS (
    SELECT part, uid, unnest(range(start, stop)) AS place, code FROM stretches WHERE code != 200
), blanks AS (
    SELECT part, uid, unnest(blank)::BIGINT AS place, true AS blank FROM time_records WHERE blank IS NOT NULL
), found AS (
    {rv}
), again AS (
    SELECT part, uid, unnest(revisits)::BIGINT AS place, true AS revisit FROM found WHERE revisits IS NOT NULL
), every AS (
    SELECT part, uid, generate_subscripts(timestamps, 1) - 1 AS place, unnest(timestamps) AS timestamp FROM time_records
), several AS (
    SELECT uid FROM time_records GROUP BY uid HAVING count(*) > 1
), newest AS (
    SELECT uid, timestamp, max(part) AS newest FROM every SEMI JOIN several USING (uid)
    GROUP BY uid, timestamp HAVING count(*) > 1
), flagged AS (
    SELECT part, uid, place, timestamp, coalesce(code, 200::USMALLINT) AS code, coalesce(blank, false) AS blank,
        coalesce(revisit, false) AS revisit, coalesce(part = newest, true) AND coalesce(code != 0, true) AS counts
    FROM every LEFT JOIN coded USING (part, uid, place) LEFT JOIN blanks USING (part, uid, place)
    LEFT JOIN again USING (part, uid, place) LEFT JOIN newest USING (uid, timestamp)
)
SELECT part, uid, place, timestamp, code, blank, revisit, counts, counts AND NOT blank AS shows,
    counts AND CASE WHEN blank THEN code BETWEEN 400 AND 499 AND code != 429 ELSE code < 1000 END AS decides
FROM flagged;

-- Every capture: what the server answered, why the capture was cut (null where it is whole), whether its links are
-- known (a failure has none, and of a cut capture those are known that were found), and whether it is a revisit.
CREATE OR REPLACE VIEW captures AS
SELECT uid, timestamp, code % 1000::USMALLINT AS status,
    CASE code - code % 1000 WHEN 1000 THEN 'truncated' WHEN 2000 THEN 'short' WHEN 3000 THEN 'damaged'
        WHEN 4000 THEN 'encoding' WHEN 5000 THEN 'segments' WHEN 6000 THEN 'partial' END AS cut,
    NOT blank OR code BETWEEN 400 AND 999 AS known, revisit
FROM record_captures WHERE counts;

-- Every URL that was captured.
CREATE OR REPLACE VIEW pages AS
SELECT uid, any_value(url) AS url, count(*) AS captures, count(*) FILTER (known) AS known_captures,
    min(timestamp) AS first_capture, max(timestamp) AS last_capture
FROM captures JOIN urls USING (uid)
GROUP BY uid;

-- The links that not all captures of a record have, by their place in the list from 0, with the places of captures at
-- which they begin (`starts`) and end (`stops`). The column `changes` is gaps in LEB128 that add up to places, two
-- halves for each link.
CREATE OR REPLACE VIEW record_changes AS
WITH presence AS (
    {bv}
), changing AS (
    SELECT part, uid, len(timestamps) AS captures, regexp_extract_all(hex(changes), '(?:[89A-F].)*[0-7].') AS gaps
    FROM presence JOIN time_records USING (part, uid) WHERE changes IS NOT NULL
), gaps AS (
    SELECT part, uid, captures, generate_subscripts(gaps, 1) AS number, unnest(gaps) AS digits FROM changing
), places AS (
    SELECT part, uid, captures, sum(1 + CASE len(digits) WHEN 2 THEN ('0x' || digits)::UBIGINT
            ELSE list_sum(list_transform(range(len(digits) // 2), lambda byte:
                (('0x' || digits[2 * byte + 1:2 * byte + 2])::UBIGINT & 127) << (7 * byte))) END)
        OVER (PARTITION BY part, uid ORDER BY number ROWS UNBOUNDED PRECEDING)::BIGINT - 1 AS place
    FROM gaps
), halves AS (
    SELECT part, uid, captures, place // (2 * captures - 2) AS link, place % (2 * captures - 2) AS place FROM places
), bounds AS (
    SELECT part, uid, link, CASE WHEN min(place) >= captures - 1 THEN [0, 0] ELSE [0] END
        || list(place % (captures - 1) + 1 ORDER BY place) || [captures] AS bounds
    FROM halves GROUP BY part, uid, captures, link
)
SELECT part, uid, link, bounds[1:-:2] AS starts, bounds[2:-:2] AS stops FROM bounds;

-- Every capture with every link of it. Many times larger than the links: filter it. Runs of captures are cut at each
-- 1024th, so that no list is long.
CREATE OR REPLACE VIEW link_captures AS
WITH showing AS MATERIALIZED (
    SELECT part, uid, place, timestamp FROM record_captures WHERE shows
), changes AS MATERIALIZED (
    FROM record_changes
), every AS NOT MATERIALIZED (
    SELECT part, uid, generate_subscripts(links, 1) - 1 AS link, unnest(links) AS dst FROM link_records
), runs AS (
    SELECT part, uid, dst, unnest(starts) AS start, unnest(stops) AS stop
    FROM every JOIN changes USING (part, uid, link)
), short AS (
    SELECT part, uid, dst, unnest(range(start, stop, 1024)) AS start, stop FROM runs WHERE start < stop
), places AS (
    SELECT part, uid, dst, unnest(range(start, least(start + 1024, stop))) AS place FROM short
)
SELECT uid AS src, dst, timestamp FROM places JOIN showing USING (part, uid, place)
UNION ALL
SELECT uid, dst, timestamp FROM every ANTI JOIN changes USING (part, uid, link) JOIN showing USING (part, uid);

-- What a run of captures that begins or ends at a place of a record needs to know. The captures that show links are in
-- stretches: between two stretches, a capture of another row or the end of the page decides. `shown`, `whole` and
-- `decided` count the captures that show links, that show all links, and that decide: before the place in columns with
-- `from`, and up to it in those with `upto`. The next capture that shows links is at `first_seen`, and the last one up
-- to the place at `last_seen`.
CREATE OR REPLACE VIEW record_marks AS
WITH counted AS (
    SELECT part, uid, place, timestamp, shows, (shows AND decides)::INT AS whole,
        count(*) FILTER (decides) OVER (PARTITION BY uid ORDER BY timestamp, part ROWS UNBOUNDED PRECEDING) AS decided
    FROM record_captures
), compared AS (
    SELECT *, max(CASE WHEN shows THEN decided END)
        OVER (PARTITION BY part, uid ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM counted
), numbered AS (
    SELECT *, count(*) FILTER (shows AND coalesce(decided - whole > before, true))
        OVER (PARTITION BY part, uid ORDER BY place ROWS UNBOUNDED PRECEDING) AS stretch
    FROM compared
)
SELECT part, uid, place, shows, min(CASE WHEN shows THEN timestamp END) OVER onward AS first_seen,
    max(CASE WHEN shows THEN timestamp END) OVER upto AS last_seen,
    min(CASE WHEN shows THEN stretch END) OVER onward AS stretch_from, stretch AS stretch_upto,
    count(*) FILTER (shows) OVER upto - shows::INT AS shown_from, count(*) FILTER (shows) OVER upto AS shown_upto,
    count(*) FILTER (whole = 1) OVER upto - whole AS whole_from, count(*) FILTER (whole = 1) OVER upto AS whole_upto,
    min(CASE WHEN shows THEN decided - whole END) OVER onward AS decided_from,
    max(CASE WHEN shows THEN decided END) OVER upto AS decided_upto
FROM numbered WINDOW upto AS (PARTITION BY part, uid ORDER BY place ROWS UNBOUNDED PRECEDING),
    onward AS (PARTITION BY part, uid ORDER BY place DESC ROWS UNBOUNDED PRECEDING);

-- Every link of every page, a row for each run of captures that have it; `whole` of these are not cut. A run ends where
-- a capture decides that the link is not there. A piece is the part of a run of a record that is in one stretch. The
-- pieces of plain pages are runs. Those of other pages are joined if no capture decides between them.
CREATE OR REPLACE VIEW link_runs AS
WITH marks AS MATERIALIZED (
    FROM record_marks
), stretches AS MATERIALIZED (
    SELECT part, uid, stretch_upto AS stretch, min(first_seen) AS first_seen, max(last_seen) AS last_seen,
        min(shown_from) AS shown_from, max(shown_upto) AS shown_upto, min(whole_from) AS whole_from,
        max(whole_upto) AS whole_upto, min(decided_from) AS decided_from, max(decided_upto) AS decided_upto
    FROM marks WHERE shows GROUP BY part, uid, stretch_upto
), changes AS MATERIALIZED (
    FROM record_changes
), every AS NOT MATERIALIZED (
    SELECT part, uid, plain, generate_subscripts(links, 1) - 1 AS link, unnest(links) AS dst FROM link_records
), runs AS (
    SELECT part, uid, plain, dst, unnest(starts) AS start, unnest(stops) - 1 AS last
    FROM every JOIN changes USING (part, uid, link)
), begun AS MATERIALIZED (
    SELECT runs.*, first_seen, stretch_from, shown_from, whole_from, decided_from
    FROM runs JOIN marks ON marks.part = runs.part AND marks.uid = runs.uid AND place = start WHERE start <= last
), ended AS (
    SELECT begun.*, marks.last_seen, marks.shown_upto, marks.whole_upto, marks.decided_upto,
        unnest(range(begun.stretch_from, marks.stretch_upto + 1)) AS stretch
    FROM begun JOIN marks ON marks.part = begun.part AND marks.uid = begun.uid AND place = last
), pieces AS NOT MATERIALIZED (
    SELECT uid, plain, dst,
        greatest(a.first_seen, b.first_seen) AS first_seen, least(a.last_seen, b.last_seen) AS last_seen,
        least(a.shown_upto, b.shown_upto) - greatest(a.shown_from, b.shown_from) AS captures,
        least(a.whole_upto, b.whole_upto) - greatest(a.whole_from, b.whole_from) AS whole,
        greatest(a.decided_from, b.decided_from) AS decided_from, least(a.decided_upto, b.decided_upto) AS decided_upto
    FROM ended a JOIN stretches b USING (part, uid, stretch)
    UNION ALL
    SELECT uid, plain, dst, first_seen, last_seen, shown_upto - shown_from, whole_upto - whole_from,
        decided_from, decided_upto
    FROM every ANTI JOIN changes USING (part, uid, link) JOIN stretches USING (part, uid)
), compared AS (
    SELECT *, max(decided_upto)
        OVER (PARTITION BY uid, dst ORDER BY first_seen ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM pieces WHERE NOT plain AND captures > 0
), numbered AS (
    SELECT *, count(*) FILTER (coalesce(decided_from > before, true))
        OVER (PARTITION BY uid, dst ORDER BY first_seen ROWS UNBOUNDED PRECEDING) AS run
    FROM compared
)
SELECT uid AS src, dst, first_seen, last_seen, captures::UBIGINT AS captures, whole::UBIGINT AS whole FROM pieces
WHERE plain AND captures > 0
UNION ALL
SELECT uid, dst, min(first_seen), max(last_seen), sum(captures)::UBIGINT, sum(whole)::UBIGINT
FROM numbered GROUP BY uid, dst, run;

-- Every link of every page, a row for each run of captures that have it.
CREATE OR REPLACE VIEW link_intervals AS
SELECT src, dst, first_seen, last_seen, captures
FROM link_runs;

-- Every link of every page once, with how many captures of the page say whether they have the link, and how many of
-- these have it. A failure of the server does not say it, nor a capture with unknown links, nor a cut one in which the
-- link was not found.
CREATE OR REPLACE VIEW links AS
WITH seen AS (
    SELECT src, dst, min(first_seen) AS first_seen, max(last_seen) AS last_seen,
        sum(captures)::UBIGINT AS captures_with_link, sum(captures - whole)::UBIGINT AS of_cut
    FROM link_runs GROUP BY src, dst
), deciding AS (
    SELECT uid AS src, count(*)::UBIGINT AS decided FROM record_captures WHERE decides GROUP BY uid
)
SELECT src, dst, first_seen, last_seen, coalesce(decided, 0) + of_cut AS captures, captures_with_link
FROM seen LEFT JOIN deciding USING (src);
