import type { ComponentChildren } from 'preact';
import type { DocumentState } from '../api/history-reads.ts';
import { useRequest } from '../api/requests.ts';
import { DialogButton } from '../components/overlays.tsx';
import { later } from '../components/states.tsx';
import { isOwnType, mayBeOwn, writableKind } from './own-documents.ts';

const BringBackDialog = later(async () => (await import('./bring-back-dialog.tsx')).BringBackDialog);

interface BringBackButtonProps {
  /** The document at the moment that is shown. */
  readonly state: DocumentState;
  /** Called once the document is as it was. */
  readonly onDone: () => void;
  /** Shown in its place for documents of other applications. */
  readonly otherwise?: ComponentChildren;
}

/** Brings back a document of the service, for those who may write it. Those of other applications are only recorded. */
export function BringBackButton({ state, onDone, otherwise }: BringBackButtonProps) {
  const { entity, entityId } = state;
  const kind = writableKind(entity);
  const own = useRequest(kind === 'instance' ? entity : undefined, (signal) => isOwnType(entity, signal));
  if (!mayBeOwn(entity) || (kind === 'instance' && own.value === false)) return <>{otherwise}</>;
  if (kind === undefined || (kind === 'instance' && own.value !== true)) return null;
  if (!state.exists || !(state.document instanceof Map)) return null;
  if (!state.complete) {
    return <p class="muted">It cannot be brought back as it was then: not all of it is known.</p>;
  }
  const then = state.document;
  return (
    <DialogButton
      icon="history"
      dialog={(close) => (
        <BringBackDialog
          kind={kind}
          document={{ entity, entityId }}
          then={then}
          at={state.lastChange?.at}
          onClose={close}
          onDone={onDone}
        />
      )}
    >
      Bring back
    </DialogButton>
  );
}
