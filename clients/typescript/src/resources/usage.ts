import { type CursorPage, type ListParameters, listWalk } from '../pages/cursor-page.ts';
import type { Walk } from '../pages/walk.ts';
import type { CostsOf, ModelCall, UsageOfDay } from '../schemas.ts';
import { plainAnswers } from '../transport/answer-json.ts';
import { type CallOptions, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

export interface UsageOptions {
  /** The first day: a date such as `2026-09-01`, or a time. Default: 29 days before `to`. */
  readonly from?: Date | string | undefined;
  /** The last day, included; at most 366 days in all. Default: today. */
  readonly to?: Date | string | undefined;
}

type CallName = 'client' | 'agent' | 'model' | 'provider' | 'user';

/** One of the names: only its calls, by day or month. */
export interface CostsOptions extends UsageOptions, Partial<Record<CallName, string | undefined>> {
  /** What the sums tell apart. Default: the day. */
  readonly by?: 'day' | 'month' | CallName | undefined;
}

/** What the tenant has used. */
export class Usage {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#path = path`/usage/${tenant}`;
  }

  /**
   * One item for each UTC day, the oldest first.
   *
   * @example
   * const days = await annals.usage.byDay({ from: '2026-09-01', to: '2026-09-30' });
   */
  async byDay({ from, to }: UsageOptions = {}, options?: CallOptions): Promise<UsageOfDay[]> {
    const query = { from: textOf(from), to: textOf(to) };
    return await this.#transport.fetchJson({ method: 'GET', path: this.#path, query }, options);
  }

  /**
   * What calls of models cost: exact sums, by day or by what tells calls apart.
   *
   * @example
   * for (const { name, costUsd } of await annals.usage.costs({ by: 'model' })) console.log(name, costUsd);
   */
  async costs({ from, to, ...asked }: CostsOptions = {}, options?: CallOptions): Promise<CostsOf[]> {
    const query = { from: textOf(from), to: textOf(to), ...asked };
    return await this.#transport.fetchJson({ method: 'GET', path: `${this.#path}/costs`, query }, options);
  }

  /**
   * The calls of models; with `sort: '_id:DESC'` the newest first.
   *
   * @example
   * for await (const { model, outputTokens } of annals.usage.calls({ q: 'agent:helper' })) console.log(model, outputTokens);
   */
  calls(parameters: ListParameters = {}, options?: CallOptions): Walk<ModelCall, CursorPage<ModelCall>> {
    const read = plainAnswers<ModelCall>().many;
    return listWalk({ transport: this.#transport, path: `${this.#path}/calls`, options, read }, parameters);
  }
}

function textOf(day: Date | string | undefined): string | undefined {
  return day instanceof Date ? day.toISOString() : day;
}
