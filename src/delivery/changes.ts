import type { StopSignal } from '../core/stop-signal.ts';

/** A position of a tenant, 0 before all. Another fingerprint at the same position: the database was restored. */
export interface ReadingPosition {
  readonly position: number;
  readonly fingerprint: number;
}

/** A change that goes out, or that some were erased: of type `erased`, whose text has their positions alone. */
export interface DeliveredChange extends ReadingPosition {
  readonly cursor: string;
  /** The address of the entry, as the single change is read by. */
  readonly ref: string;
  /** The time of the change, in milliseconds. */
  readonly at: number;
  /** When it was recorded, in milliseconds. */
  readonly recordedAt: number;
  readonly type: string;
  readonly entity: string;
  readonly entityId: string;
  /** What tells the change from all others of the same time: 32 hexadecimal digits. */
  readonly identity: string;
  /** A UUID as 32 hexadecimal digits, the same for all changes of a document. */
  readonly document: string;
  /** The entry as JSON text, with every digit. */
  readonly text: string;
}

export interface Reading {
  readonly items: readonly DeliveredChange[];
  /** All positions up to this one have been looked at. */
  readonly reached: ReadingPosition;
  /** The same, sealed. */
  readonly cursor: string;
  readonly caughtUp: boolean;
  /** How many entries retention dropped before they were read. */
  readonly expired: number;
}

export interface ReadingAsked {
  readonly q: string;
  readonly after: ReadingPosition;
  readonly maxItems: number;
  readonly maxPositions?: number;
  readonly maxBytes?: number;
  /** Whether erasures are told, whatever `q` says. */
  readonly withErasures?: boolean;
  readonly signal?: StopSignal | undefined;
}

/** Reads on in the history. Rejects with `cursor_invalid` (410) where the position is another one now. */
export type ReadMatches = (tenant: string, asked: ReadingAsked) => Promise<Reading>;

/** What deliveries need of the history. `context/` hands it over. */
export interface HistoryToDeliver {
  readonly readMatches: ReadMatches;
  /** Throws validation_violation for a wrong query. */
  checkQuery(q: string): void;
  /** The position of a cursor, of `start` or of `now`. Throws validation_violation for other texts, cursor_invalid for a restored one. */
  positionOf(tenant: string, after: string): Promise<ReadingPosition>;
  cursorOf(tenant: string, position: ReadingPosition): string;
  /** The position before the first entry that was recorded at that time (milliseconds) or later; the last one where there is none. */
  positionAt(tenant: string, recorded: number): Promise<ReadingPosition>;
  /** Undefined where the tenant has no such position. */
  fingerprintAt(tenant: string, position: number): Promise<number | undefined>;
  /** The last position that was given. */
  lastPosition(tenant: string): Promise<number>;
  /** Calls back whenever the tenant may have new positions, and once soon, until the returned function is called. */
  follow(tenant: string, onNews: () => void): () => void;
}
