import { JsonNumber, type Steps, stringifyJsonSteps } from '@annals/client/json';
import { useMemo, useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { type Entry, type PathChange, readEntry } from '../api/history-reads.ts';
import { useInSlices, useRequest } from '../api/requests.ts';
import { allows, historyAbilities, session } from '../api/session.ts';
import { PathChanges } from '../compare/path-changes.tsx';
import { CopyButton, fileNameOf, SaveButton } from '../components/buttons.tsx';
import { JsonTree } from '../components/json-tree.tsx';
import { itemsOf } from '../components/lazy-list.tsx';
import { LinesView } from '../components/lines-view.tsx';
import { counted } from '../components/numbers.ts';
import { SidePanel } from '../components/overlays.tsx';
import { Segments } from '../components/page.tsx';
import { Answer, FailureBox, LoadingLine, Skeleton } from '../components/states.tsx';
import { Name, Text } from '../components/text.tsx';
import { ChangeTypeMark, Time } from '../components/values.tsx';
import { recorderText } from '../overview/overview-card.tsx';
import { Link, type Target } from '../router/router.tsx';
import {
  type DocumentField,
  queryOfDocument,
  queryOfDocumentField,
  queryOfField,
  queryOfStep,
  queryOfTouching,
  queryOfValue,
} from './document-queries.ts';
import { EntryDocument, readSides } from './entry-document.tsx';
import { hasElements, pathsWithin, withLists } from './entry-lists.ts';
import { historyOf } from './history-view.ts';
import { OtherChanges, Who } from './who.tsx';
import './entry-panel.css';

interface EntryPanelProps {
  /** The ref of the entry. */
  readonly entry: string;
  readonly onClose: () => void;
}

type View = 'changes' | 'document' | 'json';

const views: readonly (readonly [View, string])[] = [
  ['changes', 'Changes'],
  ['document', 'Before and after'],
  ['json', 'JSON'],
];

/** An entry in full, at an address of its own. */
export function EntryPanel({ entry: ref, onClose }: EntryPanelProps) {
  const [view, setView] = useState<View>('changes');
  /** The ref of the entry whose proof was saved. */
  const [proved, setProved] = useState<string>();
  const request = useRequest(ref, (signal) => readEntry(ref, signal));
  const { value } = request;
  const shownViews = views.filter(([name]) => name !== 'document' || allows(historyAbilities.documents));
  return (
    <SidePanel
      title={value === undefined ? 'Change' : <Title entry={value} />}
      onClose={onClose}
      actions={
        <>
          {value !== undefined && allows('changelog.proof_read') ? (
            <SaveButton
              label="Proof"
              name={proofNameOf(value)}
              text={() => annals().proofs.get({ ref })}
              onSaved={() => setProved(ref)}
            />
          ) : undefined}
          <CopyButton what="the address" text={() => location.href} />
        </>
      }
    >
      <LoadingLine active={request.isLoading} />
      <Answer of={request}>
        {(entry) => (
          <>
            {proved === ref ? <SavedProof name={proofNameOf(entry)} /> : undefined}
            <EntryFacts entry={entry} />
            <Segments
              class="entry-views"
              label="What is shown of the change"
              choices={shownViews.map(([name, label]) =>
                name === 'changes' ? [name, counted(entry.paths.size, 'field')] : [name, label],
              )}
              chosen={view}
              onChoose={setView}
            />
            {view === 'changes' ? <EntryChanges entry={entry} /> : undefined}
            {view === 'document' ? <EntryDocument entry={entry} /> : undefined}
            {view === 'json' ? <EntryJson entry={entry} /> : undefined}
          </>
        )}
      </Answer>
    </SidePanel>
  );
}

function proofNameOf({ entity, entityId, at }: Entry): string {
  return fileNameOf([entity, entityId, at], 'proof');
}

/** How the proof is verified that the reader has just saved. */
function SavedProof({ name }: { readonly name: string }) {
  const command = `annals verify ${name} --key "$(cat ${session.value?.tenant}.vkey)"`;
  return (
    <div class="saved-proof" role="status">
      <p>
        Saved. This command verifies it, with the verifier key that you keep from{' '}
        <Link to={{ path: 'security/proof' }}>Security, Proof</Link>:
      </p>
      <p>
        <code>{command}</code> <CopyButton what="the command" text={() => command} />
      </p>
    </div>
  );
}

function Title({ entry: { type, entity, entityId } }: { readonly entry: Entry }) {
  return (
    <span class="entry-title">
      <ChangeTypeMark type={type} short />
      <Name class="muted" text={entity} />
      <Name text={entityId} />
    </span>
  );
}

function EntryJson({ entry }: { readonly entry: Entry }) {
  const { value: text, error } = useInSlices(() => jsonOf(entry), [entry]);
  if (error !== undefined) return <FailureBox error={error} />;
  if (text === undefined) return <Skeleton />;
  return (
    <div class="entry-json">
      <CopyButton what="the JSON" label="Copy" text={() => text} />
      <LinesView text={text} label="The change as JSON" />
    </div>
  );
}

/** The entry in the form that the service answers. */
function jsonOf({ ref: _, cut: __, ...entry }: Entry): Steps<string> {
  return stringifyJsonSteps(entry, 2);
}

/** With at most so many paths, their links are open. */
const maxOpen = 3;
/** Paths within a list that have links. */
const maxLinked = 20;

/** Every path of an entry with what it was and what it became, and what one may ask about it next. */
function EntryChanges({ entry }: { readonly entry: Entry }) {
  const { entity, entityId, paths: recorded, ref } = entry;
  const looksUp = allows(historyAbilities.documents) && hasElements(recorded);
  const sides = useRequest(looksUp ? ref : undefined, (signal) => readSides(entry, signal));
  const paths = useMemo(
    () =>
      sides.isCurrent ? withLists(recorded, sides.value?.before?.document, sides.value?.after.document) : recorded,
    [recorded, sides.isCurrent, sides.value],
  );
  // Without the documents the paths are shown as they were recorded.
  if (looksUp && sides.isLoading) return <Skeleton />;
  if (paths.size === 0)
    return <p class="muted">This change has no fields: an empty document was created or deleted.</p>;
  return (
    <PathChanges
      paths={itemsOf(paths)}
      below={(path) =>
        // Of a list, the paths within it that were recorded.
        [...(recorded.has(path) ? [path] : pathsWithin(recorded, path))]
          .slice(0, maxLinked)
          .map((name, _, names) => (
            <FieldLinks
              key={name}
              field={{ entity, entityId, path: name }}
              isNamed={names.length > 1}
              change={recorded.get(name) ?? {}}
              open={recorded.size <= maxOpen}
            />
          ))
      }
    />
  );
}

interface FieldLinksProps {
  readonly field: DocumentField;
  readonly change: PathChange;
  /** Whether the field is named: others stand beside it. */
  readonly isNamed: boolean;
  /** Whether the links are open at first. */
  readonly open: boolean;
}

/** What one asks next about a field that has changed: each is the history of a query. */
function FieldLinks({ field, isNamed, change: { before, after }, open }: FieldLinksProps) {
  const value = after ?? before;
  const isNumber = before instanceof JsonNumber && after instanceof JsonNumber;
  const ofValue = value === undefined ? undefined : queryOfValue(field, value);
  return (
    <details class="field-links" open={open}>
      <summary>
        Find changes{' '}
        {isNamed ? (
          <bdi>
            <Text text={field.path} />
          </bdi>
        ) : undefined}
      </summary>
      <ul>
        <li>
          <Link to={historyOf(queryOfDocumentField(field))}>of this field of this document</Link>
        </li>
        <li>
          <Link to={historyOf(queryOfField(field))}>
            of this field of any <bdi>{field.entity}</bdi>
          </Link>
        </li>
        {(isNumber ? (['lower', 'higher'] as const) : []).map((step) => (
          <li key={step}>
            <Link to={historyOf(queryOfStep(field, step))}>that made this field {step}</Link>
          </li>
        ))}
        {ofValue === undefined ? undefined : (
          <li>
            <Link to={historyOf(ofValue)}>when it had {after === undefined ? 'the old' : 'the new'} value</Link>
          </li>
        )}
      </ul>
    </details>
  );
}

/** When, who, and what it belongs to, with links to each. */
function EntryFacts({ entry }: { readonly entry: Entry }) {
  const { at, actor, entity, entityId, name, correlationId, related, schemaVersion, recordedBy, context } = entry;
  return (
    <dl class="facts">
      <dt>When</dt>
      <dd>
        <Time at={at} />
      </dd>
      {actor === undefined ? undefined : (
        <>
          <dt>Who</dt>
          <dd class="who">
            <Who entry={entry} />
            {correlationId === undefined ? undefined : <OtherChanges correlationId={correlationId} />}
          </dd>
        </>
      )}
      <dt>Document</dt>
      <dd>
        <Link to={documentOf({ entity, entityId, at })}>
          <Name text={`${entity} ${entityId}`} />
        </Link>
        {name === undefined ? undefined : (
          <span class="muted">
            {' '}
            <Name text={name} />
          </span>
        )}
      </dd>
      {schemaVersion === undefined ? undefined : (
        <>
          <dt>Schema</dt>
          <dd>
            <Name text={schemaVersion} />
          </dd>
        </>
      )}
      {related.length === 0 ? undefined : (
        <>
          <dt>Related</dt>
          <dd class="related">
            {related.map((item) => (
              <span key={`${item.entity} ${item.entityId}`}>
                <Link to={historyOf(queryOfTouching(item))} title="Everything that touched it">
                  <Name text={`${item.entity} ${item.entityId}`} />
                </Link>
              </span>
            ))}
          </dd>
        </>
      )}
      {recordedBy === undefined ? undefined : (
        <>
          <dt>Recorded by</dt>
          <dd>
            {recorderText(recordedBy)}
            {[recordedBy.by, recordedBy.sub, recordedBy.iss].map((by) =>
              by === undefined ? undefined : (
                <span key={by} class="muted">
                  {' '}
                  <Name text={by} />
                </span>
              ),
            )}
          </dd>
        </>
      )}
      {context === undefined ? undefined : (
        <>
          <dt>Context</dt>
          <dd>
            <JsonTree value={context} />
          </dd>
        </>
      )}
    </dl>
  );
}

/** The document as it was made; for who sees no documents its changes. */
function documentOf(entry: Pick<Entry, 'entity' | 'entityId' | 'at'>): Target {
  const { entity, entityId, at } = entry;
  return allows(historyAbilities.documents)
    ? { path: 'document', parameters: { entity, id: entityId, at } }
    : historyOf(queryOfDocument(entry));
}
