import { plainTable } from '../../postgres/source/source-catalogue.ts';
import { type Mapping, nameToday, noFormer } from '../../recording/mapping/mapping.ts';
import type { PostgresTypes } from '../../recording/mapping/postgres-types.ts';
import type { Row } from '../../recording/mapping/row-change.ts';
import type { Relation, RelationColumn, Tuple } from './pgoutput.ts';
import type { TableWatch } from './table-watch.ts';

type ValueTypes = Pick<PostgresTypes, 'load' | 'text'>;

/** A table in the catalog. */
interface TableTraits {
  readonly primaryKey: readonly string[];
  /** Generated columns. The stream may have stored ones, which are not recorded. */
  readonly generated: ReadonlySet<string>;
  readonly hasPartitions: boolean;
}

/** A published table, as described by the stream. */
export class SourceTable {
  /** As in the mapping. */
  readonly name: string;
  readonly primaryKey: readonly string[];
  /** As in the stream, without generated columns. */
  readonly relation: Relation;
  /** Whether the mapping is known to fit its columns. */
  isAccepted = false;
  /** With their positions in a tuple, which may have generated columns too. */
  readonly #columns: readonly (RelationColumn & { position: number })[];
  readonly #key: readonly number[];
  readonly #types: ValueTypes;
  /** Partitions added later may have another replica identity than the root's, which the stream names. */
  readonly #hasPartitions: boolean;

  constructor(
    relation: Relation,
    { primaryKey, generated, hasPartitions }: TableTraits,
    isOfId: (column: string) => boolean,
    types: ValueTypes,
  ) {
    this.name = plainTable(relation);
    this.#columns = relation.columns
      .map((column, position) => ({ ...column, position }))
      .filter(({ name }) => !generated.has(name));
    this.relation = { ...relation, columns: this.#columns };
    this.primaryKey = primaryKey;
    this.#hasPartitions = hasPartitions;
    this.#key = this.#columns.flatMap(({ name, position }) => (isOfId(name) ? [position] : []));
    this.#types = types;
  }

  /** The row, with values as JSON text. `isKey`: the tuple has only the replica identity. */
  row(tuple: Tuple, isKey: boolean): Map<string, string | undefined> {
    const row = new Map<string, string | undefined>();
    for (const column of this.#columns) {
      if (isKey && !column.isKey) continue;
      const value = tuple[column.position];
      row.set(
        column.name,
        value === null ? 'null' : value === undefined ? undefined : this.#types.text(column.type, value),
      );
    }
    return row;
  }

  /**
   * The previous row, called whole by the stream. For a partition added later, whose identity is the primary key, the
   * stream has null in all other columns: then only the key is known.
   */
  wholeRow(tuple: Tuple): { row: Row; isKeyAlone: boolean } {
    const rest = this.#columns.filter(({ name }) => !this.primaryKey.includes(name));
    const isKeyAlone = this.#hasPartitions && rest.length > 0 && rest.every(({ position }) => tuple[position] === null);
    const row = this.row(tuple, false);
    if (isKeyAlone) for (const { name } of this.#columns) if (!this.primaryKey.includes(name)) row.delete(name);
    return { row, isKeyAlone };
  }

  /** Whether both rows have the same id. */
  hasSameKey(a: Tuple, b: Tuple): boolean {
    return this.#key.length > 0 && this.#key.every((index) => a[index] === b[index]);
  }
}

/** The published tables, by the stream's relation ids. */
export class SourceTables {
  readonly #byNumber = new Map<number, SourceTable>();
  readonly #watch: TableWatch;
  readonly #mapping: Mapping;
  readonly #types: ValueTypes;

  constructor(watch: TableWatch, mapping: Mapping, types: ValueTypes) {
    this.#watch = watch;
    this.#mapping = mapping;
    this.#types = types;
  }

  /**
   * Reads a table description, which the stream sends before the first row and after each definition change. Throws a
   * GapError if another table has taken the name.
   */
  async learn(relation: Relation): Promise<void> {
    await this.#types.load(relation.columns.map(({ type }) => type));
    const name = plainTable(relation);
    await this.#watch.lookAt(name, relation);
    const { primaryKey = [], kind, columns = [] } = this.#watch.table(name) ?? {};
    const generated = new Set(columns.flatMap((column) => (column.isGenerated ? [column.name] : [])));
    const { id: idColumns = primaryKey, former = noFormer } = this.#mapping.tables.get(name) ?? {};
    const isOfId = (column: string) => idColumns.includes(nameToday(former, column));
    this.#byNumber.set(
      relation.id,
      new SourceTable(relation, { primaryKey, generated, hasPartitions: kind === 'p' }, isOfId, this.#types),
    );
  }

  /** Call it before recording rows of a description. Throws a CaptureError if the mapping does not fit. */
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
