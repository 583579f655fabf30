import { LRUCache } from 'lru-cache';
import type { Credentials } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { tenantOfClientId } from './client-identity.ts';

/** Milliseconds between updates of a credential's last use, in each process. */
const updateInterval = 60_000;
const maxCredentials = 10_000;

/** The last uses of clients, or of keys, each stored at most once a minute. */
export interface LastUses {
  /** Whether it was used since the process started, as far as is cached. */
  has(tenant: string, id: string): boolean;
  note(tenant: string, id: string, address: string): void;
}

export function createLastUses(options: {
  store: (tenant: string, id: string, address: string) => Promise<void>;
  /** Milliseconds of a monotonic clock. */
  elapsed: () => number;
  onError: (error: unknown) => void;
}): LastUses {
  const { store, elapsed, onError } = options;
  const notedAt = new LRUCache<string, number>({ maxSize: maxCredentials, sizeCalculation: () => 1 });
  return {
    has: (tenant, id) => notedAt.has(`${tenant} ${id}`),
    note(tenant, id, address) {
      const last = notedAt.get(`${tenant} ${id}`);
      if (last !== undefined && elapsed() - last < updateInterval) return;
      notedAt.set(`${tenant} ${id}`, elapsed());
      store(tenant, id, address).catch(onError);
    },
  };
}

/** Notes the last uses of clients. Call it before routes are registered. */
export function noteUsesOfClients(app: HttpServer, uses: Pick<LastUses, 'note'>): void {
  app.addHook('onResponse', (request, _reply, done) => {
    const { verifiedCredentials: credentials } = request;
    if (credentials !== null && isOfClient(credentials))
      uses.note(credentials.tenant, credentials.clientId, request.ip);
    done();
  });
}

/** Keys note their own uses, and sessions of people theirs. The user of a viewer token is a customer of the client. */
function isOfClient({ clientId, person, viewer }: Credentials): boolean {
  return person === undefined && viewer === undefined && tenantOfClientId(clientId) !== undefined;
}
