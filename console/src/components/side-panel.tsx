import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Button } from './button.tsx';

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
