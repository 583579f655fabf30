import type { ComponentChildren, ComponentProps } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Button, useWork } from './buttons.tsx';
import { FailureBox } from './states.tsx';

/** A button of a dialog and the work behind it. The dialog closes once that is done; an error stays in it. */
export interface DialogAction {
  readonly label: string;
  readonly kind?: 'primary' | 'danger' | 'plain';
  readonly isReady?: boolean;
  /** `false`: the dialog stays open. */
  readonly run: () => unknown;
}

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  /** Make the dialog a form with a Cancel button. Enter runs the last one. */
  readonly actions?: readonly DialogAction[];
  /** The footer of a dialog without actions. */
  readonly footer?: ComponentChildren;
}

/** Asks for something before anything else. The browser keeps the focus inside; Escape closes it. */
export function Dialog({ title, onClose, children, actions, footer }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  const isGone = useRef(false);
  // Together with drawing it: a key that is pressed in between would go to the page.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => {
      // A dialog that closes returns the focus to the element that had it. One that is removed while it is open does
      // not.
      isGone.current = true;
      dialog?.close();
    };
  }, []);
  /** The browser reports the end some time later: until then the page would take the dialog for open. */
  const close = () => {
    isGone.current = true;
    element.current?.close();
    onClose();
  };
  const { isBusy, failure, forget, act } = useWork(onClose);
  const submitted = actions?.at(-1);
  return (
    <dialog
      ref={element}
      class="dialog"
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClose={() => isGone.current || onClose()}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <Button kind="quiet" icon="close" aria-label="Close" onClick={close} />
      </header>
      {submitted === undefined ? (
        <div class="dialog-body">{children}</div>
      ) : (
        <form
          id={`${id}-form`}
          class="dialog-body"
          noValidate
          // An error of what was sent says nothing about what is written now.
          onInput={forget}
          onSubmit={(event) => {
            event.preventDefault();
            // The page around the dialog may be a form as well.
            event.stopPropagation();
            if (submitted.isReady !== false) void act(submitted.run);
          }}
        >
          {children}
          <FailureBox error={failure} />
        </form>
      )}
      {submitted === undefined ? (
        footer === undefined ? undefined : (
          <footer>{footer}</footer>
        )
      ) : (
        <footer>
          <Button onClick={close}>Cancel</Button>
          {actions?.map((action) => {
            const { label, kind = 'primary', isReady = true, run } = action;
            const how =
              action === submitted ? { type: 'submit', form: `${id}-form` } : { onClick: () => void act(run) };
            return (
              <Button key={label} kind={kind} disabled={isBusy || !isReady} {...(how as ComponentProps<typeof Button>)}>
                {label}
              </Button>
            );
          })}
        </footer>
      )}
    </dialog>
  );
}

interface DialogButtonProps extends ComponentProps<typeof Button> {
  readonly dialog: (close: () => void) => ComponentChildren;
}

/** A button that opens a dialog. */
export function DialogButton({ dialog, ...button }: DialogButtonProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button {...button} aria-haspopup="dialog" onClick={() => setOpen(true)} />
      {isOpen ? dialog(() => setOpen(false)) : undefined}
    </>
  );
}

interface ConfirmButtonProps extends ComponentProps<typeof Button> {
  readonly ask: {
    readonly title: string;
    /** The word on the button that goes ahead; left out: Delete. */
    readonly label?: string;
    readonly run: () => unknown;
    /** What is lost. */
    readonly body: ComponentChildren;
  };
}

/** A button that asks before something is lost. */
export function ConfirmButton({ ask: { title, label = 'Delete', run, body }, ...button }: ConfirmButtonProps) {
  return (
    <DialogButton
      {...button}
      dialog={(close) => (
        <Dialog title={title} onClose={close} actions={[{ label, kind: 'danger', run }]}>
          {body}
        </Dialog>
      )}
    />
  );
}

interface SidePanelProps {
  readonly title: ComponentChildren;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly actions?: ComponentChildren;
}

/** Details beside a list, which stays usable; on a narrow screen over it. Escape closes it, and the focus returns. */
export function SidePanel({ title, onClose, children, actions }: SidePanelProps) {
  const heading = useId();
  const panel = useRef<HTMLElement>(null);
  const close = useRef(onClose);
  close.current = onClose;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !event.defaultPrevented && !isDialogOpen()) close.current();
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
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls a panel that is longer than the screen. */}
      <section class="panel-body" tabIndex={0} aria-labelledby={heading}>
        {children}
      </section>
    </aside>
  );
}

export function isDialogOpen(): boolean {
  return document.querySelector('dialog[open]') !== null;
}

const textFields = 'input:not([type=checkbox]), textarea, select';

/** Whether keys that are pressed there are text. */
export function isField(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches(textFields));
}
