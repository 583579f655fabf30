import { type CursorPage, type ListParameters, listWalk } from '../pages/cursor-page.ts';
import type { Walk } from '../pages/walk.ts';
import type { Actor } from '../schemas.ts';
import { plainAnswers } from '../transport/answer-json.ts';
import { type CallOptions, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

export interface ActorParameters extends Omit<ListParameters, 'q' | 'sort' | 'fields'> {
  /** The beginning of the id or of a name, case-insensitive; left out: everybody with an id. */
  readonly prefix?: string | undefined;
}

/** The people and programs that made changes, by the ids that the changes have. */
export class Actors {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#path = path`/changelog/${tenant}/actors`;
  }

  /**
   * The actors with their names and how many changes they made, by id.
   *
   * @example
   * for await (const { actorId, names } of annals.actors.list({ prefix: 'jane' })) console.log(actorId, names[0]?.name);
   */
  list(parameters: ActorParameters = {}, options?: CallOptions): Walk<Actor, CursorPage<Actor>> {
    const read = plainAnswers<Actor>().many;
    return listWalk({ transport: this.#transport, path: this.#path, options, read }, parameters);
  }
}
