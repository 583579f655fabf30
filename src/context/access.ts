import { join } from 'node:path';
import { type CountedReads, createCountedReads } from '../access/accesses/count-reads.ts';
import { noteAccess } from '../access/accesses/store.ts';
import { Consent } from '../access/grants/consent.ts';
import { endGrants, noteUseOfGrant } from '../access/grants/grant-store.ts';
import { createMetadataDocuments } from '../access/grants/metadata-documents.ts';
import { createRegisteredPrograms } from '../access/grants/programs.ts';
import { createGrantRedeemer } from '../access/grants/redeem.ts';
import type { AuthorizationServer } from '../access/grants/routes.ts';
import { createGrantVerifier } from '../access/grants/verify-grant.ts';
import { type Administration, createAdministration } from '../access/keys/administration.ts';
import {
  keyScopesOf,
  lastMadeBy,
  listKeysOf,
  makeKey,
  noteUseOfKey,
  revokeKeys,
  revokeMadeBy,
} from '../access/keys/key-store.ts';
import { createKeyVerifier } from '../access/keys/verify-key.ts';
import {
  createClientWithoutSecret,
  deleteClientWithoutSecret,
  findClient,
  lockClient,
  noteUseOfClient,
  setClientRights,
} from '../access/oauth/clients.ts';
import { createLastUses, type LastUses } from '../access/oauth/last-uses.ts';
import { createOAuthService, type OAuthService } from '../access/oauth/service.ts';
import { type Console, createConsole } from '../access/sessions/service.ts';
import { endSessionsOfSecret } from '../access/sessions/session-store.ts';
import { createPeopleSignIn } from '../access/sign-in/service.ts';
import { createViewerTokenVerifier } from '../access/viewer-tokens/verify-viewer-token.ts';
import { doWork, requestLimit } from '../core/fairness/work.ts';
import { packageFolder } from '../core/package-folder.ts';
import { readRestriction, wholesOf } from '../history/search/plan/restriction.ts';
import type { ReadRestriction, VerifyKey, VerifyViewerToken } from '../http/credentials.ts';
import { createTakePortion, RequestRates } from '../http/request-rates.ts';
import { createSelfHostedClient, type HttpClient } from '../outbound/http-client.ts';
import { readLog } from '../proof/log/log-store.ts';
import type { ContextOptions, Foundation } from './foundation.ts';

/** Authentication, sign-in and limits. */
export interface AccessServices {
  oauth: OAuthService;
  verifyKey: VerifyKey;
  /** Access tokens of grants. */
  verifyGrant: VerifyKey;
  /** Undefined without a public address. */
  authorizationServer: AuthorizationServer | undefined;
  verifyViewerToken: VerifyViewerToken;
  readRestriction: ReadRestriction;
  webConsole: Console;
  /** Counts reads of histories by the hour. */
  countedReads: CountedReads;
  usesOfClients: LastUses;
  administration: Administration;
  /** Undefined if there is no such limit. */
  requestRates: RequestRates;
}

/** `closing` gets what closes them. */
export async function createAccess(
  foundation: Foundation,
  overrides: ContextOptions['overrides'],
  closing: AsyncDisposableStack,
): Promise<AccessServices> {
  const { config, clock, logger, sealer, pool, db, vital } = foundation;
  const now = () => clock.now();
  const onBadRules = (error: unknown) =>
    logger.error({ err: error }, 'the rules of ANNALS_OIDC_RULES stay as they were');
  const oauth = await createOAuthService({
    db: vital.db,
    sealer,
    baseUrl: config.baseUrl,
    now,
    elapsed: () => clock.elapsed(),
    readRestriction,
    onUnreadableKey: (kid) => logger.warn({ kid }, 'no secret key opens this signing key; its tokens are refused'),
  });
  const webConsole = createConsole({
    db,
    vital: vital.db,
    sealer,
    clients: {
      checkSecret: oauth.checkSecret,
      checkOnce: oauth.checkOnce,
      find: findClient,
      lock: lockClient,
      findState: oauth.findClientState,
      remove: deleteClientWithoutSecret,
      make: createClientWithoutSecret,
      setRights: setClientRights,
    },
    noteAccess,
    keys: {
      scopesOf: keyScopesOf,
      make: (transaction, { clientId, person, lifetime, ...key }) =>
        makeKey(transaction, { ...key, expiry: lifetime, madeBy: { clientId, person } }),
      list: listKeysOf,
      revoke: revokeKeys,
      revokeMadeBy,
      lastOf: lastMadeBy,
    },
    endGrants,
    people: config.oidc && createPeopleSignIn(config.oidc, { now, readRestriction, onBadRules }),
    now,
    onError: (error) =>
      logger.warn(
        { err: error },
        'a sign-in could not be renewed at the OpenID provider; Annals retries in 15 seconds',
      ),
    onNotNoted: (error) => logger.warn({ err: error }, 'the use of a session was not noted'),
    wholesOf,
    isSealed: (tenant) =>
      doWork({ tenant, timeLimit: requestLimit }, async () => (await readLog(db, tenant))?.checkpoint != null),
    installation: oauth.installation,
    baseUrl: config.baseUrl,
    allowsInsecure: config.consoleInsecure,
    folder: overrides?.consoleFolder ?? join(packageFolder(), 'console', 'dist'),
  });
  const verifyKey = createKeyVerifier({
    db: vital.db,
    readRestriction,
    checkOnce: oauth.checkOnce,
    now,
    elapsed: () => clock.elapsed(),
    lastUses: lastUsesOf(foundation, noteUseOfKey, 'the use of a key was not noted'),
  });
  // Documents of programs that anybody may name: no private address, whatever tenants may reach.
  const publicClient = createSelfHostedClient([]);
  closing.defer(() => publicClient.close());
  const verifyGrant = createGrantVerifier({
    db: vital.db,
    sealer,
    readRestriction,
    checkOnce: oauth.checkOnce,
    now,
    elapsed: () => clock.elapsed(),
    lastUses: lastUsesOf(foundation, noteUseOfGrant, 'the use of a grant was not noted'),
  });
  const countedReads = createCountedReads(pool, {
    now,
    onError: (error) => logger.warn({ err: error }, 'who read histories could not be counted'),
  });
  closing.defer(() => countedReads.close());
  const { findClientState } = oauth;
  const verifyViewerToken = createViewerTokenVerifier({ sealer, findClientState, readRestriction, now });
  return {
    oauth,
    verifyKey,
    verifyGrant,
    authorizationServer: authorizationServerOf(foundation, webConsole, {
      address: config.baseUrl ?? overrides?.loopbackUrl,
      programClient: overrides?.programClient ?? publicClient,
    }),
    verifyViewerToken,
    readRestriction,
    webConsole,
    countedReads,
    usesOfClients: lastUsesOf(foundation, noteUseOfClient, 'the use of a client was not noted'),
    administration: createAdministration({ db, readRestriction, endSessionsOfSecret }),
    requestRates: requestRatesOf(foundation),
  };
}

function authorizationServerOf(
  { config: { redirectSchemes: schemes }, clock, db, sealer, vital }: Foundation,
  { sessions, peopleSessions, people, requestCookie: cookie, checkOnce, allowsSignIn }: Console,
  { address, programClient }: { address: string | undefined; programClient: Pick<HttpClient, 'send'> },
): AuthorizationServer | undefined {
  if (address === undefined) return undefined;
  const elapsed = () => clock.elapsed();
  const documents = createMetadataDocuments({ client: programClient, schemes, elapsed });
  const common = { address, sealer, sessions, now: () => clock.now() };
  return {
    db,
    address,
    sessions,
    allowsSignIn,
    schemes,
    programs: createRegisteredPrograms(sealer, schemes),
    consent: new Consent({ ...common, cookie, peopleSessions, documents, signsInPeople: people !== undefined }),
    redeemer: createGrantRedeemer({ ...common, vital: vital.db, checkOnce }),
  };
}

function lastUsesOf(
  { clock, logger, vital }: Foundation,
  store: (db: Foundation['db'], tenant: string, id: string, address: string) => Promise<void>,
  fault: string,
): LastUses {
  return createLastUses({
    store: (...use) => store(vital.db, ...use),
    elapsed: () => clock.elapsed(),
    onError: (error) => logger.warn({ err: error }, fault),
  });
}

function requestRatesOf({ config: { tenantRate }, clock, logger, vital }: Foundation): RequestRates {
  return new RequestRates({
    tenantRate,
    take: createTakePortion(vital.db),
    elapsed: () => clock.elapsed(),
    onUnreachable: (error) => logger.warn({ err: error }, 'the database cannot count the rate of a tenant or a key'),
  });
}
