import type { UsageOfDay } from '../schemas.ts';
import { type CallOptions, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

export interface UsageOptions {
  /** The first day: a date such as `2026-09-01`, or a time. Default: 29 days before `to`. */
  readonly from?: Date | string | undefined;
  /** The last day, included; at most 366 days in all. Default: today. */
  readonly to?: Date | string | undefined;
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
}

function textOf(day: Date | string | undefined): string | undefined {
  return day instanceof Date ? day.toISOString() : day;
}
