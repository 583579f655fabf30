import { type CursorPage, type FieldsParameters, type ListParameters, listWalk } from '../pages/cursor-page.ts';
import type { Walk } from '../pages/walk.ts';
import type { SavedView, SavedViewInput, SavedViewItem } from '../schemas.ts';
import { plainAnswers } from '../transport/answer-json.ts';
import { type CallOptions, jsonBody, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** Queries of the change history that the tenant keeps by name. */
export class Views {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#path = path`/changelog/${tenant}/views`;
  }

  /**
   * The views of the tenant; with `sort: 'position'` in the order in which people see them.
   *
   * @example
   * for await (const { id, name, q, range } of annals.views.list({ sort: 'position' })) console.log(id, name, q, range);
   */
  list(parameters?: ListParameters, options?: CallOptions): Walk<SavedView, CursorPage<SavedView>>;
  list(parameters: FieldsParameters, options?: CallOptions): Walk<SavedViewItem, CursorPage<SavedViewItem>>;
  list(
    parameters: ListParameters | FieldsParameters = {},
    options?: CallOptions,
  ): Walk<SavedView | SavedViewItem, CursorPage<SavedView | SavedViewItem>> {
    const read = plainAnswers<SavedView | SavedViewItem>().many;
    return listWalk({ transport: this.#transport, path: this.#path, options, read }, parameters);
  }

  async get(id: string, options?: CallOptions): Promise<SavedView> {
    return await this.#transport.fetchJson({ method: 'GET', path: this.#of(id) }, options);
  }

  /** Makes a view. Without an id it has a random one. */
  async create(view: SavedViewInput, options?: CallOptions): Promise<{ id: string }> {
    return await this.#transport.fetchJson({ method: 'POST', path: this.#path, body: jsonBody(view) }, options);
  }

  /** Makes or replaces a view. With the `metadata.version` that was read, a change in between is refused (409). */
  async put(id: string, view: SavedViewInput, options?: CallOptions): Promise<{ created: boolean }> {
    const request = { method: 'PUT', path: this.#of(id), body: jsonBody(view) } as const;
    return { created: (await this.#transport.send(request, options)).status === 201 };
  }

  async delete(id: string, options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'DELETE', path: this.#of(id) }, options);
  }

  #of(id: string): string {
    return `${this.#path}${path`/${id}`}`;
  }
}
