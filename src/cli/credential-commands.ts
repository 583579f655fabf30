import { type Administration, createAdministration } from '../access/keys/administration.ts';
import { maxKeyRate } from '../access/keys/key-store.ts';
import { tenantOfClientId } from '../access/oauth/client-identity.ts';
import { endSessionsOfSecret } from '../access/sessions/session-store.ts';
import { durationPattern, millisecondsOf } from '../core/duration.ts';
import { OperatorError } from '../core/errors.ts';
import type { ShownActors, WrittenRestriction } from '../core/written-restriction.ts';
import { readRestriction } from '../history/search/plan/restriction.ts';
import { isScope, type Scope } from '../http/scopes.ts';
import type { Database } from '../postgres/database.ts';
import { onlyOperand, parseCommand } from './arguments.ts';
import { type CommandIo, UsageError } from './command.ts';
import { requireNamedTenant } from './require-tenant.ts';
import { withInterruptibleDatabase } from './with-database.ts';

const narrowingOptions = {
  scope: { type: 'string' },
  query: { type: 'string' },
  hide: { type: 'string' },
  actors: { type: 'string' },
  expires: { type: 'string' },
} as const;

/** The options of commands that create a client or a key. */
export const credentialOptions = {
  tenant: { type: 'string' },
  name: { type: 'string' },
  ...narrowingOptions,
} as const;

/** Those of keys in addition. */
export const keyOptions = { models: { type: 'string' }, rate: { type: 'string' } } as const;

type CredentialValues = { readonly [Name in keyof typeof credentialOptions]?: string | undefined };

/** The tenant, the name and the rights. Throws a UsageError. */
export function credentialOf(command: string, { tenant, scope, name, expires, ...shown }: CredentialValues) {
  if (tenant === undefined || scope === undefined) throw new UsageError(`${command} needs --tenant and --scope`);
  const part = partOf(shown);
  return { tenant, scope, name, restriction: part && readRestriction([part]), expiry: lifetimeOf(expires) };
}

const shownActors: ReadonlyMap<string, ShownActors> = new Map<string, ShownActors>([
  ['none', false],
  ['false', false],
  ['names', true],
  ['true', true],
  ['all', 'all'],
]);

/** The restriction of `--query`, `--hide` and `--actors`, as written; undefined without any. */
function partOf({ query, hide, actors }: CredentialValues): WrittenRestriction | undefined {
  if (query === undefined && hide === undefined && actors === undefined) return undefined;
  const paths = namesOf(hide) ?? [];
  if (hide !== undefined && paths.length === 0) throw new UsageError('--hide needs at least one path');
  const shown = actors === undefined ? undefined : shownActors.get(actors);
  if (actors !== undefined && shown === undefined) throw new UsageError('--actors must be none, names or all');
  return { query: query ?? '', hide: paths, ...(shown !== undefined && { actors: shown }) };
}

/** Milliseconds. */
function lifetimeOf(expires: string | undefined): number | undefined {
  if (expires === undefined) return undefined;
  const lifetime = new RegExp(durationPattern).test(expires) ? millisecondsOf(expires) : 0;
  if (lifetime > 0) return lifetime;
  throw new UsageError('--expires must be an ISO 8601 duration in weeks, or in days and time: P90D, PT12H');
}

export function rateOf(rate: string | undefined): number | undefined {
  if (rate === undefined) return undefined;
  if (/^\d{1,6}$/.test(rate) && Number(rate) >= 1) return Number(rate);
  throw new UsageError(`--rate must be a whole number of requests a second: 1 to ${maxKeyRate}`);
}

type CredentialKind = 'client' | 'key';

/** `client narrow` and `key narrow`: removes rights. */
export async function narrowCredential(kind: CredentialKind, args: string[], io: CommandIo): Promise<number> {
  const options = { ...narrowingOptions, ...(kind === 'key' && keyOptions) };
  const { values, ...named } = namedCredential(kind, 'narrow', args, options);
  const { scope, models, rate, expires } = values;
  const lifetime = lifetimeOf(expires);
  const narrowing = {
    ...partOf(values),
    scopes: namesOf(scope)?.map(scopeOf),
    models: namesOf(models),
    rate: rateOf(rate),
    expiresIn: lifetime === undefined ? undefined : lifetime / 1_000,
  };
  if (Object.values(narrowing).every((value) => value === undefined))
    throw new UsageError(`${kind} narrow needs one of --${Object.keys(options).join(', --')}`);
  await administer(io, kind, (credentials) => credentials.narrow(named.tenant, named.id, narrowing));
  io.answer(JSON.stringify({ ...shownName(kind, named), narrowed: true }));
  return 0;
}

/** `client rotate` and `key rotate`: replaces the secret, and prints the new one. */
export async function rotateCredential(kind: CredentialKind, args: string[], io: CommandIo): Promise<number> {
  const named = namedCredential(kind, 'rotate', args, {});
  const { secret } = await administer(io, kind, (credentials) => credentials.rotate(named.tenant, named.id));
  io.answer(JSON.stringify({ ...shownName(kind, named), ...secret }));
  return 0;
}

/** The id of a client has its tenant. Throws a UsageError. */
function namedCredential(
  kind: CredentialKind,
  action: string,
  args: string[],
  options: Readonly<Record<string, { readonly type: 'string' }>>,
): { tenant: string; id: string; values: Readonly<Record<string, string | undefined>> } {
  const command = `${kind} ${action}`;
  const all = kind === 'key' ? { tenant: { type: 'string' } as const, ...options } : options;
  const { values, positionals } = parseCommand(command, { args, options: all, allowPositionals: true });
  const needed = `${command} needs ${kind === 'key' ? '--tenant and one KEY_ID' : 'one CLIENT_ID'}`;
  const id = onlyOperand(positionals, needed);
  const texts = values as Readonly<Record<string, string | undefined>>;
  const tenant = kind === 'key' ? texts.tenant : tenantOfClientId(id);
  if (tenant !== undefined) return { tenant, id, values: texts };
  throw kind === 'key' ? new UsageError(needed) : new OperatorError(`there is no client ${id}`);
}

function shownName(kind: CredentialKind, { tenant, id }: { tenant: string; id: string }): object {
  return kind === 'client' ? { clientId: id, tenant } : { id, tenant };
}

function scopeOf(text: string): Scope {
  if (isScope(text)) return text;
  throw new UsageError(`there is no scope ${text}`);
}

async function administer<Result>(
  io: CommandIo,
  kind: CredentialKind,
  work: (credentials: Administration['clients']) => Promise<Result>,
): Promise<Result> {
  return await withInterruptibleDatabase(io, ({ db }) =>
    work(createAdministration({ db, readRestriction, endSessionsOfSecret })[`${kind}s`]),
  );
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
