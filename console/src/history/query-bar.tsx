import type { ComponentChildren } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { scanQuery, type Term } from '../../../src/query/scan.ts';
import { type KnownName, readKnown, readNames } from '../api/history-reads.ts';
import { useRequest } from '../api/requests.ts';
import { allows, historyAbilities, readsContext } from '../api/session.ts';
import { Button } from '../components/buttons.tsx';
import { Icon } from '../components/icon.tsx';
import { Name } from '../components/text.tsx';
import { nameOfPath, writtenPath } from '../query-text/edit-query.ts';
import { completionPlace, namesToRead, type QueryRights, type Suggestion, suggestionsAt } from './completion.ts';
import type { QueryFault } from './query-faults.ts';
import './query-bar.css';

interface QueryBarProps {
  readonly q: string;
  readonly fault: QueryFault | undefined;
  /** The word on the button. */
  readonly action?: string;
  readonly onSubmit: (q: string) => void;
  /** Told of each character, for a form that is saved without the button. */
  readonly onText?: (text: string) => void;
}

/** Milliseconds after a key until names are read. */
const pause = 120;

/** The text of the query, coloured, with suggestions at the caret and the fault under its character. */
export function QueryBar({ q, fault, action = 'Search', onSubmit, onText }: QueryBarProps) {
  const [text, setText] = useState(q);
  const [caret, setCaret] = useState(q.length);
  const [isOpen, setOpen] = useState(false);
  const [chosen, setChosen] = useState(-1);
  const [scroll, setScroll] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const id = useId();

  // Before the reader can write: what is written at once would be lost.
  useLayoutEffect(() => setText(q), [q]);
  useEffect(() => {
    // Scrolls to the fault, which the bar may not show. If the reader is writing again, the caret stays.
    if (fault?.offset !== undefined && text === q) input.current?.setSelectionRange(fault.offset, fault.offset + 1);
  }, [fault?.offset]);

  const suggestions = useSuggestions(text, caret, isOpen);
  const shown = isOpen && suggestions.length > 0;
  const active = shown && chosen >= 0 ? suggestions[Math.min(chosen, suggestions.length - 1)] : undefined;

  const write = (next: string) => {
    setText(next);
    onText?.(next.trim());
  };
  const edit = (element: HTMLInputElement) => {
    write(element.value);
    setCaret(element.selectionStart ?? element.value.length);
    setOpen(true);
    setChosen(-1);
  };
  const accept = ({ insert, start }: Suggestion) => {
    const next = `${text.slice(0, start)}${insert}${text.slice(caret).replace(/^ (?=.)/, insert.endsWith(' ') ? '' : ' ')}`;
    const position = start + insert.length;
    write(next);
    setCaret(position);
    setChosen(-1);
    // Sets the caret at once, so that it is right for a key that is pressed before the next frame.
    const element = input.current;
    if (element === null) return;
    element.value = next;
    element.focus();
    element.setSelectionRange(position, position);
  };
  const submit = (query: string) => {
    setOpen(false);
    onSubmit(query.trim());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter') {
      event.preventDefault();
      if (active === undefined) submit(text);
      else accept(active);
    } else if (event.key === 'Tab' && shown && !event.shiftKey && active !== undefined) {
      event.preventDefault();
      accept(active);
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      setOpen(true);
      const step = event.key === 'ArrowDown' ? 1 : -1;
      setChosen(
        suggestions.length === 0
          ? -1
          : (Math.max(chosen, step > 0 ? -1 : 0) + step + suggestions.length) % suggestions.length,
      );
    } else if (event.key === 'Escape' && isOpen) {
      event.preventDefault();
      setOpen(false);
    }
  };

  return (
    <search>
      <form
        class="query-bar"
        onSubmit={(event) => {
          event.preventDefault();
          submit(text);
        }}
      >
        <div class={`query-field${fault === undefined ? '' : ' invalid'}`}>
          <Icon name="search" />
          <div class="query-text">
            <QueryHighlight text={text} faultOffset={text === q ? fault?.offset : undefined} scroll={scroll} />
            <input
              ref={input}
              type="text"
              role="combobox"
              aria-label="Query"
              aria-expanded={shown}
              aria-controls={`${id}-list`}
              aria-autocomplete="list"
              aria-activedescendant={active === undefined ? undefined : `${id}-${suggestions.indexOf(active)}`}
              aria-invalid={fault !== undefined}
              aria-describedby={fault === undefined ? undefined : `${id}-fault`}
              placeholder="entity:order type:update actor:Jane Doe"
              autocomplete="off"
              autocapitalize="none"
              spellcheck={false}
              value={text}
              onInput={(event) => edit(event.currentTarget)}
              onClick={(event) => edit(event.currentTarget)}
              onKeyDown={onKeyDown}
              onKeyUp={(event) => setCaret(event.currentTarget.selectionStart ?? text.length)}
              onScroll={(event) => setScroll(event.currentTarget.scrollLeft)}
              onBlur={() => setOpen(false)}
            />
          </div>
          <Button kind={action === 'Search' ? 'primary' : 'plain'} type="submit">
            {action}
          </Button>
        </div>
        <div id={`${id}-list`} class="suggestions" role="listbox" aria-label="Suggestions" hidden={!shown}>
          {(shown ? suggestions : []).map((suggestion, index) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the input, which keeps the focus.
            // biome-ignore lint/a11y/useFocusableInteractive: as above.
            <div
              key={`${suggestion.start} ${suggestion.label}`}
              id={`${id}-${index}`}
              role="option"
              aria-selected={suggestion === active}
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => accept(suggestion)}
            >
              <Name text={suggestion.label} />
              {suggestion.hint === '' ? undefined : <span class="suggestion-hint">{suggestion.hint}</span>}
            </div>
          ))}
        </div>
        {fault === undefined ? undefined : (
          <p id={`${id}-fault`} class="query-fault" role="alert">
            {fault.offset === undefined ? '' : `Position ${[...q.slice(0, fault.offset)].length + 1}: `}
            {fault.message}
          </p>
        )}
        {fault?.unknownField === undefined || fault.offset === undefined ? undefined : (
          <UnknownField key={q} q={q} field={fault.unknownField} offset={fault.offset} onQuery={submit} />
        )}
      </form>
    </search>
  );
}

function useSuggestions(text: string, caret: number, isOpen: boolean): Suggestion[] {
  const [names, setNames] = useState<{ readonly key: string; readonly names: readonly KnownName[] }>({
    key: '',
    names: [],
  });
  const place = completionPlace(text, caret);
  const isWhole = allows(historyAbilities.all);
  const rights = { ids: isWhole, context: isWhole && readsContext() };
  const wanted = isOpen && allows(historyAbilities.names) ? namesToRead(place) : undefined;
  const search = wanted !== undefined && mayRead(wanted.field, rights) ? wanted : undefined;
  const key = search === undefined ? '' : JSON.stringify(search);
  useEffect(() => {
    if (search === undefined) return;
    const controller = new AbortController();
    const timer = setTimeout(() => {
      readKnown(search, controller.signal).then(
        (known) => setNames({ key, names: known }),
        // Without suggestions the reader can continue writing.
        () => setNames({ key, names: [] }),
      );
    }, pause);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [key]);
  const found = names.key === key ? names.names : [];
  return isOpen ? suggestionsAt(place, { names: found, now: Date.now(), rights }) : [];
}

function mayRead(field: string, { ids, context }: QueryRights): boolean {
  if (field === 'actorId' || field === 'onBehalfOf') return ids;
  return field === 'context.ip' ? context : true;
}

interface QueryHighlightProps {
  readonly text: string;
  /** The character that the service names; the end of the text is one beyond its last. */
  readonly faultOffset: number | undefined;
  /** Pixels that the input above is scrolled. */
  readonly scroll: number;
}

/** The query in colours, under an input whose own text is transparent. */
function QueryHighlight({ text, faultOffset, scroll }: QueryHighlightProps) {
  const parts: ComponentChildren[] = [];
  const add = (start: number, end: number, kind: string) => {
    if (faultOffset !== undefined && faultOffset >= start && faultOffset < end) {
      push(start, faultOffset, kind);
      const length = text.codePointAt(faultOffset) === text.charCodeAt(faultOffset) ? 1 : 2;
      push(faultOffset, faultOffset + length, `${kind} fault`);
      push(faultOffset + length, end, kind);
    } else push(start, end, kind);
  };
  const push = (start: number, end: number, kind: string) => {
    if (end > start) {
      parts.push(
        <span key={start} class={`query-token ${kind}`}>
          {text.slice(start, end)}
        </span>,
      );
    }
  };
  let written = 0;
  for (const { kind, start, end } of scanQuery(text).tokens) {
    add(written, start, 'blank');
    add(start, end, kind);
    written = end;
  }
  add(written, text.length, 'blank');
  return (
    <div class="query-highlight" aria-hidden="true">
      <div style={{ transform: `translateX(${-scroll}px)` }}>
        {parts}
        {faultOffset !== undefined && faultOffset >= text.length ? <span class="query-token fault"> </span> : undefined}
      </div>
    </div>
  );
}

interface UnknownFieldProps {
  readonly q: string;
  /** The name that is no field of the query language, and its offset in UTF-16 code units. */
  readonly field: string;
  readonly offset: number;
  readonly onQuery: (q: string) => void;
}

/** Where documents have a path of that name: the term that finds its changes. */
function UnknownField({ q, field, offset, onQuery }: UnknownFieldProps) {
  const { terms } = scanQuery(q);
  const term = terms.find(({ start }) => start === offset);
  const mayBePath =
    term !== undefined && allows(historyAbilities.names) && !terms.some((outer) => isRelated(outer, term));
  const { value: names = [] } = useRequest(mayBePath ? field : undefined, (signal) =>
    readNames({ field: 'path', prefix: nameOfPath(field) }, signal),
  );
  const path = names.find((name) => name.toLowerCase() === nameOfPath(field).toLowerCase());
  if (term === undefined || path === undefined) return null;
  const written = `path:${writtenPath(path)}`;
  return (
    <Button class="query-suggestion" onClick={() => onQuery(`${q.slice(0, term.start)}${written}${q.slice(term.end)}`)}>
      Search for {written}
    </Button>
  );
}

/** Whether a term is a match of related items around another term; it has no paths. */
function isRelated({ field, start, end }: Term, inner: Term): boolean {
  return field === 'related' && start < inner.start && end >= inner.end;
}
