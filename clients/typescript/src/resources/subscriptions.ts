import { type CursorPage, type FieldsParameters, type ListParameters, listWalk } from '../pages/cursor-page.ts';
import type { Walk } from '../pages/walk.ts';
import type {
  DeliveryAttempt,
  DeliveryTest,
  ReplayInput,
  RotatedKey,
  SentRequest,
  Subscription,
  SubscriptionCreated,
  SubscriptionInput,
  SubscriptionItem,
  SubscriptionPreview,
} from '../schemas.ts';
import { plainAnswers } from '../transport/answer-json.ts';
import { type CallOptions, jsonBody, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** What goes out of the change history: webhooks, and how they fare. */
export class Subscriptions {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#path = path`/changelog/${tenant}/subscriptions`;
  }

  list(parameters?: ListParameters, options?: CallOptions): Walk<Subscription, CursorPage<Subscription>>;
  list(parameters: FieldsParameters, options?: CallOptions): Walk<SubscriptionItem, CursorPage<SubscriptionItem>>;
  list(
    parameters: ListParameters | FieldsParameters = {},
    options?: CallOptions,
  ): Walk<Subscription | SubscriptionItem, CursorPage<Subscription | SubscriptionItem>> {
    const read = plainAnswers<Subscription | SubscriptionItem>().many;
    return listWalk({ transport: this.#transport, path: this.#path, options, read }, parameters);
  }

  async get(id: string, options?: CallOptions): Promise<Subscription> {
    return await this.#transport.fetchJson({ method: 'GET', path: this.#of(id) }, options);
  }

  /**
   * Makes a subscription. The answer has the secret of its signatures, or their public key, this once.
   *
   * @example
   * const { id, secret } = await annals.subscriptions.create({
   *   name: 'Prices', q: 'entity:product path:price', target: { type: 'webhook', url: 'https://erp.example.com/changes' },
   * });
   */
  async create(subscription: SubscriptionInput, options?: CallOptions): Promise<SubscriptionCreated> {
    const request = { method: 'POST', path: this.#path, body: jsonBody(subscription) } as const;
    return await this.#transport.fetchJson(request, options);
  }

  /**
   * Replaces a subscription and takes it over. With the `metadata.version` that was read, a change in between is
   * refused (409).
   */
  async replace(id: string, subscription: SubscriptionInput, options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'PUT', path: this.#of(id), body: jsonBody(subscription) }, options);
  }

  async delete(id: string, options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'DELETE', path: this.#of(id) }, options);
  }

  /** Sends a sample that says so, and tells how the target took it. */
  async test(id: string, options?: CallOptions): Promise<DeliveryTest> {
    return await this.#transport.fetchJson({ method: 'POST', path: this.#of(id, '/test') }, options);
  }

  async pause(id: string, options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'POST', path: this.#of(id, '/pause') }, options);
  }

  /** Lets a subscription go on where it stopped; `from` only if its place was lost. */
  async resume(id: string, { from }: { from?: string } = {}, options?: CallOptions): Promise<void> {
    const body = jsonBody(from === undefined ? {} : { from });
    await this.#transport.send({ method: 'POST', path: this.#of(id, '/resume'), body }, options);
  }

  /** Sends changes once more: those between two cursors or times of recording, or those that are parked. */
  async replay(id: string, what: ReplayInput, options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'POST', path: this.#of(id, '/replay'), body: jsonBody(what) }, options);
  }

  /** Makes a new key for signatures. The one before signs as well for 24 hours. */
  async rotate(id: string, options?: CallOptions): Promise<RotatedKey> {
    return await this.#transport.fetchJson({ method: 'POST', path: this.#of(id, '/rotate') }, options);
  }

  /** The attempts of the last days, the oldest first; with `sort: '_id:DESC'` the newest. */
  attempts(
    id: string,
    parameters: ListParameters = {},
    options?: CallOptions,
  ): Walk<DeliveryAttempt, CursorPage<DeliveryAttempt>> {
    const read = plainAnswers<DeliveryAttempt>().many;
    return listWalk({ transport: this.#transport, path: this.#of(id, '/attempts'), options, read }, parameters);
  }

  /** What an attempt of a webhook sent, rebuilt from the history with today's masks and erasures. */
  async sentRequest(id: string, attempt: string, options?: CallOptions): Promise<SentRequest> {
    const action = path`/attempts/${attempt}/request`;
    return await this.#transport.fetchJson({ method: 'GET', path: this.#of(id, action) }, options);
  }

  /** What would have been sent in the last day, or behind the `cursor` of the answer before. */
  async preview(
    id: string,
    query: { after?: string; limit?: number } = {},
    options?: CallOptions,
  ): Promise<SubscriptionPreview> {
    return await this.#transport.fetchJson({ method: 'GET', path: this.#of(id, '/preview'), query }, options);
  }

  async deleteParked(id: string, options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'DELETE', path: this.#of(id, '/parked') }, options);
  }

  #of(id: string, action = ''): string {
    return `${this.#path}${path`/${id}`}${action}`;
  }
}
