import type { ShownActors } from '../core/written-restriction.ts';
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
  actors: { type: 'string' },
} as const;

type CredentialValues = { readonly [Name in keyof typeof credentialOptions]?: string | undefined };

/** The tenant, the name and the rights. Throws a UsageError. */
export function credentialOf(command: string, { tenant, scope, name, ...shown }: CredentialValues) {
  if (tenant === undefined || scope === undefined) throw new UsageError(`${command} needs --tenant and --scope`);
  return { tenant, scope, name, restriction: restrictionOf(shown) };
}

const shownActors: ReadonlyMap<string, ShownActors> = new Map<string, ShownActors>([
  ['none', false],
  ['false', false],
  ['names', true],
  ['true', true],
  ['all', 'all'],
]);

/** The restriction of `--query`, `--hide` and `--actors`; undefined without any. */
function restrictionOf({ query, hide, actors }: Pick<CredentialValues, 'query' | 'hide' | 'actors'>) {
  if (query === undefined && hide === undefined && actors === undefined) return undefined;
  const paths = namesOf(hide) ?? [];
  if (hide !== undefined && paths.length === 0) throw new UsageError('--hide needs at least one path');
  const shown = actors === undefined ? undefined : shownActors.get(actors);
  if (actors !== undefined && shown === undefined) throw new UsageError('--actors must be none, names or all');
  return readRestriction([{ query: query ?? '', hide: paths, ...(shown !== undefined && { actors: shown }) }]);
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
