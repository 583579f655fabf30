import { useCode } from '../api/requests.ts';
import type { ChangeType } from './change-types.ts';
import { LongText, Name } from './text.tsx';
import { type TimeDetail, timeText } from './times.ts';

/** A time, with the exact one in both zones when one points at it. */
export function Time({ at, detail = 'second' }: { readonly at: number | string; readonly detail?: TimeDetail }) {
  const exact = new Date(at);
  const iso = Number.isNaN(exact.getTime()) ? String(at) : exact.toISOString();
  return (
    <time class="number" dateTime={iso} title={`${iso}\n${timeText(at, 'second', 'local')} on your clock`}>
      {timeText(at, detail)}
    </time>
  );
}

const signs: Readonly<Record<ChangeType, string>> = { create: '+', update: '~', delete: '−' };

/** The type of a change as a sign, a colour and, unless `short`, a word. */
export function ChangeTypeMark({ type, short = false }: { readonly type: ChangeType; readonly short?: boolean }) {
  return (
    <span class={`change-type ${type}${short ? ' short' : ''}`} title={type}>
      <span class="sign" aria-hidden="true">
        {signs[type]}
      </span>
      <span class={short ? 'visually-hidden' : ''}>{type}</span>
    </span>
  );
}

interface ChangeLineProps {
  readonly change: {
    readonly type: ChangeType;
    readonly entity: string;
    readonly entityId: string;
    readonly actor: string | undefined;
    readonly at: string;
  };
  readonly detail?: TimeDetail;
}

/** A change on one line, without its values. */
export function ChangeLine({ change: { type, entity, entityId, actor, at }, detail = 'second' }: ChangeLineProps) {
  return (
    <>
      <ChangeTypeMark type={type} short />
      <Name as="span" text={entity} /> <Name text={entityId} />
      {actor === undefined ? undefined : <Name class="muted" text={actor} />}
      <Time at={at} detail={detail} />
    </>
  );
}

const loadMarkdown = async () => (await import('./markdown.tsx')).MarkdownText;

/** Markdown from a model. Until its code is fetched, the text is shown as it was written. */
export function Markdown({ text }: { readonly text: string }) {
  const { code: Rendered } = useCode(loadMarkdown);
  return Rendered === undefined ? <LongText text={text} /> : <Rendered text={text} />;
}
