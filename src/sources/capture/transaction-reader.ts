// One subject that would not be plainer in two files: the state between a transaction's begin and its commit.

import { unknownActor, type Who } from '../../recording/change.ts';
import { derivedUuid, identityOf } from '../../recording/identity.ts';
import { changesOfRow } from '../../recording/mapping/changes-of-row.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import { rejectedRowText } from '../../recording/mapping/rejected-row.ts';
import { type Row, type RowChange, rowToday } from '../../recording/mapping/row-change.ts';
import { whoOf } from '../../recording/mapping/who.ts';
import { readTransactionInfo, type TransactionInfo } from '../transaction-info.ts';
import { GapError } from './capture-error.ts';
import type { ResumeCheck, TransactionBegin } from './gap.ts';
import type { PgoutputMessage, Tuple } from './pgoutput.ts';
import { formatLsn, type Lsn } from './position.ts';
import type { SourceTable, SourceTables } from './source-tables.ts';
import { type Step, StepBuffer, type TransactionFacts, withFacts } from './step.ts';

/** A committed transaction of the source. */
export interface CapturedTransaction {
  readonly begin: TransactionBegin;
  readonly endLsn: Lsn;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Can be read once; a large transaction's come from a file. */
  steps(): Iterable<Step>;
  /** The number of row changes. */
  readonly rows: number;
  /** Row changes recorded before this process started. */
  readonly recorded: number;
  close(): void;
}

interface ReaderOptions {
  readonly mapping: Mapping;
  readonly tables: SourceTables;
  readonly systemIdentifier: string;
  readonly resume: ResumeCheck;
  /** The time of the last recorded change, in milliseconds since 1970. */
  readonly lastAt: number;
  readonly warn: (message: string) => void;
}

/** Milliseconds. If the source's clock was set back by at most this, entries keep the order of commits. */
const maxClockStep = 60_000;

/** A message of the first kind counts for all changes of its transaction, one of the second for those that follow. */
const [actorPrefix, whoPrefix] = ['annals.actor', 'annals.who'];
const defaults = { actor: unknownActor };

interface OpenTransaction {
  readonly begin: TransactionBegin;
  readonly at: number;
  /** Row changes already recorded; `all`: the whole transaction. */
  readonly recorded: number | 'all';
  rows: number;
  readonly steps: StepBuffer;
  /** Changes in `steps`. A truncate counts as several. */
  changes: number;
  /** By the last message annals.actor. */
  info: TransactionInfo | undefined;
  /** By the last message annals.who; empty if that cannot be read. */
  latest: TransactionInfo | undefined;
  hasWarned: boolean;
  /** Who made it, by a new row. */
  who: Who | undefined;
  /** A delete that may be the first half of a move between partitions. */
  deleted: Deleted | undefined;
}

interface Deleted {
  readonly table: SourceTable;
  readonly tuple: Tuple;
  readonly isKey: boolean;
  readonly info: TransactionInfo | undefined;
}

/** Assembles the messages of a replication stream into transactions, and maps their rows. */
export class TransactionReader {
  readonly #options: ReaderOptions;
  #lastAt: number;
  #open: OpenTransaction | undefined;
  /** Tables already warned of: a partition has another replica identity. */
  readonly #warned = new Set<string>();

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.#lastAt = options.lastAt;
  }

  /**
   * Returns the transaction that a message ends, unless it is recorded already. Throws a GapError, and a CaptureError
   * if the mapping no longer fits a table.
   */
  async take(message: PgoutputMessage): Promise<CapturedTransaction | undefined> {
    switch (message.kind) {
      case 'begin':
        this.#begin(message);
        return undefined;
      case 'commit':
        return await this.#commit(message.endLsn);
      case 'relation':
        await this.#options.tables.learn(message.relation);
        return undefined;
      case 'message':
        this.#info(message);
        return undefined;
      case 'insert':
        return await this.#insert(message);
      case 'update':
        return await this.#update(message);
      case 'delete':
        return await this.#delete(message);
      case 'truncate':
        return await this.#truncate(message.relations);
      case 'other':
        return undefined;
    }
  }

  /** Discards the open transaction, with its file. */
  close(): void {
    this.#open?.steps.close();
    this.#open = undefined;
  }

  #begin(begin: TransactionBegin): void {
    const recorded = this.#options.resume.recordedOf(begin);
    if (typeof recorded === 'object') throw new GapError(recorded.gap);
    const at = clampedTime(Number(begin.committedAt / 1000n), this.#lastAt);
    if (recorded !== 'all') this.#lastAt = at;
    this.#open = {
      begin,
      at,
      recorded,
      rows: 0,
      steps: new StepBuffer(),
      changes: 0,
      info: undefined,
      latest: undefined,
      hasWarned: false,
      who: undefined,
      deleted: undefined,
    };
  }

  async #commit(endLsn: Lsn): Promise<CapturedTransaction | undefined> {
    const open = this.#transaction();
    await this.#endDelete(open);
    this.#open = undefined;
    if (open.recorded === 'all') return undefined;
    const { begin, at, steps, rows, recorded, info, who } = open;
    const facts = { info, who, correlationId: this.#correlationOf(open) };
    return {
      begin,
      endLsn,
      at,
      rows,
      recorded,
      steps: () => this.#withFacts(steps.read(), facts),
      close: () => steps.close(),
    };
  }

  #info({ transactional, prefix, content }: Extract<PgoutputMessage, { kind: 'message' }>): void {
    if (!transactional || (prefix !== actorPrefix && prefix !== whoPrefix)) return;
    const open = this.#transaction();
    if (open.recorded === 'all') return;
    const info = readTransactionInfo(content);
    if (info === undefined && !open.hasWarned) {
      const effect = prefix === whoPrefix ? 'the changes after it are recorded without it' : 'it is ignored';
      this.#options.warn(`a message ${prefix} of the source cannot be read: ${effect}`);
      open.hasWarned = true;
    }
    // The changes that follow may be another person's: neither the message before nor annals.actor counts for them.
    if (prefix === whoPrefix) open.latest = info ?? {};
    else open.info = info ?? open.info;
  }

  async #insert({ relation, new: tuple }: Extract<PgoutputMessage, { kind: 'insert' }>): Promise<undefined> {
    const open = this.#transaction();
    const table = this.#options.tables.get(relation);
    const { deleted } = open;
    if (deleted !== undefined && deleted.table.name === table.name && table.hasSameKey(deleted.tuple, tuple)) {
      open.deleted = undefined;
      open.rows += 1;
      await this.#step(open, table, 'update', this.#before(table, deleted), tuple, open.latest);
      return;
    }
    await this.#endDelete(open);
    open.rows += 1;
    await this.#step(open, table, 'create', undefined, tuple, open.latest);
    open.who ??= this.#whoIn(table, tuple);
  }

  /** Who made the transaction, by a new row, even by one already recorded: other rows may not be. */
  #whoIn(table: SourceTable, tuple: Tuple): Who | undefined {
    const mapped = this.#options.mapping.tables.get(table.name);
    if (mapped === undefined || mapped.transactionActor.size === 0) return undefined;
    const { after } = rowToday(mapped.former, { after: table.row(tuple, false) });
    return after && whoOf(after, mapped.transactionActor);
  }

  async #update(message: Extract<PgoutputMessage, { kind: 'update' }>): Promise<undefined> {
    const open = this.#transaction();
    await this.#endDelete(open);
    open.rows += 1;
    const table = this.#options.tables.get(message.relation);
    const old = message.old ?? message.key;
    const before =
      old === undefined ? undefined : this.#before(table, { tuple: old, isKey: message.old === undefined });
    await this.#step(open, table, 'update', before, message.new, open.latest);
  }

  async #delete({ relation, old, key }: Extract<PgoutputMessage, { kind: 'delete' }>): Promise<undefined> {
    const open = this.#transaction();
    await this.#endDelete(open);
    open.rows += 1;
    const table = this.#options.tables.get(relation);
    const tuple = old ?? key;
    if (tuple !== undefined) open.deleted = { table, tuple, isKey: old === undefined, info: open.latest };
  }

  async #truncate(relations: readonly number[]): Promise<undefined> {
    const open = this.#transaction();
    await this.#endDelete(open);
    for (const relation of relations) {
      open.rows += 1;
      const { name } = this.#options.tables.get(relation);
      if (this.#options.mapping.tables.get(name)?.truncate !== 'deletes') continue;
      this.#keep(open, {
        rows: open.rows,
        table: name,
        changes: [],
        content: () => '{}',
        info: open.latest,
        truncate: { table: name, who: {}, context: undefined },
      });
    }
  }

  /** The pending delete is not part of a move. */
  async #endDelete(open: OpenTransaction): Promise<void> {
    const { deleted } = open;
    if (deleted === undefined) return;
    open.deleted = undefined;
    const before = this.#before(deleted.table, deleted);
    await this.#step(open, deleted.table, 'delete', before, undefined, deleted.info);
  }

  #before(table: SourceTable, { tuple, isKey }: { tuple: Tuple; isKey: boolean }): Row {
    if (isKey) return table.row(tuple, true);
    const { row, isKeyAlone } = table.wholeRow(tuple);
    if (isKeyAlone && !this.#warned.has(table.name)) {
      this.#warned.add(table.name);
      this.#options.warn(
        `a partition of ${table.name} does not have the replica identity of its root, so entries lack the values before a change: ` +
          'run alter table … replica identity full for it',
      );
    }
    return row;
  }

  async #step(
    open: OpenTransaction,
    table: SourceTable,
    type: RowChange['type'],
    before: RowChange['before'],
    after: Tuple | undefined,
    info: TransactionInfo | undefined,
  ): Promise<void> {
    if (open.recorded === 'all' || open.rows <= open.recorded) return;
    const { mapping } = this.#options;
    const mappedTable = mapping.tables.get(table.name);
    // Older parts of the log may have tables that the mapping no longer names.
    if (mappedTable === undefined) return;
    if (!table.isAccepted) await this.#options.tables.accept(table);
    const row: RowChange = {
      table: table.name,
      type,
      before,
      after: after === undefined ? undefined : table.row(after, false),
      at: open.at,
      identity: this.#identity(open),
      primaryKey: table.primaryKey,
    };
    const results = changesOfRow(mapping, row, defaults).filter(({ kind }) => kind !== 'unchanged');
    if (results.length === 0) return;
    const isKeyAlone = (before?.size ?? 0) < (row.after?.size ?? 0);
    const changes = results.map((mapped) =>
      mapped.kind === 'change' && mapped.change.type === 'update' && isKeyAlone
        ? { ...mapped, lacksBefore: true }
        : mapped,
    );
    const content = () => rejectedRowText(mappedTable, row);
    this.#keep(open, { rows: open.rows, table: table.name, changes, content, info });
  }

  #keep(open: OpenTransaction, step: Step): void {
    if (open.recorded === 'all' || step.rows <= open.recorded) return;
    open.steps.add(step);
    open.changes += step.truncate === undefined ? step.changes.length : 2;
  }

  /**
   * The same in every reading. Only a transaction of several changes is recorded in parts, so what follows the first part
   * is never alone.
   */
  #correlationOf({ begin, recorded, changes }: OpenTransaction): string | undefined {
    return recorded === 0 && changes < 2 ? undefined : derivedUuid(`annals:transaction:${this.#nameOf(begin)}`);
  }

  #identity({ begin, rows }: OpenTransaction): Uint8Array {
    return identityOf(`${this.#nameOf(begin)} ${rows}`);
  }

  #nameOf({ commitLsn, xid, committedAt }: TransactionBegin): string {
    return `${this.#options.systemIdentifier} ${formatLsn(commitLsn)} ${xid} ${committedAt}`;
  }

  *#withFacts(steps: Iterable<Step>, facts: TransactionFacts): Generator<Step> {
    for (const step of steps) {
      const table = this.#options.mapping.tables.get(step.table);
      const isSilent = (step.info ?? facts.info ?? facts.who ?? facts.correlationId) === undefined;
      yield isSilent || table === undefined ? step : withFacts(step, table, facts);
    }
  }

  #transaction(): OpenTransaction {
    if (this.#open === undefined) throw new Error('the replication stream has a row outside of a transaction');
    return this.#open;
  }
}

function clampedTime(at: number, lastAt: number): number {
  return at < lastAt && lastAt - at <= maxClockStep ? lastAt : at;
}
