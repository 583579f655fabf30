import type { ComponentChildren } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Button } from './buttons.tsx';
import { FailureBox } from './states.tsx';

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

interface ConfirmDialogProps {
  readonly title: string;
  /** What is lost. */
  readonly children: ComponentChildren;
  /** The word on the button: `Delete`. */
  readonly action: string;
  readonly onConfirm: () => Promise<void>;
  readonly onClose: () => void;
}

/** Asks before something is lost. An error of the action stays in the dialog. */
export function ConfirmDialog({ title, children, action, onConfirm, onClose }: ConfirmDialogProps) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const confirm = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await onConfirm();
      onClose();
    } catch (reason) {
      setError(reason);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="danger" disabled={isBusy} onClick={() => void confirm()}>
            {action}
          </Button>
        </>
      }
    >
      {children}
      {error === undefined ? undefined : <FailureBox error={error} />}
    </Dialog>
  );
}

interface SidePanelProps {
  readonly title: ComponentChildren;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly actions?: ComponentChildren;
}

/**
 * Details beside a list, which stays usable. On a narrow screen it covers the list. Escape closes it, and the focus goes back to where
 * it was.
 */
export function SidePanel({ title, onClose, children, actions }: SidePanelProps) {
  const heading = useId();
  const panel = useRef<HTMLElement>(null);
  const close = useRef(onClose);
  close.current = onClose;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !event.defaultPrevented && document.querySelector('dialog[open]') === null) {
        close.current();
      }
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  useEffect(() => {
    const opener = document.activeElement;
    const element = panel.current;
    return () => {
      const { activeElement } = document;
      const isLost = activeElement === document.body || element?.contains(activeElement) === true;
      if (isLost && opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    <aside ref={panel} class="side-panel" aria-labelledby={heading}>
      <header>
        <h2 id={heading}>{title}</h2>
        <div class="panel-actions">
          {actions}
          <Button kind="quiet" icon="close" aria-label="Close" onClick={onClose} />
        </div>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls what is longer than the screen. */}
      <section class="panel-body" tabIndex={0} aria-labelledby={heading}>
        {children}
      </section>
    </aside>
  );
}

/** Whether keys that are pressed there are text. */
export function isField(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}
