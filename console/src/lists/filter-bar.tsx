import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { Icon } from '../components/icon.tsx';
import './lists.css';

interface FilterBarProps {
  readonly filter: string;
  readonly onFilter: (filter: string) => void;
  /** A filter to show before something is written: `status:OPEN`. */
  readonly example: string;
  /** Ready filters beside the field. */
  readonly children?: ComponentChildren;
}

/** A filter in the query language over the fields of the items. Enter applies it. */
export function FilterBar({ filter, onFilter, example, children }: FilterBarProps) {
  const [text, setText] = useState(filter);
  // Before the reader can write: what is written at once would be lost.
  useLayoutEffect(() => setText(filter), [filter]);
  const apply = (event: SubmitEvent) => {
    event.preventDefault();
    onFilter(text.trim());
  };
  return (
    <form class="filter-bar" onSubmit={apply}>
      <div class="filter-field">
        <Icon name="search" />
        <input
          class="control mono"
          type="search"
          aria-label="Filter"
          placeholder={example}
          spellcheck={false}
          autocomplete="off"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </div>
      <Button type="submit">Filter</Button>
      {filter === '' ? undefined : (
        <Button kind="quiet" icon="close" onClick={() => onFilter('')}>
          Clear
        </Button>
      )}
      {children}
    </form>
  );
}

interface FilterChipProps {
  readonly label: string;
  /** The term that it adds to the filter, or takes from it. */
  readonly term: string;
  readonly filter: string;
  readonly onFilter: (filter: string) => void;
}

/** A ready term. It is written into the filter, where the reader sees the language. */
export function FilterChip({ label, term, filter, onFilter }: FilterChipProps) {
  const isOn = ` ${filter} `.includes(` ${term} `);
  const turned = isOn ? ` ${filter} `.replace(` ${term} `, ' ').trim() : `${filter} ${term}`.trim();
  return (
    <button type="button" class="filter-chip" aria-pressed={isOn} onClick={() => onFilter(turned)}>
      {label}
    </button>
  );
}
