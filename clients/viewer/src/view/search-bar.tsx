import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Icon } from '../../../../console/src/components/icon.tsx';
import { ranges, type Search } from '../search/search.ts';
import { useLanguage } from './language-context.ts';
import type { Choices } from './use-choices.ts';

interface SearchBarProps {
  readonly search: Search;
  readonly choices: Choices;
  readonly showsActors: boolean;
  readonly today: string;
  readonly onSearch: (search: Search) => void;
}

/** Milliseconds without a key, after which words are searched. */
const typingPause = 400;
/** Characters. With more a query could be longer than the service takes. */
const maxWordsLength = 100;

/** What people look for: words, a time, a kind of change, things and people. Nothing of it is a query language. */
export function SearchBar({ search, choices, showsActors, today, onSearch }: SearchBarProps) {
  const language = useLanguage();
  const { text } = language;
  const change = (part: Partial<Search>) => onSearch({ ...search, ...part });
  return (
    <search class="toolbar" part="toolbar">
      <Words words={search.words} onWords={(words) => change({ words })} />
      <Choice
        label={text('time')}
        value={search.range}
        onChoose={(range) =>
          change({ range, ...(range === 'days' ? { from: search.from || today, to: search.to || today } : {}) })
        }
        options={[...ranges, 'days' as const].map((range) => [range, text(range)])}
      />
      <Choice
        label={text('type')}
        value={search.type}
        onChoose={(type) => change({ type })}
        options={[
          ['', text('anyType')],
          ['create', text('create')],
          ['update', text('update')],
          ['delete', text('delete')],
        ]}
      />
      {/* These are here before there is anything to choose, so that nothing moves when it comes. */}
      <Choice
        label={text('entity')}
        value={search.entity}
        onChoose={(entity) => change({ entity })}
        options={offered(text('anyEntity'), choices.entities, search.entity, language.entity)}
      />
      {showsActors ? (
        <Choice
          label={text('actor')}
          value={search.actor}
          onChoose={(actor) => change({ actor })}
          options={offered(text('anyActor'), choices.actors, search.actor, language.actor)}
        />
      ) : undefined}
      {search.range === 'days' ? (
        <div class="days">
          <Day label={text('from')} value={search.from} max={search.to || today} onDay={(from) => change({ from })} />
          <Day label={text('to')} value={search.to} min={search.from} onDay={(to) => change({ to })} />
        </div>
      ) : undefined}
    </search>
  );
}

function offered(
  any: string,
  values: readonly string[],
  chosen: string,
  word: (value: string) => string,
): [value: string, label: string][] {
  const known = chosen === '' || values.includes(chosen) ? values : [chosen, ...values];
  return [['', any], ...known.map((value): [string, string] => [value, word(value)])];
}

function Words({ words, onWords }: { readonly words: string; readonly onWords: (words: string) => void }) {
  const label = useLanguage().text('search');
  const [typed, setTyped] = useState(words);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  // What else was chosen while somebody wrote stays.
  const latest = useRef(onWords);
  latest.current = onWords;
  // What is written while a search begins must not be taken back by it.
  const told = useRef(words);
  useEffect(() => {
    if (words === told.current) return;
    told.current = words;
    clearTimeout(timer.current);
    setTyped(words);
  }, [words]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const search = (wanted: string, delay: number) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      told.current = wanted;
      latest.current(wanted);
    }, delay);
  };
  return (
    <form
      class="words"
      onSubmit={(event) => {
        event.preventDefault();
        search(typed, 0);
      }}
    >
      <Icon name="search" />
      <input
        type="search"
        class="control"
        part="control search"
        aria-label={label}
        placeholder={label}
        maxLength={maxWordsLength}
        autoComplete="off"
        spellcheck={false}
        value={typed}
        onInput={({ currentTarget: { value } }) => {
          setTyped(value);
          search(value, value === '' ? 0 : typingPause);
        }}
      />
    </form>
  );
}

interface ChoiceProps<Value extends string> {
  readonly label: string;
  readonly value: Value;
  readonly options: readonly (readonly [value: Value, label: string])[];
  readonly onChoose: (value: Value) => void;
}

function Choice<Value extends string>({ label, value, options, onChoose }: ChoiceProps<Value>) {
  // Of a time one is always chosen.
  const isChosen = value !== '' && options[0]?.[0] === '';
  return (
    <Labelled label={label}>
      <select
        class={`control${isChosen ? ' chosen' : ''}`}
        part="control choice"
        aria-label={label}
        value={value}
        onChange={({ currentTarget: { selectedIndex } }) => {
          const chosen = options[selectedIndex];
          if (chosen !== undefined) onChoose(chosen[0]);
        }}
      >
        {options.map(([each, name]) => (
          <option key={each} value={each}>
            {name}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

/** The sign that a list opens stands beside a field that may grow. */
function Labelled({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    <span class="choice" title={label}>
      {children}
      <Icon name="down" size={12} />
    </span>
  );
}

interface DayProps {
  readonly label: string;
  readonly value: string;
  readonly min?: string;
  readonly max?: string;
  readonly onDay: (day: string) => void;
}

function Day({ label, value, min, max, onDay }: DayProps) {
  return (
    <label class="day-field">
      <span>{label}</span>
      <input
        type="date"
        class="control"
        part="control day"
        value={value}
        min={min}
        max={max}
        onChange={({ currentTarget }) => onDay(currentTarget.value)}
      />
    </label>
  );
}
