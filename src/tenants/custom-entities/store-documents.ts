import type { DatabaseTransaction } from '../../postgres/database.ts';
import { projectedJson } from '../../query/json-projection.ts';
import { documentText, readDocument, valuesOfDocument } from './document.ts';
import { instanceTable, typeTable, widthOf } from './store.ts';
import { readSentType, writtenType } from './type-texts.ts';

/** An instance in the state of its recorded history. Times are in milliseconds since 1970. */
export interface KnownInstance {
  readonly id: string;
  /** JSON text of its own fields. */
  readonly content: string;
  readonly version: number;
  readonly createdAt: number;
  readonly modifiedAt: number;
}

/**
 * Stores a type and instances whose history is recorded elsewhere, so it records nothing. An existing type stays
 * unchanged, with its instances. `now` is in milliseconds since 1970.
 */
export async function storeDocuments(
  transaction: DatabaseTransaction,
  tenant: string,
  { type, instances, now }: { type: string; instances: readonly KnownInstance[]; now: number },
): Promise<void> {
  const sent = await readSentType(type, undefined);
  const written = await writtenType(sent, { version: 1, now }, undefined);
  if (!(await typeTable.insert(transaction, tenant, sent.id, written))) return;
  const table = instanceTable(sent.id);
  for (const { content, ...state } of instances) {
    const input = readDocument(content);
    const document = documentText(input, state);
    const { id, version } = state;
    const wide = widthOf(valuesOfDocument(input));
    await table.insert(transaction, tenant, id, { version, document, fields: projectedJson(document), wide });
  }
}
