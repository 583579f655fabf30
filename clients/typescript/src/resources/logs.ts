import { type CursorPage, type FieldsParameters, type ListParameters, listWalk } from '../pages/cursor-page.ts';
import type { Walk } from '../pages/walk.ts';
import type { RequestLog, RequestLogItem, SessionLog, SessionLogItem } from '../schemas.ts';
import { plainAnswers } from '../transport/answer-json.ts';
import { type CallOptions, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** What became of the chats, and the tokens that they took. */
export class Logs {
  readonly requests: LogList<RequestLog, RequestLogItem>;
  readonly sessions: LogList<SessionLog, SessionLogItem>;

  constructor(transport: Transport, tenant: string) {
    this.requests = new LogList(transport, path`/ai-service/${tenant}/agentic/logs/requests`);
    this.sessions = new LogList(transport, path`/ai-service/${tenant}/agentic/logs/sessions`);
  }
}

/** Logs of requests, or of sessions. */
export class LogList<Log, Item> {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, place: string) {
    this.#transport = transport;
    this.#path = place;
  }

  list(parameters?: ListParameters, options?: CallOptions): Walk<Log, CursorPage<Log>>;
  list(parameters: FieldsParameters, options?: CallOptions): Walk<Item, CursorPage<Item>>;
  list(
    parameters: ListParameters | FieldsParameters = {},
    options?: CallOptions,
  ): Walk<Log | Item, CursorPage<Log | Item>> {
    const read = plainAnswers<Log | Item>().many;
    return listWalk({ transport: this.#transport, path: this.#path, options, read }, parameters);
  }

  async get(id: string, options?: CallOptions): Promise<Log> {
    return await this.#transport.fetchJson({ method: 'GET', path: `${this.#path}${path`/${id}`}` }, options);
  }
}
