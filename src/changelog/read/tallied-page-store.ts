import type { DatabaseTransaction } from '../../db/database.ts';
import { type Statements, statementsOf } from '../../db/statements.ts';
import type { Dictionary } from '../names/dictionary.ts';
import type { Interval } from '../plan/tally-plan.ts';
import { type Landmark, Landmarks, type Way } from './landmarks.ts';
import { entriesOfPage, type Head, type PageRead, pageOf, placesOfPage, type Shape } from './page-rows.ts';
import { intervalColumns, type SelectionTexts, selectionTexts } from './selection-columns.ts';
import { type Place, walkToPlaces } from './store.ts';

export interface TalliedPage {
  now: number;
  /** Newest first. */
  intervals: readonly Interval[];
  skip: number;
  size: number;
  dictionary: Dictionary;
  /** Whether the intervals were planned by names: then one that the dictionary lacks might belong to them. */
  plannedByNames: boolean;
}

// Pages with no more entries before them are read from the newest on; deeper ones are walked to.
const nearTheNewest = 200;
/** Of how many selections of a tenant something is remembered, and in how many characters they are told: 4 MB at most. */
const mostSelections = 100;
const longestName = 20_000;

/** A page and its exact total, from one statement and so from one snapshot. */
export async function readTalliedPage(statements: Statements, tenant: string, page: TalliedPage): Promise<PageRead> {
  return await readPage({ statements, tenant, shape: entriesOfPage }, page);
}

/** The places of a page's entries and its total, in a transaction whose snapshot knows no names that the dictionary lacks. */
export async function readTalliedPlaces(
  transaction: DatabaseTransaction,
  tenant: string,
  page: Omit<TalliedPage, 'plannedByNames'> & { horizon: number },
): Promise<{ total: number; places: Place[] }> {
  const statements = statementsOf(transaction);
  const read = await readPage({ statements, tenant, shape: placesOfPage }, { ...page, plannedByNames: true });
  if (typeof read === 'object') return { total: read.total, places: read.entries };
  return await walkToPlaces(transaction, tenant, page);
}

interface Reading<Row, Item> {
  statements: Statements;
  tenant: string;
  shape: Shape<Row, Item>;
}

type InTime = { at: number };

async function readPage<Row, Item extends InTime>(
  reading: Reading<Row, Item>,
  page: TalliedPage,
): Promise<PageRead<Item>> {
  const [interval, ...furtherIntervals] = page.intervals;
  if (interval === undefined || furtherIntervals.length > 0) return (await readIntervals(reading, page)).read;
  const selections = interval.selections.map(selectionTexts);
  const asked = { ...page, interval, selections, name: nameOf(selections) };
  const known = await readByLandmarks(reading, asked);
  if (known === 'short') return await readAnywhere(reading, asked);
  if (known !== 'unknown') return known;
  if (interval.before === null && selections.length === 1 && page.skip <= nearTheNewest) {
    const near = await readNear(reading, asked);
    if (near === undefined || near === 'long' || !isShort(near, page)) return near;
  }
  return await readAnywhere(reading, asked);
}

/** A page that has one interval. */
interface AskedInterval extends TalliedPage {
  interval: Interval;
  selections: readonly SelectionTexts[];
  name: string;
}

/** What is known of some selections stands under their name. */
function nameOf(selections: readonly SelectionTexts[]): string {
  return selections.map(({ actors, kinds }) => `${actors} ${kinds}`).join(' ');
}

/** One entry more before the page and one after it, which tell where the page begins and ends. */
function withNeighbours(page: AskedInterval): AskedInterval {
  const before = Math.min(page.skip, 1);
  return { ...page, skip: page.skip - before, size: before + page.size + 1 };
}

/** The page that was asked for, of one that begins after so many entries. */
function withoutNeighbours<Item>(read: PageRead<Item>, skipped: number, { skip, size }: TalliedPage): PageRead<Item> {
  if (typeof read !== 'object') return read;
  return { total: read.total, entries: read.entries.slice(skip - skipped).slice(0, size) };
}

/** What is known of the selections as of so many folds; what is of another number of folds is forgotten. */
function landmarksAsOf({ dictionary, name }: AskedInterval, folds: number): Landmarks {
  const { landmarks } = dictionary;
  const known = landmarks.get(name);
  if (known?.folds === folds) return known;
  const begun = new Landmarks(folds);
  // A question that took long may come with less than others have learned since.
  if (name.length <= longestName && folds > (known?.folds ?? -1)) {
    if (landmarks.size >= mostSelections) landmarks.clear();
    landmarks.set(name, begun);
  }
  return begun;
}

/** The window begins within the minute before a landmark; if not where it was asked to, nothing before is asked for again. */
function learnStart(landmarks: Landmarks, { interval }: AskedInterval, start: Landmark): void {
  if (start.moment >= interval.since + 60_000) landmarks.dropBefore(start.moment);
  landmarks.add(start);
}

/** Learns where the first and the last entries of a page stand, before which there are `newer`; all of them are folded. */
function learnBounds(landmarks: Landmarks, entries: readonly InTime[], newer: number): void {
  const bounds = entries.flatMap(({ at }, index) =>
    at === (entries[index + 1]?.at ?? at) ? [] : [{ moment: at, rank: newer + index + 1 }],
  );
  for (const bound of [bounds[0], bounds.at(-1)]) if (bound !== undefined) landmarks.add(bound);
}

/** How many entries the selections have after the window; undefined where that is not known. */
function rankOfEnd(landmarks: Landmarks, { before }: Interval): number | undefined {
  return before === null ? 0 : landmarks.at(before)?.rank;
}

/** Whether entries are missing because they are spread more unevenly than was thought. */
function isShort(
  { total, entries }: { total: number; entries: readonly InTime[] },
  { skip, size }: { skip: number; size: number },
): boolean {
  return entries.length < Math.min(size, total - skip);
}

/** A page near to where somebody has read before; 'short' where entries of it were not looked for far enough. */
async function readByLandmarks<Row, Item extends InTime>(
  { statements, tenant, shape }: Reading<Row, Item>,
  page: AskedInterval,
): Promise<PageRead<Item> | 'unknown' | 'short'> {
  const { dictionary, interval, selections, now } = page;
  const landmarks = dictionary.landmarks.get(page.name);
  const start = landmarks?.atOrAfter(interval.since);
  if (landmarks === undefined || start === undefined) return 'unknown';
  const end = rankOfEnd(landmarks, interval);
  if (end === undefined) return 'unknown';
  const oneKey = isOneKey(interval);
  // Of one key the newest are in order at hand: there is no way to be found, and nothing to be learned on it.
  const isNewest = oneKey && interval.before === null && page.skip <= nearTheNewest;
  // Otherwise one entry more before the page, where it is not known where it begins, and one after it where that is on the way.
  const skip = isNewest || page.skip === 0 || landmarks.hasRank(end + page.skip) ? page.skip : page.skip - 1;
  const size = page.skip + page.size - skip;
  const first = end + skip;
  // Where what is older is hidden, the window begins no earlier than in the minute before.
  const since = Math.max(interval.since, start.moment - 59_999);
  const way = isNewest ? newest : landmarks.wayTo({ first, last: first + size, since, start, now });
  if (way === undefined) return 'unknown';
  const { rows } = await statements.query<Row & { total: number | null; settled?: boolean | null }>({
    name: isNewest ? `newest ${shape.name}` : `${shape.name} by landmarks`,
    text: `select total, ${isNewest ? '' : 'settled,'} ${shape.columns}
             from change_read_by_landmarks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
                                           $17::text::xid8, $18, $19)`,
    values: [
      tenant,
      now,
      interval.since,
      interval.before,
      selections.map(({ actors }) => actors),
      selections.map(({ kinds }) => kinds),
      landmarks.folds,
      start.moment,
      start.rank,
      end,
      way.landmark?.moment,
      way.landmark?.rank,
      way.upward,
      oneKey ? null : way.until,
      skip,
      isNewest || way.upward ? size : size + 1,
      ...knownNames(page),
    ],
  });
  const { total = null, settled } = rows[0] ?? {};
  if (total === null) return 'unknown';
  const read = shape.read(total, rows, dictionary);
  if (read === undefined || read === 'long') return read;
  if (isShort(read, { skip, size })) return 'short';
  if (settled === true) learnBounds(landmarks, read.entries, first);
  return isNewest ? read : withoutNeighbours(read, skip, page);
}

const newest: Way = { landmark: null, upward: false, until: null };

/** Whether an index has the entries in order, so that reading ends where the page does. */
function isOneKey({ selections: [selection, ...others] }: Interval): boolean {
  const { actors = null, kinds = null } = selection ?? {};
  return others.length === 0 && (actors?.length ?? 1) === 1 && (kinds?.length ?? 1) === 1;
}

/** A page of one selection from a time on; it may lack entries where they are spread unevenly. */
async function readNear<Row, Item>(
  { statements, tenant, shape }: Reading<Row, Item>,
  page: AskedInterval,
): Promise<PageRead<Item>> {
  const { dictionary, interval, selections, now, skip, size } = page;
  const { actors, kinds, tallied } = selections[0] ?? selectionTexts({ actors: null, kinds: null });
  const { rows } = await statements.query<Row & Head & NearRow>({
    name: `near ${shape.name}`,
    text: `select folded, minute, folds, total, current, ${shape.columns}
             from change_read_near($1, $2, $3, $4, $5, $6, $7, $8, $9::text::xid8, $10, $11)`,
    values: [tenant, now, interval.since, actors, kinds, tallied, skip, size, ...knownNames(page)],
  });
  const { folded = null, minute = null, folds = null } = rows[0] ?? {};
  if (folded !== null && minute !== null && folds !== null) {
    learnStart(landmarksAsOf(page, folds), page, { moment: minute, rank: folded });
  }
  return pageOf(rows, dictionary, shape);
}

type NearRow = Record<'folded' | 'minute' | 'folds', number | null>;

/** A page wherever it is, found from the tallies. */
async function readAnywhere<Row, Item extends InTime>(
  reading: Reading<Row, Item>,
  page: AskedInterval,
): Promise<PageRead<Item>> {
  const wider = withNeighbours(page);
  const { read, told } = await readIntervals(reading, wider, page.dictionary.landmarks.get(page.name));
  const { moments, ranks, folds } = told;
  if (moments !== null && ranks !== null) {
    const landmarks = landmarksAsOf(page, folds);
    for (const [index, moment] of moments.entries()) {
      const landmark = { moment: moment ?? 0, rank: ranks[index] ?? 0 };
      if (index === 0 && moment !== null) learnStart(landmarks, page, landmark);
      else if (moment !== null) landmarks.add(landmark);
    }
    const end = rankOfEnd(landmarks, page.interval);
    if (end !== undefined && typeof read === 'object') learnBounds(landmarks, read.entries, end + wider.skip);
  }
  return withoutNeighbours(read, wider.skip, page);
}

/** A page of any intervals, and what it tells of one that is the only one, of which something may be known. */
async function readIntervals<Row, Item>(
  { statements, tenant, shape }: Reading<Row, Item>,
  page: TalliedPage,
  known?: Landmarks,
): Promise<{ read: PageRead<Item>; told: IntervalsRow }> {
  const start = known?.atOrAfter(page.intervals[0]?.since ?? 0);
  const { rows } = await statements.query<Row & Head & IntervalsRow>({
    name: `tallied ${shape.name}`,
    text: `select moments::float8[], ranks::float8[], now_folds as folds, total, current, ${shape.columns}
             from change_read($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text::xid8, $11, $12, $13, $14, $15)`,
    values: [
      tenant,
      page.now,
      ...intervalColumns(page.intervals),
      page.skip,
      page.size,
      ...knownNames(page),
      start?.moment,
      start?.rank,
      known?.folds,
    ],
  });
  const { moments = null, ranks = null, folds = 0 } = rows[0] ?? {};
  return { read: pageOf(rows, page.dictionary, shape), told: { moments, ranks, folds } };
}

/** Landmarks, the first of which is that of the window's beginning, if it is told; null where not all is folded. */
interface IntervalsRow {
  moments: (number | null)[] | null;
  ranks: (number | null)[] | null;
  folds: number;
}

/** What asks whether the snapshot knows no further names; nulls where that does not matter. */
function knownNames({ dictionary, plannedByNames }: TalliedPage): unknown[] {
  const { since, recent, lineage } = dictionary;
  return plannedByNames ? [since, recent, lineage] : [null, null, lineage];
}
