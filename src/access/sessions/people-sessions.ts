import type { FastifyRequest } from 'fastify';
import { AnnalsError } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import { AccessTokenFault, type Restriction } from '../../http/credentials.ts';
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
import { hashSecret, type SessionCookie } from './sealed-cookie.ts';
import { lockSessionOfClient, oldestOfPerson } from './session-store.ts';
import { type Sessions, type StartedSession, sessionLifetime } from './sessions.ts';

/** What a person may do in a tenant, and see of its change history. */
interface Admission {
  readonly scopes: readonly Scope[];
  readonly restriction?: Restriction | undefined;
}

/** A person whom tenants let in by a company's account. */
export interface AdmittedPerson {
  readonly issuer: string;
  readonly subject: string;
  readonly name: string;
  readonly refreshToken: string | undefined;
  /** The hint with which the person signs out at the provider. */
  readonly idToken: string | undefined;
  /** When the sign-in ends where nobody can ask again; milliseconds since 1970. */
  readonly expiresAt: number;
  readonly admissions: ReadonlyMap<string, Admission>;
}

/** The provider and the rules. Rejects where the provider cannot be reached. */
export interface People {
  /**
   * Asks the provider again. A text: why the person may no longer sign in; undefined: the provider ended the sign-in. Calls `onReplaced` with the
   * refresh token that replaces this one, also where the renewal fails afterwards.
   */
  renew(
    refreshToken: string,
    subject: string,
    onReplaced: (refreshToken: string) => void,
  ): Promise<AdmittedPerson | string | undefined>;
  /** Where the person signs out at the provider; undefined where it has no address for it. */
  signOutUrl(idToken: string | undefined): Promise<URL | undefined>;
}

/** What people's sessions need of the clients, which are another module's. */
export interface ClientsOfPeople {
  /** Makes a client without a secret. Throws resource_not_found where there is no such tenant. */
  make(
    db: Database,
    client: { tenant: string; name: string; scope: string; restriction: Restriction | undefined },
  ): Promise<{ clientId: string }>;
  setRights(db: Database, tenant: string, clientId: string, rights: Admission): Promise<void>;
}

export interface PeopleSessionsOptions {
  sessions: Sessions;
  db: Database;
  cookie: SessionCookie;
  clients: ClientsOfPeople;
  keys: ConsoleKeys;
  sealer: Sealer;
  /** Undefined: nobody signs in with a company's account. */
  people: People | undefined;
  /** Milliseconds since 1970. */
  now: () => number;
  onError: (error: unknown) => void;
}

/** Milliseconds after which the provider and the rules are asked again: a right that was taken away ends within five minutes (contract 18). */
export const checkedEvery = 4 * 60_000;
/** Milliseconds between two looks for sessions to check, and after which a check that failed is repeated. */
export const checksEvery = 15_000;
/** Of one person in one tenant; the oldest one ends. */
export const maxSessionsOfPerson = 100;
/** Sessions of a tenant that are checked in a round, and at once. */
const maxChecks = 1_000;
const checksAtOnce = 8;

/** Sessions of people who signed in with a company's account: each is a session as a link begins it, of a client of its own. */
export class PeopleSessions {
  readonly #options: PeopleSessionsOptions;

  constructor(options: PeopleSessionsOptions) {
    this.#options = options;
  }

  /**
   * Signs in a person, to the tenant that is wanted where it lets them in, else to the first one that is there. Undefined where none of
   * their tenants is there.
   */
  async signInPerson(
    person: AdmittedPerson,
    wanted: string | undefined,
    request: FastifyRequest,
  ): Promise<StartedSession | undefined> {
    const names = [...person.admissions.keys()].sort();
    const order = wanted !== undefined && names.includes(wanted) ? [wanted, ...names] : names;
    for (const tenant of order) {
      try {
        return await this.#options.sessions.start(tenant, request, (transaction) =>
          this.#newSession(transaction, person, tenant),
        );
      } catch (error) {
        // A rule may name a tenant that is not there yet, or not any more.
        if (!(error instanceof AnnalsError && error.type === 'resource_not_found')) throw error;
      }
    }
    return undefined;
  }

  /**
   * Changes the person of the request's session to another tenant, after the provider and the rules were asked again. Rejects with an
   * AccessTokenFault where the session is nobody's who may change, and with insufficient_permissions where the tenant does not let them in.
   * `keys`: the session has keys, which need its refresh token; a new sign-in leads to the other tenant.
   */
  async changeTenant(tenant: string, request: FastifyRequest): Promise<StartedSession | 'keys'> {
    const { people, db, sessions, keys, onError } = this.#options;
    // Who was revoked enters no other tenant.
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
    // Kept also if the renewal or the change fails: the provider may take the one of before no more.
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
    const person = { ...renewed, idToken: renewed.idToken ?? this.#open(secret.tenant, 'ID token', taken.idToken) };
    await give();
    if (!person.admissions.has(tenant)) throw insufficientScopes();
    const started = await sessions.start(tenant, request, async (transaction) => {
      // Meanwhile its person may have signed out, or made a key.
      const locked = await lockSessionOfClient(transaction, before.tenant, clientId);
      if (locked === undefined) throw new AccessTokenFault('expired');
      const hasKeys = (await keys.lastOf(transaction, before.tenant, clientId)) !== undefined;
      return hasKeys ? undefined : await this.#newSession(transaction, person, tenant);
    });
    return started ?? 'keys';
  }

  async #newSession(transaction: DatabaseTransaction, person: AdmittedPerson, tenant: string) {
    const { issuer, subject, name, refreshToken, idToken, expiresAt, admissions } = person;
    const { scopes, restriction } = admissions.get(tenant) ?? { scopes: [] };
    const renewal = refreshToken === undefined ? null : this.#seal(tenant, 'renewal', refreshToken);
    const left = renewal === null ? expiresAt - this.#options.now() : sessionLifetime;
    const { sessions } = this.#options;
    for (const oldest of await oldestOfPerson(transaction, tenant, person, maxSessionsOfPerson - 1))
      await sessions.end(transaction, tenant, oldest);
    const { clientId } = await this.#options.clients.make(transaction, {
      tenant,
      name,
      scope: scopes.join(' '),
      restriction,
    });
    const tenants = [...admissions.keys()].sort();
    const client = { tenant, clientId, name, scopes };
    const hint = idToken === undefined ? null : this.#seal(tenant, 'ID token', idToken);
    const kept = { issuer, subject, renewal, idToken: hint, tenants };
    return { client, ends: true, person: kept, left };
  }

  /** Asks the provider and the rules again, of each person whose session was not checked for four minutes. */
  async checkPeople(): Promise<void> {
    const { people, onError } = this.#options;
    if (people === undefined) return;
    await forEachTenant(await tenantsWithUncheckedSessions(this.#options.db, checkedEvery), async (tenant) => {
      let left = maxChecks;
      const checkSome = async () => {
        for (; left > 0; left -= 1) {
          const session = await takeUncheckedSession(this.#options.db, tenant, checkedEvery);
          if (session === undefined) return;
          // A check that fails ends no session. It stays unchecked, so that the next round asks again, with the newest refresh token.
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
    // Whoever signs out while the provider is asked leaves a session for its keys, or none.
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

  /** Ends the session of the request's cookie. `signOutUrl`: where its person signs out at the provider too. */
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
