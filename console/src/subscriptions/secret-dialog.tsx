import { Button, CopyButton } from '../components/buttons.tsx';
import { Dialog } from '../components/overlays.tsx';

/** What the service shows once of a key for signatures. */
export interface ShownKey {
  readonly secret?: string | undefined;
  readonly publicKey?: string | undefined;
}

interface SecretDialogProps {
  readonly shown: ShownKey;
  readonly note?: string;
  readonly onClose: () => void;
}

/** Shows what the receiver checks signatures with. A secret is shown this once. */
export function SecretDialog({ shown: { secret, publicKey }, note, onClose }: SecretDialogProps) {
  const [text = '', what] = secret === undefined ? [publicKey, 'the public key'] : [secret, 'the secret'];
  return (
    <Dialog
      title={secret === undefined ? 'The public key of the signatures' : 'The secret of the signatures'}
      onClose={onClose}
      actions={
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      }
    >
      <p>
        {secret === undefined
          ? 'Give it to the receiver, which checks the signatures with it. It stays among the settings.'
          : 'Give it to the receiver, which checks the signatures with it. It is shown this once: store it before you go on.'}
      </p>
      <div class="subscription-key">
        <code>{text}</code>
        <CopyButton what={what} label="Copy" text={() => text} />
      </div>
      {note === undefined ? undefined : <p class="muted">{note}</p>}
    </Dialog>
  );
}
