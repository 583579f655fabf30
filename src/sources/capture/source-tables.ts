import { plainTable } from '../../postgres/source/source-catalogue.ts';
import { type Mapping, nameToday, noFormer } from '../../recording/mapping/mapping.ts';
import type { Row } from '../../recording/mapping/row-change.ts';
import type { Relation, RelationColumn, Tuple } from './pgoutput.ts';
import type { TableWatch } from './table-watch.ts';

/** Writes the text of a value as JSON. */
export type ValueText = (type: number, text: string) => string;

/** What the catalogue says about a table. */
interface TableTraits {
  readonly primaryKey: readonly string[];
  /** Columns that PostgreSQL computes. The stream may have the stored ones, and they are not recorded. */
  readonly generated: ReadonlySet<string>;
  readonly hasPartitions: boolean;
}

/** A published table as the stream describes it. */
export class SourceTable {
  /** As the mapping has it. */
  readonly name: string;
  readonly primaryKey: readonly string[];
  /** As the stream described it, without generated columns. */
  readonly relation: Relation;
  /** Whether the mapping is known to fit its columns. */
  isAccepted = false;
  /** With their places in a tuple, which may have generated columns too. */
  readonly #columns: readonly (RelationColumn & { position: number })[];
  readonly #key: readonly number[];
  readonly #valueText: ValueText;
  /** Whether the table has partitions. One that was added later may have another replica identity than the root, and the stream names that of the root. */
  readonly #hasPartitions: boolean;

  constructor(
    relation: Relation,
    { primaryKey, generated, hasPartitions }: TableTraits,
    isOfId: (column: string) => boolean,
    valueText: ValueText,
  ) {
    this.name = plainTable(relation);
    this.#columns = relation.columns
      .map((column, position) => ({ ...column, position }))
      .filter(({ name }) => !generated.has(name));
    this.relation = { ...relation, columns: this.#columns };
    this.primaryKey = primaryKey;
    this.#hasPartitions = hasPartitions;
    this.#key = this.#columns.flatMap(({ name, position }) => (isOfId(name) ? [position] : []));
    this.#valueText = valueText;
  }

  /** The row with its values as JSON text. `isKey`: the tuple has the replica identity alone, and nothing in the other columns. */
  row(tuple: Tuple, isKey: boolean): Map<string, string | undefined> {
    const row = new Map<string, string | undefined>();
    for (const column of this.#columns) {
      if (isKey && !column.isKey) continue;
      const value = tuple[column.position];
      row.set(
        column.name,
        value === null ? 'null' : value === undefined ? undefined : this.#valueText(column.type, value),
      );
    }
    return row;
  }

  /**
   * The row before a change, which the stream calls whole. A partition that was added later has the primary key as its identity, and the
   * stream then has null in all other columns: such a row is taken as the key alone, because nobody said that these values were null.
   */
  wholeRow(tuple: Tuple): { row: Row; isKeyAlone: boolean } {
    const rest = this.#columns.filter(({ name }) => !this.primaryKey.includes(name));
    const isKeyAlone = this.#hasPartitions && rest.length > 0 && rest.every(({ position }) => tuple[position] === null);
    const row = this.row(tuple, false);
    if (isKeyAlone) for (const { name } of this.#columns) if (!this.primaryKey.includes(name)) row.delete(name);
    return { row, isKeyAlone };
  }

  /** Whether both rows are the same document. */
  hasSameKey(a: Tuple, b: Tuple): boolean {
    return this.#key.length > 0 && this.#key.every((index) => a[index] === b[index]);
  }
}

/** The published tables by the number that the stream gives them. */
export class SourceTables {
  readonly #byNumber = new Map<number, SourceTable>();
  readonly #watch: TableWatch;
  readonly #mapping: Mapping;
  readonly #types: { load(types: readonly number[]): Promise<void>; text: ValueText };

  constructor(
    watch: TableWatch,
    mapping: Mapping,
    types: { load(types: readonly number[]): Promise<void>; text: ValueText },
  ) {
    this.#watch = watch;
    this.#mapping = mapping;
    this.#types = types;
  }

  /**
   * Takes the description of a table, which the stream sends before its first row and after each change of its definition. Throws a
   * GapError where another table has the name by now.
   */
  async learn(relation: Relation): Promise<void> {
    await this.#types.load(relation.columns.map(({ type }) => type));
    const name = plainTable(relation);
    await this.#watch.lookAt(name, relation);
    const { primaryKey = [], kind, columns = [] } = this.#watch.table(name) ?? {};
    const generated = new Set(columns.flatMap((column) => (column.isGenerated ? [column.name] : [])));
    const { id: idColumns = primaryKey, former = noFormer } = this.#mapping.tables.get(name) ?? {};
    const isOfId = (column: string) => idColumns.includes(nameToday(former, column));
    const valueText = (type: number, text: string) => this.#types.text(type, text);
    this.#byNumber.set(
      relation.id,
      new SourceTable(relation, { primaryKey, generated, hasPartitions: kind === 'p' }, isOfId, valueText),
    );
  }

  /** Before the first row of a table is recorded as it was described last. Throws a CaptureError where the mapping does not fit. */
  async accept(table: SourceTable): Promise<void> {
    if (table.isAccepted) return;
    await this.#watch.accept(table.name, table.relation);
    table.isAccepted = true;
  }

  get(relation: number): SourceTable {
    const table = this.#byNumber.get(relation);
    if (table === undefined) throw new Error('the replication stream has a row of a table that it did not describe');
    return table;
  }
}
