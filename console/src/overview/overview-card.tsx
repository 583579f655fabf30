import type { ChangeRecorders } from '@annals/client';
import type { ComponentChildren } from 'preact';
import type { Requested } from '../api/requests.ts';
import { FailureBox, LoadingLine, Skeleton } from '../components/states.tsx';

interface OverviewCardProps<Value> {
  readonly title: string;
  /** Right of the title. */
  readonly aside?: ComponentChildren;
  readonly requested: Requested<Value>;
  readonly children: (value: Value) => ComponentChildren;
  readonly wide?: boolean;
}

/** A part of the overview. Each asks for itself, so that one that fails leaves the others. */
export function OverviewCard<Value>({ title, aside, requested, children, wide = false }: OverviewCardProps<Value>) {
  const { value, error, isLoading, reload } = requested;
  return (
    <section class={`card${wide ? ' wide' : ''}`} aria-label={title} aria-busy={isLoading}>
      <LoadingLine active={isLoading} />
      <div class="card-header">
        <h2>{title}</h2>
        {aside}
      </div>
      <div class="card-body">
        <FailureBox error={error} onRetry={reload} />
        {value === undefined ? error === undefined ? <Skeleton lines={4} /> : undefined : children(value)}
      </div>
    </section>
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
