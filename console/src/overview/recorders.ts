import type { ChangeRecorders } from '@annals/client';

/** What records changes. */
export type ChangeRecorder = ChangeRecorders['recorders'][number];

const words: Readonly<Record<ChangeRecorder['way'], string>> = {
  service: 'Documents that live in Annals',
  import: 'annals import',
  recorder: 'Recorder, from applications',
  capture: 'Capture of a database',
  relay: 'Relay of an outbox',
};

export function recorderText({ way }: Pick<ChangeRecorder, 'way'>): string {
  return words[way];
}
