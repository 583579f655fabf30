import { TimeSlice } from '../../core/fairness/time-slice.ts';
import { objectText } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import { compactText } from '../../core/json/text.ts';
import type { Connection } from '../../postgres/database.ts';
import { type Change, contentOf, differenceOfChange, unknownActor, type Who } from '../change.ts';
import { isUnchanged } from '../paths.ts';
import { currentDocuments } from '../rebuild/current-documents.ts';
import type { RebuiltDocument } from '../rebuild/document-rebuild.ts';
import { applyRules, compileRules } from './apply-rules.ts';
import type { Mapping, ValueRules } from './mapping.ts';
import type { MappedDocument } from './row-change.ts';

const prepared = new WeakMap<Mapping, ReadonlyMap<string, ValueRules>>();

/**
 * Applies the current rules to a document of the history, as JSON text, since a mask may be newer than the document.
 */
export function ruledDocument(mapping: Mapping | undefined, entity: string, document: string): string {
  const rules = mapping && rulesOfDocuments(mapping).get(entity);
  if (rules === undefined) return document;
  const { after } = applyRules(compileRules(rules), { after: parseJson(document) });
  return after === undefined ? '{}' : compactText(after);
}

/** The rules by entity, including those of every table of the entity. */
export function rulesOfDocuments(mapping: Mapping): ReadonlyMap<string, ValueRules> {
  return prepared.getOrInsertComputed(mapping, ({ entities, tables }) => {
    const rules = new Map(entities);
    for (const { entity, rules: own } of tables.values()) {
      const { mask = [], ignore = [] } = rules.get(entity) ?? {};
      rules.set(entity, { mask: [...mask, ...own.mask], ignore: [...ignore, ...own.ignore] });
    }
    return rules;
  });
}

/**
 * The change of a snapshot document against the history: a create if it does not exist there, an update if values
 * differ, undefined if they are equal. Throws `PathsTooLargeError`.
 */
export function changeOfSnapshot(
  { change, document }: Extract<MappedDocument, { kind: 'document' }>,
  stored: RebuiltDocument | undefined,
  mapping: Mapping | undefined,
): Change | undefined {
  if (stored?.document === undefined) return change;
  const after = parseJson(document);
  const before = parseJson(ruledDocument(mapping, change.entity, stored.document));
  if (isUnchanged(before, after)) return undefined;
  // The history may have only part of the document. A comparison would show values that the row never had.
  const difference = differenceOfChange('update', stored.complete ? before : undefined, after);
  const { paths: _paths, marks: _marks, ...members } = change;
  return difference && { ...members, ...contentOf(difference), type: 'update' };
}

/** Documents looked up and deleted in one transaction. */
export const documentsAtOnce = 500;

/** The common members of the deletes of an entity's documents. */
interface Deletion extends Pick<Change, 'at' | 'entity' | 'correlationId' | 'derived'> {
  tenant: string;
  who: Who;
  /** JSON text of an object. */
  context?: string | undefined;
  identityOf: (entityId: string) => Uint8Array;
}

/** Deletes of documents in the history, by the current rules. `sides`: JSON text of an object with the document. */
export async function deletesOf(
  db: Connection,
  mapping: Mapping | undefined,
  { tenant, at, entity, who, correlationId, derived, context, identityOf }: Deletion,
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
      actor: unknownActor,
      ...who,
      ...(correlationId !== undefined && { correlationId }),
      ...(derived !== undefined && { derived }),
      related: [],
      ...(difference === undefined ? { paths: '{}' } : contentOf(difference)),
      ...(context === undefined ? {} : { context }),
    };
    deletes.push({ change, sides: objectText([['before', document]]) });
  }
  return deletes;
}
