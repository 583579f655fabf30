import { type CursorPage, type ListParameters, listWalk } from '../pages/cursor-page.ts';
import type { Walk } from '../pages/walk.ts';
import type { Grant } from '../schemas.ts';
import { plainAnswers } from '../transport/answer-json.ts';
import { type CallOptions, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** What people allowed programs that signed in. */
export class Grants {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#path = path`/access/${tenant}/grants`;
  }

  /**
   * The active grants; with `sort: 'usedAt:DESC'` the last used first.
   *
   * @example
   * for await (const { name, onBehalfOf } of annals.grants.list()) console.log(name, onBehalfOf);
   */
  list(parameters: ListParameters = {}, options?: CallOptions): Walk<Grant, CursorPage<Grant>> {
    const read = plainAnswers<Grant>().many;
    return listWalk({ transport: this.#transport, path: this.#path, options, read }, parameters);
  }

  /** Ends a grant. */
  async end(id: string, options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'DELETE', path: `${this.#path}${path`/${id}`}` }, options);
  }
}
