import type { FastifyRequest } from 'fastify';
import type { Sealer } from '../../core/sealing.ts';
import { basePathOf } from '../../http/base-path.ts';
import type { ConsoleAccess } from '../../http/credentials.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { lockPerson } from './key-routes.ts';
import { createOwnAddress } from './own-address.ts';
import { ConsolePage, versionHeader } from './page.ts';
import type { PeopleSignIn } from './people-routes.ts';
import { type ClientsOfPeople, PeopleSessions } from './people-sessions.ts';
import type { ConsoleClients, ConsoleKeys, EndGrants, IsSealed, NoteConsoleAccess, WholesOf } from './ports.ts';
import { createSealedCookie, createSessionCookie, type SealedCookie } from './sealed-cookie.ts';
import { Sessions } from './sessions.ts';
import { SignInTests } from './sign-in-test.ts';

export interface Console {
  readonly sessions: Sessions;
  readonly peopleSessions: PeopleSessions;
  readonly tests: SignInTests;
  readonly db: Database;
  readonly keys: ConsoleKeys;
  readonly wholesOf: WholesOf;
  readonly isSealed: IsSealed;
  readonly allowsSignIn: boolean;
  readonly page: ConsolePage;
  /** The folder of the built page. */
  readonly folder: string;
  readonly access: ConsoleAccess;
  /** Locks the request's person against the end of their sessions (`lockPerson`). */
  readonly lockPerson: (
    transaction: DatabaseTransaction,
    request: FastifyRequest,
    how: { makes: boolean },
  ) => Promise<void>;
  /** Undefined: no sign-in with a company's account. */
  readonly people: PeopleSignIn | undefined;
  /** Stores the checks of such sign-ins. */
  readonly cookie: SealedCookie;
  /** Keeps the request of a program until the person decides. */
  readonly requestCookie: SealedCookie;
  readonly checkOnce: ConsoleClients['checkOnce'];
  readonly baseUrl: string | undefined;
  readonly now: () => number;
}

/** The server side of the console, built once for a process. */
export function createConsole(options: {
  /** Connections that tenants share, and those for authentication. */
  db: Database;
  vital: Database;
  sealer: Sealer;
  clients: ConsoleClients & ClientsOfPeople;
  noteAccess: NoteConsoleAccess;
  keys: ConsoleKeys;
  endGrants: EndGrants;
  wholesOf: WholesOf;
  isSealed: IsSealed;
  installation: string;
  baseUrl: string | undefined;
  /** Whether people may sign in over plain HTTP beyond loopback. */
  allowsInsecure: boolean;
  folder: string;
  people: PeopleSignIn | undefined;
  /** Milliseconds since 1970. */
  now: () => number;
  onError: (error: unknown) => void;
  /** The last use of a session was not noted. */
  onNotNoted: (error: unknown) => void;
}): Console {
  const {
    db,
    vital,
    sealer,
    clients,
    noteAccess,
    keys,
    endGrants,
    wholesOf,
    isSealed,
    installation,
    baseUrl,
    allowsInsecure,
    folder,
    people,
    now,
    onError,
    onNotNoted,
  } = options;
  const basePath = basePathOf(baseUrl);
  const { allowsSignIn, isOverTls, faultOfOrigin } = createOwnAddress(baseUrl, allowsInsecure);
  const cookie = createSessionCookie({ sealer, installation, isOverTls, basePath });
  const sessions = new Sessions({ db, vital, cookie, clients, noteAccess, keys, endGrants, onNotNoted });
  const peopleSessions = new PeopleSessions({ sessions, db, cookie, clients, keys, sealer, people, now, onError });
  const forRedirects = {
    sealer,
    // With `/`, and so the prefix __Host-, no other host of the domain can plant the cookie of its own sign-in.
    path: isOverTls && basePath === '' ? '/' : `${basePath}/console`,
    // Providers and programs lead to the console from their sites.
    sameSite: 'Lax',
    isOverTls,
    maxValue: 4_096,
  } as const;
  const page = new ConsolePage(folder, basePath, people !== undefined);
  return {
    db,
    sessions,
    peopleSessions,
    tests: new SignInTests({ sealer, sessions, now }),
    keys,
    wholesOf,
    isSealed,
    allowsSignIn,
    page,
    folder,
    people,
    checkOnce: clients.checkOnce,
    cookie: createSealedCookie({
      ...forRedirects,
      name: `annals-oidc-${installation}`,
      purpose: 'sign-in with a company account',
    }),
    requestCookie: createSealedCookie({
      ...forRedirects,
      name: `annals-request-${installation}`,
      purpose: 'request of a program',
    }),
    baseUrl,
    now,
    lockPerson: (transaction, request, how) => lockPerson(transaction, sessions, request, how),
    access: {
      faultOfOrigin,
      verify: (request) => sessions.find(request),
      headers: () => {
        const { version } = page;
        return version === undefined ? {} : { [versionHeader]: version };
      },
    },
  };
}
