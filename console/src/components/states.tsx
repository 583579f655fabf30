import type { ComponentChildren, ComponentType } from 'preact';
import { failureOf } from '../api/failure.ts';
import { type Requested, useCode } from '../api/requests.ts';
import { Button } from './buttons.tsx';
import { Icon, type IconName } from './icon.tsx';

interface FailureBoxProps {
  /** Undefined: nothing is shown. */
  readonly error: unknown;
  readonly onRetry?: (() => void) | undefined;
}

/** An error of the service in words, with its request id. */
export function FailureBox({ error, onRetry }: FailureBoxProps) {
  if (error === undefined) return null;
  const { title, details, requestId, mayPass, download } = failureOf(error);
  return (
    <div class="failure" role="alert">
      <Icon name="warning" size={18} />
      <div>
        <p class="failure-title">{title}</p>
        {details.map((detail) => (
          <p key={detail}>{detail}</p>
        ))}
        {requestId === undefined ? undefined : (
          <p class="request-id">
            Request <code>{requestId}</code>
          </p>
        )}
        {download === undefined ? undefined : (
          <a class="button" href={download} download="annals.json">
            <Icon name="download" />
            Download
          </a>
        )}
        {onRetry === undefined || !mayPass ? undefined : <Button onClick={onRetry}>Try again</Button>}
      </div>
    </div>
  );
}

interface EmptyStateProps {
  readonly icon: IconName;
  readonly title: string;
  /** Whether this is all of the page, whose heading the title then is. */
  readonly isPage?: boolean;
  /** Why there is nothing, and what to do about it. */
  readonly children?: ComponentChildren;
}

export function EmptyState({ icon, title, isPage = false, children }: EmptyStateProps) {
  const Heading = isPage ? 'h1' : 'h2';
  return (
    <div class="empty-state">
      <Icon name={icon} size={28} />
      <Heading>{title}</Heading>
      {children}
    </div>
  );
}

/** A line at the top of a part that is loading. It takes no room, so nothing moves. */
export function LoadingLine({ active }: { readonly active: boolean }) {
  return (
    <div class={`loading-line${active ? ' active' : ''}`} role="status">
      <span class="visually-hidden">{active ? 'Loading' : ''}</span>
    </div>
  );
}

/** Grey lines in place of content that is still loading. */
export function Skeleton({ lines = 8 }: { readonly lines?: number | undefined }) {
  return (
    <div class="skeleton" aria-hidden="true">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  );
}

interface AnswerProps<Value> {
  readonly of: Pick<Requested<Value>, 'value' | 'error' | 'reload'>;
  /** Of the skeleton. */
  readonly lines?: number;
  readonly children: (value: Value) => ComponentChildren;
}

/** What a request answered: its value as `children` draw it, its error in words, or a skeleton until it arrives. */
export function Answer<Value>({ of: { value, error, reload }, lines, children }: AnswerProps<Value>) {
  if (value !== undefined) return <>{children(value)}</>;
  return error === undefined ? <Skeleton lines={lines} /> : <FailureBox error={error} onRetry={reload} />;
}

type Tone = 'plain' | 'good' | 'busy' | 'warn' | 'bad';

/** A state in a word. The word says what the color says. */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

interface ProgressProps {
  /** Between 0 and 1; undefined if unknown. */
  readonly share: number | undefined;
  readonly label: string;
}

/** How far something is, or how much of something is used. */
export function Progress({ share, label }: ProgressProps) {
  const percent = share === undefined ? undefined : Math.round(Math.min(1, Math.max(0, share)) * 100);
  return (
    <div
      class={`progress${percent === undefined ? ' unknown' : ''}`}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      {...(percent === undefined ? {} : { 'aria-valuenow': percent })}
    >
      <span style={{ width: `${percent ?? 30}%` }} />
    </div>
  );
}

/**
 * A part of a page, such as a dialog, whose code is fetched when it is first shown: most readers never open it.
 *
 * @example
 * const ExportDialog = later(async () => (await import('./export-dialog.tsx')).ExportDialog);
 */
export function later<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  return function Later(props: Props) {
    const { code: Part, error } = useCode(load);
    if (error !== undefined) return <FailureBox error={error} />;
    return Part === undefined ? null : <Part {...props} />;
  };
}
