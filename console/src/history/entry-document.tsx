import { ApiError } from '@annals/client';
import { finishInSlices, type JsonValue, stringifyJson, stringifyJsonSteps } from '@annals/client/json';
import { type DocumentState, type Entry, readDocument } from '../api/history-reads.ts';
import { giveWay, useRequest } from '../api/requests.ts';
import { BringBackButton } from '../bring-back/bring-back-button.tsx';
import { CopyButton, SaveButton } from '../components/buttons.tsx';
import { JsonTree } from '../components/json-tree.tsx';
import { FailureBox, Skeleton } from '../components/states.tsx';
import { navigate } from '../router/router.tsx';

/** The whole document before and after an entry. */
export function EntryDocument({ entry }: { readonly entry: Entry }) {
  const { value, error, reload } = useRequest(entry.ref, (signal) => readSides(entry, signal));
  if (error !== undefined) return <FailureBox error={error} onRetry={reload} />;
  if (value === undefined) return <Skeleton />;
  return (
    <div class="entry-documents form-grid">
      <Side title="Before" state={value.before} />
      <Side title="After" state={value.after} />
    </div>
  );
}

/** The document before and after an entry. */
export async function readSides({ entity, entityId, at }: Entry, signal: AbortSignal) {
  const after = await readDocument({ entity, entityId, at }, signal);
  return { after, before: await stateBefore(after, signal) };
}

/** The document before its last change; undefined if nothing of it is known. */
export async function stateBefore(
  { entity, entityId, changes, lastChange }: DocumentState,
  signal: AbortSignal,
): Promise<DocumentState | undefined> {
  if (lastChange === undefined || (changes === 1 && lastChange.type === 'create')) return undefined;
  // What the first change that is left replaced is known from it.
  const moment = changes > 1 ? { changes: changes - 1 } : { at: new Date(Date.parse(lastChange.at) - 1).toISOString() };
  try {
    return await readDocument({ entity, entityId, ...moment }, signal);
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
        {state === undefined ? undefined : <DocumentFile state={state} />}
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

/** Copies a document as it was, or saves it under its id and time. */
export function DocumentFile({ state: { entity, entityId, at, document } }: { readonly state: DocumentState }) {
  if (document === undefined) return null;
  // Some systems take no other characters in the names of files.
  const name = [entity, entityId, at].map((part) => part.replace(/[^\p{L}\p{N}.]+/gu, '-').slice(0, 80)).join('_');
  return (
    <>
      <CopyButton what="of the document" label="Copy JSON" text={() => stringifyJson(document, 2)} />
      <SaveButton
        label="Download"
        name={`${name}.json`}
        text={() => finishInSlices(stringifyJsonSteps(document, 2), giveWay)}
      />
    </>
  );
}

/** A document, or that there is none. */
export function DocumentText({ document }: { readonly document: JsonValue | undefined }) {
  return document === undefined ? (
    <p class="muted">The document does not exist.</p>
  ) : (
    <JsonTree value={document} open={2} />
  );
}
