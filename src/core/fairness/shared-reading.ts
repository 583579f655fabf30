import { Stop } from '../stop-signal.ts';
import { unlessAborted } from './deadline.ts';
import { currentWork, doWork, type WorkOptions } from './work.ts';

/** One reading that several callers wait for. When the last caller has gone, Annals cancels it in the database. */
export class SharedReading<Result> {
  readonly #reading: Promise<Result>;
  readonly #abandoned = new Stop();
  #waiting = 0;
  #state: 'reading' | 'read' | 'lost' = 'reading';

  /** `timeLimit`: milliseconds for all of the reading. */
  constructor(options: WorkOptions & { readonly timeLimit?: number | undefined }, read: () => Promise<Result>) {
    this.#reading = doWork({ ...options, signal: this.#abandoned }, read);
    this.#reading.then(
      () => {
        if (this.#state === 'reading') this.#state = 'read';
      },
      () => {
        this.#state = 'lost';
      },
    );
  }

  /** Whether it has no result: it failed, or all callers have gone. */
  get isLost(): boolean {
    return this.#state === 'lost';
  }

  /** Its result, unless the work of the caller ends before. */
  async result(): Promise<Result> {
    this.#waiting += 1;
    try {
      return await unlessAborted(this.#reading, currentWork()?.signal);
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0 && this.#state === 'reading') {
        this.#state = 'lost';
        this.#abandoned.abort(new Error('nobody waits for it any more'));
      }
    }
  }
}
