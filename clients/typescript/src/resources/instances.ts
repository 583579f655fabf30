import type { JsonObject } from '../json/json-value.ts';
import { type CursorPage, type FieldsParameters, type ListParameters, listWalk } from '../pages/cursor-page.ts';
import type { Walk } from '../pages/walk.ts';
import type { CustomInstance, CustomInstanceItem } from '../schemas.ts';
import type { AnswerReader } from '../transport/answer-json.ts';
import { type CallOptions, jsonBody, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** An operation of a patch (RFC 6902). */
export interface PatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  /** A JSON Pointer: `/name/en`. */
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

/** The custom entities of one type. */
export class Instances<
  Instance extends CustomInstance | JsonObject = CustomInstance,
  Item extends CustomInstanceItem | JsonObject = CustomInstanceItem,
> {
  readonly #transport: Transport;
  readonly #path: string;
  readonly #read: AnswerReader<Instance>;

  constructor(transport: Transport, { tenant, type }: { tenant: string; type: string }, read: AnswerReader<Instance>) {
    this.#transport = transport;
    this.#path = path`/schema/${tenant}/custom-entities/${type}/instances`;
    this.#read = read;
  }

  /**
   * @example
   * const shelves = annals.instances('SHELF');
   * for await (const shelf of shelves.list({ q: field('slots').atLeast(10), sort: 'slots:DESC' })) …
   */
  list(parameters?: ListParameters, options?: CallOptions): Walk<Instance, CursorPage<Instance>>;
  list(parameters: FieldsParameters, options?: CallOptions): Walk<Item, CursorPage<Item>>;
  list(
    parameters: ListParameters | FieldsParameters = {},
    options?: CallOptions,
  ): Walk<Instance | Item, CursorPage<Instance | Item>> {
    const list = { transport: this.#transport, path: this.#path, options, read: this.#read.many };
    return listWalk<Instance | Item>(list, parameters);
  }

  async get(id: string, options?: CallOptions): Promise<Instance> {
    const { text } = await this.#transport.send({ method: 'GET', path: this.#of(id) }, options);
    return this.#read.one(text);
  }

  /** Makes an instance, and answers its id: the one in `content`, or one drawn at random. */
  async create(content: object, options?: CallOptions): Promise<{ id: string }> {
    const request = { method: 'POST', path: this.#path, body: jsonBody(content) } as const;
    return await this.#transport.fetchJson(request, options);
  }

  /** Makes or replaces an instance. With the `metadata.version` that was read, a change in between is refused (409). */
  async put(id: string, content: object, options?: CallOptions): Promise<{ created: boolean }> {
    const request = { method: 'PUT', path: this.#of(id), body: jsonBody(content) } as const;
    return { created: (await this.#transport.send(request, options)).status === 201 };
  }

  /** Changes an instance by a patch (RFC 6902): all operations, or none. */
  async patch(id: string, operations: readonly PatchOperation[], options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'PATCH', path: this.#of(id), body: jsonBody(operations) }, options);
  }

  async delete(id: string, options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'DELETE', path: this.#of(id) }, options);
  }

  #of(id: string): string {
    return `${this.#path}${path`/${id}`}`;
  }
}
