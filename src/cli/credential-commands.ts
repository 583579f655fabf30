import { readRestriction } from '../history/search/plan/restriction.ts';
import type { Database } from '../postgres/database.ts';
import { parseCommand } from './arguments.ts';
import { type CommandIo, UsageError } from './command.ts';
import { requireNamedTenant } from './require-tenant.ts';
import { withInterruptibleDatabase } from './with-database.ts';

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

/** A command such as `client list --tenant T`, which prints a JSON array. */
export async function listOfTenant(
  command: string,
  args: string[],
  io: CommandIo,
  read: (db: Database, tenant: string) => Promise<readonly object[]>,
): Promise<number> {
  const { tenant } = parseCommand(command, { args, options: { tenant: { type: 'string' } } }).values;
  if (tenant === undefined) throw new UsageError(`${command} needs --tenant`);
  const found = await withInterruptibleDatabase(io, async ({ db }) => {
    await requireNamedTenant(db, tenant);
    return await read(db, tenant);
  });
  io.answer(JSON.stringify(found, null, 2));
  return 0;
}
