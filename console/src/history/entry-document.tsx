import { ApiError } from '@annals/client';
import type { JsonValue } from '@annals/client/json';
import { type DocumentState, type Entry, readDocument } from '../api/history-reads.ts';
import { useRequest } from '../api/requests.ts';
import { BringBackButton } from '../bring-back/bring-back-button.tsx';
import { JsonTree } from '../components/json-tree.tsx';
import { FailureBox, Skeleton } from '../components/states.tsx';
import { navigate } from '../router/router.tsx';

/** The whole document before and after an entry. */
export function EntryDocument({ entry: { entity, entityId, at } }: { readonly entry: Entry }) {
  const { value, error, reload } = useRequest(`${entity} ${entityId} ${at}`, async (signal) => {
    const after = await readDocument({ entity, entityId, at }, signal);
    return { after, before: await stateBefore(after, { entity, entityId }, signal) };
  });
  if (error !== undefined) return <FailureBox error={error} onRetry={reload} />;
  if (value === undefined) return <Skeleton />;
  return (
    <div class="entry-documents form-grid">
      <Side title="Before" state={value.before} />
      <Side title="After" state={value.after} />
    </div>
  );
}

/** Before the first change that is left, nothing is known. */
async function stateBefore(
  { changes }: DocumentState,
  document: { readonly entity: string; readonly entityId: string },
  signal: AbortSignal,
): Promise<DocumentState | undefined> {
  if (changes <= 1) return undefined;
  try {
    return await readDocument({ ...document, changes: changes - 1 }, signal);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

function Side({ title, state }: { readonly title: string; readonly state: DocumentState | undefined }) {
  return (
    <section class="card">
      <header class="card-header">
        <h3>{title}</h3>
        {state === undefined || state.complete ? undefined : <span class="incomplete">as far as it is known</span>}
        {state === undefined ? undefined : <BringBackButton state={state} onDone={() => showToday(state)} />}
      </header>
      <div class="card-body">
        <DocumentText document={state?.exists === true ? state.document : undefined} />
      </div>
    </section>
  );
}

/** The page of the document, which has its newest change. */
function showToday({ entity, entityId }: DocumentState): void {
  navigate({ path: 'document', parameters: { entity, id: entityId } });
}

/** A document, or that there is none. */
export function DocumentText({ document }: { readonly document: JsonValue | undefined }) {
  return document === undefined ? (
    <p class="muted">The document does not exist.</p>
  ) : (
    <JsonTree value={document} open={2} />
  );
}
