import { ApiError } from '@annals/client';
import { useRef } from 'preact/hooks';
import type { Requested } from '../api/requests.ts';

/** What the service says is wrong with a query, and where. */
export interface QueryFault {
  readonly message: string;
  /** A name in the place of a field that the language does not have. */
  readonly unknownField?: string | undefined;
  /** 0-based, in UTF-16 code units; undefined where the service names no position. */
  readonly offset: number | undefined;
}

const howToAsk =
  'This is no query. Write a field, a colon and a value, such as entity:order, actor:Jane Doe or type:update, or choose what you mean below.';

/** The fault of a query that the service refused; undefined where it failed otherwise. */
export function queryFaultOf(error: unknown, q: string): QueryFault | undefined {
  if (!(error instanceof ApiError) || error.type !== 'validation_violation') return undefined;
  const detail = error.details.find(({ field }) => field === 'q');
  if (detail === undefined) return undefined;
  const [, position, expected = detail.message] = /^At position (\d+): (.*)$/s.exec(detail.message) ?? [];
  // A position would not help a reader who does not know the language.
  if (isWords(q)) return { message: howToAsk, offset: undefined };
  // The service's message may say the same as its detail.
  const message = error.message.endsWith(expected) ? `${capital(expected)}.` : `${error.message}; ${expected}.`;
  const offset = position === undefined ? undefined : offsetOf(q, Number(position));
  return { message, offset, unknownField: /^Unsupported query field: (.+)$/s.exec(error.message)?.[1] };
}

/** Whether a text has nothing of the query language: the reader searches for these words. */
export function isWords(q: string): boolean {
  return !q.includes(':');
}

/** The service counts characters from 1; an emoji is one. */
function offsetOf(q: string, position: number): number {
  return [...q].slice(0, position - 1).join('').length;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

interface QueryCheck {
  /** What is wrong with the query. */
  readonly fault: QueryFault | undefined;
  /** The query for chart and facets; undefined until the service has taken it. */
  readonly accepted: string | undefined;
}

/** Checks a query by its list, at no further request. `q`: the reader’s part of `sent`. Paging keeps the result. */
export function useQueryCheck(
  list: Requested<unknown>,
  { q, sent }: { readonly q: string; readonly sent: string },
): QueryCheck {
  const fault = queryFaultOf(list.error, q);
  const known = useRef('');
  if (list.isCurrent || (list.error !== undefined && fault === undefined)) known.current = sent;
  return { fault, accepted: fault === undefined && (sent === '' || known.current === sent) ? sent : undefined };
}
