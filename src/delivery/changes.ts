import type { StopSignal } from '../core/stop-signal.ts';
import type { ShownActors } from '../core/written-restriction.ts';
import type { Scope } from '../http/scopes.ts';

/** A position of a tenant, 0 before all. Another fingerprint at the same position: the database was restored. */
export interface ReadingPosition {
  readonly position: number;
  readonly fingerprint: number;
}

/** A change to deliver, or an erasure: of type `erased`, with only the erased positions in its text. */
export interface DeliveredChange extends ReadingPosition {
  readonly cursor: string;
  /** Identifies the entry when a single change is read. */
  readonly ref: string;
  /** The time of the change, in milliseconds. */
  readonly at: number;
  /** When it was recorded, in milliseconds. */
  readonly recordedAt: number;
  readonly type: string;
  readonly entity: string;
  readonly entityId: string;
  /** 32 hexadecimal digits, unique among the changes of the same time. */
  readonly identity: string;
  /** The UUID of the document as 32 hexadecimal digits. */
  readonly document: string;
  /** The entry as JSON text, numbers with every digit. */
  readonly text: string;
}

/** The entity type of subscriptions in the history. */
export const subscriptionEntity = 'changelog-subscription';

export interface Reading {
  readonly items: readonly DeliveredChange[];
  /** The last position that was read. */
  readonly reached: ReadingPosition;
  /** `reached` as a sealed cursor. */
  readonly cursor: string;
  readonly caughtUp: boolean;
  /** Entries that retention dropped before they were read. */
  readonly expired: number;
}

/** Without the creation of the subscription that reads it. */
export function withoutOwnCreation<Read extends Pick<Reading, 'items'>>(
  reading: Read,
  { id, metadata: { createdAt } }: { readonly id: string; readonly metadata: { readonly createdAt: string } },
): Read {
  const madeAt = Date.parse(createdAt);
  const isOwn = ({ entity, entityId, type, at }: DeliveredChange) =>
    entity === subscriptionEntity && entityId === id && type === 'create' && at === madeAt;
  return { ...reading, items: reading.items.filter((change) => !isOwn(change)) };
}

export interface ReadRequest {
  readonly q: string;
  readonly after: ReadingPosition;
  /** What the texts show of who made the changes. Default: names. */
  readonly actors?: ShownActors;
  readonly maxItems: number;
  readonly maxPositions?: number;
  readonly maxBytes?: number;
  /** Whether to return erasures regardless of `q`. */
  readonly withErasures?: boolean;
  readonly signal?: StopSignal | undefined;
}

/** Reads matching changes after a position. Rejects with `cursor_invalid` (410) if its fingerprint differs. */
export type ReadMatches = (tenant: string, request: ReadRequest) => Promise<Reading>;

/** The history operations that deliveries use; `context/` provides them. */
export interface HistoryToDeliver {
  readonly readMatches: ReadMatches;
  /**
   * Throws validation_violation for an invalid query or a term on what a subscription with these `actors` does not
   * show, and insufficient_permissions for a term on contexts without a scope that reads them.
   */
  checkQuery(q: string, options: { readonly actors: ShownActors; readonly scopes: readonly Scope[] }): void;
  /** Whether a valid query has a term on the context of changes. */
  usesContext(q: string): boolean;
  /** Resolves a cursor, `start` or `now`. Throws validation_violation, or cursor_invalid after a restore. */
  positionOf(tenant: string, after: string): Promise<ReadingPosition>;
  cursorOf(tenant: string, position: ReadingPosition): string;
  /** The position before the first entry recorded at or after that time (milliseconds), or the last position. */
  positionAt(tenant: string, recorded: number): Promise<ReadingPosition>;
  /** Undefined if the tenant has no such position. */
  fingerprintAt(tenant: string, position: number): Promise<number | undefined>;
  /** The last position assigned. */
  lastPosition(tenant: string): Promise<number>;
  /** Calls back soon, and then whenever the tenant may have new positions. Returns the function that unsubscribes. */
  follow(tenant: string, onChange: () => void): () => void;
}
