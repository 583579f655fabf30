import { useRef } from 'preact/hooks';
import type { Requested } from '../api/use-request.ts';
import { type QueryFault, queryFaultOf } from './query-faults.ts';

export interface QueryCheck {
  /** What is wrong with the query. */
  readonly fault: QueryFault | undefined;
  /** The query for chart and facets; undefined until the service has taken it. */
  readonly accepted: string | undefined;
}

/**
 * Checks a query by its list, so that a wrong query costs one request. `q` is what the reader wrote of `asked`. A query that was
 * accepted stays so while its pages are turned.
 */
export function useQueryCheck(
  list: Requested<unknown>,
  { q, asked }: { readonly q: string; readonly asked: string },
): QueryCheck {
  const fault = queryFaultOf(list.error, q);
  const known = useRef('');
  if (list.isCurrent || (list.error !== undefined && fault === undefined)) known.current = asked;
  return { fault, accepted: fault === undefined && (asked === '' || known.current === asked) ? asked : undefined };
}
