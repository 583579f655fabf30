import { doWork, requestLimit } from '../../core/fairness/work.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { StopSignal } from '../../core/stop-signal.ts';
import { uuidOf } from '../../core/text-hash.ts';
import type { Query } from '../../query/ast.ts';
import { parseQuery } from '../../query/parse.ts';
import { withPlainRegexes } from '../../query/plain-regex.ts';
import { sealRef } from '../entries/entry-ref.ts';
import type { EntryRow } from '../entries/entry-store.ts';
import { entryText } from '../entries/entry-text.ts';
import type { DictionaryCache } from '../search/names/dictionary-cache.ts';
import { changelogDialect } from '../search/plan/dialect.ts';
import { type HistorySnapshot, inHistorySnapshot, type ReadDependencies } from '../search/snapshot.ts';
import { openFeedCursor, RestoredCursor, sealFeedCursor } from './feed-cursor.ts';
import { findErasures, findMatches, readFitting } from './match-store.ts';
import {
  fingerprintAt,
  firstKept,
  givePositions,
  lastPosition,
  maxPlaces,
  type PlaceOfPosition,
  type Position,
  readPlaces,
} from './positions.ts';

/** A change that goes out, or that some were erased. */
export interface FeedItem extends Position {
  readonly cursor: string;
  readonly ref: string;
  /** The time of the change, in milliseconds. */
  readonly at: number;
  /** When it was recorded, in milliseconds. */
  readonly recordedAt: number;
  readonly type: string;
  readonly entity: string;
  readonly entityId: string;
  /** What tells the change from all others of its time: 32 hexadecimal digits. */
  readonly identity: string;
  /** A UUID as 32 hexadecimal digits, the same for all changes of a document. */
  readonly document: string;
  /** The item as JSON text, with every digit. */
  readonly text: string;
}

export interface Matches {
  /** In the order of their positions. */
  readonly items: readonly FeedItem[];
  /** Where the reading stands: all positions up to this one have been looked at. */
  readonly reached: Position;
  /** The same, sealed. */
  readonly cursor: string;
  /** Whether it stands where the last position was when the call began, or behind it. */
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
  /** Items whose texts have more bytes than this together wait for the next call, the first one apart; default 4 MiB. */
  readonly maxBytes?: number;
  readonly withContext?: boolean;
  /** Whether each receipt of an erasure is an item, whatever `q` says. */
  readonly withErasures?: boolean;
  /** Cancels the call. Left out: the call belongs to the current work. */
  readonly signal?: StopSignal | undefined;
}

/** What goes out of the history, by position. */
export interface FeedReads {
  /**
   * Reads on behind a position, in one snapshot of the database. Rejects with RestoredCursor if the tenant has another
   * position there, or none yet, and with an AnnalsError, validation_violation, for a wrong query.
   */
  readMatches(tenant: string, asked: MatchOptions): Promise<Matches>;
  /**
   * The position of a cursor, of `start` (before the oldest entry that is kept), or of `now`. Rejects other texts, which came in `field`. What was
   * committed before the call has its position then.
   */
  positionOf(tenant: string, after: string, field?: string): Promise<Position>;
  cursorOf(tenant: string, position: Position): string;
}

export interface FeedReadsOptions extends ReadDependencies {
  sealer: Sealer;
  now: () => number;
  dictionaries: DictionaryCache;
}

const defaultMaxBytes = 4 * 1024 * 1024;
/** Positions of one statement. Where matches are rare, the next portions are larger. */
const firstPortion = 512;
const growth = 4;

export function createFeedReads({ sealer, now, dictionaries, ...reading }: FeedReadsOptions): FeedReads {
  const { db, regexes } = reading;
  const cursorOf = (tenant: string, position: Position) => sealFeedCursor(sealer, tenant, position);

  async function inSnapshot<Result>(tenant: string, work: (snapshot: HistorySnapshot) => Promise<Result>) {
    const names = dictionaries.known(tenant) ?? (await dictionaries.get(tenant));
    return await inHistorySnapshot(reading, { tenant, now: now() }, names, work);
  }

  async function read(tenant: string, query: Query, asked: MatchOptions): Promise<Matches> {
    const { after, maxItems, maxPositions = maxPlaces, maxBytes = defaultMaxBytes } = asked;
    const { withContext = false, withErasures = false } = asked;
    const last = await lastPosition(db, tenant);
    const cursor = () => cursorOf(tenant, after);
    if (isSame(last, after)) return { items: [], reached: after, cursor: cursor(), caughtUp: true, expired: 0 };
    return await inSnapshot(tenant, async (snapshot) => {
      const { transaction, horizon } = snapshot;
      const isThere = after.position <= last.position;
      if (!isThere || (await fingerprintAt(transaction, tenant, after.position)) !== after.fingerprint) {
        const begin = await oldest(tenant, snapshot, last);
        throw new RestoredCursor(cursorOf(tenant, begin), begin);
      }
      const found: FeedItem[] = [];
      let reached = after;
      let expired = 0;
      let room = maxBytes;
      let left = Math.min(maxPositions, maxPlaces);
      for (let portion = firstPortion; left > 0 && found.length < maxItems && room > 0; portion *= growth) {
        const places = await readPlaces(transaction, tenant, reached.position, Math.min(left, portion));
        const kept = places.filter(({ at }) => at >= horizon);
        const wanted = maxItems - found.length;
        const matches = await findMatches(snapshot, { tenant, query, regexes }, kept, wanted);
        const erasures = withErasures ? await findErasures(transaction, tenant, places) : new Map<number, string>();
        const told = places.filter(({ position }) => erasures.has(position));
        const matching = [...matches, ...told].sort((one, other) => one.position - other.position).slice(0, wanted);
        const ofEntries = matching.filter(({ position }) => !erasures.has(position));
        const rows = await readFitting(snapshot, tenant, ofEntries, {
          maxBytes: room,
          atLeast: found.length === 0 ? 1 : 0,
          withContext,
        });
        const unread = ofEntries[rows.length]?.position ?? Number.POSITIVE_INFINITY;
        const fitting = matching.filter(({ position }) => position < unread);
        // It goes on behind the last item where it leaves matches, or may leave some.
        const isWhole = fitting.length === matching.length && matching.length < wanted;
        const end = isWhole ? places.at(-1) : fitting.at(-1);
        const foundRows = rows.values();
        for (const place of fitting) {
          const erasure = erasures.get(place.position);
          const item =
            erasure === undefined ? itemOf(tenant, place, foundRows.next().value) : erasureOf(tenant, place, erasure);
          found.push(item);
          room -= Buffer.byteLength(item.text);
        }
        if (end === undefined) break;
        const passed = end.position - reached.position;
        expired += places.slice(0, passed).filter(({ at }) => at >= 0 && at < horizon).length;
        left -= passed;
        reached = { position: end.position, fingerprint: end.fingerprint };
        if (!isWhole || places.length < portion) break;
      }
      return {
        items: found,
        reached,
        cursor: cursorOf(tenant, reached),
        caughtUp: reached.position >= last.position,
        expired,
      };
    });
  }

  function itemOf(
    tenant: string,
    { position, fingerprint, recorded }: PlaceOfPosition,
    row: EntryRow | undefined,
  ): FeedItem {
    if (row?.identity === undefined) throw new Error('an entry was read without its identity');
    const { at, type, entity, entityId, identity, ...others } = row;
    const cursor = cursorOf(tenant, { position, fingerprint });
    const ref = sealRef(sealer, tenant, { at, identity });
    const text = entryText({ ...others, at, type, entity, entityId, ref, position, cursor });
    const document = uuidOf(JSON.stringify([entity, entityId]));
    return {
      position,
      fingerprint,
      cursor,
      ref,
      at,
      recordedAt: recorded,
      type,
      entity,
      entityId,
      identity,
      document,
      text,
    };
  }

  /** What is told of an erasure: the positions, and nothing else. */
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

    async readMatches(tenant, asked) {
      const query = withPlainRegexes(parseQuery(asked.q, changelogDialect));
      const { signal } = asked;
      if (signal === undefined) return await read(tenant, query, asked);
      return await doWork({ tenant, signal, timeLimit: requestLimit }, () => read(tenant, query, asked));
    },

    async positionOf(tenant, after, field) {
      const opened = after === 'now' || after === 'start' ? undefined : openFeedCursor(sealer, tenant, after, field);
      // All that is committed is there for whoever begins to read.
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

function isSame(one: Position, other: Position): boolean {
  return one.position === other.position && one.fingerprint === other.fingerprint;
}
