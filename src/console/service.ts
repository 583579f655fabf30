import type { Sealer } from '../core/sealing.ts';
import { basePathOf } from '../http/base-path.ts';
import type { ConsoleAccess } from '../http/credentials.ts';
import type { Database } from '../postgres/database.ts';
import { createOwnAddress, type OwnAddress } from './own-address.ts';
import { ConsolePage, versionHeader } from './page.ts';
import { createSessionCookie } from './session-cookie.ts';
import { type ConsoleClients, Sessions } from './sessions.ts';

export interface Console {
  readonly sessions: Sessions;
  readonly allowsSignIn: boolean;
  readonly page: ConsolePage;
  /** Where the page was built. */
  readonly folder: string;
  readonly access: ConsoleAccess;
  readonly isOwnOrigin: OwnAddress['isOwnOrigin'];
}

/** The server side of the console, built once for a process. */
export function createConsole(options: {
  /** Connections that tenants share, and those for what every call needs. */
  db: Database;
  vital: Database;
  sealer: Sealer;
  clients: ConsoleClients;
  installation: string;
  baseUrl: string | undefined;
  /** Whether people may sign in over plain HTTP beyond loopback. */
  allowsInsecure: boolean;
  folder: string;
}): Console {
  const { db, vital, sealer, clients, installation, baseUrl, allowsInsecure, folder } = options;
  const basePath = basePathOf(baseUrl);
  const { allowsSignIn, isOverTls, faultOfOrigin, isOwnOrigin } = createOwnAddress(baseUrl, allowsInsecure);
  const cookie = createSessionCookie({ sealer, installation, isOverTls, basePath });
  const sessions = new Sessions({ db, vital, cookie, clients });
  const page = new ConsolePage(folder, basePath);
  return {
    sessions,
    allowsSignIn,
    page,
    folder,
    isOwnOrigin,
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
