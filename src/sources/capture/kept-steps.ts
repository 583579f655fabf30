import { Spool } from './spool.ts';
import { bytesOf, readStep, type Step, stepText } from './step.ts';

/** A transaction with more row changes or bytes than these waits for its commit in a file. */
const maxSteps = 2_000;
const maxBytes = 8 * 1024 * 1024;

/** The steps of a transaction until its commit: in memory, or in a file where they are many. */
export class KeptSteps {
  #steps: Step[] = [];
  #bytes = 0;
  #spool: Spool | undefined;

  async add(step: Step): Promise<void> {
    if (this.#spool !== undefined) {
      await this.#spool.write(stepText(step));
      return;
    }
    this.#steps.push(step);
    this.#bytes += bytesOf(step);
    if (this.#steps.length < maxSteps && this.#bytes < maxBytes) return;
    this.#spool = await Spool.open();
    for (const kept of this.#steps) await this.#spool.write(stepText(kept));
    this.#steps = [];
  }

  /** All of them, in their order. */
  async *read(): AsyncGenerator<Step> {
    yield* this.#steps;
    if (this.#spool !== undefined) for await (const text of this.#spool.read()) yield readStep(text);
  }

  /** Deletes the file. */
  async close(): Promise<void> {
    await this.#spool?.close();
  }
}
