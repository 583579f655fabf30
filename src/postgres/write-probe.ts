import { hasCode } from '../core/errors.ts';
import { within } from '../core/fairness/deadline.ts';

interface WriteProbeOptions {
  /** Runs statements on a connection to the database. */
  readonly run: (statements: string) => Promise<unknown>;
  /** Milliseconds for which an answer is valid; other values for tests. */
  readonly maxAge?: { readonly good: number; readonly bad: number };
}

/** Milliseconds. A read-only database is probed more often, so that the service is soon ready again. */
const maxAge = { good: 10_000, bad: 2_000 };
/** Milliseconds that a caller waits for a new answer. */
const maxWait = 1_000;

/**
 * Creates a table that is dropped at commit: that needs 14 pages in a new file and a commit in the log. Updating an
 * existing row may succeed on a full disk too, in the free space of its page.
 */
const write = `
set local temp_tablespaces = '';
set local statement_timeout = '5s';
create temporary table annals_write_probe on commit drop as select n from generate_series(1, 3000) as n`;

// SQLSTATEs: the disk is full, the disk fails, the server is a standby or read-only, transaction ids are exhausted.
// Other errors, for example a missing privilege, do not mean that others cannot write.
const noWrites = ['53100', '58030', '25006', '54000'];

/** Whether the database takes writes, with a probe at most every few seconds. */
export class WriteProbe {
  readonly #options: Required<WriteProbeOptions>;
  #takesWrites = true;
  #until = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;

  constructor(options: WriteProbeOptions) {
    this.#options = { maxAge, ...options };
  }

  /** The last known answer: a slow or unreachable server does not change it. Never rejects. */
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
