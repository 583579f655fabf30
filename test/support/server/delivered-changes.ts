import { createHash } from 'node:crypto';
import type { DeliveredChange } from '../../../src/delivery/changes.ts';
import type { Sending, TargetMembers } from '../../../src/delivery/targets/target.ts';

/** A change as the history hands it to deliveries. */
export function deliveredChange(
  position: number,
  overrides: Partial<DeliveredChange> & { paths?: string } = {},
): DeliveredChange {
  const { paths = '{"price.amount":{"before":39.90,"after":34.90}}', ...others } = overrides;
  const at = others.at ?? Date.UTC(2026, 10, 23, 12) + position;
  const change = { type: 'update', entity: 'product', entityId: `p-${position}`, ...others };
  const identity = createHash('md5').update(String(position)).digest('hex');
  const text =
    `{"at":"${new Date(at).toISOString()}","type":"${change.type}","entity":${JSON.stringify(change.entity)},` +
    `"entityId":${JSON.stringify(change.entityId)},"paths":${paths},"actor":"Jane Doe","related":[],"position":${position}}`;
  const read = { position, fingerprint: position * 7, cursor: `cursor-${position}`, ref: `ref-${position}` };
  return { ...read, at, recordedAt: at, identity, document: identity, text, ...change };
}

export function sendingOf(target: TargetMembers, subscription = '3f0c2a5e-6d0b-4c1e-9a57-1f0b6c2d7e88'): Sending {
  return {
    tenant: 'shop',
    subscription,
    name: 'Prices',
    target,
    keys: [],
    hide: [],
    signal: new AbortController().signal,
  };
}
