import type { JsonObject } from '../json/json-value.ts';
import { type CursorPage, type ListParameters, listWalk } from '../pages/cursor-page.ts';
import type { Walk } from '../pages/walk.ts';
import type { CustomEntityType } from '../schemas.ts';
import type { AnswerReader } from '../transport/answer-json.ts';
import { type CallOptions, jsonBody, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** What makes or replaces a type. */
export interface CustomEntityTypeInput {
  /** By language. */
  readonly name?: Readonly<Record<string, string>>;
  /** The JSON Schema (2020-12) that instances must satisfy. */
  readonly jsonSchema?: Readonly<Record<string, unknown>>;
  /** With the `version` that was read, a change in between is refused (409). */
  readonly metadata?: { readonly version?: number };
}

/** The types of custom entities that the tenant has made. */
export class CustomEntities<Type extends CustomEntityType | JsonObject = CustomEntityType> {
  readonly #transport: Transport;
  readonly #path: string;
  readonly #read: AnswerReader<Type>;

  constructor(transport: Transport, tenant: string, read: AnswerReader<Type>) {
    this.#transport = transport;
    this.#read = read;
    this.#path = path`/schema/${tenant}/custom-entities`;
  }

  list(parameters: ListParameters = {}, options?: CallOptions): Walk<Type, CursorPage<Type>> {
    return listWalk({ transport: this.#transport, path: this.#path, options, read: this.#read.many }, parameters);
  }

  async get(type: string, options?: CallOptions): Promise<Type> {
    const { text } = await this.#transport.send({ method: 'GET', path: this.#of(type) }, options);
    return this.#read.one(text);
  }

  /** Makes a type. Its id is capital letters, digits and `_`, a letter first. */
  async create(
    type: (CustomEntityTypeInput & { readonly id: string }) | JsonObject,
    options?: CallOptions,
  ): Promise<void> {
    await this.#transport.send({ method: 'POST', path: this.#path, body: jsonBody(type) }, options);
  }

  /** Makes or replaces a type. */
  async put(type: string, content: CustomEntityTypeInput | JsonObject, options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'PUT', path: this.#of(type), body: jsonBody(content) }, options);
  }

  /** Deletes a type that has no instances. */
  async delete(type: string, options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'DELETE', path: this.#of(type) }, options);
  }

  #of(type: string): string {
    return `${this.#path}${path`/${type}`}`;
  }
}
