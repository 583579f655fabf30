import { hashSecret, type Secret } from './secret.ts';
import type { StoredSession } from './session-store.ts';

export type ReadSessions = (tenant: string, secretHashes: readonly Buffer[]) => Promise<StoredSession[]>;

interface Query {
  readonly hashes: Map<string, Buffer>;
  readonly result: Promise<Map<string, StoredSession>>;
}

/**
 * Finds sessions in the database, and runs one query of a tenant at a time: requests that come meanwhile share the next
 * one. So no answer is older than its request, and the requests of one tenant take one connection, however many they are.
 */
export class SessionLookup {
  readonly #read: ReadSessions;
  readonly #running = new Map<string, Promise<unknown>>();
  readonly #next = new Map<string, Query>();

  constructor(read: ReadSessions) {
    this.#read = read;
  }

  /** Undefined where there is no such session. */
  async find(secret: Secret): Promise<StoredSession | undefined> {
    const hash = hashSecret(secret);
    const key = hash.toString('hex');
    const query = this.#next.get(secret.tenant) ?? this.#queueQuery(secret.tenant);
    query.hashes.set(key, hash);
    return (await query.result).get(key);
  }

  #queueQuery(tenant: string): Query {
    const hashes = new Map<string, Buffer>();
    const before = this.#running.get(tenant) ?? Promise.resolve();
    const result = before.then(
      () => this.#run(tenant, hashes),
      () => this.#run(tenant, hashes),
    );
    const query = { hashes, result };
    this.#next.set(tenant, query);
    this.#running.set(tenant, result);
    const forget = () => {
      if (this.#running.get(tenant) === result) this.#running.delete(tenant);
    };
    result.then(forget, forget);
    return query;
  }

  async #run(tenant: string, hashes: Map<string, Buffer>): Promise<Map<string, StoredSession>> {
    // From now on a request waits for a later query.
    this.#next.delete(tenant);
    const sessions = await this.#read(tenant, [...hashes.values()]);
    return new Map(sessions.map((session) => [Buffer.from(session.secretHash).toString('hex'), session]));
  }
}
