import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { Button } from './button.tsx';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  /** Buttons at the bottom. */
  readonly actions?: ComponentChildren;
}

/** Asks for something before anything else goes on. The browser keeps the focus inside; Escape closes it. */
export function Dialog({ title, onClose, children, actions }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  const isGone = useRef(false);
  // In the same turn as it is drawn: a key that is pressed between the two would go to the page.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => {
      // A dialog that closes gives the focus back to the element that had it. One that is removed while it is open does
      // not.
      isGone.current = true;
      dialog?.close();
    };
  }, []);
  /** The browser would tell of the end only some time after it: meanwhile the page would take the dialog for open. */
  const close = () => {
    isGone.current = true;
    element.current?.close();
    onClose();
  };
  return (
    <dialog
      ref={element}
      class="dialog"
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClose={() => isGone.current || onClose()}
    >
      <header>
        <h2 id={heading}>{title}</h2>
        <Button kind="quiet" icon="close" aria-label="Close" onClick={close} />
      </header>
      <div class="dialog-body">{children}</div>
      {actions === undefined ? undefined : <footer>{actions}</footer>}
    </dialog>
  );
}
