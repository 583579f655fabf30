/** The closed list of OAuth scopes (contract: authentication). A client is granted some of them, never any other. */
export const scopes = [
  'changelog.changelog_read',
  'changelog.changelog_manage',
  'ai.agent_read',
  'ai.agent_manage',
  'ai.agentexecution_manage',
  'ai.completion_manage',
  'configuration.configuration_view',
  'configuration.configuration_manage',
  'schema.schema_read',
  'schema.schema_manage',
  'schema.custominstance_read',
  'schema.custominstance_manage',
] as const;

export type Scope = (typeof scopes)[number];

const known: ReadonlySet<string> = new Set(scopes);

export function isScope(text: string): text is Scope {
  return known.has(text);
}

/** Either of them suffices to read the change history (spec: authentication). */
export const historyScopes: readonly Scope[] = ['changelog.changelog_read', 'changelog.changelog_manage'];

export function mayReadHistory(granted: readonly Scope[]): boolean {
  return granted.some((scope) => historyScopes.includes(scope));
}
