import { readRestriction } from '../history/search/plan/restriction.ts';
import { UsageError } from './command.ts';

/** The options of commands that create a client or a key. */
export const credentialOptions = {
  tenant: { type: 'string' },
  scope: { type: 'string' },
  name: { type: 'string' },
  query: { type: 'string' },
  hide: { type: 'string' },
} as const;

type CredentialValues = { readonly [Name in keyof typeof credentialOptions]?: string | undefined };

/** The tenant, the name and the rights. Throws a UsageError. */
export function credentialOf(command: string, { tenant, scope, name, query, hide }: CredentialValues) {
  if (tenant === undefined || scope === undefined) throw new UsageError(`${command} needs --tenant and --scope`);
  return { tenant, scope, name, restriction: restrictionOf({ query, hide }) };
}

/** The restriction of `--query` and `--hide`; undefined without either. */
function restrictionOf({ query, hide }: Pick<CredentialValues, 'query' | 'hide'>) {
  if (query === undefined && hide === undefined) return undefined;
  const paths = namesOf(hide) ?? [];
  if (hide !== undefined && paths.length === 0) throw new UsageError('--hide needs at least one path');
  return readRestriction([{ query: query ?? '', hide: paths }]);
}

/** The names of a list separated by blanks or commas. */
export function namesOf(list: string | undefined): string[] | undefined {
  return list?.split(/[ ,]/).filter((name) => name !== '');
}
