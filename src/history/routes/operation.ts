import type { FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';
import type { Credentials, Restriction } from '../../http/credentials.ts';
import type { AnswerHeader } from '../../http/openapi/components.ts';
import type { QueryParameters } from '../../http/query-parameters.ts';
import { historyScopes, insufficientScopes, mayReadContext } from '../../http/scopes.ts';
import type { PlanName } from '../entries/entry-store.ts';
import { ChangelogChangeItem, ChangelogHistoryResponse, ViewerChange, ViewerHistoryPage } from './schemas.ts';

/** Scopes of all operations of the change history, and the message of their 500 (contract 3). */
export const historyOperation = {
  scopes: historyScopes,
  internalErrorMessage: 'Problem encountered while trying to retrieve changelog history.',
} as const;

/** Whether entries come with their context. Throws insufficient_permissions if the caller may not see it. */
export function mayShowContext(
  context: 'true' | 'false' | undefined,
  { scopes, restriction }: Pick<Credentials, 'scopes' | 'restriction'>,
): boolean {
  if (context === 'true' && (!mayReadContext(scopes) || restriction !== undefined)) throw insufficientScopes();
  return context === 'true';
}

/** Refuses the context before the parameters are checked (contract: order of checks). */
export async function refuseContextWithoutScope(request: FastifyRequest): Promise<void> {
  const { context = [] } = request.query as QueryParameters;
  if (context.includes('true')) mayShowContext('true', request.credentials);
}

/** The same for operations that apply the restriction of a credential. */
export const restrictedOperation = { ...historyOperation, appliesRestriction: true } as const;

/** Reads that access tokens and viewer tokens share: one handler serves both. */
export interface ReadApi {
  readonly path: string;
  /** The last segment of the path of the list. */
  readonly list: string;
  readonly tag: string;
  /** The schemas of a page of the list, and of a change. */
  readonly page: TSchema;
  readonly change: TSchema;
  readonly headers: readonly AnswerHeader[];
  readonly config: typeof restrictedOperation & { readonly isOfViewer?: true };
  /** The operation's id, by that of the read. */
  operationId(read: string): string;
}

export const clientReads: ReadApi = {
  path: '/changelog/:tenant',
  list: 'changelogs',
  tag: 'Change history',
  page: ChangelogHistoryResponse,
  change: ChangelogChangeItem,
  headers: ['Server-Timing'],
  config: restrictedOperation,
  operationId: (read) => read,
};

export const viewerReads: ReadApi = {
  path: '/viewer/:tenant',
  list: 'changes',
  tag: 'Viewer',
  page: ViewerHistoryPage,
  change: ViewerChange,
  headers: [],
  config: { ...restrictedOperation, isOfViewer: true },
  operationId: (read) => read.replace(/^[a-z]+/, '$&Viewer'),
};

/**
 * The header with the plan of a query and its duration since `begun` (performance.now). There is none for a
 * restriction: the plan would reveal something of what it hides.
 *
 * @example
 * timingOf('tallies', begun, undefined); // { 'Server-Timing': 'tallies;dur=2.4' }
 */
export function timingOf(
  plan: PlanName,
  begun: number,
  restriction: Restriction | undefined,
): { 'Server-Timing'?: string } {
  if (restriction !== undefined) return {};
  return { 'Server-Timing': `${plan};dur=${(performance.now() - begun).toFixed(1)}` };
}
