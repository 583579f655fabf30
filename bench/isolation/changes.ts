import { randomBytes } from 'node:crypto';
import type { Change } from '../../src/recording/change.ts';

/** So many changes of the last day, of 200 products by 10 actors. */
export function changesOf(count: number): Change[] {
  const now = Date.now();
  return Array.from({ length: count }, (_, index) => ({
    identity: randomBytes(16),
    at: now - index * 1_000,
    type: 'update',
    entity: 'product',
    entityId: `p${index % 200}`,
    actor: `Person ${index % 10}`,
    related: [],
    paths: '{"price":{"before":1,"after":2}}',
  }));
}
