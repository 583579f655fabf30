import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from './world.ts';

/** The most memory that a service has, looked at every 50 ms until the end. */
export class MemorySampler {
  readonly #over = new AbortController();
  readonly #most: Promise<number>;

  constructor(service: Service) {
    this.#most = this.#sample(service);
  }

  async end(): Promise<number> {
    this.#over.abort();
    return await this.#most;
  }

  async #sample(service: Service): Promise<number> {
    let most = 0;
    while (!this.#over.signal.aborted) {
      most = Math.max(most, await service.memory());
      await sleep(50);
    }
    return most;
  }
}
