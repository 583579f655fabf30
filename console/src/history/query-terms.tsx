import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Term } from '../../../src/query/scan.ts';
import { Icon } from '../components/icon.tsx';
import { later } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { timeText } from '../components/times.ts';
import { hasTime, topTerms, withoutTerm, withTime } from '../query-text/edit-query.ts';
import { textsOfQuery } from '../query-text/text-search.ts';
import { timeChoices } from './time-choices.ts';

/** The terms of the query, each with a button that takes it away. */
export function TermChips({ q, onQuery }: { readonly q: string; readonly onQuery: (q: string) => void }) {
  const terms = topTerms(q);
  if (terms.length === 0) return null;
  return (
    <ul class="chips" aria-label="Terms of the query">
      {terms.map((term) => (
        <li key={term.start} class="chip">
          <span class="chip-field">{nameOf(q, term)}</span>
          <Name class="chip-value" text={valueText(q, term)} />
          <button type="button" aria-label={`Remove ${nameOf(q, term)}`} onClick={() => onQuery(withoutTerm(q, term))}>
            <Icon name="close" size={12} />
          </button>
        </li>
      ))}
      {terms.length > 1 ? (
        <li>
          <button type="button" class="chip-clear" onClick={() => onQuery('')}>
            Clear all
          </button>
        </li>
      ) : undefined}
    </ul>
  );
}

/** The field; `text` of the search for a text in all values, whose condition is long. */
function nameOf(q: string, term: Term): string {
  return textOf(q, term) === '' ? term.field : 'text';
}

function textOf(q: string, { start, end }: Term): string {
  return textsOfQuery(q.slice(start, end)).join(' ');
}

/** The value as it is written; times in the reader's zone. */
function valueText(q: string, term: Term): string {
  const { field, valueStart, end } = term;
  const text = textOf(q, term);
  if (text !== '') return text;
  const written = q.slice(valueStart, end);
  if (field !== 'occurredAt') return written.replace(/^elemMatch\((.*)\)$/s, '$1');
  return written
    .replace(/^\(|\)$/g, '')
    .replace(
      /([<>]=?)"([^"]*)"/g,
      (_, comparison: string, time: string) => `${signs[comparison] ?? comparison} ${timeText(time, 'second')}`,
    )
    .replace(' AND ', ', ');
}

const signs: Readonly<Record<string, string>> = { '>=': 'from', '>': 'after', '<': 'before', '<=': 'until' };

const DaysDialog = later(async () => (await import('./days-dialog.tsx')).DaysDialog);

/** Ranges of time at a click. Each writes a term of the query. */
export function TimePresets({ q, onQuery }: { readonly q: string; readonly onQuery: (q: string) => void }) {
  const [isChoosing, setChoosing] = useState(false);
  const now = Date.now();
  return (
    <>
      <fieldset class="segments">
        <legend class="visually-hidden">Time</legend>
        {timeChoices.map(({ label, words, bounds }) => (
          <button
            key={label}
            type="button"
            title={capital(words)}
            aria-pressed={hasTime(q, bounds(now))}
            onClick={() => onQuery(withTime(q, bounds(Date.now())))}
          >
            {label}
          </button>
        ))}
        <button
          type="button"
          title="From a day or time to another"
          aria-haspopup="dialog"
          onClick={() => setChoosing(true)}
        >
          Days…
        </button>
      </fieldset>
      {isChoosing ? (
        <DaysDialog
          onClose={() => setChoosing(false)}
          onChoose={(bounds) => {
            setChoosing(false);
            onQuery(withTime(q, bounds));
          }}
        />
      ) : undefined}
    </>
  );
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Facets beside the entries. On a narrow screen they would push these out of sight, and start closed. */
export function Facets({ summary, children }: { readonly summary: string; readonly children: ComponentChildren }) {
  const [isWide] = useState(() => matchMedia('(min-width: 760px)').matches);
  return (
    <details class="facets" open={isWide}>
      <summary>{summary}</summary>
      {children}
    </details>
  );
}
