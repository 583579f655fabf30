import { type CursorPage, type ListParameters, listWalk } from '../pages/cursor-page.ts';
import type { Walk } from '../pages/walk.ts';
import type { Erasure } from '../schemas.ts';
import { plainAnswers } from '../transport/answer-json.ts';
import { type CallOptions, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** When, why and how much was erased, and never whom. */
export class Erasures {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#path = path`/changelog/${tenant}/erasures`;
  }

  /**
   * The erasures of the tenant; with `sort: 'begunAt:DESC'` the newest first.
   *
   * @example
   * for await (const { begunAt, entries } of annals.erasures.list({ sort: 'begunAt:DESC' })) console.log(begunAt, entries);
   */
  list(parameters: ListParameters = {}, options?: CallOptions): Walk<Erasure, CursorPage<Erasure>> {
    const read = plainAnswers<Erasure>().many;
    return listWalk({ transport: this.#transport, path: this.#path, options, read }, parameters);
  }
}
