import type pg from 'pg';
import { type CatalogueTable, readCatalogue } from '../../postgres/source/source-catalogue.ts';
import { columnNews, knownTable, partitionNews } from '../../postgres/source/table-news.ts';
import { CaptureError, GapError } from './capture-error.ts';
import type { CaptureOptions } from './capture-options.ts';
import {
  type CapturedTable,
  type CapturedTables,
  gapOfTables,
  storeCapturedTables,
  unwritableReasons,
  withdrawn,
  withdrawTable,
} from './captured-tables.ts';
import { faultsOfTable, lostColumns } from './mapping-faults.ts';
import type { Relation } from './pgoutput.ts';
import { publishedState, readPublished } from './publication.ts';

/**
 * Watches definition changes of the mapped tables (docs/decisions/capture.md). Missing rows are a gap; a change that
 * the mapping does not fit stops capture before a row is recorded; other changes that make documents differ from rows
 * are logged with a remedy.
 */
export class TableWatch {
  readonly #client: pg.Client;
  readonly #options: CaptureOptions;
  #tables: ReadonlyMap<string, CatalogueTable>;
  #captured: CapturedTables;
  readonly #reported = new Set<string>();
  /** `publishedState` at the last check. */
  #state: string | undefined;

  constructor(
    client: pg.Client,
    options: CaptureOptions,
    tables: ReadonlyMap<string, CatalogueTable>,
    captured: CapturedTables,
  ) {
    this.#client = client;
    this.#options = options;
    this.#tables = tables;
    this.#captured = captured;
  }

  /** A table at the last check. */
  table(name: string): CatalogueTable | undefined {
    return this.#tables.get(name);
  }

  /**
   * Checks only if tables, identities or indexes changed: cheap enough to find a table that a migration made unwritable
   * within a second.
   */
  async lookIfChanged(): Promise<void> {
    const state = await publishedState(this.#client, this.#options.slot);
    if (state === this.#state) return;
    this.#state = state;
    await this.look();
  }

  /** Throws a GapError. */
  async look(): Promise<void> {
    const client = this.#client;
    const { mapping, slot, log } = this.#options;
    // In this order, a table dropped between the queries is gone, and did not leave the publication.
    const published = await readPublished(client, slot);
    this.#tables = await readCatalogue(client, [...mapping.tables.keys()]);
    const gap = gapOfTables(this.#captured, this.#tables, published);
    if (gap !== undefined) throw new GapError(gap);
    for (const [name, table] of this.#tables) {
      const mapped = mapping.tables.get(name);
      const known = this.#captured.get(name);
      if (mapped === undefined || known === undefined || known.publication === withdrawn) continue;
      const unwritable = unwritableReasons(this.#options, table);
      if (unwritable.length > 0) {
        await this.#withdraw({ table, faults: unwritable });
        continue;
      }
      const columns = known.columns.map(nameOf);
      for (const { message, statement } of faultsOfTable(mapping, mapped, table, {
        known: columns,
        publication: slot,
      })) {
        this.#warnOnce(`${message}${statement === undefined ? '' : `. Run: ${statement}`}`);
      }
      const { partitions } = knownTable(table);
      const news = await partitionNews(client, name, known.partitions, partitions);
      for (const message of news) log.warn({}, `${message}. ${remedy}`);
      if (news.length > 0 || Object.keys(partitions).length !== Object.keys(known.partitions).length)
        await this.#store(name, { ...known, partitions });
    }
  }

  /** Checks if the log describes a table differently than the catalog. */
  async lookAt(name: string, { id, columns, replicaIdentity }: Relation): Promise<void> {
    const table = this.#tables.get(name);
    if (!this.#options.mapping.tables.has(name)) return;
    // The log has stored generated columns if the publication does.
    const isSame =
      table?.oid === String(id) &&
      table.replicaIdentity === replicaIdentity &&
      isSameList(
        columns.filter((column) => table.columns.find((current) => current.name === column.name)?.isGenerated !== true),
        table.columns.filter(({ isGenerated }) => !isGenerated),
      );
    if (!isSame) await this.look();
  }

  /** Call it before recording a row. Throws a CaptureError if the mapping does not fit the row's columns. */
  async accept(name: string, relation: Relation): Promise<void> {
    const { mapping, log } = this.#options;
    const [mapped, table, captured] = [mapping.tables.get(name), this.#tables.get(name), this.#captured.get(name)];
    if (mapped === undefined || table === undefined) return;
    // After an accepted gap, the log may have rows of an earlier table of this name.
    const known = captured?.relation === String(relation.id) ? captured : undefined;
    const lost = lostColumns(mapping, mapped, table, {
      logged: relation.columns.map((column) => column.name),
      known: known?.columns.map(nameOf),
    });
    if (lost.length > 0) {
      throw new CaptureError(
        [
          'a table was changed, and the mapping does not fit it any more. No change since then is recorded, and none is lost:',
          ...lost.map((message) => `  ${message}`),
          'Then start again. Until then the source keeps its log, which takes room on its disk.',
        ].join('\n'),
      );
    }
    if (known === undefined) return;
    const columns = relation.columns.map((column) => [column.name, column.type] as const);
    const news = columnNews(name, known.columns, columns);
    if (news !== undefined) log.warn({}, `${news}. ${remedy}`);
    if (known.identity === 'f' && relation.replicaIdentity !== 'f') {
      log.warn(
        {},
        `${name} no longer has replica identity full: its log lacks the values before a change. Run alter table … replica identity full`,
      );
    }
    if (news !== undefined || known.identity !== relation.replicaIdentity)
      await this.#store(name, { ...known, columns, identity: relation.replicaIdentity });
  }

  async #withdraw(withdrawal: Parameters<typeof withdrawTable>[3]): Promise<void> {
    const captured = await withdrawTable(this.#client, this.#options, this.#captured, withdrawal);
    if (captured !== undefined) this.#captured = captured;
  }

  async #store(name: string, table: CapturedTable): Promise<void> {
    this.#captured = new Map([...this.#captured, [name, table]]);
    await storeCapturedTables(this.#options.db, this.#captured);
  }

  #warnOnce(message: string): void {
    if (this.#reported.has(message)) return;
    this.#reported.add(message);
    this.#options.log.warn({}, message);
  }
}

const remedy = 'Run capture once with --resync to record the present rows';

function isSameList(a: readonly { name: string }[], b: readonly { name: string }[]): boolean {
  return a.length === b.length && a.every(({ name }, index) => b[index]?.name === name);
}

function nameOf([name]: readonly [string, number]): string {
  return name;
}
