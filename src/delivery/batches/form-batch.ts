import type { DeliveredChange, ReadingPosition, ReadMatches } from '../changes.ts';
import { type BatchLimits, BatchRoom } from './batch-text.ts';

export interface BatchAsked {
  readonly q: string;
  readonly after: ReadingPosition;
  /** The last position to look at; left out: the last one that there is. */
  readonly until?: number | undefined;
  /** A change that was older than this when it was recorded, in milliseconds, is left out. */
  readonly maxAge: number | undefined;
  readonly textsOf: (changes: readonly DeliveredChange[]) => string[];
  /** Whether the bounds are known: the batch is read up to `until`, however long that takes. */
  readonly isRepeat?: boolean;
}

/** Changes that go out together, and how far the history has been read with them. */
export interface FormedBatch {
  readonly changes: readonly DeliveredChange[];
  /** The text of each change. */
  readonly texts: readonly string[];
  readonly reached: ReadingPosition;
  readonly skipped: number;
  readonly expired: number;
  /** Whether the batch ends there whatever follows. */
  readonly isFull: boolean;
  readonly caughtUp: boolean;
}

/** Where changes are rare a batch is what so many reads have found. */
const maxReads = 20;

/** Reads the next batch. It is not full where no more changes are there yet. */
export async function formBatch(
  read: ReadMatches,
  tenant: string,
  { q, after, until = Number.POSITIVE_INFINITY, maxAge, textsOf, isRepeat = false }: BatchAsked,
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
    const asked = {
      q,
      after: reached,
      maxPositions: Math.min(maxPositions, until - reached.position),
      maxBytes: room.bytesLeft,
    };
    let reading = await read(tenant, { ...asked, maxItems: room.changesLeft });
    const fitting: string[] = [];
    const young = reading.items.filter((change) => !isOld(change));
    for (const text of textsOf(young)) {
      if (!room.take(text)) break;
      fitting.push(text);
    }
    const tooLong = young[fitting.length];
    if (tooLong !== undefined) {
      // It is read again up to there, so that what expired before is counted, and nothing behind.
      const maxItems = reading.items.indexOf(tooLong);
      if (maxItems === 0) return { changes, texts, reached, skipped, expired, isFull: true, caughtUp };
      reading = await read(tenant, { ...asked, maxItems });
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

/** Of one read. */
const maxPositions = 10_000;
