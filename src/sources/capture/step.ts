import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { memberOf, membersOf, objectText } from '../../core/json/members.ts';
import { parseJson, parseObject } from '../../core/json/parse.ts';
import { compactText } from '../../core/json/text.ts';
import type { Change, Who } from '../../recording/change.ts';
import type { TableMapping } from '../../recording/mapping/mapping.ts';
import { type MappedChange, mappedContext } from '../../recording/mapping/row-change.ts';
import { madeBy, readWho } from '../../recording/mapping/who.ts';
import { faultOfContext } from '../../recording/member-faults.ts';

/** The changes of one row change or truncate of a transaction. */
export interface Step {
  /** The number of row changes up to this one. A move between partitions counts as two. */
  readonly rows: number;
  /** As the mapping has it. */
  readonly table: string;
  readonly changes: readonly MappedChange[];
  /** The row's change as masked text, stored if it is rejected. */
  content(): string;
  /** A truncate deletes all documents of the table. */
  readonly truncate?: Truncate;
}

export interface Truncate {
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

/** What the transaction says of its changes: a message of the application, and who made it by a new row. */
export interface TransactionFacts {
  readonly info: TransactionInfo | undefined;
  /** Who made changes that do not say. */
  readonly who: Who | undefined;
}

/** The step with the facts of its transaction. */
export function withFacts(step: Step, table: TableMapping, { info = silent, who }: TransactionFacts): Step {
  const changes = step.changes.map((mapped) => changeWithFacts(mapped, table, info, who));
  if (step.truncate === undefined) return { ...step, changes };
  const truncate = who === undefined ? step.truncate : { ...step.truncate, who };
  return { ...step, truncate: { ...truncate, ...truncateInfo(truncate, table, info) } };
}

const silent: TransactionInfo = { who: undefined, context: undefined };

function changeWithFacts(
  mapped: MappedChange,
  table: TableMapping,
  info: TransactionInfo,
  who: Who | undefined,
): MappedChange {
  if (mapped.kind !== 'change') return mapped;
  const change = mapped.hasActor || who === undefined ? mapped.change : madeBy(mapped.change, who);
  return { ...mapped, change: withTransactionInfo(change, table, info) };
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

/** The content of `pg_logical_emit_message(true, 'annals.actor', …)`. */
export interface TransactionInfo {
  readonly who: Who | undefined;
  /** JSON text of an object. */
  readonly context: string | undefined;
}

/** Undefined if it is invalid. */
export function readTransactionInfo(content: Buffer): TransactionInfo | undefined {
  const message = parseObject(content.toString('utf8'));
  if (message === undefined) return undefined;
  const who = readWho(message);
  if (who === 'invalid') return undefined;
  const context = memberOf(message, 'context');
  if (context !== undefined && faultOfContext(context) !== undefined) return undefined;
  return { who, context: context && compactText(context) };
}

/** The transaction's facts take precedence over the row's. The table's masks apply. */
function withTransactionInfo(change: Change, table: TableMapping, info: TransactionInfo): Change {
  const made = info.who === undefined ? change : madeBy(change, info.who);
  const extra = info.context === undefined ? undefined : mappedContext(table, new Map(), info.context);
  return extra === undefined ? made : { ...made, context: mergedContext(change.context, extra) };
}

/** The facts of a truncate, whose rows are not in the log. */
function truncateInfo(
  { who }: Pick<Truncate, 'who'>,
  table: TableMapping,
  info: TransactionInfo,
): Pick<Truncate, 'who' | 'context'> {
  const context = info.context === undefined ? undefined : mappedContext(table, new Map(), info.context);
  return { who: info.who ?? who, context };
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
