import { type CursorPage, type ListParameters, listWalk } from '../pages/cursor-page.ts';
import type { Walk } from '../pages/walk.ts';
import type { ConsoleSession } from '../schemas.ts';
import { plainAnswers } from '../transport/answer-json.ts';
import { type CallOptions, jsonBody, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** Who is signed in to the console of the tenant. */
export class Sessions {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#path = path`/access/${tenant}/sessions`;
  }

  /**
   * The active sessions; with `sort: 'seenAt:DESC'` the last used first.
   *
   * @example
   * for await (const { name, seenAt } of annals.sessions.list({ sort: 'seenAt:DESC' })) console.log(name, seenAt);
   */
  list(parameters: ListParameters = {}, options?: CallOptions): Walk<ConsoleSession, CursorPage<ConsoleSession>> {
    const read = plainAnswers<ConsoleSession>().many;
    return listWalk({ transport: this.#transport, path: this.#path, options, read }, parameters);
  }

  /** Ends a session, with the keys and clients that a person made in it. */
  async end(id: string, options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'DELETE', path: `${this.#path}${path`/${id}`}` }, options);
  }

  /** Ends all sessions of a person in the tenant, with the keys and clients that they made. Returns how many ended. */
  async endAllOf(person: { issuer: string; subject: string }, options?: CallOptions): Promise<{ ended: number }> {
    const request = { method: 'POST', path: `${this.#path}/end`, body: jsonBody(person) } as const;
    return await this.#transport.fetchJson(request, options);
  }
}
