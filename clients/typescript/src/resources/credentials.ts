import { type CursorPage, type ListParameters, listWalk } from '../pages/cursor-page.ts';
import type { Walk } from '../pages/walk.ts';
import type {
  ClientNarrowing,
  ClientWithSecret,
  Key,
  KeyNarrowing,
  KeyWithSecret,
  NewClient,
  NewKey,
  OAuthClient,
} from '../schemas.ts';
import { plainAnswers } from '../transport/answer-json.ts';
import { type CallOptions, jsonBody, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** The clients or the keys of a tenant: who made them, what they may do, and their last use. */
class Credentials<Shown, WithSecret, New extends object, Narrowing extends object> {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, collection: string) {
    this.#transport = transport;
    this.#path = collection;
  }

  /**
   * @example
   * for await (const { name, usedAt } of annals.keys.list({ q: 'state:active' })) console.log(name, usedAt);
   */
  list(parameters: ListParameters = {}, options?: CallOptions): Walk<Shown, CursorPage<Shown>> {
    const read = plainAnswers<Shown>().many;
    return listWalk({ transport: this.#transport, path: this.#path, options, read }, parameters);
  }

  async get(id: string, options?: CallOptions): Promise<Shown> {
    return await this.#transport.fetchJson({ method: 'GET', path: this.#of(id) }, options);
  }

  /** Makes one within the rights of the caller, with whom it ends. The answer has its secret, this once. */
  async create(credential: New, options?: CallOptions): Promise<WithSecret> {
    return await this.#transport.fetchJson({ method: 'POST', path: this.#path, body: jsonBody(credential) }, options);
  }

  /** Removes rights: `scopes` and `models` are those that stay, `query` and `hide` are added. */
  async narrow(id: string, narrowing: Narrowing, options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'PATCH', path: this.#of(id), body: jsonBody(narrowing) }, options);
  }

  /** Replaces the secret. The answer has the new one, this once; the old one ends within 5 seconds. */
  async rotate(id: string, options?: CallOptions): Promise<WithSecret> {
    return await this.#transport.fetchJson({ method: 'POST', path: `${this.#of(id)}/rotate` }, options);
  }

  /** Ends it within 5 seconds, with all that it made. */
  async revoke(id: string, options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'DELETE', path: this.#of(id) }, options);
  }

  #of(id: string): string {
    return `${this.#path}${path`/${id}`}`;
  }
}

/** OAuth clients. */
export class Clients extends Credentials<OAuthClient, ClientWithSecret, NewClient, ClientNarrowing> {
  constructor(transport: Transport, tenant: string) {
    super(transport, path`/access/${tenant}/clients`);
  }
}

/** Keys for programs that cannot renew access tokens. */
export class Keys extends Credentials<Key, KeyWithSecret, NewKey, KeyNarrowing> {
  constructor(transport: Transport, tenant: string) {
    super(transport, path`/access/${tenant}/keys`);
  }
}
