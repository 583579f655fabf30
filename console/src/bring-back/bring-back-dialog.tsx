import { ApiError } from '@annals/client';
import type { JsonObject } from '@annals/client/json';
import { useMemo, useState } from 'preact/hooks';
import { useInSlices, useRequest } from '../api/requests.ts';
import { differences } from '../compare/compare-documents.ts';
import { PathChanges } from '../compare/path-changes.tsx';
import { Dialog } from '../components/overlays.tsx';
import { Answer, Skeleton } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { tell } from '../components/toasts.ts';
import { Time } from '../components/values.tsx';
import type { DocumentKey } from '../history/document-queries.ts';
import { readToday, writePlanned } from './own-documents.ts';
import { type OwnKind, type Plan, planOf } from './plan.ts';

interface BringBackDialogProps {
  readonly kind: OwnKind;
  readonly document: DocumentKey;
  /** The document as it was, whole. */
  readonly then: JsonObject;
  /** When it became so. */
  readonly at: string | undefined;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Shows what will change, and asks, before a document is written as it was. */
export function BringBackDialog({ kind, document, then, at, onClose, onDone }: BringBackDialogProps) {
  const [round, setRound] = useState(0);
  const [hasChanged, setChanged] = useState(false);
  const today = useRequest(`today ${round}`, async (signal) => ({ read: await readToday(kind, document, signal) }));
  const read = today.isCurrent ? today.value : undefined;
  const planned = useMemo(() => (read === undefined ? undefined : planOf(kind, then, read.read)), [read]);
  const plan = planned !== undefined && 'next' in planned ? planned : undefined;
  const paths = useInSlices(() => differences(plan?.today, plan?.next), [plan]).value;
  const isSame = plan?.today !== undefined && paths?.length === 0;

  const run = async () => {
    if (plan === undefined) return false;
    try {
      await writePlanned(kind, { document, plan, read: read?.read });
    } catch (error) {
      if (!(error instanceof ApiError) || error.type !== 'conflict_resource') throw error;
      setChanged(true);
      setRound(round + 1);
      return false;
    }
    tell(`${document.entity} ${document.entityId} is as it was.`);
    return onDone();
  };
  const label = plan?.today === undefined ? 'Create it again' : 'Bring back';
  return (
    <Dialog title="Bring back?" onClose={onClose} actions={[{ label, isReady: plan !== undefined && !isSame, run }]}>
      <p>
        <Name text={`${document.entity} ${document.entityId}`} /> as it was from{' '}
        {at === undefined ? 'its beginning' : <Time at={at} />}
      </p>
      {hasChanged ? (
        <p class="note" role="alert">
          Somebody else has changed this document in the meantime, so nothing was written. Below is what would change
          now.
        </p>
      ) : undefined}
      <Answer of={{ ...today, value: planned }}>
        {(made) => ('refused' in made ? <p role="alert">{made.refused}</p> : <Changes plan={made} paths={paths} />)}
      </Answer>
    </Dialog>
  );
}

interface ChangesProps {
  readonly plan: Plan;
  readonly paths: Parameters<typeof PathChanges>[0]['paths'] | undefined;
}

function Changes({ plan: { today, stays }, paths }: ChangesProps) {
  return (
    <>
      {stays.length === 0 ? undefined : (
        <ul class="muted">
          {stays.map((sentence) => (
            <li key={sentence}>
              <Name text={sentence} />
            </li>
          ))}
        </ul>
      )}
      {paths === undefined ? (
        <Skeleton />
      ) : today !== undefined && paths.length === 0 ? (
        <p>It is like this today. There is nothing to bring back.</p>
      ) : (
        <>
          <p>{today === undefined ? 'It is deleted. It is created again with:' : 'This will change:'}</p>
          <PathChanges paths={paths} />
        </>
      )}
    </>
  );
}
