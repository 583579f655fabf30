import { AnnalsError } from '../core/errors.ts';

/**
 * The closed list of OAuth scopes (contract: authentication), each with a sentence that says what it permits. A client
 * can have these scopes and no others.
 */
export const permittedBy = {
  'changelog.changelog_read': 'Reads and exports the change history, also where exports, chats and their logs show it.',
  'changelog.changelog_manage':
    'Writes saved views, and reads the context of changes and how they were recorded. Includes ' +
    'changelog.changelog_read.',
  'changelog.proof_read':
    'Reads the proof that the history was not altered: checkpoints, tiles, and proofs of changes, which show the change to readers of the history.',
  'changelog.access_read': 'Reads who signed in, who was refused, and who downloaded exports.',
  'changelog.viewer_issue': 'Makes viewer tokens, each of which shows a part of the change history to one person.',
  'changelog.subscription_read':
    'Reads subscriptions: what goes out of the change history, where to, and its attempts.',
  'changelog.subscription_manage':
    'Writes and reads subscriptions. To write one, a client also needs a scope that reads the change history.',
  'ai.agent_read': 'Reads language models, agents, jobs, and the logs of requests and sessions.',
  'ai.agent_manage': 'Writes agents and deletes jobs. Includes ai.agent_read.',
  'ai.agentexecution_manage': 'Chats with agents.',
  'ai.completion_manage': 'Generates completions, and reads how much of the quota is used.',
  'configuration.configuration_view': 'Reads the configuration, without secured values.',
  'configuration.configuration_manage': 'Writes and reads the configuration.',
  'schema.schema_read': 'Reads the types of custom entities and their schemas.',
  'schema.schema_manage': 'Writes and reads the types of custom entities and their schemas.',
  'schema.custominstance_read': 'Reads the instances of custom entities.',
  'recorder.change_record': 'Sends changes to the recorder.',
  'recorder.actor_set':
    'Sets who made a recorded change, and for whom. Without this scope the actor is the name of the client.',
  'schema.custominstance_manage': 'Writes and reads the instances of custom entities.',
  'access.credential_view':
    'Reads who is signed in, the programs that people allowed, and clients and keys: who made them, their rights and their last use, without secrets.',
  'access.credential_manage':
    'Ends sessions and what people allowed programs; makes clients and keys within its own rights, narrows, rotates and revokes them; and tests the sign-in. Includes access.credential_view.',
  'usage.budget_manage': 'Writes and reads budgets: what calls of models may use and cost.',
  'usage.usage_read': 'Reads the usage by day (entries, bytes, requests and tokens), calls of models and their costs.',
} as const;

export type Scope = keyof typeof permittedBy;

export function isScope(text: string): text is Scope {
  return Object.hasOwn(permittedBy, text);
}

export const scopes: readonly Scope[] = Object.keys(permittedBy).filter(isScope);

/** Granted by name alone: no default includes them. */
const namedScopes: readonly Scope[] = ['access.credential_view', 'access.credential_manage'];

/** The scopes that only read, as a link to the console has them by default. */
export const readingScopes: readonly Scope[] = scopes.filter(
  (scope) => /_(?:read|view)$/.test(scope) && !namedScopes.includes(scope),
);

/** The scopes that a restricted credential can have. */
export const restrictableScopes: readonly Scope[] = ['changelog.changelog_read', 'changelog.viewer_issue'];

/** The same error for another tenant and a missing scope, which does not reveal whether a tenant exists. */
export function insufficientScopes(): AnnalsError {
  return new AnnalsError(
    'insufficient_permissions',
    'Given request does not have required scopes. It is not authorized to perform this operation.',
  );
}

/** Each of these permits reading the change history (spec: authentication). */
export const historyScopes: readonly Scope[] = ['changelog.changelog_read', 'changelog.changelog_manage'];

export function mayReadHistory(granted: readonly Scope[]): boolean {
  return granted.some((scope) => historyScopes.includes(scope));
}

/** An entry's context and how it was recorded are for those who manage the history. */
export function mayReadContext(granted: readonly Scope[]): boolean {
  return granted.includes('changelog.changelog_manage');
}
