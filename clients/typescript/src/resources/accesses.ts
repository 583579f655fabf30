import { type CursorPage, type ListParameters, listWalk } from '../pages/cursor-page.ts';
import type { Walk } from '../pages/walk.ts';
import type { Access } from '../schemas.ts';
import { plainAnswers } from '../transport/answer-json.ts';
import { type CallOptions, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** Who signed in, who was refused, and who downloaded exports. */
export class Accesses {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#path = path`/changelog/${tenant}/accesses`;
  }

  /**
   * The accesses of the tenant; with `sort: '_id:DESC'` the newest first.
   *
   * @example
   * for await (const { at, name } of annals.accesses.list({ q: 'kind:export_downloaded' })) console.log(at, name);
   */
  list(parameters: ListParameters = {}, options?: CallOptions): Walk<Access, CursorPage<Access>> {
    const read = plainAnswers<Access>().many;
    return listWalk({ transport: this.#transport, path: this.#path, options, read }, parameters);
  }
}
