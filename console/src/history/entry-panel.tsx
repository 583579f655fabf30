import { type Steps, stringifyJsonSteps } from '@annals/client/json';
import { useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { type Entry, readEntry } from '../api/history-reads.ts';
import { allows, historyAbilities } from '../api/session.ts';
import { useInSlices } from '../api/use-in-slices.ts';
import { useRequest } from '../api/use-request.ts';
import { ChangeTypeMark } from '../components/change-type.tsx';
import { CopyButton } from '../components/copy-button.tsx';
import { FailureBox } from '../components/failure-box.tsx';
import { LinesView } from '../components/lines-view.tsx';
import { LoadingLine, Skeleton } from '../components/loading.tsx';
import { Name } from '../components/name.tsx';
import { counted } from '../components/numbers.ts';
import { SidePanel } from '../components/side-panel.tsx';
import { SaveButton } from '../proof/save-button.tsx';
import { EntryChanges } from './entry-changes.tsx';
import { EntryDocument } from './entry-document.tsx';
import { EntryFacts } from './entry-facts.tsx';
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
  const { value, error, isLoading, isCurrent, reload } = useRequest(ref, (signal) => readEntry(ref, signal));
  const shownViews = views.filter(([name]) => name !== 'document' || allows(historyAbilities.documents));
  return (
    <SidePanel
      title={value === undefined ? 'Change' : <Title entry={value} />}
      onClose={onClose}
      actions={
        <>
          {allows('changelog.proof_read') ? (
            <SaveButton label="Proof" name="change.proof" text={() => annals().proofs.get({ ref })} />
          ) : undefined}
          <CopyButton what="the address" text={() => location.href} />
        </>
      }
    >
      <LoadingLine active={isLoading} />
      {error === undefined ? undefined : <FailureBox error={error} onRetry={reload} />}
      {value === undefined ? (
        error === undefined ? (
          <Skeleton />
        ) : undefined
      ) : isCurrent || isLoading ? (
        <>
          <EntryFacts entry={value} />
          <fieldset class="segments entry-views">
            <legend class="visually-hidden">What is shown of the entry</legend>
            {shownViews.map(([name, label]) => (
              <button key={name} type="button" aria-pressed={view === name} onClick={() => setView(name)}>
                {name === 'changes' ? counted(value.paths.size, 'change') : label}
              </button>
            ))}
          </fieldset>
          {view === 'changes' ? <EntryChanges entry={value} /> : undefined}
          {view === 'document' ? <EntryDocument entry={value} /> : undefined}
          {view === 'json' ? <EntryJson entry={value} /> : undefined}
        </>
      ) : undefined}
    </SidePanel>
  );
}

function Title({ entry: { type, entity, entityId } }: { readonly entry: Entry }) {
  return (
    <span class="entry-title">
      <ChangeTypeMark type={type} short />
      <span class="muted">
        <Name text={entity} />
      </span>
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
      <LinesView text={text} label="The entry as JSON" />
    </div>
  );
}

/** The entry in the form that the service answers. */
function jsonOf({ ref: _, cut: __, ...entry }: Entry): Steps<string> {
  return stringifyJsonSteps(entry, 2);
}
