import type { TableMapping } from '../../recording/mapping/mapping.ts';
import type { MappedChange } from '../../recording/mapping/row-change.ts';
import { Spool } from './spool.ts';
import { type TransactionInfo, truncateInfo, withTransactionInfo } from './transaction-info.ts';

/** What one row change, or one truncate, of a transaction becomes. */
export interface Step {
  /** How many row changes of the transaction end with this one. A move between partitions counts as two. */
  readonly rows: number;
  /** As the mapping has it. */
  readonly table: string;
  readonly changes: readonly MappedChange[];
  /** The row's change as text, masked, to be kept where it can never be recorded. */
  content(): string;
  /** The table was truncated: all its documents are deleted. */
  readonly truncate?: Truncate;
}

export interface Truncate {
  /** As the mapping has it. */
  readonly table: string;
  readonly actor: string;
  /** JSON text of an object. */
  readonly context: string | undefined;
}

/** Roughly the bytes of a change beside its paths. */
const bytesOfChange = 300;

/** Roughly the bytes that a step takes in memory. */
export function bytesOf({ changes }: Step): number {
  return changes.reduce((sum, change) => sum + sizeOf(change), bytesOfChange);
}

/** A step as text, to be read by `readStep`. */
function stepText(step: Step): string {
  const changes = step.changes.map((mapped) =>
    mapped.kind === 'change'
      ? { ...mapped, change: { ...mapped.change, identity: mapped.change.identity.toHex() } }
      : mapped,
  );
  return JSON.stringify({ ...step, changes, content: step.content() });
}

function readStep(text: string): Step {
  const { content, changes, ...step } = JSON.parse(text);
  for (const { change } of changes) if (change !== undefined) change.identity = Buffer.from(change.identity, 'hex');
  return { ...step, changes, content: () => content };
}

function sizeOf(mapped: MappedChange): number {
  if (mapped.kind === 'change') return mapped.change.paths.length + bytesOfChange;
  return mapped.kind === 'rejected' ? mapped.content.length : 0;
}

/** What a transaction says: a message of the application, and the new row of a table that names its actor. */
export interface TransactionFacts {
  readonly info: TransactionInfo | undefined;
  /** For changes of which nothing else says who made them. */
  readonly actor: string | undefined;
}

/** The step with what its transaction says. */
export function informedStep(step: Step, table: TableMapping, { info = silent, actor }: TransactionFacts): Step {
  const changes = step.changes.map((mapped) => informed(mapped, table, info, actor));
  if (step.truncate === undefined) return { ...step, changes };
  const truncate = actor === undefined ? step.truncate : { ...step.truncate, actor };
  return { ...step, truncate: { ...truncate, ...truncateInfo(truncate, table, info) } };
}

const silent: TransactionInfo = { actor: undefined, context: undefined };

function informed(
  mapped: MappedChange,
  table: TableMapping,
  info: TransactionInfo,
  actor: string | undefined,
): MappedChange {
  if (mapped.kind !== 'change') return mapped;
  const change = mapped.hasActor || actor === undefined ? mapped.change : { ...mapped.change, actor };
  return { ...mapped, change: withTransactionInfo(change, table, info) };
}

/** A transaction with more row changes or bytes than these waits for its commit in a file. */
const maxSteps = 2_000;
const maxBytes = 8 * 1024 * 1024;

/** The steps of a transaction until its commit: in memory, or in a file where they are many. */
export class KeptSteps {
  #steps: Step[] = [];
  #bytes = 0;
  #spool: Spool | undefined;

  add(step: Step): void {
    if (this.#spool !== undefined) {
      this.#spool.write(stepText(step));
      return;
    }
    this.#steps.push(step);
    this.#bytes += bytesOf(step);
    if (this.#steps.length < maxSteps && this.#bytes < maxBytes) return;
    this.#spool = new Spool();
    for (const earlier of this.#steps) this.#spool.write(stepText(earlier));
    this.#steps = [];
  }

  /** All of them, in their order. */
  *read(): Generator<Step> {
    yield* this.#steps;
    if (this.#spool !== undefined) for (const text of this.#spool.read()) yield readStep(text);
  }

  /** Deletes the file. */
  close(): void {
    this.#spool?.close();
  }
}
