import type { RecordingWays } from '@annals/client';

/** A way in which changes come in. */
export type Way = RecordingWays['ways'][number];

const words: Readonly<Record<Way['way'], string>> = {
  service: 'Documents that live in Annals',
  import: 'annals import',
  recorder: 'Recorder, from applications',
  capture: 'Capture of a database',
  relay: 'Relay of an outbox',
};

export function wayText({ way }: Pick<Way, 'way'>): string {
  return words[way];
}
