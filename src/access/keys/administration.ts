// Clients and keys as other clients administer them over HTTP, and operators by commands. Writes of a tenant wait for each
// other, so that what was checked of the maker, of names and of limits holds at the commit.
import { type RawBuilder, sql } from 'kysely';
import { AnnalsError, invalidField } from '../../core/errors.ts';
import {
  type ShownActors,
  shownActorsOf,
  type WrittenActors,
  type WrittenRestriction,
} from '../../core/written-restriction.ts';
import { AccessTokenFault, type Caller, type Credentials, type ReadRestriction } from '../../http/credentials.ts';
import { insufficientScopes, type Scope } from '../../http/scopes.ts';
import type { DocumentRows } from '../../pagination/paginator.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { lockTenant } from '../../postgres/tenants/tenants.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { noteAccess } from '../accesses/store.ts';
import { checkClientName, hashClientSecret, newClientSecret } from '../oauth/client-identity.ts';
import {
  type ActingClient,
  type ClientRecord,
  clientRows,
  findClient,
  findDocument,
  makeClient,
  refuseWiderScopes,
  revokeClientOf,
} from '../oauth/clients.ts';
import { endOfMakers, makersOfClient, maxUnconfirmed } from '../oauth/makers.ts';
import { checkModels, keyRows, keyScopesOf, keysWithMakers, makeKey, makersOfKey, revokeKeys } from './key-store.ts';
import { hashOfSecret, newKey, writeKey } from './key-text.ts';

/** Active clients of a tenant, and active keys, as far as they are made over HTTP. */
export const maxCredentials = 1_000;
/** Clients through which a client is made, one by the other. */
export const maxMakers = 5;
/** How often the query, the masks or the actors of a credential can be narrowed, with its first ones. */
export const maxParts = 8;
/** Seconds: the longest life, and that of what a person makes, which is also its default. */
export const maxLifetime = 3_650 * 86_400;
export const maxLifetimeOfPerson = 90 * 86_400;

/** Who administers: a client, by a request. */
export interface Acting {
  readonly credentials: Pick<Credentials, 'tenant' | 'clientId' | 'clientName' | 'scopes' | 'person' | 'session'>;
  readonly caller: Caller;
  /**
   * Locks the sessions of the request's person against their end. Rejects where they have ended; and, where the person
   * makes something, if they cannot be renewed, so that nothing would tell when to end it.
   */
  lockPerson(transaction: DatabaseTransaction, how: { makes: boolean }): Promise<void>;
}

interface Rights {
  readonly scopes?: readonly Scope[] | undefined;
  readonly query?: string | undefined;
  readonly hide?: readonly string[] | undefined;
  readonly actors?: WrittenActors | undefined;
  /** Seconds. */
  readonly expiresIn?: number | undefined;
  /** Of keys. */
  readonly models?: readonly string[] | undefined;
  readonly rate?: number | undefined;
}

/** Rights to remove. `scopes` and `models` are those that stay. */
export type Narrowing = Rights;

export interface NewCredential extends Rights {
  readonly scopes: readonly Scope[];
  /** Of keys: the end user of all their calls of models. */
  readonly user?: string | undefined;
  readonly name?: string | undefined;
}

/** A credential as lists show it. */
interface Shown {
  readonly id: string;
  readonly scopes: readonly Scope[];
  readonly restriction?: readonly WrittenRestriction[];
  readonly models?: readonly string[];
  readonly rate?: number;
  readonly expiresAt?: string;
  readonly state: 'active' | 'revoked' | 'expired' | 'ended';
}

/** What differs between clients and keys. */
interface Kind {
  readonly noun: 'client' | 'key';
  readonly table: RawBuilder<unknown>;
  readonly id: RawBuilder<unknown>;
  rows(tenant: string): DocumentRows;
  /** The scopes that one can have if its maker has these. */
  within(scopes: readonly Scope[]): readonly Scope[];
  /** How many of the tenant are active. */
  active(tenant: string): RawBuilder<unknown>;
  newSecret(id: string): { readonly hash: Uint8Array; readonly shown: object };
}

const isActive = (of: 'c' | 'k', end: RawBuilder<unknown>) => sql`${sql.ref(`${of}.revoked_at`)} is null
  and coalesce(least(${sql.ref(`${of}.expires_at`)}, ${end}) > statement_timestamp(), true)`;
const activeClients = (tenant: string) =>
  sql`oauth_client c where c.tenant = ${tenant} and ${isActive('c', endOfMakers(makersOfClient(tenant)))}`;
const activeKeys = (tenant: string) =>
  sql`${keysWithMakers} where k.tenant = ${tenant} and ${isActive('k', endOfMakers(makersOfKey(tenant)))}`;

const clients: Kind = {
  noun: 'client',
  table: sql`oauth_client`,
  id: sql`client_id`,
  rows: (tenant) => clientRows(tenant),
  within: (scopes) => scopes,
  active: (tenant) => sql`${activeClients(tenant)} and c.secret_hash is not null`,
  newSecret() {
    const clientSecret = newClientSecret();
    return { hash: hashClientSecret(clientSecret), shown: { clientSecret } };
  },
};

const keys: Kind = {
  noun: 'key',
  table: sql`access_key`,
  id: sql`key_id`,
  rows: keyRows,
  within: keyScopesOf,
  active: activeKeys,
  newSecret(id) {
    const { secret } = newKey();
    return { hash: hashOfSecret(secret), shown: { key: writeKey({ id, secret }) } };
  },
};

const kinds = { client: clients, key: keys } as const;

/**
 * Ends the sessions of the console that began with the secret of a client, but for one with this id. Returns their ids.
 */
type EndSessionsOfSecret = (
  transaction: DatabaseTransaction,
  which: { tenant: string; clientId: string; except: string | undefined },
) => Promise<readonly string[]>;

export type Administration = ReturnType<typeof createAdministration>;

export function createAdministration({
  db,
  readRestriction,
  endSessionsOfSecret,
}: {
  db: Database;
  readRestriction: ReadRestriction;
  endSessionsOfSecret: EndSessionsOfSecret;
}) {
  const write = <Result>(work: (transaction: DatabaseTransaction) => Promise<Result>) =>
    inTransaction(db, work, { retries: 3 });
  const administrationOf = (noun: Kind['noun']) => {
    const kind = kinds[noun];
    return {
      rows: kind.rows,

      async find(tenant: string, id: string): Promise<string> {
        return (await findDocument(db, kind.rows(tenant), id)) ?? missing(kind);
      },

      /** Returns what lists show of it, with its secret. */
      make: (acting: Acting, credential: NewCredential) =>
        write((transaction) => make(transaction, kind, readRestriction, acting, credential)),

      /** Without `acting`, an operator narrows it. */
      narrow: (tenant: string, id: string, narrowing: Narrowing, acting?: Acting) =>
        write((transaction) => narrow(transaction, kind, readRestriction, { tenant, id, narrowing, acting })),

      /** Returns what lists show of it, and its new secret. Without `acting`, an operator rotates it. */
      rotate: (tenant: string, id: string, acting?: Acting) =>
        write((transaction) => rotate(transaction, kind, endSessionsOfSecret, { tenant, id, acting })),

      /** Idempotent. */
      revoke: (acting: Acting, id: string) => write((transaction) => revoke(transaction, kind, acting, id)),
    };
  };
  return { clients: administrationOf('client'), keys: administrationOf('key') };
}

interface Maker extends ClientRecord {
  /** Those of its token or session that the client still has. */
  readonly permitted: readonly Scope[];
  readonly now: Date;
  /** When what it makes ends at the latest; null: not through its expiry. */
  readonly end: Date | null;
}

/** Locks the acting client and its makers against their end. Rejects if they have lost the right to administer. */
async function lockMaker(
  transaction: DatabaseTransaction,
  { credentials: { tenant, clientId, scopes, person }, lockPerson }: Acting,
  { makes = false } = {},
): Promise<Maker> {
  if (person !== undefined) await lockPerson(transaction, { makes });
  await lockTenant(transaction, tenant);
  const { makers = [] } = (await findClient(transaction, tenant, clientId)) ?? {};
  await sql`
    select from oauth_client where tenant = ${tenant} and client_id = any(${[...makers, clientId]}::text[])
      order by client_id for share`.execute(transaction);
  const client = await findClient(transaction, tenant, clientId);
  if (client === undefined || client.revoked) throw new AccessTokenFault('invalid');
  const permitted = scopes.filter((scope) => client.scopes.includes(scope));
  if (!permitted.includes('access.credential_manage') || client.restriction !== null) throw insufficientScopes();
  const ofPerson = sql`now() + ${maxLifetimeOfPerson} * interval '1 second'`;
  const ofLink = sql`created_at + ${maxUnconfirmed} * interval '1 millisecond'`;
  const { rows } = await sql<{ now: Date; end: Date | null }>`
    select now() as now,
        case when ${person !== undefined} then ${ofPerson} when secret_hash is null then ${ofLink} else expires_at end as end
      from oauth_client where tenant = ${tenant} and client_id = ${clientId}`.execute(transaction);
  const [times] = rows;
  if (times === undefined) throw new AccessTokenFault('invalid');
  return { ...client, permitted, ...times };
}

async function make(
  transaction: DatabaseTransaction,
  kind: Kind,
  readRestriction: ReadRestriction,
  acting: Acting,
  { name, scopes, models, rate, user, expiresIn, ...shown }: NewCredential,
): Promise<object> {
  const { tenant, clientId, person } = acting.credentials;
  if (name !== undefined) checkClientName(name);
  const maker = await lockMaker(transaction, acting, { makes: true });
  refuseScopesBeyond(kind, scopes, maker.permitted);
  if (maker.makers.length >= maxMakers) throw tooDeep();
  const part = partOf(shown);
  if (part !== undefined) refuseWiderScopes(scopes, 'scopes');
  const restriction = part && readRestriction([part], { scopes: maker.permitted });
  const expiry = expiryWithin(maker, expiresIn);
  await refuseWhenFull(transaction, kind, tenant);
  if (name !== undefined) await refuseNameInUse(transaction, tenant, name);
  const madeBy = { clientId, makers: maker.makers, person };
  const by = byOf(acting);
  if (kind === clients) {
    const description = { tenant, scope: scopes.join(' '), name, restriction, madeBy, expiry };
    const { clientId: id, clientSecret } = await makeClient(transaction, description, by);
    return { ...(await readShown(transaction, kind, tenant, id)), clientSecret };
  }
  const { id, key } = await makeKey(transaction, {
    tenant,
    scopes,
    models,
    rate,
    user,
    name,
    restriction,
    expiry,
    madeBy,
    by,
  });
  return { ...(await readShown(transaction, kind, tenant, id)), key };
}

async function narrow(
  transaction: DatabaseTransaction,
  kind: Kind,
  readRestriction: ReadRestriction,
  { tenant, id, narrowing, acting }: { tenant: string; id: string; narrowing: Narrowing; acting: Acting | undefined },
): Promise<void> {
  const maker = acting && (await lockMaker(transaction, acting));
  const { own, shown, now } = await lockCredential(transaction, kind, tenant, id);
  const { scopes = shown.scopes, models, rate, expiresIn } = narrowing;
  refuseMore('scopes', scopes, shown.scopes);
  if (models !== undefined) {
    if (shown.models !== undefined) refuseMore('models', models, shown.models);
    checkModels(models, scopes);
  }
  if (rate !== undefined && shown.rate !== undefined && rate > shown.rate)
    throw invalidField('rate', `rate can only be lowered: it is ${shown.rate}`);
  const expiresAt = expiresIn === undefined ? undefined : new Date(now.getTime() + expiresIn * 1_000);
  if (expiresAt !== undefined && shown.expiresAt !== undefined && expiresAt > new Date(shown.expiresAt))
    throw invalidField('expiresIn', `expiresIn can only be shortened: it ends at ${shown.expiresAt}`);
  const part = addedPart(narrowing, shown);
  if (part !== undefined) {
    refuseWiderScopes(scopes, 'scopes');
    if ((shown.restriction ?? []).length >= maxParts)
      throw invalidField('query', `query cannot be added: there are ${maxParts} already`);
    readRestriction([...(shown.restriction ?? []), part], maker && { scopes: maker.permitted });
  }
  const parts = part === undefined ? own : [...(own ?? []), part];
  const changed = [
    sql`restriction = ${parts === null ? null : JSON.stringify(parts)}::jsonb`,
    // With a restriction those alone that were checked: its makers may have lost more for the time being.
    ...(narrowing.scopes === undefined && part === undefined ? [] : [sql`scopes = ${[...scopes]}::text[]`]),
    ...(expiresAt === undefined ? [] : [sql`expires_at = ${expiresAt}::timestamptz`]),
    ...(models === undefined ? [] : [sql`models = ${[...models]}::text[]`]),
    ...(rate === undefined ? [] : [sql`rate = ${rate}::integer`]),
  ];
  await sql`
    update ${kind.table} set ${sql.join(changed)} where tenant = ${tenant} and ${kind.id} = ${id}`.execute(transaction);
  const names = Object.entries(narrowing).flatMap(([member, value]) => (value === undefined ? [] : [member]));
  await note(
    transaction,
    `${kind.noun}_narrowed`,
    { tenant, id, acting },
    { scope: scopes.join(' '), changed: names.join(' ') },
  );
}

async function rotate(
  transaction: DatabaseTransaction,
  kind: Kind,
  endSessionsOfSecret: EndSessionsOfSecret,
  { tenant, id, acting }: { tenant: string; id: string; acting: Acting | undefined },
): Promise<{ shown: Shown; secret: object }> {
  const maker = acting && (await lockMaker(transaction, acting));
  const { shown } = await lockCredential(transaction, kind, tenant, id);
  if (maker !== undefined && acting !== undefined) {
    // Who rotates learns the secret: it must be one that they could have made.
    refuseScopesBeyond(kind, shown.scopes, maker.permitted);
    if (!(await endsWith(transaction, kind, acting, id))) throw notTheirs(kind);
  }
  const { hash, shown: secret } = kind.newSecret(id);
  const counted = kind === clients ? sql`, rotations = coalesce(rotations, 0) + 1` : sql``;
  await sql`
    update ${kind.table} set secret_hash = ${hash} ${counted}
      where tenant = ${tenant} and ${kind.id} = ${id}`.execute(transaction);
  await note(transaction, `${kind.noun}_rotated`, { tenant, id, acting });
  if (kind === clients) {
    const by = acting === undefined ? { details: { by: 'operator' } } : byOf(acting);
    const which = { tenant, clientId: id, except: acting?.credentials.session };
    for (const session of await endSessionsOfSecret(transaction, which))
      await noteAccess(transaction, { tenant, kind: 'session_ended', clientId: id, session, ...by });
  }
  return { shown, secret };
}

async function revoke(transaction: DatabaseTransaction, kind: Kind, acting: Acting, id: string): Promise<void> {
  const { tenant } = acting.credentials;
  await lockMaker(transaction, acting);
  if ((await findDocument(transaction, kind.rows(tenant), id)) === undefined) missing(kind);
  const by = byOf(acting);
  if (kind === clients) await revokeClientOf(transaction, tenant, id, by);
  else await revokeKeys(transaction, tenant, { keyId: id, by });
}

/** Locks an active credential. Throws resource_not_found, and conflict_resource for one that has ended. */
async function lockCredential(
  transaction: DatabaseTransaction,
  kind: Kind,
  tenant: string,
  id: string,
): Promise<{ own: readonly WrittenRestriction[] | null; shown: Shown; now: Date }> {
  await lockTenant(transaction, tenant);
  const { rows } = await sql<{ own: readonly WrittenRestriction[] | null; now: Date }>`
    select restriction as own, now() as now from ${kind.table}
      where tenant = ${tenant} and ${kind.id} = ${id} for update`.execute(transaction);
  const [row] = rows;
  const document = await findDocument(transaction, kind.rows(tenant), id);
  if (row === undefined || document === undefined) return missing(kind);
  const shown = JSON.parse(document) as Shown;
  if (shown.state === 'active') return { ...row, shown };
  throw new AnnalsError('conflict_resource', `The ${kind.noun} has ended: it is ${shown.state}.`);
}

async function readShown(transaction: DatabaseTransaction, kind: Kind, tenant: string, id: string): Promise<Shown> {
  return JSON.parse((await findDocument(transaction, kind.rows(tenant), id)) ?? missing(kind)) as Shown;
}

/** Whether a credential is the acting client itself, or ends with it: it was made by it, or by its person. */
async function endsWith(
  transaction: DatabaseTransaction,
  kind: Kind,
  { credentials: { tenant, clientId, person } }: Acting,
  id: string,
): Promise<boolean> {
  const { from, where } = kind.rows(tenant);
  const { issuer = null, subject = null } = person ?? {};
  const { rows } = await sql`
    select from ${from} where ${where} and id = ${id} and (id = ${clientId} or ${clientId} = any(makers)
      or issuer = ${issuer} and subject = ${subject} or exists (
        select from oauth_client m where m.tenant = ${tenant} and m.client_id = any(makers)
          and m.issuer = ${issuer} and m.subject = ${subject}))`.execute(transaction);
  return rows.length > 0;
}

async function refuseWhenFull(transaction: DatabaseTransaction, { noun, active }: Kind, tenant: string): Promise<void> {
  const { rows } = await sql<{ count: number }>`select count(*) as count from ${active(tenant)}`.execute(transaction);
  if (Number(rows[0]?.count) < maxCredentials) return;
  throw new AnnalsError(
    'conflict_resource',
    `The tenant has ${maxCredentials} ${noun}s, which are as many as it can have. Revoke one first.`,
  );
}

const blanks = '[\\s\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000]+';
/** Default_Ignorable_Code_Point of Unicode. */
const invisible =
  '[\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f' +
  '\\ufeff\\uffa0\\ufff0-\\ufff8\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff]+';
/** The name as it looks: the same for names that differ in invisible characters and in blanks alone. */
const seen = (name: RawBuilder<unknown>) =>
  sql`btrim(regexp_replace(regexp_replace(normalize(${name}), ${invisible}, '', 'g'), ${blanks}, ' ', 'g'))`;

/** Names are actors of change entries, so they stay unambiguous. People who signed out are in the history. */
async function refuseNameInUse(transaction: DatabaseTransaction, tenant: string, name: string): Promise<void> {
  const wanted = seen(sql`${name}::text`);
  const { rows } = await sql`
    select from ${activeClients(tenant)} and ${seen(sql`c.name`)} = ${wanted}
    union all select from ${activeKeys(tenant)} and ${seen(sql`k.name`)} = ${wanted}
    union all select from (
      select a.name from change_actor a join change_recorder r on r.tenant = a.tenant and r.subject = a.actor_id
        where a.tenant = ${tenant} and r.issuer is not null offset 0) person where ${seen(sql`person.name`)} = ${wanted}
    limit 1`.execute(transaction);
  if (rows.length === 0) return;
  const message = 'is in use by another client, key or person';
  throw new AnnalsError('conflict_resource', `The name ${message}.`, { details: [{ field: 'name', message }] });
}

function refuseScopesBeyond(kind: Kind, scopes: readonly Scope[], permitted: readonly Scope[]): void {
  const within = kind.within(permitted);
  const beyond = scopes.find((scope) => !within.includes(scope));
  if (beyond === undefined) return;
  throw new AnnalsError('insufficient_permissions', `A ${kind.noun} has no scope that its maker does not have.`, {
    details: [{ field: 'scopes', message: `cannot have ${beyond}: you do not have it` }],
  });
}

function refuseMore(field: 'scopes' | 'models', wanted: readonly string[], has: readonly string[]): void {
  const more = wanted.find((value) => !has.includes(value));
  if (more !== undefined) throw invalidField(field, `${field} can only lose some: ${more} is not among them`);
}

function expiryWithin({ now, end }: Maker, expiresIn: number | undefined): Date | undefined {
  if (expiresIn === undefined) return end ?? undefined;
  const expiresAt = new Date(now.getTime() + expiresIn * 1_000);
  if (end === null || expiresAt <= end) return expiresAt;
  const seconds = Math.floor((end.getTime() - now.getTime()) / 1_000);
  throw invalidField('expiresIn', `expiresIn must not outlast its maker, which ends in ${seconds} seconds`);
}

/** The restriction as written; undefined without any. */
function partOf({ query, hide, actors }: Rights): WrittenRestriction | undefined {
  if (query === undefined && hide === undefined && actors === undefined) return undefined;
  return { query: query ?? '', hide: hide ?? [], ...(actors !== undefined && { actors: shownActorsOf(actors) }) };
}

const actorsFromLess: readonly ShownActors[] = [false, true, 'all'];
const rankOf = (actors: ShownActors) => actorsFromLess.indexOf(actors);

/** What is added to the parts before it, which shows no more of actors than they do. */
function addedPart(narrowing: Narrowing, { restriction = [] }: Shown): WrittenRestriction | undefined {
  const part = partOf(narrowing);
  if (part === undefined || restriction.length === 0) return part;
  const most = actorsFromLess[Math.min(...restriction.map((before) => rankOf(before.actors ?? true)))] ?? false;
  const actors = part.actors ?? most;
  if (rankOf(actors) <= rankOf(most)) return { ...part, actors };
  const word = most === true ? 'names' : String(most);
  throw invalidField('actors', `actors can only show less: they are ${word}`);
}

function byOf({ credentials: { clientId: byClient, clientName: by, person }, caller }: Acting): ActingClient {
  return { person, caller, details: { by, byClient } };
}

async function note(
  transaction: DatabaseTransaction,
  kind: 'client_narrowed' | 'client_rotated' | 'key_narrowed' | 'key_rotated',
  { tenant, id, acting }: { tenant: string; id: string; acting: Acting | undefined },
  details: Readonly<Record<string, string>> = {},
): Promise<void> {
  const by = acting && byOf(acting);
  await noteAccess(transaction, { tenant, kind, clientId: id, ...by, details: { ...by?.details, ...details } });
}

function missing({ noun }: Kind): never {
  throw new AnnalsError('resource_not_found', `There is no such ${noun}.`);
}

function tooDeep(): AnnalsError {
  return new AnnalsError(
    'insufficient_permissions',
    `A client that was made through ${maxMakers} others makes no more.`,
  );
}

function notTheirs({ noun }: Kind): AnnalsError {
  return new AnnalsError(
    'insufficient_permissions',
    `The new secret would outlive you: you rotate only what you made. Anything else an operator rotates: annals ${noun} rotate.`,
  );
}
