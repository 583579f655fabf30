import type { NewViewerToken, ViewerToken } from '../schemas.ts';
import { type CallOptions, jsonBody, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** Tokens by which the customers of a platform see their part of the change history in its pages. */
export class ViewerTokens {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#path = path`/changelog/${tenant}/viewer-tokens`;
  }

  /**
   * Makes a token for one person. Write `q` with the functions of `@annals/client/query`: then no id can change what it means.
   *
   * @example
   * const q = elemMatch({ entity: 'customer', entityId: customer.id });
   * response.json(await annals.viewerTokens.create({ q: String(q), subject: customer.id }));
   */
  async create(token: NewViewerToken, options?: CallOptions): Promise<ViewerToken> {
    return await this.#transport.fetchJson({ method: 'POST', path: this.#path, body: jsonBody(token) }, options);
  }
}
