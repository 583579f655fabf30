import { type CursorPage, type FieldsParameters, type ListParameters, listWalk } from '../pages/cursor-page.ts';
import type { Walk } from '../pages/walk.ts';
import type { Budget, BudgetInput, BudgetItem } from '../schemas.ts';
import { plainAnswers } from '../transport/answer-json.ts';
import { type CallOptions, jsonBody, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** What calls of models may use and cost. */
export class Budgets {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#path = path`/usage/${tenant}/budgets`;
  }

  /**
   * The budgets of the tenant.
   *
   * @example
   * for await (const { id, period, limitUsd } of annals.budgets.list()) console.log(id, period, limitUsd);
   */
  list(parameters?: ListParameters, options?: CallOptions): Walk<Budget, CursorPage<Budget>>;
  list(parameters: FieldsParameters, options?: CallOptions): Walk<BudgetItem, CursorPage<BudgetItem>>;
  list(
    parameters: ListParameters | FieldsParameters = {},
    options?: CallOptions,
  ): Walk<Budget | BudgetItem, CursorPage<Budget | BudgetItem>> {
    const read = plainAnswers<Budget | BudgetItem>().many;
    return listWalk({ transport: this.#transport, path: this.#path, options, read }, parameters);
  }

  /** With `use`: how much of it is used. */
  async get(id: string, options?: CallOptions): Promise<Budget> {
    return await this.#transport.fetchJson({ method: 'GET', path: this.#of(id) }, options);
  }

  /** Makes a budget. Without an id it has a random one. */
  async create(budget: BudgetInput, options?: CallOptions): Promise<{ id: string }> {
    return await this.#transport.fetchJson({ method: 'POST', path: this.#path, body: jsonBody(budget) }, options);
  }

  /** Makes or replaces a budget. With the `metadata.version` that was read, a change in between is refused (409). */
  async put(id: string, budget: BudgetInput, options?: CallOptions): Promise<{ created: boolean }> {
    const request = { method: 'PUT', path: this.#of(id), body: jsonBody(budget) } as const;
    return { created: (await this.#transport.send(request, options)).status === 201 };
  }

  async delete(id: string, options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'DELETE', path: this.#of(id) }, options);
  }

  #of(id: string): string {
    return `${this.#path}${path`/${id}`}`;
  }
}
