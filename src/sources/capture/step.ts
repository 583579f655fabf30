import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { membersOf, objectText } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import { type Change, type Who, withDerivedCorrelation } from '../../recording/change.ts';
import type { TableMapping } from '../../recording/mapping/mapping.ts';
import { withRowFacts } from '../../recording/mapping/rejected-row.ts';
import { type MappedChange, mappedContext, RowRejection } from '../../recording/mapping/row-change.ts';
import { madeBy } from '../../recording/mapping/who.ts';
import { faultOfContext } from '../../recording/member-faults.ts';
import type { TransactionInfo } from '../transaction-info.ts';

/** The changes of one row change or truncate of a transaction. */
export interface Step {
  /** The number of row changes up to this one. A move between partitions counts as two. */
  readonly rows: number;
  /** As the mapping has it. */
  readonly table: string;
  readonly changes: readonly MappedChange[];
  /** What the application says of this change, and of those that follow. */
  readonly info?: TransactionInfo | undefined;
  /** The row's change as masked text, stored if it is rejected. */
  content(): string;
  /** A truncate deletes all documents of the table. */
  readonly truncate?: Truncate;
}

export interface Truncate extends Pick<Change, 'correlationId' | 'derived'> {
  /** As the mapping has it. */
  readonly table: string;
  /** Empty: unknown. */
  readonly who: Who;
  /** JSON text of an object. */
  readonly context: string | undefined;
}

/** Approximate bytes of a change without its paths. */
const bytesOfChange = 300;

/** Approximate bytes of a step in memory. */
export function bytesOf({ changes }: Step): number {
  return changes.reduce((sum, change) => sum + sizeOf(change), bytesOfChange);
}

/** A step as text, for `readStep`. */
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

/** What is known of all changes of a transaction at its commit. */
export interface TransactionFacts {
  /** By a message of the application. What a step has takes precedence. */
  readonly info: TransactionInfo | undefined;
  /** Who made changes that do not say, by a new row. */
  readonly who: Who | undefined;
  /** Derived by Annals, for changes without one. Undefined for one change alone. */
  readonly correlationId: string | undefined;
}

/** The step with the facts of its transaction, which take precedence over the row's. The table's masks apply. */
export function withFacts(step: Step, table: TableMapping, { info: ofAll = {}, ...facts }: TransactionFacts): Step {
  const info = step.info ?? ofAll;
  const context = info.context === undefined ? undefined : maskedContext(table, info.context);
  const changes = step.changes.map((mapped) => {
    if (mapped.kind === 'change') return { ...mapped, change: changeWithFacts(mapped, { ...info, context }, facts) };
    if (mapped.kind === 'unchanged') return mapped;
    const ofRow = { ...info, context, derivedCorrelationId: facts.correlationId };
    return { ...mapped, content: withRowFacts(mapped.content, ofRow) };
  });
  if (step.truncate === undefined) return { ...step, changes };
  const truncate = { ...step.truncate, who: info.who ?? facts.who ?? {}, ...correlationIn(info), context };
  return { ...step, changes, truncate: withDerivedCorrelation(truncate, facts.correlationId) };
}

function changeWithFacts(
  { change, hasActor }: Extract<MappedChange, { kind: 'change' }>,
  info: TransactionInfo,
  facts: Omit<TransactionFacts, 'info'>,
): Change {
  const who = info.who ?? (hasActor ? undefined : facts.who);
  const made = who === undefined ? change : madeBy(change, who);
  const correlated = withDerivedCorrelation({ ...made, ...correlationIn(info) }, facts.correlationId);
  if (info.context === undefined) return correlated;
  return { ...correlated, context: mergedContext(change.context, info.context) };
}

function correlationIn({ correlationId }: TransactionInfo): Pick<Change, 'correlationId'> {
  return correlationId === undefined ? {} : { correlationId };
}

/** Undefined if masks make it too large. */
function maskedContext(table: TableMapping, context: string): string | undefined {
  try {
    return mappedContext(table, new Map(), context);
  } catch (error) {
    if (error instanceof RowRejection) return undefined;
    throw error;
  }
}

/** Larger transactions are buffered in a file until their commit. */
const maxSteps = 2_000;
const maxBytes = 8 * 1024 * 1024;

/** The steps of a transaction until its commit, in memory or in a file. */
export class StepBuffer {
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

  *read(): Generator<Step> {
    yield* this.#steps;
    if (this.#spool !== undefined) for (const text of this.#spool.read()) yield readStep(text);
  }

  /** Deletes the file. */
  close(): void {
    this.#spool?.close();
  }
}

function mergedContext(own: string | undefined, extra: string): string {
  if (own === undefined) return extra;
  const merged = objectText(new Map([...membersOf(parseJson(own)), ...membersOf(parseJson(extra))]));
  // Each is within the limit, but both together may exceed it.
  return faultOfContext(parseJson(merged)) === undefined ? merged : extra;
}

/**
 * Records that do not fit in memory, in an unnamed temporary SQLite database, which disappears with the process. Write
 * all records before reading the first.
 */
class Spool {
  readonly #database = new DatabaseSync('');
  readonly #insert: StatementSync;

  constructor() {
    this.#database.exec('pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -8192');
    this.#database.exec('create table record (text text not null); begin');
    this.#insert = this.#database.prepare('insert into record values (?)');
  }

  write(text: string): void {
    this.#insert.run(text);
  }

  /** In the order of writing. */
  *read(): Generator<string> {
    const written = this.#database.prepare('select text from record order by rowid');
    for (const { text } of written.iterate()) yield String(text);
  }

  close(): void {
    this.#database.close();
  }
}
