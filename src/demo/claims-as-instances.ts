import type { DemoChange } from './demo-change.ts';

/** The type of the shop's warranty claims, written as a client would write it. */
export const claimType = JSON.stringify({
  id: 'WARRANTY_CLAIM',
  name: { en: 'Warranty claim', de: 'Reklamation' },
  jsonSchema: {
    type: 'object',
    properties: {
      status: { enum: ['OPEN', 'IN_INSPECTION', 'APPROVED', 'REJECTED', 'CLOSED'] },
      order: { type: 'string' },
      product: { type: 'string' },
      amount: { type: 'number', minimum: 0 },
      complaint: { type: 'string' },
      findings: { type: 'array', items: { type: 'string' } },
      resolution: { type: ['string', 'null'] },
    },
    required: ['status', 'order', 'product', 'complaint'],
  },
});

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
