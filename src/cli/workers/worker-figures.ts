import type { Figures } from '../../metrics/metrics.ts';

/** Milliseconds that a worker has for its figures. */
const maxWait = 2_000;

/** Asks workers for their figures. A worker that does not answer in time, or dies meanwhile, is left out. */
export class WorkerFigures {
  readonly #waiting = new Map<number, (figures: Figures) => void>();
  #last = 0;

  /** `askAll` sends the message with the next id to each worker, and returns their number. */
  async read(askAll: (nextId: () => number) => number): Promise<Figures[]> {
    const ids: number[] = [];
    const gathered: Figures[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const nextId = () => {
      this.#last += 1;
      const id = this.#last;
      ids.push(id);
      this.#waiting.set(id, (figures) => {
        gathered.push(figures);
        if (gathered.length === ids.length) resolve();
      });
      return id;
    };
    if (askAll(nextId) === 0) return [];
    const timer = setTimeout(resolve, maxWait);
    await promise;
    clearTimeout(timer);
    for (const id of ids) this.#waiting.delete(id);
    return gathered;
  }

  take(id: number, figures: Figures): void {
    this.#waiting.get(id)?.(figures);
  }
}
