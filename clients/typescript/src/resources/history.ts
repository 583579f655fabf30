import type { ExactChangeEntry } from '../json/exact-answers.ts';
import { type HistoryAnswer, type HistoryPage, type HistoryParameters, historyWalk } from '../pages/history-page.ts';
import type { Walk } from '../pages/walk.ts';
import type { ChangeEntry } from '../schemas.ts';
import type { CallOptions } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** The change history of the tenant: who changed which document, when, and from what to what. */
export class History<Entry extends ChangeEntry | ExactChangeEntry = ChangeEntry> {
  readonly #transport: Transport;
  readonly #tenant: string;
  readonly #read: (text: string) => HistoryAnswer<Entry>;

  constructor(transport: Transport, tenant: string, read: (text: string) => HistoryAnswer<Entry>) {
    this.#transport = transport;
    this.#tenant = tenant;
    this.#read = read;
  }

  /**
   * The entries that match, newest first. Without an `occurredAt` from-bound: those of the last 30 days.
   *
   * @example
   * const { items, totalElements } = await annals.history.list({ q: 'entity:product type:update', size: 50 });
   * for await (const entry of annals.history.list({ q: and(entity('order'), actor('Jane Doe')) })) …
   */
  list(parameters: HistoryParameters = {}, options?: CallOptions): Walk<Entry, HistoryPage<Entry>> {
    return historyWalk({ transport: this.#transport, tenant: this.#tenant, options, read: this.#read }, parameters);
  }
}
