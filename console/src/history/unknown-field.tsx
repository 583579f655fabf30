import { readNames } from '../api/history-reads.ts';
import { allows, historyAbilities } from '../api/session.ts';
import { useRequest } from '../api/use-request.ts';
import { Button } from '../components/button.tsx';
import { nameOfPath, writtenPath } from '../query-text/path-terms.ts';
import { scanQuery, type Term } from '../query-text/scan-query.ts';

interface UnknownFieldProps {
  readonly q: string;
  /** The name that is no field of the query language, and where it stands, in UTF-16 code units. */
  readonly field: string;
  readonly offset: number;
  readonly onQuery: (q: string) => void;
}

/** Where documents have a path of that name: the term that finds its changes. */
export function UnknownField({ q, field, offset, onQuery }: UnknownFieldProps) {
  const { terms } = scanQuery(q);
  const term = terms.find(({ start }) => start === offset);
  const mayBePath = term !== undefined && allows(historyAbilities.names) && !terms.some((one) => isRelated(one, term));
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

/** Whether a term is a match of related items around the other, where no path stands. */
function isRelated({ field, start, end }: Term, inner: Term): boolean {
  return field === 'related' && start < inner.start && end >= inner.end;
}
