import { TimeSlice } from '../../core/concurrency/time-slice.ts';
import { objectText } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { Connection } from '../../postgres/database.ts';
import { type Change, contentOf, differenceOfChange } from '../change.ts';
import { currentDocuments } from '../rebuild/current-documents.ts';
import type { Mapping } from './mapping.ts';
import { ruledDocument } from './ruled-document.ts';

/** Documents looked up and deleted in one transaction. */
export const documentsAtOnce = 500;

/** The common members of the deletes of an entity's documents. */
interface Deletion extends Pick<Change, 'at' | 'entity' | 'actor'> {
  tenant: string;
  /** JSON text of an object. */
  context?: string | undefined;
  identityOf: (entityId: string) => Uint8Array;
}

/** Deletes of documents in the history, by the current rules. `sides`: JSON text of an object with the document. */
export async function deletesOf(
  db: Connection,
  mapping: Mapping | undefined,
  { tenant, at, entity, actor, context, identityOf }: Deletion,
  entityIds: readonly string[],
): Promise<{ change: Change; sides: string }[]> {
  if (entityIds.length === 0) return [];
  const documents = await currentDocuments(db, tenant, entity, entityIds);
  const slice = new TimeSlice();
  const deletes: { change: Change; sides: string }[] = [];
  for (const [index, entityId] of entityIds.entries()) {
    if (slice.isDue) await slice.rest();
    const stored = documents[index]?.document;
    const document = stored === undefined ? undefined : ruledDocument(mapping, entity, stored);
    const difference = differenceOfChange(
      'delete',
      document === undefined ? undefined : parseJson(document),
      undefined,
    );
    const change: Change = {
      identity: identityOf(entityId),
      at,
      type: 'delete',
      entity,
      entityId,
      actor,
      related: [],
      ...(difference === undefined ? { paths: '{}' } : contentOf(difference)),
      ...(context === undefined ? {} : { context }),
    };
    deletes.push({ change, sides: objectText(document === undefined ? [] : [['before', document]]) });
  }
  return deletes;
}
