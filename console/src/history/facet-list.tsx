import { type FacetField, readFacets } from '../api/history-reads.ts';
import { useRequest } from '../api/requests.ts';
import { changeTypes } from '../components/change-types.ts';
import { countText } from '../components/numbers.ts';
import { ChangeTypeMark } from '../components/values.tsx';
import { chosenValues, togglePath, toggleValue, writtenItems, writtenPath } from '../query-text/edit-query.ts';
import { Person } from './who.tsx';
import type { Named } from './who-queries.ts';
import { showsActors, showsIds } from './who-shown.ts';
import './history-page.css';

const facets: readonly (readonly [FacetField, string])[] = [
  ['type', 'Type'],
  ['entity', 'Entity'],
  ['actor', 'Actor'],
  ['path', 'Field'],
];

/** What a history may lack: last, so that nothing moves where they are missing. */
const facetsOfIds: typeof facets = [
  ['actorId', 'Person'],
  ['onBehalfOf', 'On behalf of'],
];

interface FacetListsProps {
  /** The query whose matches are counted; undefined until the service has taken it. */
  readonly counted: string | undefined;
  /** What the reader has written, which a click changes. */
  readonly q: string;
  readonly round: number;
  readonly onQuery: (q: string) => void;
}

interface FacetListProps extends FacetListsProps {
  readonly field: FacetField;
  readonly title: string;
  /** Whether nothing is shown where no entry has a value. */
  readonly isOptional?: boolean;
}

const size = 8;

/** By what the query can be narrowed. */
export function FacetLists({
  entries,
  ...props
}: FacetListsProps & { readonly entries: readonly Named[] | undefined }) {
  const shown = showsActors(entries) ? facets : facets.filter(([field]) => field !== 'actor');
  return (
    <>
      {shown.map(([field, title]) => (
        <FacetList key={field} field={field} title={title} {...props} />
      ))}
      {(showsIds(entries) ? facetsOfIds : []).map(([field, title]) => (
        <FacetList key={field} field={field} title={title} isOptional {...props} />
      ))}
    </>
  );
}

/**
 * The values of a field with most of the matching entries, with exact counts. A click narrows the query, and shows how.
 */
export function FacetList({ field, title, isOptional = false, counted, q, round, onQuery }: FacetListProps) {
  const { value } = useRequest(counted === undefined ? undefined : `${counted} ${round}`, (signal) =>
    readFacets(counted ?? '', field, size, signal),
  );
  const { has, toggle } = choiceOf(field, q);
  if (isOptional && (value === undefined || value.values.length === 0)) return null;
  const max = Math.max(1, ...(value?.values ?? []).map(({ count }) => count));
  return (
    <section class="facet">
      <h2>{title}</h2>
      <ul>
        {(value?.values ?? []).map(({ value: text, name, count }) => (
          <li key={text}>
            <button type="button" class="facet-value" aria-pressed={has(text)} onClick={() => onQuery(toggle(text))}>
              <span class="facet-bar" style={{ width: `${(count / max) * 100}%` }} />
              <span class="facet-text">
                {isType(text) && field === 'type' ? <ChangeTypeMark type={text} /> : <Person name={name} id={text} />}
              </span>
              <span class="number facet-count">{countText(count)}</span>
            </button>
          </li>
        ))}
      </ul>
      {value !== undefined && value.others > 0 ? (
        <p class="facet-others">
          {countText(value.others)} {field === 'path' ? 'more' : 'in all others'}
        </p>
      ) : undefined}
      {value?.values.length === 0 ? <p class="facet-others">none</p> : undefined}
    </section>
  );
}

interface Choice {
  /** Whether the query asks for a value. */
  readonly has: (text: string) => boolean;
  /** The query after a click on a value. */
  readonly toggle: (text: string) => string;
}

function choiceOf(field: FacetField, q: string): Choice {
  if (field === 'path') {
    const items = writtenItems(q, field);
    return { has: (text) => items.includes(writtenPath(text)), toggle: (text) => togglePath(q, writtenPath(text)) };
  }
  const chosen = chosenValues(q, field) ?? [];
  return { has: (text) => chosen.includes(text), toggle: (text) => toggleValue(q, field, text) };
}

function isType(text: string): text is (typeof changeTypes)[number] {
  return changeTypes.some((type) => type === text);
}
