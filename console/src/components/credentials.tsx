import { CopyButton } from './buttons.tsx';
import { ConfirmButton } from './overlays.tsx';
import { TableScroll } from './table.tsx';
import { Name } from './text.tsx';
import { Time } from './values.tsx';
import './credentials.css';

/** Lines to copy, in the letters of code. */
export function CopiedLines({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <div class="copied-lines">
      <TableScroll label={what}>
        <pre>{text}</pre>
      </TableScroll>
      <CopyButton what={what} label="Copy" text={() => text} />
    </div>
  );
}

/** The beginning of a key, to recognise it in the settings of a program. */
export function keyName(id: string): string {
  return `annals_${id}_…`;
}

interface LastUseProps {
  /** RFC 3339; undefined or null: never. */
  readonly at: string | null | undefined;
  readonly address?: string | undefined;
}

export function LastUse({ at, address }: LastUseProps) {
  if (at === undefined || at === null) return <>never</>;
  return (
    <>
      <Time at={at} detail="minute" />
      {address === undefined ? undefined : (
        <div class="muted mono">
          <Name text={address} />
        </div>
      )}
    </>
  );
}

interface RevokeButtonProps {
  readonly noun: 'client' | 'key';
  /** What the reader recognises it by. */
  readonly name: string;
  /** Whether something may have been made by it. */
  readonly makes?: boolean;
  readonly run: () => unknown;
}

/** Revokes a client or a key after a question. */
export function RevokeButton({ noun, name, makes = false, run }: RevokeButtonProps) {
  return (
    <ConfirmButton
      kind="quiet"
      aria-label={`Revoke ${name}`}
      ask={{
        title: `Revoke this ${noun}?`,
        label: 'Revoke',
        run,
        body: (
          <p>
            Programs that use <Name class="mono" text={name} /> stop within five seconds
            {makes ? ', and so does all that it has made' : ''}.
          </p>
        ),
      }}
    >
      Revoke
    </ConfirmButton>
  );
}
