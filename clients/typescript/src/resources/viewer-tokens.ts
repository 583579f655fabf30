import type { NewViewerToken, ViewerToken } from '../schemas.ts';
import { type CallOptions, jsonBody, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** What makes a viewer token. A query of `@annals/client/query` can stand for the text of `q`. */
export type ViewerTokenParameters = Omit<NewViewerToken, 'q'> & { readonly q: string | { toString(): string } };

/** Tokens by which the customers of a platform see their part of the change history in its pages. */
export class ViewerTokens {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#path = path`/changelog/${tenant}/viewer-tokens`;
  }

  /**
   * Makes a token for one person. Write `q` with the functions of `@annals/client/query`: then no id can change what it
   * means.
   *
   * @example
   * const q = elemMatch({ entity: 'customer', entityId: customer.id });
   * response.json(await annals.viewerTokens.create({ q, subject: customer.id }));
   */
  async create({ q, ...others }: ViewerTokenParameters, options?: CallOptions): Promise<ViewerToken> {
    const body: NewViewerToken = { ...others, q: String(q) };
    return await this.#transport.fetchJson({ method: 'POST', path: this.#path, body: jsonBody(body) }, options);
  }
}
