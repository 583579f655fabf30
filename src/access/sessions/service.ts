import type { FastifyRequest } from 'fastify';
import type { Sealer } from '../../core/sealing.ts';
import { basePathOf } from '../../http/base-path.ts';
import type { ConsoleAccess } from '../../http/credentials.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { lockPerson } from './key-routes.ts';
import { createOwnAddress, type OwnAddress } from './own-address.ts';
import { ConsolePage, versionHeader } from './page.ts';
import type { PeopleSignIn } from './people-routes.ts';
import { type ClientsOfPeople, PeopleSessions } from './people-sessions.ts';
import type { ConsoleClients, ConsoleKeys, IsSealed, NoteConsoleAccess, WholesOf } from './ports.ts';
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
  readonly isOwnOrigin: OwnAddress['isOwnOrigin'];
  /** Undefined: no sign-in with a company's account. */
  readonly people: PeopleSignIn | undefined;
  /** Stores the checks of such sign-ins. */
  readonly cookie: SealedCookie;
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
  const { allowsSignIn, isOverTls, faultOfOrigin, isOwnOrigin } = createOwnAddress(baseUrl, allowsInsecure);
  const cookie = createSessionCookie({ sealer, installation, isOverTls, basePath });
  const sessions = new Sessions({ db, vital, cookie, clients, noteAccess, keys, onNotNoted });
  const peopleSessions = new PeopleSessions({ sessions, db, cookie, clients, keys, sealer, people, now, onError });
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
    isOwnOrigin,
    people,
    checkOnce: clients.checkOnce,
    cookie: createSealedCookie({
      sealer,
      name: `annals-oidc-${installation}`,
      // With `/`, and so the prefix __Host-, no other host of the domain can plant the cookie of its own sign-in.
      path: isOverTls && basePath === '' ? '/' : `${basePath}/console`,
      // The provider responds by a redirect from its site.
      sameSite: 'Lax',
      isOverTls,
      purpose: 'sign-in with a company account',
      maxValue: 4_096,
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
