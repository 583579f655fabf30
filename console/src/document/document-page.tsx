import { ApiError } from '@annals/client';
import { useEffect, useState } from 'preact/hooks';
import { readDocument } from '../api/history-reads.ts';
import { useRequest } from '../api/requests.ts';
import { allows, historyAbilities } from '../api/session.ts';
import { Button, CopyButton } from '../components/buttons.tsx';
import { PageHeader } from '../components/page.tsx';
import { EmptyState, FailureBox, LoadingLine, Skeleton } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { queryOfDocument, queryOfTouching } from '../history/document-queries.ts';
import { historyOf } from '../history/history-view.ts';
import { Link, setParameters } from '../router/router.tsx';
import { type DocumentView, documentView } from './document-view.ts';
import { DocumentsSearch } from './documents-search.tsx';
import { MomentCard } from './moment-card.tsx';
import { readLife, Timeline } from './timeline.tsx';
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
  const isComparing = compared !== undefined;
  const [round, setRound] = useState(0);
  const life = useRequest(`life ${round}`, (signal) => readLife({ entity, entityId }, signal));
  const state = useRequest(`${changes} ${at} ${round}`, (signal) =>
    readDocument({ entity, entityId, changes, at: changes === undefined ? at : undefined }, signal),
  );
  const other = useRequest(isComparing ? `${compared.changes} ${compared.at} ${round}` : undefined, (signal) =>
    readDocument({ entity, entityId, ...compared }, signal),
  );
  const otherState = isComparing ? other.value : undefined;
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
                compared={otherState?.changes}
                onShow={show}
                onCompare={(change) => setParameters({ with: change === otherState?.changes ? undefined : change })}
              />
            )}
          </section>
          <section class="card document-moment" aria-label="The document at a moment">
            <LoadingLine active={state.isLoading || other.isLoading} />
            <FailureBox error={isComparing ? other.error : undefined} onRetry={other.reload} />
            {state.value === undefined || life.value === undefined ? (
              <Skeleton />
            ) : (
              <MomentCard
                view={view}
                state={state.value}
                other={otherState}
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
