import type { DeliveredChange } from '../changes.ts';

/** A sample change that is marked as one and is in no history. */
export function sampleChange(now: number): DeliveredChange {
  const at = new Date(now).toISOString();
  const head = { type: 'update', entity: 'sample', entityId: 'sample' } as const;
  const text = JSON.stringify({
    sample: true,
    at,
    ...head,
    name: 'A sample: nothing was changed',
    paths: { sample: { before: 'before', after: 'after' } },
    actor: 'system',
    related: [],
    position: 0,
  });
  const nowhere = { position: 0, fingerprint: 0, cursor: '', ref: '' };
  return { ...nowhere, ...head, at: now, recordedAt: now, identity: 'sample', document: 'sample', text };
}
