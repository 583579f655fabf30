import { type CursorPage, type ListParameters, listWalk } from '../pages/cursor-page.ts';
import type { Walk } from '../pages/walk.ts';
import type { CustomEntityType } from '../schemas.ts';
import { plainAnswers } from '../transport/answer-json.ts';
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
export class CustomEntities {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#path = path`/schema/${tenant}/custom-entities`;
  }

  list(parameters: ListParameters = {}, options?: CallOptions): Walk<CustomEntityType, CursorPage<CustomEntityType>> {
    return listWalk(
      { transport: this.#transport, path: this.#path, options, read: plainAnswers<CustomEntityType>().many },
      parameters,
    );
  }

  async get(type: string, options?: CallOptions): Promise<CustomEntityType> {
    return await this.#transport.fetchJson({ method: 'GET', path: this.#of(type) }, options);
  }

  /** Makes a type. Its id is capital letters, digits and `_`, a letter first. */
  async create(type: CustomEntityTypeInput & { readonly id: string }, options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'POST', path: this.#path, body: jsonBody(type) }, options);
  }

  /** Makes or replaces a type. */
  async put(type: string, content: CustomEntityTypeInput, options?: CallOptions): Promise<void> {
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
