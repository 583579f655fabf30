import { historyScopes } from '../http/scopes.ts';

/** What all operations of the change history have in common: their scopes, and the message of their 500 (contract 3). */
export const historyOperation = {
  scopes: historyScopes,
  internalErrorMessage: 'Problem encountered while trying to retrieve changelog history.',
} as const;
