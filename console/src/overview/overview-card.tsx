import type { ChangeRecorders } from '@annals/client';
import type { ComponentChildren } from 'preact';
import type { Requested } from '../api/requests.ts';
import { Card } from '../components/page.tsx';
import { Answer } from '../components/states.tsx';

interface OverviewCardProps<Value> {
  readonly title: string;
  /** Right of the title. */
  readonly aside?: ComponentChildren;
  readonly requested: Requested<Value>;
  readonly children: (value: Value) => ComponentChildren;
  readonly wide?: boolean;
}

/** A part of the overview. Each makes its own request, so that one that fails leaves the others. */
export function OverviewCard<Value>({ title, aside, requested, children, wide = false }: OverviewCardProps<Value>) {
  return (
    <Card title={title} aside={aside} class={wide ? 'wide' : ''} aria-label={title} isLoading={requested.isLoading}>
      <Answer of={requested} lines={4}>
        {children}
      </Answer>
    </Card>
  );
}

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
