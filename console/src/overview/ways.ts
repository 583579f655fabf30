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

/** The ways of the latest entries of some entities; the way with the latest one first. */
export function waysOf(entries: readonly Pick<ChangeEntry, 'at' | 'entity' | 'recordedBy'>[]): LatestOfWay[] {
  const found = new Map<string, LatestOfWay>();
  for (const { at, entity, recordedBy } of entries.toSorted((a, b) => (a.at < b.at ? 1 : -1))) {
    const { way, by } = recordedBy ?? {};
    const key = JSON.stringify([way, by]);
    const before = found.get(key) ?? { way, by, at, entities: [] };
    found.set(key, { ...before, entities: [...before.entities, entity] });
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
