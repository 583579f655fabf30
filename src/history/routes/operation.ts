import type { FastifyRequest } from 'fastify';
import type { Credentials } from '../../http/credentials.ts';
import type { QueryParameters } from '../../http/query-string.ts';
import type { Restriction } from '../../http/restriction.ts';
import { historyScopes, insufficientScopes, mayReadContext } from '../../http/scopes.ts';
import type { Way } from '../page/store.ts';

/** What all operations of the change history have in common: their scopes, and the message of their 500 (contract 3). */
export const historyOperation = {
  scopes: historyScopes,
  internalErrorMessage: 'Problem encountered while trying to retrieve changelog history.',
} as const;

/** Whether entries are to be shown with their context. Throws insufficient_permissions if the caller may not see it. */
export function mayShowContext(
  asked: 'true' | 'false' | undefined,
  { scopes, restriction }: Pick<Credentials, 'scopes' | 'restriction'>,
): boolean {
  if (asked === 'true' && (!mayReadContext(scopes) || restriction !== undefined)) throw insufficientScopes();
  return asked === 'true';
}

/** Refuses to show the context before the parameters are checked (contract: order of checks). */
export async function refuseContextWithoutScope(request: FastifyRequest): Promise<void> {
  const { context = [] } = request.query as QueryParameters;
  if (context.includes('true')) mayShowContext('true', request.credentials);
}

/** The same for operations that answer a credential with a restriction by what that shows. */
export const restrictedOperation = { ...historyOperation, appliesRestriction: true } as const;

/**
 * The header that says how a query was answered, and how long it took since `begun` (performance.now). There is none for a
 * restriction: how its query was answered would tell of what it does not show.
 *
 * @example
 * timingOf('tallies', begun, undefined); // { 'Server-Timing': 'tallies;dur=2.4' }
 */
export function timingOf(way: Way, begun: number, restriction: Restriction | undefined): { 'Server-Timing'?: string } {
  if (restriction !== undefined) return {};
  return { 'Server-Timing': `${way};dur=${(performance.now() - begun).toFixed(1)}` };
}
