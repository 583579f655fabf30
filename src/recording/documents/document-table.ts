import { CompiledQuery } from 'kysely';
import { isStorable } from '../../core/storable-text.ts';
import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';

/** A document as stored. */
export interface StoredDocument {
  readonly version: number;
  /** JSON text. */
  readonly document: string;
}

/** The columns of a document. */
export interface DocumentRow extends StoredDocument {
  /** The text of the jsonb column that lists filter and sort by. */
  readonly fields: string;
}

/** A table of documents by tenant and id, with additional columns. */
export interface DocumentTable<Own> {
  /** `lock`: locks the document until the transaction ends. Rows that refer to it can still be written. */
  find(
    db: Connection,
    tenant: string,
    id: string,
    options?: { readonly lock?: boolean },
  ): Promise<(StoredDocument & Own) | undefined>;
  /** Returns false if the id exists. */
  insert(transaction: DatabaseTransaction, tenant: string, id: string, row: DocumentRow & Own): Promise<boolean>;
  update(transaction: DatabaseTransaction, tenant: string, id: string, row: DocumentRow & Own): Promise<void>;
  remove(transaction: DatabaseTransaction, tenant: string, id: string): Promise<void>;
}

/**
 * `own`: additional columns by member name. `within`: the key columns between tenant and id. The statements are plain
 * text, since the query builder takes longer to build one than the driver takes to send it.
 *
 * @example
 * const instances = documentTable<{ wide: number }>('custom_instance', { wide: 'wide' }, { type: 'PRODUCT' });
 */
export function documentTable<Own extends object>(
  name: string,
  own: { readonly [Member in keyof Own]: string },
  within: Readonly<Record<string, string>> = {},
): DocumentTable<Own> {
  const columns = new Map<string, string>(Object.entries(own));
  const keys = ['tenant', ...Object.keys(within), 'id'];
  const written = ['version', 'document', 'fields', ...columns.values()];
  const parameter = (index: number) => `$${index + 1}`;
  const values = written.map(
    (column, index) => parameter(keys.length + index) + (column === 'fields' ? '::jsonb' : ''),
  );
  const whereKey = `where ${keys.map((key, index) => `${key} = ${parameter(index)}`).join(' and ')}`;
  const read = ['version', 'document', ...[...columns].map(([member, column]) => `${column} as "${member}"`)].join(
    ', ',
  );

  async function run<Row>(db: Connection, text: string, tenant: string, id: string, row?: DocumentRow & Own) {
    const members: ReadonlyMap<string, unknown> = new Map(Object.entries(row ?? {}));
    const rest = row && ['version', 'document', 'fields', ...columns.keys()].map((member) => members.get(member));
    const parameters = [tenant, ...Object.values(within), id, ...(rest ?? [])];
    return await db.executeQuery<Row>(CompiledQuery.raw(text, parameters));
  }

  return {
    async find(db, tenant, id, { lock = false } = {}) {
      // PostgreSQL cannot store such an id, so there is no such document.
      if (!isStorable(id)) return undefined;
      const text = `select ${read} from ${name} ${whereKey}${lock ? ' for no key update' : ''}`;
      return (await run<StoredDocument & Own>(db, text, tenant, id)).rows[0];
    },
    async insert(transaction, tenant, id, row) {
      const text = `insert into ${name} (${[...keys, ...written].join(', ')})
        values (${[...keys.map((_, index) => parameter(index)), ...values].join(', ')}) on conflict do nothing`;
      return (await run(transaction, text, tenant, id, row)).numAffectedRows === 1n;
    },
    async update(transaction, tenant, id, row) {
      const set = written.map((column, index) => `${column} = ${values[index]}`).join(', ');
      await run(transaction, `update ${name} set ${set} ${whereKey}`, tenant, id, row);
    },
    async remove(transaction, tenant, id) {
      await run(transaction, `delete from ${name} ${whereKey}`, tenant, id);
    },
  };
}
