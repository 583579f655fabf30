import { mask } from '../core/sealing.ts';
import type { Author } from '../http/credentials.ts';
import type { DatabaseTransaction } from '../postgres/database.ts';
import type { OwnEntity } from './change.ts';
import { preparedChange, type TextChange } from './prepared-change.ts';
import { recordChange } from './record-change.ts';

/** A document's change: a create without `before`, a delete without `after`. */
export interface RecordedDocument extends Omit<TextChange, 'type' | 'actor' | 'actorId' | 'correlationId' | 'entity'> {
  /** Erasures search the entries of these entity types. */
  readonly entity: OwnEntity | { readonly customType: string };
  /** Paths of replaced secrets. Both documents show the mask there, so the comparison alone would miss the change. */
  readonly replacedSecrets?: readonly string[] | undefined;
}

/**
 * Records a document's change, if there is one, in the transaction that changes it.
 *
 * @example
 * await recordDocumentChange(transaction, { tenant: 'acme', actor: 'Jane' }, {
 *   entity: 'agent', entityId: 'price-desk', at: now(), after: '{"id":"price-desk"}',
 * });
 */
export async function recordDocumentChange(
  transaction: DatabaseTransaction,
  { tenant, actor, actorId, correlationId, person }: Author,
  { replacedSecrets = [], entity: own, ...document }: RecordedDocument,
): Promise<void> {
  const { before, after, at } = document;
  const entity = typeof own === 'string' ? own : own.customType;
  const type = before === undefined ? 'create' : after === undefined ? 'delete' : 'update';
  const change = await preparedChange({ ...document, entity, type, actor, actorId, correlationId });
  if (change === 'unchanged') return;
  const paths = replacedSecrets.reduce(withMaskedPath, change.paths);
  await recordChange(transaction, tenant, { ...change, paths }, at, person);
}

function withMaskedPath(paths: string, path: string): string {
  const masked = `${JSON.stringify(path)}:${JSON.stringify({ before: mask, after: mask })}`;
  const rest = paths.slice(1);
  return `{${masked}${rest === '}' ? '' : ','}${rest}`;
}
