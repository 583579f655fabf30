import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from '../components/icon.tsx';
import { isDialogOpen, isField } from '../components/overlays.tsx';
import { later } from '../components/states.tsx';
import '../app/shell.css';

const loadDialog = async () => (await import('./find-dialog.tsx')).FindDialog;
const FindDialog = later(loadDialog);

const isOpen = signal(false);
/** What was typed after the keys that open the search, before its field was there to take it. */
let typedAhead = '';

/** A dialog that is open already may have unsaved text. */
function open(): void {
  if (isDialogOpen() || isOpen.value) return;
  typedAhead = '';
  isOpen.value = true;
}

const isMac = /Mac|iP(?:hone|ad)/.test(navigator.userAgent);

/** Opens the search for everything, and says the keys that do so. */
export function FindButton() {
  return (
    <button type="button" class="find-button" aria-haspopup="dialog" aria-keyshortcuts="/ Control+K" onClick={open}>
      <Icon name="search" />
      <span class="find-word">Search</span>
      <span class="find-button-keys" aria-hidden="true">
        <kbd>/</kbd> <kbd>{isMac ? '⌘ K' : 'Ctrl K'}</kbd>
      </span>
    </button>
  );
}

interface FindProps {
  /** Called when something that was found is opened. */
  readonly onOpened: () => void;
}

/** The search for everything, which / and Ctrl K open on any page. Its code is fetched once the page is there. */
export function Find({ onOpened }: FindProps) {
  const hasOpened = useRef(false);
  useEffect(() => {
    // Who opens the search tries once more.
    loadDialog().catch(() => undefined);
  }, []);
  useEffect(() => {
    // The dialog gives the focus back when it closes. What was opened takes it after that.
    if (!isOpen.value && hasOpened.current) onOpened();
    hasOpened.current = false;
  }, [isOpen.value]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isLetter = [...event.key].length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey;
      if (isOpen.value && isLetter && !isDialogOpen() && !isField(event.target)) {
        event.preventDefault();
        typedAhead += event.key;
        return;
      }
      const isSlash = event.key === '/' && isLetter && !isField(event.target);
      const isControlK = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey) && !event.altKey;
      if (event.defaultPrevented || (!isSlash && !isControlK)) return;
      event.preventDefault();
      open();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  if (!isOpen.value) return null;
  return (
    <FindDialog
      typedAhead={() => typedAhead}
      onClose={() => {
        isOpen.value = false;
      }}
      onOpened={() => {
        hasOpened.current = true;
      }}
    />
  );
}
