import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { useRequest } from '../api/requests.ts';
import { allows, historyScopes } from '../api/session.ts';
import { pages } from '../app/pages.ts';
import { Icon } from '../components/icon.tsx';
import { counted } from '../components/numbers.ts';
import { Dialog } from '../components/overlays.tsx';
import { LoadingLine } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { historyOf } from '../history/history-view.ts';
import { queryOfText } from '../query-text/text-search.ts';
import { addressOf, navigate } from '../router/router.tsx';
import { Hint, isQuery, useFindEverything } from './find-everything.tsx';
import { type Found, type FoundGroup, hasWords, type Source } from './found.ts';
import './find.css';

interface FindDialogProps {
  /** What was typed before the dialog was there. */
  readonly typedAhead: () => string;
  readonly onClose: () => void;
  /** Called before it closes because something is opened. */
  readonly onOpened: () => void;
}

/** Milliseconds after a key until the service is called. */
const pause = 120;

/** One search for everything. The results have a fixed order, an exact id before all, and change all at once. */
export function FindDialog({ typedAhead, onClose, onOpened }: FindDialogProps) {
  const [text, setText] = useState(typedAhead);
  const [chosen, setChosen] = useState(0);
  /** Enter was pressed before the answer was there: what comes first is opened then. */
  const [isAwaited, setAwaited] = useState(false);
  const id = useId();
  const searched = usePaused(text.trim());
  const find = useFindEverything([pageSource, textSource]);
  const { value = [], isCurrent } = useRequest(searched, (signal) => find(searched, signal));
  const isReady = isCurrent && searched === text.trim();
  const found = value.flatMap(({ items }) => items);
  const place = Math.min(chosen, found.length - 1);
  const active = found[place];

  const open = ({ to }: Found) => {
    navigate(to);
    onOpened();
    onClose();
  };
  useEffect(() => {
    if (!isReady || !isAwaited) return;
    setAwaited(false);
    if (active !== undefined) open(active);
  }, [isReady, isAwaited]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter') {
      event.preventDefault();
      setAwaited(true);
    } else if ((event.key === 'ArrowDown' || event.key === 'ArrowUp') && found.length > 0) {
      event.preventDefault();
      const next = (place + (event.key === 'ArrowDown' ? 1 : -1) + found.length) % found.length;
      setChosen(next);
      document.getElementById(`${id}-${next}`)?.scrollIntoView({ block: 'nearest' });
    }
  };

  return (
    <Dialog title="Search" onClose={onClose}>
      <div class="find">
        <input
          // One opens the search to write. Without this the button that closes it has the focus.
          autofocus
          class="control find-text"
          type="text"
          role="combobox"
          aria-label="Search everything"
          aria-expanded={found.length > 0}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={active === undefined ? undefined : `${id}-${place}`}
          placeholder="A document, a person, a field, a page"
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setChosen(0);
            setAwaited(false);
          }}
          onKeyDown={onKeyDown}
        />
        <LoadingLine active={!isReady} />
        <div id={`${id}-list`} class="find-list" role="listbox" aria-label="What was found">
          {value.map(({ source, items }) =>
            items.length === 0 ? undefined : (
              // biome-ignore lint/a11y/useSemanticElements: a group of a listbox, which no element is.
              <div key={source.title} role="group" aria-label={source.title} class="find-group">
                <p class="find-title" role="presentation">
                  {source.title}
                </p>
                {items.map((item) => {
                  const index = found.indexOf(item);
                  return (
                    <a
                      key={item.key}
                      id={`${id}-${index}`}
                      role="option"
                      aria-selected={item === active}
                      tabIndex={-1}
                      href={addressOf(item.to)}
                      class="find-item"
                      onMouseMove={() => setChosen(index)}
                      onClick={(event) => {
                        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
                        event.preventDefault();
                        open(item);
                      }}
                    >
                      <Icon name={source.icon} />
                      <Name class="find-label" text={item.label} />
                      <Hint text={item.hint} />
                    </a>
                  );
                })}
              </div>
            ),
          )}
        </div>
        <div class="find-footer">
          <p role="status">{isReady ? statusOf(text.trim(), value, found.length) : ''}</p>
          <p class="find-keys" aria-hidden="true">
            <kbd>↑</kbd> <kbd>↓</kbd> choose · <kbd>Enter</kbd> opens · <kbd>Esc</kbd> closes
          </p>
        </div>
      </div>
    </Dialog>
  );
}

function statusOf(text: string, groups: readonly FoundGroup[], count: number): string {
  const failed = groups.filter(({ error }) => error !== undefined).map(({ source }) => source.title.toLowerCase());
  if (failed.length > 0) return `${counted(count, 'result')}. Annals could not search ${failed.join(', ')}.`;
  if (text === '') return 'Write the beginning of a word.';
  return count === 0 ? `Nothing begins with “${text}”.` : counted(count, 'result');
}

/** A text that comes to rest: it follows the other after a pause. */
function usePaused(text: string): string {
  const [paused, setPaused] = useState(text);
  const isFirst = useRef(true);
  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    const timer = setTimeout(() => setPaused(text), pause);
    return () => clearTimeout(timer);
  }, [text]);
  return paused;
}

/** The pages of the console that the session may see. */
const pageSource: Source = { title: 'Pages', icon: 'overview', withoutWords: true, find: findPages };

/** A text inside of values: whatever else it finds, this may be what the reader looks for. */
const textSource: Source = {
  title: 'Text of changes',
  icon: 'search',
  scopes: historyScopes,
  find: (text) => {
    const q = isQuery(text) ? undefined : queryOfText(text);
    const label = 'Search for this text in all changes';
    return q === undefined ? [] : [{ key: 'text', label, hint: 'inside values', to: historyOf(q) }];
  },
};

/** The pages of the navigation, and by a word their tabs too. */
async function findPages(text: string): Promise<Found[]> {
  const allowed = pages.filter(({ inNavigation, scopes }) => inNavigation && allows(...scopes));
  const places = await Promise.all(
    allowed.map(async ({ path, title, views }) => {
      const tabs = text === '' || views === undefined ? [] : await views();
      const ofPage = tabs.flatMap(({ path: place, tab, scopes }) =>
        tab !== undefined && allows(...scopes) ? [{ path: place, label: tab, hint: title }] : [],
      );
      return [{ path, label: title, hint: '' }, ...ofPage];
    }),
  );
  return places
    .flat()
    .filter(({ label }) => hasWords(label, text))
    .map(({ path, label, hint }) => ({ key: path, label, hint, to: { path } }));
}
