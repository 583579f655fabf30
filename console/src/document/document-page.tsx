import { ApiError } from '@annals/client';
import { useEffect, useState } from 'preact/hooks';
import { type DocumentState, readDocument } from '../api/history-reads.ts';
import { useInSlices, useRequest } from '../api/requests.ts';
import { allows, historyAbilities } from '../api/session.ts';
import { BringBackButton } from '../bring-back/bring-back-button.tsx';
import { differences } from '../compare/compare-documents.ts';
import { PathChanges } from '../compare/path-changes.tsx';
import { Button, CopyButton } from '../components/buttons.tsx';
import { PageHeader, Segments } from '../components/page.tsx';
import { EmptyState, FailureBox, LoadingLine, Skeleton } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { Time } from '../components/values.tsx';
import { queryOfDocument, queryOfTouching } from '../history/document-queries.ts';
import { DocumentText } from '../history/entry-document.tsx';
import { historyOf } from '../history/history-view.ts';
import { Link, setParameters } from '../router/router.tsx';
import { type DocumentView, documentView } from './document-view.ts';
import { DocumentsSearch } from './documents-search.tsx';
import { FieldsTable } from './fields-table.tsx';
import { type DocumentLife, KnownSince, MomentSlider, readLife, Timeline } from './timeline.tsx';
import './document-page.css';

/** One document: its whole life, and what it looked like at any moment of it. */
export function DocumentPage() {
  const view = documentView.value;
  const { entity, entityId } = view;
  const key = `${entity} ${entityId}`;
  const [unknown, setUnknown] = useState<string>();
  useEffect(() => setUnknown(undefined), [key]);
  const isNamed = entity !== '' && entityId !== '';
  if (isNamed && unknown !== key) return <OneDocument key={key} view={view} onUnknown={() => setUnknown(key)} />;
  if (!allows(historyAbilities.names)) return <NamedDocuments />;
  // One search for both, so that an unknown id is corrected in the same field.
  return <DocumentsSearch unknown={isNamed ? view : undefined} />;
}

/** Who sees some documents alone has no search for them. */
function NamedDocuments() {
  return (
    <EmptyState icon="document" title="Open a document from one of its changes" isPage>
      <p>Your session sees some documents. Open one of their changes in the history, and choose its document there.</p>
      <Link to={{ path: 'history' }}>Go to the history</Link>
    </EmptyState>
  );
}

interface OneDocumentProps {
  readonly view: DocumentView;
  /** Called where the history has nothing about it. */
  readonly onUnknown: () => void;
}

function OneDocument({ view, onUnknown }: OneDocumentProps) {
  const { entity, entityId, changes, at, compared } = view;
  const [round, setRound] = useState(0);
  const life = useRequest(`life ${round}`, (signal) => readLife({ entity, entityId }, signal));
  const state = useRequest(`${changes} ${at} ${round}`, (signal) =>
    readDocument({ entity, entityId, changes, at: changes === undefined ? at : undefined }, signal),
  );
  const other = useRequest(compared === undefined ? undefined : String(compared), (signal) =>
    readDocument({ entity, entityId, changes: compared }, signal),
  );
  const shown = state.value?.changes;
  // A document that the session does not see is none to it.
  const isUnknown =
    state.error instanceof ApiError && ['resource_not_found', 'insufficient_permissions'].includes(state.error.type);
  useEffect(() => {
    if (isUnknown) onUnknown();
  }, [isUnknown]);
  if (isUnknown) return null;
  const show = (change: number) => setParameters({ changes: change, at: undefined }, { replace: true });

  return (
    <div class="document">
      <PageHeader
        title={
          <>
            <span class="muted">
              <Name text={entity} />
            </span>{' '}
            <Name text={entityId} />
          </>
        }
        // Its line is there before the name is.
        lead={state.value === undefined ? '\u00a0' : state.value.name && <Name text={state.value.name} />}
      >
        <CopyButton what="the address of this view" label="Share" text={() => location.href} />
        <Link to={historyOf(queryOfDocument(view))} class="button">
          In the history
        </Link>
        <Link to={historyOf(queryOfTouching(view))} class="button">
          What touched it
        </Link>
        <Button icon="refresh" onClick={() => setRound((count) => count + 1)}>
          Refresh
        </Button>
      </PageHeader>
      <FailureBox error={state.error} onRetry={state.reload} />
      {life.error === undefined || state.error !== undefined ? undefined : (
        <FailureBox error={life.error} onRetry={life.reload} />
      )}
      {state.error === undefined ? (
        <div class="document-columns">
          <section class="card document-life" aria-label="Changes of the document">
            <LoadingLine active={life.isLoading} />
            {life.value === undefined ? (
              <Skeleton />
            ) : (
              <Timeline
                life={life.value}
                shown={shown}
                compared={compared}
                onShow={show}
                onCompare={(change) => setParameters({ with: change === compared ? undefined : change })}
              />
            )}
          </section>
          <section class="card document-moment" aria-label="The document at a moment">
            <LoadingLine active={state.isLoading || other.isLoading} />
            {state.value === undefined || life.value === undefined ? (
              <Skeleton />
            ) : (
              <Moment
                view={view}
                state={state.value}
                other={other.value}
                life={life.value}
                onShow={show}
                onBroughtBack={() => {
                  setParameters({ changes: undefined, at: undefined, with: undefined });
                  setRound((count) => count + 1);
                }}
              />
            )}
          </section>
        </div>
      ) : undefined}
    </div>
  );
}

interface MomentProps {
  readonly view: DocumentView;
  readonly state: DocumentState;
  /** The document at the moment that is compared. */
  readonly other: DocumentState | undefined;
  readonly life: DocumentLife;
  readonly onShow: (change: number) => void;
  readonly onBroughtBack: () => void;
}

function Moment({ view, state, other, life, onShow, onBroughtBack }: MomentProps) {
  const isComparing = view.compared !== undefined;
  return (
    <>
      <header class="moment-header">
        <MomentSlider change={Math.max(1, state.changes)} total={life.total} onChange={onShow} />
        <p class="moment-words">
          <MomentWords state={state} />
        </p>
        <KnownSince state={state} life={life} />
        <div class="page-actions">
          <Views view={view} />
          {state.changes < life.total ? <BringBackButton state={state} onDone={onBroughtBack} /> : undefined}
        </div>
      </header>
      <div class="card-body">
        {isComparing ? (
          other === undefined ? (
            <Skeleton />
          ) : (
            <Comparison state={state} other={other} />
          )
        ) : state.document === undefined ? (
          <EmptyState icon="document" title="The document does not exist at this moment" />
        ) : view.show === 'fields' ? (
          <FieldsTable of={view} document={state.document} life={life} change={state.changes} onShow={onShow} />
        ) : (
          <DocumentText document={state.document} />
        )}
      </div>
    </>
  );
}

function MomentWords({ state: { lastChange, exists } }: { readonly state: DocumentState }) {
  if (lastChange === undefined) return <>Before its first change</>;
  return (
    <>
      {exists ? 'As it was from ' : 'Deleted at '}
      <Time at={lastChange.at} />, {lastChange.type}
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
        From change {earlier.changes}{' '}
        {earlier.lastChange === undefined ? undefined : <Time at={earlier.lastChange.at} />} to change {later.changes}{' '}
        {later.lastChange === undefined ? undefined : <Time at={later.lastChange.at} />}
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
