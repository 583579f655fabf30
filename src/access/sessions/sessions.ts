import type { FastifyRequest } from 'fastify';
import { createBatches } from '../../core/fairness/shared-work.ts';
import { doWork, requestLimit } from '../../core/fairness/work.ts';
import { AccessTokenFault, type Caller, type Credentials, callerOf } from '../../http/credentials.ts';
import { isScope } from '../../http/scopes.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { forEachTenant } from '../../postgres/tenants/tenants-with.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { deleteExpiredLinks, takeLink, tenantsWithExpiredLinks } from './links.ts';
import { findSession } from './listed-sessions.ts';
import type {
  ConsoleClients,
  ConsoleKeys,
  EndGrants,
  GrantEnding,
  NoteConsoleAccess,
  Person,
  SignedInClient,
  WhichGrants,
} from './ports.ts';
import { hashSecret, newSecret, readSecret, type SessionCookie } from './sealed-cookie.ts';
import {
  deleteExpiredSessions,
  deleteSession,
  dropOldestSessions,
  type EndedSession,
  expiredSessionsOfPeople,
  insertSession,
  keepForKeys,
  lockSession,
  lockSessionsOf,
  noteSeen,
  type ProviderLogout,
  readSessions,
  type SessionOfPerson,
  type StoredSession,
  tenantsOfPerson,
  tenantsWithExpiredSessions,
} from './session-store.ts';

/** Milliseconds (contract 13). */
export const sessionLifetime = 8 * 60 * 60_000;
/** Maximum sessions of a client; a new one ends the oldest. */
export const maxSessionsOfClient = 100;

/** A signed-in client. */
export interface Session extends Credentials {
  readonly session: string;
  /** What it was begun with. */
  readonly by: 'account' | 'link' | 'secret';
  readonly expiresAt: Date;
  /** Of a person: every tenant that admits them. */
  readonly tenants?: readonly string[];
  /** Of a person: whether the sign-in can be renewed. */
  readonly renews?: boolean;
}

export interface StartedSession extends Session {
  /** The `Set-Cookie` header. */
  readonly cookie: string;
}

/** A session to begin. */
interface NewSessionOfClient {
  readonly client: Omit<SignedInClient, 'revoked' | 'rotations'>;
  /** Whether the client was created for this session, and ends with it. */
  readonly ends: boolean;
  readonly person?: SessionOfPerson;
  /** Maximum milliseconds; default: the lifetime of sessions. */
  readonly left?: number;
}

interface SessionsOptions {
  /** Connections that tenants share, for beginning and ending sessions. */
  db: Database;
  /** Connections for authentication. */
  vital: Database;
  cookie: SessionCookie;
  clients: ConsoleClients;
  noteAccess: NoteConsoleAccess;
  keys: ConsoleKeys;
  endGrants: EndGrants;
  onNotNoted: (error: unknown) => void;
}

/** Who ends a session that may not be theirs. An operator has no client. */
export interface SessionEnder {
  readonly name: string;
  readonly clientId?: string;
  readonly caller?: Caller;
}

interface Ending {
  readonly caller?: Caller | undefined;
  /** A refusal ends the session with its keys. */
  readonly why?: 'rules' | 'provider';
  /** So does somebody who may end it. */
  readonly by?: SessionEnder;
  /** The person signs out at the provider as well, whose logout of that session then spares the keys. */
  readonly signsOut?: boolean;
}

/** The sessions of the console, in the database, so that every process sees them begin and end. */
export class Sessions {
  readonly #db: Database;
  readonly #cookie: SessionCookie;
  readonly #clients: ConsoleClients;
  readonly #noteAccess: NoteConsoleAccess;
  readonly #keys: ConsoleKeys;
  readonly #endGrants: EndGrants;
  readonly #onNotNoted: (error: unknown) => void;
  /** The requests of a tenant share a query and so a connection. */
  readonly #lookUp: (tenant: string, secretHash: Buffer) => Promise<StoredSession | undefined>;

  constructor({ db, vital, cookie, clients, noteAccess, keys, endGrants, onNotNoted }: SessionsOptions) {
    this.#db = db;
    this.#cookie = cookie;
    this.#clients = clients;
    this.#noteAccess = noteAccess;
    this.#keys = keys;
    this.#endGrants = endGrants;
    this.#onNotNoted = onNotNoted;
    this.#lookUp = createBatches(async (tenant, hashes: readonly Buffer[]) => {
      const sessions = await readSessions(vital, tenant, hashes);
      return hashes.map((hash) => sessions.find(({ secretHash }) => hash.equals(secretHash)));
    });
  }

  /** Rejects with an AccessTokenFault for a wrong secret, and with rate_limit_exceeded (429) after too many. */
  async signIn(clientId: string, clientSecret: string, request: FastifyRequest): Promise<StartedSession> {
    const client = await this.#clients.checkSecret({ clientId, clientSecret, address: request.ip });
    return await this.start(client.tenant, request, async (transaction) => {
      // Its secret may have been replaced since, which ends the sessions that began with it.
      const current = await this.#clients.lock(transaction, client.tenant, clientId);
      if (current === undefined || current.revoked || current.rotations !== client.rotations)
        throw new AccessTokenFault('invalid');
      return { client, ends: false };
    });
  }

  /** Redeems a link. Rejects as `signIn` does for a link that is wrong, used or expired. */
  async redeem(link: string, request: FastifyRequest): Promise<StartedSession> {
    const secret = readSecret(link);
    return await this.#clients.checkOnce(request.ip, async () => {
      if (secret === undefined) return undefined;
      return await this.start(secret.tenant, request, async (transaction) => {
        const clientId = await takeLink(transaction, secret.tenant, hashSecret(secret));
        const client =
          clientId === undefined ? undefined : await this.#clients.find(transaction, secret.tenant, clientId);
        return client === undefined || client.revoked ? undefined : { client, ends: true };
      });
    });
  }

  /** The session of the request's cookie. Rejects with an AccessTokenFault without one. */
  async find(request: FastifyRequest): Promise<Session> {
    const { headers } = request;
    const secret = this.#cookie.read(headers.cookie);
    const session = secret === undefined ? undefined : await this.#lookUp(secret.tenant, hashSecret(secret));
    if (session === undefined) throw new AccessTokenFault('invalid');
    if (session.expired) throw new AccessTokenFault('expired');
    const { tenant, clientId, byLink, scopes, expiresAt, tenants, renews } = session;
    const client = await this.#clients.findState(tenant, clientId);
    if (client === undefined || client.revoked) throw new AccessTokenFault('invalid');
    if (session.unseen) noteSeen(this.#db, tenant, session.secretHash, callerOf(request)).catch(this.#onNotNoted);
    const { name: clientName, restriction } = client;
    const granted = scopes.filter(isScope);
    // The rules keep the scopes of a person's session; a client may have been narrowed since.
    const left = tenants === null ? granted.filter((scope) => client.scopes.includes(scope)) : granted;
    const of = { tenant, clientId, clientName, session: sessionIdOf(session.secretHash) };
    const found = { ...of, scopes: left, restriction, expiresAt };
    if (tenants !== null) return { ...found, by: 'account', tenants, renews, person: personOf(session) };
    return { ...found, by: byLink ? 'link' : 'secret' };
  }

  /**
   * Locks the sessions of the request's person against their end, until the transaction ends. Rejects with an
   * AccessTokenFault if the request's own session has ended.
   */
  async lock(transaction: DatabaseTransaction, person: Person, { headers }: FastifyRequest): Promise<void> {
    const secret = this.#cookie.read(headers.cookie);
    const hash = secret && hashSecret(secret);
    const locked = secret && (await lockSessionsOf(transaction, secret.tenant, person));
    if (locked?.some((session) => hash?.equals(session)) !== true) throw new AccessTokenFault('expired');
  }

  /** Ends the session of the request's cookie, in every process. Returns the `Set-Cookie` header and the session. */
  async signOut(
    request: FastifyRequest,
  ): Promise<{ cookie: string; ended: (EndedSession & { tenant: string }) | undefined }> {
    const secret = this.#cookie.read(request.headers.cookie);
    const caller = callerOf(request);
    const ended =
      secret &&
      (await this.write(secret.tenant, (transaction) =>
        this.end(transaction, secret.tenant, hashSecret(secret), { caller, signsOut: true }),
      ));
    return { cookie: this.#cookie.clear, ended: secret && ended && { ...ended, tenant: secret.tenant } };
  }

  /** Deletes expired sessions and links, with the clients of links. */
  async upkeep(): Promise<void> {
    const db = this.#db;
    await forEachTenant(await tenantsWithExpiredSessions(db), (tenant) =>
      this.#deleteExpired(tenant, async (transaction) => {
        for (const { secretHash, clientId } of await expiredSessionsOfPeople(transaction, tenant)) {
          await this.#endGrants(transaction, tenant, { sessionHash: secretHash }, { why: 'expired' });
          await this.#keepForKeys(transaction, tenant, { secretHash, clientId });
        }
        return await deleteExpiredSessions(transaction, tenant);
      }),
    );
    await forEachTenant(await tenantsWithExpiredLinks(db), (tenant) =>
      this.#deleteExpired(tenant, (transaction) => deleteExpiredLinks(transaction, tenant)),
    );
  }

  async #deleteExpired(tenant: string, remove: (transaction: DatabaseTransaction) => Promise<string[]>): Promise<void> {
    await inTransaction(this.#db, async (transaction) => {
      for (const clientId of await remove(transaction)) await this.#clients.remove(transaction, tenant, clientId);
    });
  }

  /**
   * Starts the session that `make` describes, if any, in its transaction. Ends the browser's previous session, whose
   * cookie is replaced.
   */
  async start<Made extends NewSessionOfClient | undefined>(
    tenant: string,
    request: FastifyRequest,
    make: (transaction: DatabaseTransaction) => Promise<Made>,
  ): Promise<StartedSession | Exclude<Made, NewSessionOfClient>> {
    const session = await this.write(tenant, async (transaction) => {
      const made = await make(transaction);
      if (made === undefined) return made as Exclude<Made, NewSessionOfClient>;
      const caller = callerOf(request);
      const started = await this.#insert(transaction, made, caller);
      const replaced = this.#cookie.read(request.headers.cookie);
      if (replaced !== undefined) await this.end(transaction, replaced.tenant, hashSecret(replaced), { caller });
      return started;
    });
    if (typeof session !== 'object') return session;
    return { ...session, restriction: (await this.#clients.findState(tenant, session.clientId))?.restriction };
  }

  async #insert(
    transaction: DatabaseTransaction,
    { client: { tenant, clientId, name, scopes }, ends, person, left = sessionLifetime }: NewSessionOfClient,
    caller: Caller,
  ): Promise<StartedSession> {
    const secret = newSecret(tenant);
    const lifetime = Math.min(left, sessionLifetime);
    const session = { tenant, secretHash: hashSecret(secret), clientId, scopes, byLink: ends, person, caller };
    const expiresAt = await insertSession(transaction, session, lifetime);
    await dropOldestSessions(transaction, session, maxSessionsOfClient);
    const id = sessionIdOf(session.secretHash);
    const by = person !== undefined ? 'account' : ends ? 'link' : 'secret';
    await this.#noteAccess(transaction, {
      tenant,
      clientId,
      kind: 'signed_in',
      person: personOf(person),
      details: { by },
      caller,
      session: id,
    });
    const cookie = this.#cookie.write(secret, lifetime);
    const started = { session: id, by, tenant, clientId, clientName: name, scopes, expiresAt, cookie } as const;
    return person === undefined ? started : { ...started, tenants: person.tenants, renews: person.renewal !== null };
  }

  /** Uses the tenant's share of connections, so that repeated sign-ins delay only their own tenant. */
  async write<Result>(tenant: string, work: (transaction: DatabaseTransaction) => Promise<Result>): Promise<Result> {
    return await doWork({ tenant, writes: true, timeLimit: requestLimit }, () =>
      inTransaction(this.#db, work, { retries: 3 }),
    );
  }

  /** Ends a session, with the client that was created for it, once its keys have ended. */
  async end(
    transaction: DatabaseTransaction,
    tenant: string,
    secretHash: Uint8Array,
    { why, by, caller = by?.caller, signsOut = false }: Ending = {},
  ): Promise<EndedSession | undefined> {
    const ended = await lockSession(transaction, tenant, secretHash);
    if (ended === undefined) return undefined;
    const { clientId, byLink, forKeys } = ended;
    const person = personOf(ended);
    const session = sessionIdOf(secretHash);
    const event = { tenant, clientId, person, caller, session, ...eventOf(why, by) };
    if (!forKeys) await this.#noteAccess(transaction, event);
    const whyKeysEnd = by === undefined ? why : 'session';
    if (whyKeysEnd !== undefined)
      await this.#keys.revokeMadeBy(transaction, tenant, { clientId, person, why: whyKeysEnd });
    const whyGrantsEnd = { why: whyKeysEnd ?? (forKeys ? 'expired' : 'signed_out'), by, caller };
    await this.#endGrants(transaction, tenant, { sessionHash: secretHash }, whyGrantsEnd);
    if (await this.#keepForKeys(transaction, tenant, { secretHash, clientId, signsOut })) return ended;
    await deleteSession(transaction, tenant, secretHash);
    if (byLink) await this.#clients.remove(transaction, tenant, clientId);
    return ended;
  }

  /** Ends grants, in every process, with the sign-ins that were made for them. Returns how many. */
  async endGrants(
    transaction: DatabaseTransaction,
    tenant: string,
    which: WhichGrants,
    ending: GrantEnding,
  ): Promise<number> {
    const ended = await this.#endGrants(transaction, tenant, which, ending);
    for (const { ownSession } of ended)
      if (ownSession !== undefined) await this.end(transaction, tenant, ownSession, { caller: ending.caller });
    return ended.length;
  }

  /** Ends a session of the tenant, in every process. False if there is none. */
  async endById(tenant: string, id: string, by: SessionEnder): Promise<boolean> {
    return await this.write(tenant, async (transaction) => {
      const secretHash = await findSession(transaction, tenant, id);
      return secretHash !== undefined && (await this.end(transaction, tenant, secretHash, { by })) !== undefined;
    });
  }

  /** Ends the sessions and the keys of a person in the tenant, in every process. Returns how many sessions it ended. */
  async endAllOf(tenant: string, person: Person, by: SessionEnder): Promise<number> {
    return await this.write(tenant, async (transaction) => {
      let ended = 0;
      const locked = await lockSessionsOf(transaction, tenant, person);
      await this.#keys.revokeMadeBy(transaction, tenant, { person, why: 'session' });
      for (const secretHash of locked) {
        const session = await this.end(transaction, tenant, secretHash, { by });
        if (session?.forKeys === false) ended += 1;
      }
      return ended;
    });
  }

  /** Ends the sessions that the provider has ended, with their keys, in every tenant. Returns how many. */
  async endOfProvider(logout: ProviderLogout): Promise<number> {
    let ended = 0;
    await forEachTenant(await tenantsOfPerson(this.#db, logout), async (tenant) => {
      ended += await this.write(tenant, async (transaction) => {
        const sessions = await lockSessionsOf(transaction, tenant, logout);
        for (const secretHash of sessions) await this.end(transaction, tenant, secretHash, { why: 'provider' });
        return sessions.length;
      });
    });
    return ended;
  }

  async #keepForKeys(
    transaction: DatabaseTransaction,
    tenant: string,
    { secretHash, clientId, signsOut = false }: { secretHash: Uint8Array; clientId: string; signsOut?: boolean },
  ): Promise<boolean> {
    const until = await this.#keys.lastOf(transaction, tenant, clientId);
    if (until !== undefined) await keepForKeys(transaction, tenant, secretHash, { until, forgetsSid: signsOut });
    return until !== undefined;
  }
}

function personOf(session: Pick<EndedSession, 'issuer' | 'subject'> | undefined): Credentials['person'] {
  const { issuer = null, subject = null } = session ?? {};
  return issuer === null || subject === null ? undefined : { issuer, subject };
}

function eventOf(why: Ending['why'], by: SessionEnder | undefined) {
  if (by !== undefined) {
    const { name, clientId } = by;
    return {
      kind: 'session_ended',
      details: { by: name, ...(clientId !== undefined && { byClient: clientId }) },
    } as const;
  }
  return why === undefined ? ({ kind: 'signed_out' } as const) : ({ kind: 'refused', details: { why } } as const);
}

/** A part of its secret's hash. */
function sessionIdOf(secretHash: Uint8Array): string {
  return Buffer.from(secretHash).toString('hex').slice(0, 16);
}
