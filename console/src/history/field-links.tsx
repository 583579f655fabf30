import { JsonNumber } from '@annals/client/json';
import type { PathChange } from '../api/history-reads.ts';
import { Link } from '../router/link.tsx';
import { type DocumentField, queryOfDocumentField, queryOfField, queryOfStep, queryOfValue } from './field-queries.ts';
import { historyOf } from './history-view.ts';
import './field-links.css';

interface FieldLinksProps {
  readonly field: DocumentField;
  readonly change: PathChange;
  /** Whether the links stand there at once. */
  readonly open: boolean;
}

/** What one asks next about a field that has changed: each is the history of a query. */
export function FieldLinks({ field, change: { before, after }, open }: FieldLinksProps) {
  const value = after ?? before;
  const isNumber = before instanceof JsonNumber && after instanceof JsonNumber;
  const ofValue = value === undefined ? undefined : queryOfValue(field, value);
  return (
    <details class="field-links" open={open}>
      <summary>Find changes</summary>
      <ul>
        <li>
          <Link to={historyOf(queryOfDocumentField(field))}>of this field of this document</Link>
        </li>
        <li>
          <Link to={historyOf(queryOfField(field))}>
            of this field of any <bdi>{field.entity}</bdi>
          </Link>
        </li>
        {(isNumber ? (['lower', 'higher'] as const) : []).map((step) => (
          <li key={step}>
            <Link to={historyOf(queryOfStep(field, step))}>that made this field {step}</Link>
          </li>
        ))}
        {ofValue === undefined ? undefined : (
          <li>
            <Link to={historyOf(ofValue)}>when it had {after === undefined ? 'the old' : 'the new'} value</Link>
          </li>
        )}
      </ul>
    </details>
  );
}
