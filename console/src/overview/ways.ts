import type { ChangeEntry } from '@annals/client';

export type Way = NonNullable<ChangeEntry['recordedBy']>['way'];

/** A way in which changes come in, and the latest one that came so. */
export interface LatestOfWay {
  /** Undefined: the service did not note how. */
  readonly way: Way | undefined;
  /** The client or the capture. */
  readonly by: string | undefined;
  readonly at: string;
  readonly entities: readonly string[];
}

/** The ways of some entries, each with its entities; the way with the latest entry first. */
export function waysOf(entries: readonly Pick<ChangeEntry, 'at' | 'entity' | 'recordedBy'>[]): LatestOfWay[] {
  const found = new Map<string, LatestOfWay & { readonly entities: string[] }>();
  for (const { at, entity, recordedBy } of entries.toSorted((a, b) => (a.at < b.at ? 1 : -1))) {
    const { way, by } = recordedBy ?? {};
    const key = JSON.stringify([way, by]);
    const before = found.get(key) ?? { way, by, at, entities: [] };
    if (!before.entities.includes(entity)) before.entities.push(entity);
    found.set(key, before);
  }
  return [...found.values()];
}

const words: Readonly<Record<Way, string>> = {
  service: 'Documents that live in Annals',
  import: 'annals import',
  recorder: 'Recorder, from applications',
  capture: 'Capture of a database',
  relay: 'Relay of an outbox',
};

export function wayText(way: Way | undefined): string {
  return way === undefined ? 'Not noted' : words[way];
}
