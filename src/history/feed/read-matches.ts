import { doWork, requestLimit } from '../../core/fairness/work.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { StopSignal } from '../../core/stop-signal.ts';
import { uuidOf } from '../../core/text-hash.ts';
import type { ShownActors } from '../../core/written-restriction.ts';
import type { Query } from '../../query/ast.ts';
import { parseQuery } from '../../query/parse.ts';
import { withPlainRegexes } from '../../query/plain-regex.ts';
import {
  fingerprintAt,
  firstKept,
  givePositions,
  lastPosition,
  maxPlaces,
  type PlaceOfPosition,
  type Position,
  readPlaces,
} from '../../recording/positions.ts';
import { sealRef } from '../entries/entry-ref.ts';
import type { EntryRow } from '../entries/entry-store.ts';
import { entryText } from '../entries/entry-text.ts';
import { withShownActors } from '../entries/show-entries.ts';
import type { DictionaryCache } from '../search/names/dictionary-cache.ts';
import { changelogDialect } from '../search/plan/dialect.ts';
import { type HistorySnapshot, inHistorySnapshot, type ReadDependencies } from '../search/snapshot.ts';
import { openFeedCursor, RestoredCursor, sealFeedCursor } from './feed-cursor.ts';
import { findErasures, findMatches, readFitting } from './match-store.ts';

/** A change that goes out, or an erasure of changes. */
export interface FeedItem extends Position {
  readonly cursor: string;
  readonly ref: string;
  readonly at: number;
  /** When it was recorded, in milliseconds. */
  readonly recordedAt: number;
  readonly type: string;
  readonly entity: string;
  readonly entityId: string;
  /** 32 hexadecimal digits that distinguish the change from all others of its time. */
  readonly identity: string;
  /** A UUID as 32 hexadecimal digits, the same for all changes of a document. */
  readonly document: string;
  /** The item as JSON text, with every digit. */
  readonly text: string;
}

export interface Matches {
  readonly items: readonly FeedItem[];
  /** All positions up to this one were examined. */
  readonly reached: Position;
  /** The same, sealed. */
  readonly cursor: string;
  /** Whether it reached the last position there was when the call began. */
  readonly caughtUp: boolean;
  /** The entries among these positions that retention dropped before this call, whether they would match or not. */
  readonly expired: number;
}

export interface MatchOptions {
  readonly q: string;
  readonly after: Position;
  readonly maxItems: number;
  /** Default and maximum: 10,000. */
  readonly maxPositions?: number;
  /**
   * Maximum bytes of all items together; further ones are left to the next call, but never the first. Default 4 MiB.
   */
  readonly maxBytes?: number;
  readonly withContext?: boolean;
  /** What the items show of who made the changes. Default: all. */
  readonly actors?: ShownActors | undefined;
  /** Whether each receipt of an erasure is an item, whatever `q` says. */
  readonly withErasures?: boolean;
  /** Cancels the call. Default: the call belongs to the current work. */
  readonly signal?: StopSignal | undefined;
}

export interface FeedReads {
  /**
   * Reads from a position on, in one snapshot of the database. Rejects with RestoredCursor if the tenant has another
   * position there, or none yet, and with an AnnalsError, validation_violation, for a wrong query.
   */
  readMatches(tenant: string, options: MatchOptions): Promise<Matches>;
  /**
   * The position of a cursor, of `start` (before the oldest entry that is kept), or of `now`. Rejects other texts,
   * naming `field`. Everything committed before the call then has its position.
   */
  positionOf(tenant: string, after: string, field?: string): Promise<Position>;
  cursorOf(tenant: string, position: Position): string;
}

interface FeedReadsOptions extends ReadDependencies {
  sealer: Sealer;
  now: () => number;
  dictionaries: DictionaryCache;
}

const defaultMaxBytes = 4 * 1024 * 1024;
/** Positions of one statement. Where matches are rare, the next portions are larger. */
const firstPortion = 512;
const growth = 4;

export function createFeedReads({ sealer, now, dictionaries, ...dependencies }: FeedReadsOptions): FeedReads {
  const { db, regexes } = dependencies;
  const cursorOf = (tenant: string, position: Position) => sealFeedCursor(sealer, tenant, position);

  async function inSnapshot<Result>(tenant: string, work: (snapshot: HistorySnapshot) => Promise<Result>) {
    return await inHistorySnapshot(dependencies, { tenant, now: now() }, await dictionaries.get(tenant), work);
  }

  async function read(tenant: string, query: Query, options: MatchOptions): Promise<Matches> {
    const { after, maxItems, maxPositions = maxPlaces, maxBytes = defaultMaxBytes } = options;
    const { withContext = false, withErasures = false, actors = 'all' } = options;
    const last = await lastPosition(db, tenant);
    if (last.position === after.position && last.fingerprint === after.fingerprint) {
      return { items: [], reached: after, cursor: cursorOf(tenant, after), caughtUp: true, expired: 0 };
    }
    return await inSnapshot(tenant, async (snapshot) => {
      const { transaction, horizon } = snapshot;
      const exists = after.position <= last.position;
      if (!exists || (await fingerprintAt(transaction, tenant, after.position)) !== after.fingerprint) {
        const begin = await oldest(tenant, snapshot, last);
        throw new RestoredCursor(cursorOf(tenant, begin), begin);
      }
      const items: FeedItem[] = [];
      let reached = after;
      let expired = 0;
      let room = maxBytes;
      let left = Math.min(maxPositions, maxPlaces);
      for (let portion = firstPortion; left > 0 && items.length < maxItems && room > 0; portion *= growth) {
        const places = await readPlaces(transaction, tenant, reached.position, Math.min(left, portion));
        const kept = places.filter(({ at }) => at >= horizon);
        const limit = maxItems - items.length;
        const matches = await findMatches(snapshot, { tenant, query, regexes }, kept, limit);
        const erasures = withErasures ? await findErasures(transaction, tenant, places) : new Map<number, string>();
        const erased = places.filter(({ position }) => erasures.has(position));
        const matching = [...matches, ...erased].sort((a, b) => a.position - b.position).slice(0, limit);
        const ofEntries = matching.filter(({ position }) => !erasures.has(position));
        const atLeast = items.length === 0 ? 1 : 0;
        const rows = await readFitting(snapshot, tenant, ofEntries, { maxBytes: room, atLeast, withContext });
        const unread = ofEntries[rows.length]?.position ?? Number.POSITIVE_INFINITY;
        const fitting = matching.filter(({ position }) => position < unread);
        // Continues behind the last item if it leaves matches, or may leave some.
        const isWhole = fitting.length === matching.length && matching.length < limit;
        const end = isWhole ? places.at(-1) : fitting.at(-1);
        const remaining = rows.values();
        for (const place of fitting) {
          const erasure = erasures.get(place.position);
          const item =
            erasure === undefined
              ? itemOf(tenant, place, remaining.next().value, actors)
              : erasureOf(tenant, place, erasure);
          items.push(item);
          room -= Buffer.byteLength(item.text);
        }
        if (end === undefined) break;
        const passed = end.position - reached.position;
        expired += places.slice(0, passed).filter(({ at }) => at >= 0 && at < horizon).length;
        left -= passed;
        reached = { position: end.position, fingerprint: end.fingerprint };
        if (!isWhole || places.length < portion) break;
      }
      const caughtUp = reached.position >= last.position;
      return { items, reached, cursor: cursorOf(tenant, reached), caughtUp, expired };
    });
  }

  function itemOf(
    tenant: string,
    { position, fingerprint, recorded }: PlaceOfPosition,
    row: EntryRow | undefined,
    actors: ShownActors,
  ): FeedItem {
    if (row === undefined) throw new Error('an entry of a place was not read');
    const { at, type, entity, entityId, identity, ...rest } = withShownActors(row, actors);
    if (identity === undefined) throw new Error('an entry was read without its identity');
    const cursor = cursorOf(tenant, { position, fingerprint });
    const ref = sealRef(sealer, tenant, { at, identity });
    const text = entryText({ ...rest, at, type, entity, entityId, ref, position, cursor });
    const document = uuidOf(JSON.stringify([entity, entityId]));
    return {
      ...{ position, fingerprint, cursor, ref, at, recordedAt: recorded },
      ...{ type, entity, entityId, identity, document, text },
    };
  }

  /** An erasure shows the positions, and nothing else. */
  function erasureOf(tenant: string, { position, fingerprint, recorded }: PlaceOfPosition, body: string): FeedItem {
    const { at: time, positions } = JSON.parse(body) as { at: string; positions: unknown };
    const cursor = cursorOf(tenant, { position, fingerprint });
    const [type, entity, entityId] = ['erased', 'annals-erasure', String(position)];
    const identity = uuidOf(JSON.stringify([entity, position, fingerprint]));
    return {
      ...{ position, fingerprint, cursor, ref: '', at: Date.parse(time), recordedAt: recorded },
      ...{ type, entity, entityId, identity, document: identity },
      text: JSON.stringify({ at: time, type, positions, position, cursor }),
    };
  }

  return {
    cursorOf,

    async readMatches(tenant, options) {
      const query = withPlainRegexes(parseQuery(options.q, changelogDialect));
      const { signal } = options;
      if (signal === undefined) return await read(tenant, query, options);
      return await doWork({ tenant, signal, timeLimit: requestLimit }, () => read(tenant, query, options));
    },

    async positionOf(tenant, after, field) {
      const opened = after === 'now' || after === 'start' ? undefined : openFeedCursor(sealer, tenant, after, field);
      // A reader that begins now finds everything that is committed.
      await givePositions(db, tenant);
      if (opened !== undefined) return opened;
      const last = await lastPosition(db, tenant);
      return after === 'now' ? last : await inSnapshot(tenant, (snapshot) => oldest(tenant, snapshot, last));
    },
  };
}

/** The position before the oldest entry that is kept. */
async function oldest(tenant: string, snapshot: HistorySnapshot, last: Position): Promise<Position> {
  const { transaction, horizon } = snapshot;
  const first = await firstKept(transaction, tenant, horizon);
  if (first === undefined) return last;
  const position = first - 1;
  return { position, fingerprint: (await fingerprintAt(transaction, tenant, position)) ?? 0 };
}
