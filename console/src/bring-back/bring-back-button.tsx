import { useState } from 'preact/hooks';
import type { DocumentState } from '../api/history-reads.ts';
import { useRequest } from '../api/requests.ts';
import { Button } from '../components/buttons.tsx';
import { later } from '../components/states.tsx';
import { isOwnType, writableKind } from './own-documents.ts';

const BringBackDialog = later(async () => (await import('./bring-back-dialog.tsx')).BringBackDialog);

interface BringBackButtonProps {
  /** The document at the moment that is shown. */
  readonly state: DocumentState;
  /** Called once the document is as it was. */
  readonly onDone: () => void;
}

/** Brings back a document of the service, for those who may write it. Those of other applications are only recorded. */
export function BringBackButton({ state, onDone }: BringBackButtonProps) {
  const { entity, entityId } = state;
  const [isOpen, setOpen] = useState(false);
  const kind = writableKind(entity);
  const own = useRequest(kind === 'instance' ? entity : undefined, (signal) => isOwnType(entity, signal));
  if (kind === undefined || (kind === 'instance' && own.value !== true)) return null;
  if (!state.exists || !(state.document instanceof Map)) return null;
  if (!state.complete) {
    return <p class="muted">It cannot be brought back as it was then: not all of it is known.</p>;
  }
  return (
    <>
      <Button icon="history" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        Bring back
      </Button>
      {isOpen ? (
        <BringBackDialog
          kind={kind}
          document={{ entity, entityId }}
          then={state.document}
          at={state.lastChange?.at}
          onClose={() => setOpen(false)}
          onDone={onDone}
        />
      ) : undefined}
    </>
  );
}
