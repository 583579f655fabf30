import { useEffect, useId, useState } from 'preact/hooks';
import type { DocumentState } from '../api/history-reads.ts';
import { useInSlices, useRequest } from '../api/requests.ts';
import { BringBackButton } from '../bring-back/bring-back-button.tsx';
import { differences } from '../compare/compare-documents.ts';
import { PathChanges } from '../compare/path-changes.tsx';
import { Button } from '../components/buttons.tsx';
import { Segments } from '../components/page.tsx';
import { EmptyState, Skeleton } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { momentOf, momentText, zoneName } from '../components/times.ts';
import { Time } from '../components/values.tsx';
import { DocumentFile, DocumentText, stateBefore } from '../history/entry-document.tsx';
import { Link, setParameters } from '../router/router.tsx';
import type { DocumentView, Moment } from './document-view.ts';
import { FieldsTable } from './fields-table.tsx';
import { type DocumentLife, KnownSince, MomentSlider } from './timeline.tsx';

interface MomentCardProps {
  readonly view: DocumentView;
  readonly state: DocumentState;
  /** The document at the moment that is compared. */
  readonly other: DocumentState | undefined;
  readonly life: DocumentLife;
  readonly onShow: (change: number) => void;
  readonly onBroughtBack: () => void;
}

/** The document at the moment of the address, or that moment beside another one. */
export function MomentCard({ view, state, other, life, onShow, onBroughtBack }: MomentCardProps) {
  const isDeleted = !state.exists && state.lastChange?.type === 'delete';
  const before = useRequest(isDeleted ? `${state.entity} ${state.entityId} ${state.changes}` : undefined, (signal) =>
    stateBefore(state, signal),
  );
  // Of a deleted document its last state is shown.
  const shown = isDeleted ? before.value : state;
  const isKnown = shown?.document !== undefined;
  return (
    <>
      <header class="moment-header">
        <MomentSlider change={state.changes} total={life.total} onChange={onShow} />
        <AsOn
          label="As on"
          moment={view}
          at={state.at}
          onShow={(at) => setParameters({ at, changes: undefined })}
          onBesideNow={
            view.compared === undefined ? (at) => setParameters({ at, changes: undefined, with: 'now' }) : undefined
          }
        />
        {view.compared === undefined ? undefined : (
          <AsOn
            label="Beside"
            moment={view.compared}
            at={other?.at ?? state.at}
            onShow={(at) => setParameters({ with: at ?? 'now' })}
          />
        )}
        <p class="moment-words">
          <MomentWords state={state} life={life} />
          {isDeleted && isKnown ? '. Below is its last state.' : undefined}
        </p>
        <Future of={[view, ...(view.compared === undefined ? [] : [view.compared])]} />
        <KnownSince state={state} life={life} />
        <div class="page-actions">
          <Views view={view} />
          {isKnown && view.compared === undefined ? <DocumentFile state={shown} /> : undefined}
          {isKnown && (isDeleted || state.changes < life.total) ? (
            <BringBackButton
              state={shown}
              onDone={onBroughtBack}
              otherwise={isDeleted ? <ElsewhereKept /> : undefined}
            />
          ) : undefined}
        </div>
      </header>
      <div class="card-body">
        {view.compared !== undefined ? (
          other === undefined ? (
            <Skeleton />
          ) : (
            <Comparison state={state} other={other} />
          )
        ) : isDeleted && before.value === undefined && before.isLoading ? (
          <Skeleton />
        ) : shown?.document === undefined ? (
          <EmptyState icon="document" title="The document does not exist at this moment" />
        ) : view.show === 'fields' ? (
          <FieldsTable of={view} document={shown.document} life={life} change={shown.changes} onShow={onShow} />
        ) : (
          <DocumentText document={shown.document} />
        )}
      </div>
    </>
  );
}

function ElsewhereKept() {
  return (
    <p class="muted">Another application keeps documents of this type. Copy or download it to create it again there.</p>
  );
}

interface AsOnProps {
  readonly label: string;
  /** The moment of the address. */
  readonly moment: Moment;
  /** The time of that moment, as RFC 3339. */
  readonly at: string;
  /** Called with a time, or without one for now. */
  readonly onShow: (at: string | undefined) => void;
  readonly onBesideNow?: ((at: string) => void) | undefined;
}

/** A time to choose, by the clock that the reader has chosen. */
function AsOn({ label, moment, at, onShow, onBesideNow }: AsOnProps) {
  const isNow = moment.changes === undefined && moment.at === undefined;
  const shown = fieldText(at, isNow);
  const [text, setText] = useState(shown);
  const id = useId();
  useEffect(() => setText(shown), [shown]);
  const [date = '', time = ''] = text.split('T');
  const chosen = momentOf(date, time);
  const isMoment = !Number.isNaN(chosen);
  return (
    <form
      class="as-on"
      onSubmit={(event) => {
        event.preventDefault();
        if (isMoment) onShow(momentText(chosen));
      }}
    >
      <label for={id}>{label}</label>
      <input
        id={id}
        class="control"
        type="datetime-local"
        // Some browsers take no time that is finer than the step.
        step={shown.includes('.') ? '0.001' : '1'}
        title={`Times are those of ${zoneName()}`}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <Button type="submit" disabled={!isMoment}>
        Show
      </Button>
      {onBesideNow === undefined ? undefined : (
        <Button disabled={!isMoment} onClick={() => onBesideNow(momentText(chosen))}>
          Beside now
        </Button>
      )}
      {isNow ? undefined : <Button onClick={() => onShow(undefined)}>Now</Button>}
    </form>
  );
}

/** A time as the field has it. The current time is without milliseconds. */
function fieldText(at: string, isNow: boolean): string {
  const time = Date.parse(at);
  return momentText(isNow ? Math.floor(time / 1_000) * 1_000 : time).replace(/(?:Z|[+-]\d\d:\d\d)$/, '');
}

function Future({ of }: { readonly of: readonly Moment[] }) {
  const isFuture = of.some(({ at }) => at !== undefined && Date.parse(at) > Date.now());
  if (!isFuture) return null;
  return <p class="note">This moment is in the future. The document is shown as it is now.</p>;
}

function MomentWords({ state, life }: { readonly state: DocumentState; readonly life: DocumentLife }) {
  const { lastChange, exists } = state;
  if (lastChange === undefined) {
    const oldest = life.changes.length < life.total ? undefined : life.changes.at(-1);
    return (
      <>
        {exists ? 'Before its first recorded change' : 'It did not exist yet: before its first change'}
        {oldest === undefined ? undefined : (
          <>
            {' of '}
            <Time at={oldest.entry.at} />
          </>
        )}
      </>
    );
  }
  return (
    <>
      {exists ? 'As it was from ' : 'Deleted at '}
      <Time at={lastChange.at} />
      {exists ? `, ${lastChange.type}` : undefined}
      {lastChange.actor === undefined ? undefined : (
        <>
          {' by '}
          <Link to={{ path: 'actor', parameters: { name: lastChange.actor } }}>
            <Name text={lastChange.actor} />
          </Link>
        </>
      )}
    </>
  );
}

function Views({ view }: { readonly view: DocumentView }) {
  if (view.compared !== undefined) {
    return (
      <Button icon="close" onClick={() => setParameters({ with: undefined })}>
        Stop comparing
      </Button>
    );
  }
  return (
    <Segments
      label="What is shown of the document"
      choices={[
        ['document', 'Document'],
        ['fields', 'Who touched what last'],
      ]}
      chosen={view.show}
      onChoose={(show) => setParameters({ show: show === 'fields' ? show : undefined }, { replace: true })}
    />
  );
}

/** The earlier of the two moments is on the left, whichever was chosen first. */
function Comparison({ state, other }: { readonly state: DocumentState; readonly other: DocumentState }) {
  const [earlier, later] = other.changes <= state.changes ? [other, state] : [state, other];
  const paths = useInSlices(() => differences(earlier.document, later.document), [earlier, later]).value;
  return (
    <>
      <p class="comparison-words">
        From <SideWords state={earlier} /> to <SideWords state={later} />
      </p>
      {paths === undefined ? (
        <Skeleton />
      ) : paths.length === 0 ? (
        <p class="muted">The document is the same at both moments.</p>
      ) : (
        <PathChanges paths={paths} />
      )}
    </>
  );
}

function SideWords({ state: { changes, lastChange, exists } }: { readonly state: DocumentState }) {
  if (lastChange === undefined) return <>{exists ? 'before change 1' : 'before change 1, when it did not exist'}</>;
  return (
    <>
      change {changes} of <Time at={lastChange.at} />
      {exists ? undefined : ', its deletion'}
    </>
  );
}
