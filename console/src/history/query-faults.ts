import { ApiError } from '@annals/client';

/** What the service says is wrong with a query, and where. */
export interface QueryFault {
  readonly message: string;
  /** 0-based, in UTF-16 code units; undefined where the service names no position. */
  readonly offset: number | undefined;
}

/** The fault of a query that the service refused; undefined where it failed otherwise. */
export function queryFaultOf(error: unknown, q: string): QueryFault | undefined {
  if (!(error instanceof ApiError) || error.type !== 'validation_violation') return undefined;
  const detail = error.details.find(({ field }) => field === 'q');
  if (detail === undefined) return undefined;
  const [, position, expected = detail.message] = /^At position (\d+): (.*)$/s.exec(detail.message) ?? [];
  const message = error.message === detail.message ? expected : `${error.message}. ${capital(expected)}.`;
  return { message, offset: position === undefined ? undefined : offsetOf(q, Number(position)) };
}

/** The service counts characters from 1; an emoji is one. */
function offsetOf(q: string, position: number): number {
  return [...q].slice(0, position - 1).join('').length;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
