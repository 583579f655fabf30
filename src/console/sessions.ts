import type { FastifyRequest } from 'fastify';
import { createBatches } from '../core/concurrency/batches.ts';
import { doWork, requestLimit } from '../core/concurrency/work.ts';
import { AccessTokenFault, type Credentials } from '../http/credentials.ts';
import { isScope, type Scope } from '../http/scopes.ts';
import type { Database, DatabaseTransaction } from '../postgres/database.ts';
import { forEachTenant } from '../postgres/tenants/tenants-with.ts';
import { inTransaction } from '../postgres/transaction.ts';
import { deleteExpiredLinks, takeLink, tenantsWithExpiredLinks } from './link-store.ts';
import { hashSecret, newSecret, readSecret, type Secret } from './secret.ts';
import type { SessionCookie } from './session-cookie.ts';
import {
  deleteExpiredSessions,
  deleteSession,
  dropOldestSessions,
  insertSession,
  readSessions,
  type StoredSession,
  tenantsWithExpiredSessions,
} from './session-store.ts';

/** Milliseconds (contract 13). */
export const sessionLifetime = 8 * 60 * 60_000;
/** Of one client; the oldest one ends. */
export const maxSessionsOfClient = 100;

interface SignedInClient {
  readonly tenant: string;
  readonly clientId: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly revoked: boolean;
}

type ClientState = Pick<Credentials, 'restriction'> & { readonly name: string; readonly revoked: boolean };

/** What the console uses of the clients, which are another module's. */
export interface ConsoleClients {
  /** Rejects with an AccessTokenFault, and with rate_limit_exceeded (429) after too many wrong secrets. */
  checkSecret(client: { clientId: string; clientSecret: string; address: string }): Promise<SignedInClient>;
  /** As `checkSecret`, for a secret that serves once. `find` gives undefined where it is wrong. */
  tryOnce<Result>(address: string, find: () => Promise<Result | undefined>): Promise<Result>;
  find(db: Database, tenant: string, clientId: string): Promise<SignedInClient | undefined>;
  /** What is known of the client, 5 seconds old at most. */
  findState(tenant: string, clientId: string): ClientState | undefined | Promise<ClientState | undefined>;
  /** Deletes a client that a link has made. It has neither session nor link any more. */
  remove(db: Database, tenant: string, clientId: string): Promise<void>;
}

/** A client that has signed in, until its session ends. */
export interface Session extends Credentials {
  readonly expiresAt: Date;
}

export interface StartedSession extends Session {
  /** The `Set-Cookie` header. */
  readonly cookie: string;
}

export interface SessionsOptions {
  /** Connections that tenants share, for what begins and ends sessions. */
  db: Database;
  /** Connections for what every call needs: who the caller is. */
  vital: Database;
  cookie: SessionCookie;
  clients: ConsoleClients;
}

/** The sessions of the console. Each is a row in the database, so every process sees it begin and end. */
export class Sessions {
  readonly #db: Database;
  readonly #cookie: SessionCookie;
  readonly #clients: ConsoleClients;
  /** The requests of one tenant share a query, so they take one connection, however many they are. */
  readonly #lookUp: (tenant: string, secretHash: Buffer) => Promise<StoredSession | undefined>;

  constructor({ db, vital, cookie, clients }: SessionsOptions) {
    this.#db = db;
    this.#cookie = cookie;
    this.#clients = clients;
    this.#lookUp = createBatches(async (tenant, hashes: readonly Buffer[]) => {
      const sessions = await readSessions(vital, tenant, hashes);
      return hashes.map((hash) => sessions.find(({ secretHash }) => hash.equals(secretHash)));
    });
  }

  /** Rejects with an AccessTokenFault where the secret is wrong, and with rate_limit_exceeded (429) after too many wrong ones. */
  async signIn(clientId: string, clientSecret: string, request: FastifyRequest): Promise<StartedSession> {
    const client = await this.#clients.checkSecret({ clientId, clientSecret, address: request.ip });
    return await this.#start(client.tenant, request, (transaction) => this.#insert(transaction, client, false));
  }

  /** Redeems a link. Rejects as `signIn` does where the link is wrong, was used or is too old. */
  async redeem(link: string, request: FastifyRequest): Promise<StartedSession> {
    const secret = readSecret(link);
    return await this.#clients.tryOnce(request.ip, async () => {
      if (secret === undefined) return undefined;
      return await this.#start(secret.tenant, request, async (transaction) => {
        const clientId = await takeLink(transaction, secret.tenant, hashSecret(secret));
        const client =
          clientId === undefined ? undefined : await this.#clients.find(transaction, secret.tenant, clientId);
        return client === undefined || client.revoked ? undefined : await this.#insert(transaction, client, true);
      });
    });
  }

  /** The session of the request's cookie. Rejects with an AccessTokenFault where there is none. */
  async find({ headers }: FastifyRequest): Promise<Session> {
    const secret = this.#cookie.read(headers.cookie);
    const session = secret === undefined ? undefined : await this.#lookUp(secret.tenant, hashSecret(secret));
    if (session === undefined) throw new AccessTokenFault('invalid');
    if (session.expired) throw new AccessTokenFault('expired');
    const { tenant, clientId, scopes, expiresAt } = session;
    const client = await this.#clients.findState(tenant, clientId);
    if (client === undefined || client.revoked) throw new AccessTokenFault('invalid');
    const { name: clientName, restriction } = client;
    return { tenant, clientId, clientName, scopes: scopes.filter(isScope), restriction, expiresAt };
  }

  /** Ends the session of the request's cookie, in every process, and returns the `Set-Cookie` header. */
  async signOut({ headers }: FastifyRequest): Promise<string> {
    const secret = this.#cookie.read(headers.cookie);
    if (secret !== undefined) await this.#write(secret.tenant, (transaction) => this.#end(transaction, secret));
    return this.#cookie.clear;
  }

  /** Deletes sessions and links that have expired, with the clients that links have made. */
  async upkeep(): Promise<void> {
    const db = this.#db;
    await forEachTenant(await tenantsWithExpiredSessions(db), (tenant) =>
      this.#deleteExpired(tenant, (transaction) => deleteExpiredSessions(transaction, tenant)),
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

  /** A session that the browser had before ends: nothing would end it by its name any more. */
  async #start<Started extends StartedSession | undefined>(
    tenant: string,
    { headers }: FastifyRequest,
    insert: (transaction: DatabaseTransaction) => Promise<Started>,
  ): Promise<Started> {
    return await this.#write(tenant, async (transaction) => {
      const started = await insert(transaction);
      const replaced = started === undefined ? undefined : this.#cookie.read(headers.cookie);
      if (replaced !== undefined) await this.#end(transaction, replaced);
      return started;
    });
  }

  async #insert(
    transaction: DatabaseTransaction,
    { tenant, clientId, name, scopes }: SignedInClient,
    byLink: boolean,
  ): Promise<StartedSession> {
    const secret = newSecret(tenant);
    const session = { tenant, secretHash: hashSecret(secret), clientId, scopes, byLink };
    const expiresAt = await insertSession(transaction, session, sessionLifetime);
    await dropOldestSessions(transaction, session, maxSessionsOfClient);
    const cookie = this.#cookie.write(secret, sessionLifetime);
    return { tenant, clientId, clientName: name, scopes, expiresAt, cookie };
  }

  /**
   * Takes the connection from the tenant's share: a client that signs in again and again delays only its own tenant.
   */
  async #write<Result>(tenant: string, work: (transaction: DatabaseTransaction) => Promise<Result>): Promise<Result> {
    return await doWork({ tenant, writes: true, timeLimit: requestLimit }, () =>
      inTransaction(this.#db, work, { retries: 3 }),
    );
  }

  async #end(transaction: DatabaseTransaction, secret: Secret): Promise<void> {
    const ended = await deleteSession(transaction, secret.tenant, hashSecret(secret));
    if (ended?.byLink) await this.#clients.remove(transaction, secret.tenant, ended.clientId);
  }
}
