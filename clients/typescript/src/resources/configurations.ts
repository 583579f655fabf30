import type { ExactConfiguration } from '../json/exact-answers.ts';
import type { ChangedConfiguration, Configuration, NewConfiguration } from '../schemas.ts';
import type { AnswerReader } from '../transport/answer-json.ts';
import { type CallOptions, jsonBody, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** The settings of the tenant. A secured value never comes back: an answer has `********` in its place. */
export class Configurations<Item extends Configuration | ExactConfiguration = Configuration> {
  readonly #transport: Transport;
  readonly #path: string;
  readonly #read: AnswerReader<Item>;

  constructor(transport: Transport, tenant: string, read: AnswerReader<Item>) {
    this.#transport = transport;
    this.#path = path`/configuration/${tenant}/configurations`;
    this.#read = read;
  }

  /** All settings, or those of the keys. */
  async list({ keys }: { readonly keys?: readonly string[] } = {}, options?: CallOptions): Promise<Item[]> {
    const query = { keys: keys?.join(',') };
    const { text } = await this.#transport.send({ method: 'GET', path: this.#path, query }, options);
    return this.#read.many(text);
  }

  async get(key: string, options?: CallOptions): Promise<Item> {
    const { text } = await this.#transport.send({ method: 'GET', path: this.#of(key) }, options);
    return this.#read.one(text);
  }

  /** Makes settings: all of them, or none where one of the keys exists (409). */
  async create(items: readonly NewConfiguration[], options?: CallOptions): Promise<Item[]> {
    const request = { method: 'POST', path: this.#path, body: jsonBody(items) } as const;
    return this.#read.many((await this.#transport.send(request, options)).text);
  }

  /** Replaces a setting that exists. With the `version` that was read, a change in between is refused (409). */
  async replace(key: string, item: Omit<ChangedConfiguration, 'key'>, options?: CallOptions): Promise<Item> {
    const request = { method: 'PUT', path: this.#of(key), body: jsonBody({ ...item, key }) } as const;
    return this.#read.one((await this.#transport.send(request, options)).text);
  }

  async delete(key: string, options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'DELETE', path: this.#of(key) }, options);
  }

  #of(key: string): string {
    return `${this.#path}${path`/${key}`}`;
  }
}
