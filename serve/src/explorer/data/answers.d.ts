// The answers of the server that the page reads, and of each the fields that it uses: types for the checks. A test
// holds them to the description of the service, which has a schema of each name. A time is text as in ISO 8601, in UTC.
// `epoch` names the store that answers.

export interface Barcode {
  epoch: number;
  url: string;
  uid: number;
  direction: "out" | "in";
  /** Seconds: of the first capture since 1970, then of each since the one before. */
  captures: number[];
  /** Places of captures. */
  unknown: number[];
  /** Places of cut captures by reason. */
  cut?: Record<string, number[]>;
  /** Places of captures by status, where it is not 200. */
  statuses: Record<string, number[]>;
  replay: string;
  links: string[];
  /** In-links: when the first capture of each page was that tells; 0 if none does. */
  first_known?: number[];
  /** Runs of each link. */
  counts: number[];
  /** Out-links: places between runs, and lengths less one. In-links: first, last, until. */
  runs: number[];
  rest?: { links: number; months: [string, number][] } | null;
}

export interface Stay {
  first: string;
  last: string;
  until?: string;
  began: string;
}

export interface BacklinksRow {
  page: string;
  /** Where rows are hosts or domains. */
  name?: string;
  pages?: number;
  targets: number;
  stays: Stay[];
  unknown?: [string, string | null][];
}

export interface ReferringHost {
  host: string;
  pages: number;
  standing: number;
  first: string;
}

export interface Backlinks {
  epoch: number;
  pages: number;
  rows_total: number;
  rows_selected: number;
  periods: string[];
  standing: number[];
  unknown: number[];
  found: number[];
  new: number[];
  returned: number[];
  lost: number[];
  hosts: ReferringHost[];
  rows: BacklinksRow[];
  resume_key?: string;
}

export interface DeadPage {
  page: string;
  died: string;
  status: number;
  seen: string | null;
  returned?: string;
  linking: number;
  unknown?: number;
  linkers?: string[];
}

export interface Deaths {
  epoch: number;
  rows_selected: number;
  periods: string[];
  died: number[];
  returned: number[];
  gone: number[];
  statuses: { status: number; died: number }[];
  replay: string;
  rows: DeadPage[];
  resume_key?: string;
}

export interface SuggestedPage {
  url: string;
  captures: number;
  inlinks: number;
  first?: string;
  last?: string;
}

export interface Suggested {
  epoch: number;
  pages: SuggestedPage[];
  hosts: { host: string; urls: number }[];
}

export type Unit = "page" | "directory" | "host" | "domain";

/** Links as columns: places of nodes, and seconds. */
export interface NeighbourhoodLinks {
  source: number[];
  target: number[];
  from: number[];
  until: (number | null)[];
  unknown?: (number | null)[];
}

export interface Neighbourhood {
  epoch: number;
  url: string;
  unit: Unit;
  centre: number;
  nodes: string[];
  links: NeighbourhoodLinks;
  domains: string[];
  /** The place of the domain of each node. */
  domain: number[];
  not_captured?: number[];
  /** URLs of each node that is not a page. */
  urls: number[];
  left_out: number;
  unread: number;
  /** Pages in the centre and one step away that may have more links. */
  unknown_pages?: number;
}

export interface Ways {
  epoch: number;
  links?: number | null;
  is_cut: boolean;
  unknown?: string[];
  ways: string[][];
}

/** A number a year. */
export interface NumbersByYear {
  captures: number[];
  failed_captures: number[];
  pages: number[];
  urls: number[];
  links_found: number[];
  links_gained: number[];
  links_lost: number[];
  pages_died: number[];
  pages_returned: number[];
}

export interface Lives {
  /** Months of 30 days. */
  age: number[];
  at_risk: number[];
  surviving: number[];
}

export interface HostByYear {
  host: string;
  links: number;
  pages: number;
  numbers: NumbersByYear;
  lives: Lives;
}

export interface OverviewByYear {
  first_year: number;
  all: NumbersByYear;
  lives: Lives;
  hosts_captured: number;
  hosts: HostByYear[];
  domains: { domain: string; links: number }[];
}

export interface CommittedEpoch {
  epoch: number;
  committed: string;
  origin: string;
  captures: number;
  rows: { row: number }[];
}

export interface Overview {
  epoch: number;
  counts: {
    urls: number;
    pages: number;
    captures: number;
    unknown_captures: number;
    links: number;
    exact: boolean;
    occurrences: number;
    first_time: string | null;
    last_time: string | null;
  };
  epochs: CommittedEpoch[];
  overview?: OverviewByYear | null;
}

export interface CellCounts {
  urls: number;
  links: number;
  bytes: number;
}

export interface Stats {
  epoch: number;
  total: CellCounts;
  servers: { server: string; cells: number; counts: CellCounts }[];
}

export interface Topology {
  epoch: number;
  newest: number;
  unsettled: number;
  servers: { name: string }[];
  rows: { cells: { servers: string[] }[] }[];
}

/** The answer of each path that the page names. */
export interface Answers {
  "v1/backlinks": Backlinks;
  "v1/barcode": Barcode;
  "v1/deaths": Deaths;
  "v1/epochs": { epoch: number };
  "v1/neighbourhood": Neighbourhood;
  "v1/overview": Overview;
  "v1/stats": Stats;
  "v1/suggest": Suggested;
  "v1/topology": Topology;
  "v1/ways": Ways;
  // Named in words, for other programs.
  "v1/changed": { epoch: number };
  "v1/lifespans": { epoch: number };
  cdx: { epoch: number };
}

/** A path with its parameters, which is answered by a `T`. */
export type Path<T> = string & { readonly answer?: T };

/** Asks the server. */
export type Call = <T>(path: Path<T>) => Promise<T>;
