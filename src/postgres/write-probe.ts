import { within } from '../core/fairness/deadline.ts';
import { hasCode } from './write-once.ts';

export interface WriteProbeOptions {
  /** Carries out statements on a connection to the database. */
  readonly run: (statements: string) => Promise<unknown>;
  /** Milliseconds that an answer holds; default: `maxAge`; other values for tests. */
  readonly maxAge?: { readonly good: number; readonly bad: number };
}

/** Milliseconds. A database that takes no writes is asked more often, so that the service is soon ready again. */
const maxAge = { good: 10_000, bad: 2_000 };
/** Milliseconds that a caller waits for a new answer. */
const maxWait = 1_000;

/**
 * A table that is gone when the statements end. Making it needs room for 14 pages in a new file, and ends with a commit in the log. A row
 * that is there could be updated on a full disk too, in the room that its page has.
 */
const write = `
set local temp_tablespaces = '';
set local statement_timeout = '5s';
create temporary table annals_write_probe on commit drop as select n from generate_series(1, 3000) as n`;

// SQLSTATEs: the disk is full, the disk fails, the server is a standby or reads alone, it has used up its transaction ids. Another error, for
// instance a right that the role lacks, does not tell that others cannot write.
const noWrites = ['53100', '58030', '25006', '54000'];

/** Whether the database takes writes. However often it is asked, it writes at most once in some seconds. */
export class WriteProbe {
  readonly #options: Required<WriteProbeOptions>;
  #takesWrites = true;
  #until = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;

  constructor(options: WriteProbeOptions) {
    this.#options = { maxAge, ...options };
  }

  /** As far as is known: a server that is slow, or away, does not change the answer. Never rejects. */
  async takesWrites(): Promise<boolean> {
    if (performance.now() >= this.#until) {
      this.#asking ??= this.#ask().finally(() => {
        this.#asking = undefined;
      });
      await within(maxWait, this.#asking).catch(() => {});
    }
    return this.#takesWrites;
  }

  async #ask(): Promise<void> {
    const { run, maxAge: ages } = this.#options;
    try {
      await run(write);
      this.#takesWrites = true;
    } catch (error) {
      this.#takesWrites = !hasCode(error, ...noWrites);
    }
    this.#until = performance.now() + (this.#takesWrites ? ages.good : ages.bad);
  }
}
