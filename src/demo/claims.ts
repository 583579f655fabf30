import type { DemoChange } from './demo-change.ts';

/** A claim as its last change left it. Times are in milliseconds since 1970. */
export interface ClaimState {
  readonly id: string;
  /** JSON text. */
  readonly content: string;
  readonly version: number;
  readonly createdAt: number;
  readonly modifiedAt: number;
}

/** The warranty claims at the end of the history, so that the instances are what their history tells. */
export function claimsAfter(changes: Iterable<DemoChange>): ClaimState[] {
  const claims = new Map<string, ClaimState>();
  for (const { entity, entityId: id, op, at, after } of changes) {
    if (entity !== 'WARRANTY_CLAIM') continue;
    const before = claims.get(id);
    if (op === 'delete') claims.delete(id);
    else {
      const version = (before?.version ?? 0) + 1;
      claims.set(id, {
        id,
        content: JSON.stringify(after),
        version,
        createdAt: before?.createdAt ?? at,
        modifiedAt: at,
      });
    }
  }
  return [...claims.values()];
}
