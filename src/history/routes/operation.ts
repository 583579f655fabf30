import type { FastifyRequest } from 'fastify';
import type { QueryParameters } from '../../http/query-string.ts';
import { historyScopes, insufficientScopes, mayReadContext, type Scope } from '../../http/scopes.ts';
import type { Way } from '../page/store.ts';

/** What all operations of the change history have in common: their scopes, and the message of their 500 (contract 3). */
export const historyOperation = {
  scopes: historyScopes,
  internalErrorMessage: 'Problem encountered while trying to retrieve changelog history.',
} as const;

/** Whether entries are to be shown with their context. Throws insufficient_permissions if the client may not see it. */
export function mayShowContext(asked: 'true' | 'false' | undefined, scopes: readonly Scope[]): boolean {
  if (asked === 'true' && !mayReadContext(scopes)) throw insufficientScopes();
  return asked === 'true';
}

/** Refuses to show the context before the parameters are checked (contract: order of checks). */
export async function refuseContextWithoutScope(request: FastifyRequest): Promise<void> {
  const { context = [] } = request.query as QueryParameters;
  if (context.includes('true')) mayShowContext('true', request.credentials.scopes);
}

/**
 * The header that says how a query was answered, and how long it took since `begun` (performance.now).
 *
 * @example
 * timingOf('tallies', begun); // { 'Server-Timing': 'tallies;dur=2.4' }
 */
export function timingOf(way: Way, begun: number): { 'Server-Timing': string } {
  return { 'Server-Timing': `${way};dur=${(performance.now() - begun).toFixed(1)}` };
}
