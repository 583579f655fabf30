import type { DeliveredChange, ReadingPosition, ReadMatches } from '../changes.ts';
import { type BatchLimits, BatchRoom } from './batch-text.ts';

export interface BatchQuery {
  readonly q: string;
  readonly after: ReadingPosition;
  /** The last position to read. Default: the last one. */
  readonly until?: number | undefined;
  /** In milliseconds: changes older than this when recorded are skipped. */
  readonly maxAge: number | undefined;
  readonly textsOf: (changes: readonly DeliveredChange[]) => string[];
  /** Whether the bounds are fixed: reads up to `until`, regardless of how long it takes. */
  readonly isRepeat?: boolean;
}

/** Changes to send together, and the position read with them. */
export interface FormedBatch {
  readonly changes: readonly DeliveredChange[];
  /** The text of each change. */
  readonly texts: readonly string[];
  readonly reached: ReadingPosition;
  readonly skipped: number;
  readonly expired: number;
  /** Whether the batch is complete without waiting for more changes. */
  readonly isFull: boolean;
  readonly caughtUp: boolean;
}

/** Bounds the reads of a batch where matches are rare. */
const maxReads = 20;

/** Reads the next batch. It is not full if there are no more changes yet. */
export async function formBatch(
  read: ReadMatches,
  tenant: string,
  { q, after, until = Number.POSITIVE_INFINITY, maxAge, textsOf, isRepeat = false }: BatchQuery,
  limits: BatchLimits,
): Promise<FormedBatch> {
  const room = new BatchRoom(limits);
  const changes: DeliveredChange[] = [];
  const texts: string[] = [];
  const isOld = ({ recordedAt, at }: DeliveredChange) => maxAge !== undefined && recordedAt - at > maxAge;
  let reached = after;
  let skipped = 0;
  let expired = 0;
  let caughtUp = false;
  for (let reads = 0; (isRepeat || reads < maxReads) && !caughtUp && room.bytesLeft > 0; reads++) {
    const request = {
      q,
      after: reached,
      maxPositions: Math.min(maxPositions, until - reached.position),
      maxBytes: room.bytesLeft,
    };
    let reading = await read(tenant, { ...request, maxItems: room.changesLeft });
    const fitting: string[] = [];
    const young = reading.items.filter((change) => !isOld(change));
    for (const text of textsOf(young)) {
      if (!room.take(text)) break;
      fitting.push(text);
    }
    const tooLong = young[fitting.length];
    if (tooLong !== undefined) {
      // Reads again up to there, to count the entries that expired before it and none after.
      const maxItems = reading.items.indexOf(tooLong);
      if (maxItems === 0) return { changes, texts, reached, skipped, expired, isFull: true, caughtUp };
      reading = await read(tenant, { ...request, maxItems });
    }
    const sent = young.slice(0, fitting.length);
    changes.push(...sent);
    texts.push(...fitting);
    skipped += reading.items.length - sent.length;
    expired += reading.expired;
    reached = reading.reached;
    caughtUp = reading.caughtUp || reached.position >= until;
    if (tooLong !== undefined) return { changes, texts, reached, skipped, expired, isFull: true, caughtUp };
  }
  const isFull = changes.length > 0 && (room.bytesLeft === 0 || !caughtUp);
  return { changes, texts, reached, skipped, expired, isFull, caughtUp };
}

/** Positions per read. */
const maxPositions = 10_000;
