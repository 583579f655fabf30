import { Icon } from '../components/icon.tsx';
import { Name } from '../components/name.tsx';
import { timeText } from '../components/time-text.ts';
import { topTerms, withoutTerm } from '../query-text/edit-query.ts';
import type { Term } from '../query-text/scan-query.ts';

interface TermChipsProps {
  readonly q: string;
  readonly onQuery: (q: string) => void;
}

/** The terms of the query, each with a button that takes it away. */
export function TermChips({ q, onQuery }: TermChipsProps) {
  const terms = topTerms(q);
  if (terms.length === 0) return null;
  return (
    <ul class="chips" aria-label="Terms of the query">
      {terms.map((term) => (
        <li key={term.start} class="chip">
          <span class="chip-field">{term.field}</span>
          <span class="chip-value">
            <Name text={valueText(q, term)} />
          </span>
          <button type="button" aria-label={`Remove ${term.field}`} onClick={() => onQuery(withoutTerm(q, term))}>
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

/** The value as it is written; times in the reader's zone. */
function valueText(q: string, { field, valueStart, end }: Term): string {
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
