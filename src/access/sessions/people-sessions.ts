import type { FastifyRequest } from 'fastify';
import { AnnalsError } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import { AccessTokenFault, type Caller, type Restriction } from '../../http/credentials.ts';
import { insufficientScopes, type Scope } from '../../http/scopes.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import type { SealedColumn } from '../../postgres/reseal.ts';
import { forEachTenant } from '../../postgres/tenants/tenants-with.ts';
import type { ConsoleKeys } from './ports.ts';
import {
  giveRenewal,
  type SessionToCheck,
  takeRenewal,
  takeUncheckedSession,
  tenantsWithUncheckedSessions,
  updateCheckedSession,
} from './renewal-store.ts';
import { hashSecret, newSecret, type SessionCookie } from './sealed-cookie.ts';
import { insertSession, lockSessionOfClient, oldestOfPerson } from './session-store.ts';
import { type Sessions, type StartedSession, sessionLifetime } from './sessions.ts';

/** A person's rights in a tenant. */
interface Admission {
  readonly scopes: readonly Scope[];
  readonly restriction?: Restriction | undefined;
}

/** A person with a company's account whom tenants admit. */
export interface AdmittedPerson {
  readonly issuer: string;
  readonly subject: string;
  readonly name: string;
  readonly refreshToken: string | undefined;
  /** The hint for signing out at the provider. */
  readonly idToken: string | undefined;
  /** The session at the provider; undefined if the ID token names none. */
  readonly sid: string | undefined;
  /** When the sign-in ends if it cannot be renewed; milliseconds since 1970. */
  readonly expiresAt: number;
  readonly admissions: ReadonlyMap<string, Admission>;
}

/** The provider and the rules. Methods reject if the provider is unreachable. */
export interface People {
  /**
   * Renews the sign-in. A text: why the person may no longer sign in; undefined: the provider ended it. Calls
   * `onReplaced` with the replacement of this refresh token, even if the renewal then fails.
   */
  renew(
    refreshToken: string,
    subject: string,
    onReplaced: (refreshToken: string) => void,
  ): Promise<AdmittedPerson | string | undefined>;
  /** The provider's sign-out URL; undefined if it has none. */
  signOutUrl(idToken: string | undefined): Promise<URL | undefined>;
}

/** The clients, which belong to another module. */
export interface ClientsOfPeople {
  /** Creates a client without a secret. Throws resource_not_found for a missing tenant. */
  make(
    db: Database,
    client: { tenant: string; name: string; scope: string; restriction: Restriction | undefined },
  ): Promise<{ clientId: string }>;
  setRights(db: Database, tenant: string, clientId: string, rights: Admission): Promise<void>;
}

interface PeopleSessionsOptions {
  sessions: Sessions;
  db: Database;
  cookie: SessionCookie;
  clients: ClientsOfPeople;
  keys: ConsoleKeys;
  sealer: Sealer;
  /** Undefined: no sign-in with a company's account. */
  people: People | undefined;
  /** Milliseconds since 1970. */
  now: () => number;
  onError: (error: unknown) => void;
}

/** Milliseconds between checks of a session, so that revoked rights end within five minutes (contract 18). */
export const checkedEvery = 4 * 60_000;
/** Milliseconds between two searches for sessions to check, and before the retry of a failed check. */
export const checksEvery = 15_000;
/** Maximum sessions of a person in a tenant; a new one ends the oldest. */
export const maxSessionsOfPerson = 100;
/** Sessions of a tenant that are checked in a round, and concurrently. */
const maxChecks = 1_000;
const checksAtOnce = 8;

/** Sessions of people with a company's account. Each has a client of its own, like the session of a link. */
export class PeopleSessions {
  readonly #options: PeopleSessionsOptions;

  constructor(options: PeopleSessionsOptions) {
    this.#options = options;
  }

  /**
   * Signs in a person to the preferred tenant if it admits them, else to the first existing one. Undefined if none of
   * their tenants exists.
   */
  async signInPerson(
    person: AdmittedPerson,
    preferred: string | undefined,
    request: FastifyRequest,
  ): Promise<StartedSession | undefined> {
    const names = [...person.admissions.keys()].sort();
    const order = preferred !== undefined && names.includes(preferred) ? [preferred, ...names] : names;
    for (const tenant of order) {
      try {
        return await this.#options.sessions.start(tenant, request, (transaction) =>
          this.#newSession(transaction, person, tenant),
        );
      } catch (error) {
        // A rule may name a tenant that does not exist yet or any more.
        if (!(error instanceof AnnalsError && error.type === 'resource_not_found')) throw error;
      }
    }
    return undefined;
  }

  /**
   * Moves the person of the request's session to another tenant, after a renewal. Rejects with an AccessTokenFault if
   * the session cannot move, and with insufficient_permissions if the tenant does not admit the person. `keys`: the
   * session has keys, which need its refresh token, so a new sign-in is required.
   */
  async changeTenant(tenant: string, request: FastifyRequest): Promise<StartedSession | 'keys'> {
    const { people, db, sessions, keys, onError } = this.#options;
    // Revoked people enter no other tenant.
    const before = await sessions.find(request);
    const { clientId } = before;
    if ((await keys.lastOf(db, before.tenant, clientId)) !== undefined) return 'keys';
    const secret = this.#options.cookie.read(request.headers.cookie);
    if (secret === undefined || people === undefined) throw new AccessTokenFault('invalid');
    const hash = hashSecret(secret);
    const taken = await takeRenewal(db, secret.tenant, hash);
    if (taken === 'taken') throw cannotAsk('The session is being renewed just now. Try again.');
    const refreshToken = this.#open(secret.tenant, 'renewal', taken?.renewal ?? null);
    if (taken === undefined || refreshToken === undefined) throw new AccessTokenFault('invalid');
    // Kept even if the renewal or the move fails: the provider may no longer accept the old one.
    let newest = refreshToken;
    const give = () =>
      giveRenewal(db, secret.tenant, clientId, { renewal: this.#seal(secret.tenant, 'renewal', newest), rest: 0 });
    const renewing = people.renew(refreshToken, taken.subject, (token) => {
      newest = token;
    });
    const renewed = await renewing.catch(async (error: unknown) => {
      onError(error);
      await give();
      throw cannotAsk("Your company's provider could not be reached. You stay in this tenant.");
    });
    if (typeof renewed !== 'object') {
      await sessions.signOut(request);
      throw new AccessTokenFault('expired');
    }
    const person = {
      ...renewed,
      idToken: renewed.idToken ?? this.#open(secret.tenant, 'ID token', taken.idToken),
      sid: renewed.sid ?? taken.sid ?? undefined,
    };
    await give();
    if (!person.admissions.has(tenant)) throw insufficientScopes();
    const started = await sessions.start(tenant, request, async (transaction) => {
      // By now its person may have signed out, or created a key.
      const locked = await lockSessionOfClient(transaction, before.tenant, clientId);
      if (locked === undefined) throw new AccessTokenFault('expired');
      const hasKeys = (await keys.lastOf(transaction, before.tenant, clientId)) !== undefined;
      return hasKeys ? undefined : await this.#newSession(transaction, person, tenant);
    });
    return started ?? 'keys';
  }

  async #newSession(transaction: DatabaseTransaction, person: AdmittedPerson, tenant: string) {
    const { sessions } = this.#options;
    for (const oldest of await oldestOfPerson(transaction, tenant, person, maxSessionsOfPerson - 1))
      await sessions.end(transaction, tenant, oldest);
    return await this.#describeSession(transaction, person, tenant);
  }

  /**
   * Stores the sign-in that a person made for a program. It has no cookie, is checked as sessions are, and ends with
   * its grant. At the provider it belongs to no session, so that signing out ends no other grant.
   */
  async startForGrant(
    transaction: DatabaseTransaction,
    person: AdmittedPerson,
    tenant: string,
    { caller, lifetime }: { caller: Caller; lifetime: number },
  ): Promise<{ sessionHash: Uint8Array; clientId: string; ofOwnSignIn: true }> {
    const forGrant = { ...person, idToken: undefined, sid: undefined };
    const { client, person: kept } = await this.#describeSession(transaction, forGrant, tenant);
    const { clientId, scopes } = client;
    const secretHash = hashSecret(newSecret(tenant));
    const session = { tenant, secretHash, clientId, scopes, byLink: true, person: kept, caller, forKeys: true };
    await insertSession(transaction, session, lifetime);
    return { sessionHash: secretHash, clientId, ofOwnSignIn: true };
  }

  /** Creates the client of a session. */
  async #describeSession(transaction: DatabaseTransaction, person: AdmittedPerson, tenant: string) {
    const { issuer, subject, name, refreshToken, idToken, sid = null, expiresAt, admissions } = person;
    const { scopes, restriction } = admissions.get(tenant) ?? { scopes: [] };
    const renewal = refreshToken === undefined ? null : this.#seal(tenant, 'renewal', refreshToken);
    const left = renewal === null ? expiresAt - this.#options.now() : sessionLifetime;
    const { clientId } = await this.#options.clients.make(transaction, {
      tenant,
      name,
      scope: scopes.join(' '),
      restriction,
    });
    const tenants = [...admissions.keys()].sort();
    const client = { tenant, clientId, name, scopes };
    const hint = idToken === undefined ? null : this.#seal(tenant, 'ID token', idToken);
    const kept = { issuer, subject, renewal, idToken: hint, sid, tenants };
    return { client, ends: true, person: kept, left };
  }

  /** Renews the sign-ins of sessions that were not checked for four minutes. */
  async checkPeople(): Promise<void> {
    const { people, onError } = this.#options;
    if (people === undefined) return;
    await forEachTenant(await tenantsWithUncheckedSessions(this.#options.db, checkedEvery), async (tenant) => {
      let left = maxChecks;
      const checkSome = async () => {
        for (; left > 0; left -= 1) {
          const session = await takeUncheckedSession(this.#options.db, tenant, checkedEvery);
          if (session === undefined) return;
          // A failed check ends no session: the next round retries, with the newest refresh token.
          const { clientId } = session;
          let { renewal }: { renewal: Uint8Array } = session;
          const onReplaced = (token: string) => {
            renewal = this.#seal(tenant, 'renewal', token);
          };
          await this.#check(people, tenant, session, onReplaced).catch(async (error: unknown) => {
            onError(error);
            await giveRenewal(this.#options.db, tenant, clientId, { renewal, rest: checksEvery });
          });
        }
      };
      await Promise.all(Array.from({ length: checksAtOnce }, checkSome));
    });
  }

  async #check(
    people: People,
    tenant: string,
    { clientId, subject, renewal, forKeys }: SessionToCheck,
    onReplaced: (refreshToken: string) => void,
  ): Promise<void> {
    const { sessions, clients, keys, db } = this.#options;
    // A sign-out during the renewal leaves a session for its keys, or none.
    const write = async (work: (transaction: DatabaseTransaction, secretHash: Uint8Array) => Promise<unknown>) =>
      await sessions.write(tenant, async (transaction) => {
        const secretHash = await lockSessionOfClient(transaction, tenant, clientId);
        if (secretHash !== undefined) await work(transaction, secretHash);
      });
    // Its keys were revoked.
    if (forKeys && (await keys.lastOf(db, tenant, clientId)) === undefined) {
      await write((transaction, secretHash) => sessions.end(transaction, tenant, secretHash));
      return;
    }
    const refreshToken = this.#open(tenant, 'renewal', renewal);
    const person = refreshToken === undefined ? undefined : await people.renew(refreshToken, subject, onReplaced);
    const admission = typeof person === 'object' ? person.admissions.get(tenant) : undefined;
    await write(async (transaction, secretHash) => {
      if (refreshToken === undefined || typeof person !== 'object' || admission === undefined) {
        const why = person === undefined ? 'provider' : 'rules';
        await sessions.end(transaction, tenant, secretHash, { why });
        return;
      }
      await clients.setRights(transaction, tenant, clientId, admission);
      await updateCheckedSession(transaction, tenant, secretHash, {
        scopes: admission.scopes,
        renewal: this.#seal(tenant, 'renewal', person.refreshToken ?? refreshToken),
        idToken: person.idToken === undefined ? undefined : this.#seal(tenant, 'ID token', person.idToken),
        tenants: [...person.admissions.keys()].sort(),
      });
    });
  }

  /** Ends the session of the request's cookie. `signOutUrl`: the provider's, for its person. */
  async signOut(request: FastifyRequest): Promise<{ cookie: string; signOutUrl: URL | undefined }> {
    const { sessions, people, onError } = this.#options;
    const { cookie, ended } = await sessions.signOut(request);
    if (people === undefined || ended === undefined || ended.subject === null) return { cookie, signOutUrl: undefined };
    const idToken = this.#open(ended.tenant, 'ID token', ended.idToken);
    return { cookie, signOutUrl: await people.signOutUrl(idToken).catch((error: unknown) => void onError(error)) };
  }

  #seal(tenant: string, what: SealedOfSession, text: string): Uint8Array {
    return this.#options.sealer.seal(Buffer.from(text), purposeOf(tenant, what));
  }

  #open(tenant: string, what: SealedOfSession, sealed: Uint8Array | null): string | undefined {
    const opened = sealed === null ? undefined : this.#options.sealer.open(sealed, purposeOf(tenant, what));
    return opened === undefined ? undefined : Buffer.from(opened).toString();
  }
}

type SealedOfSession = 'renewal' | 'ID token';

function cannotAsk(message: string): AnnalsError {
  return new AnnalsError('service_unavailable', message);
}

function purposeOf(tenant: string, what: SealedOfSession): string {
  return `${what} of a console session of ${tenant}`;
}

const sealedColumn = (column: string, what: SealedOfSession): SealedColumn => ({
  table: 'console_session',
  column,
  keys: ['tenant', 'secret_hash'],
  purposeOf: ({ tenant }) => purposeOf(String(tenant), what),
});

/** The sealed refresh tokens and ID tokens, for `annals secrets reseal`. */
export const sealedRenewals = sealedColumn('sealed_renewal', 'renewal');
export const sealedIdTokens = sealedColumn('sealed_id_token', 'ID token');
