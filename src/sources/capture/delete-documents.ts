import { randomBytes } from 'node:crypto';
import { objectText } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { Connection } from '../../postgres/database.ts';
import { type Change, contentOf, differenceOfChange } from '../../recording/change.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import type { MappedChange } from '../../recording/mapping/row-change.ts';
import { ruledDocument } from '../../recording/mapping/ruled-document.ts';
import { currentDocuments, existingDocuments } from '../../recording/rebuild/current-documents.ts';

export interface Deletion {
  readonly entity: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly actor: string;
  readonly context: string | undefined;
  readonly isGone: (tenant: string, entityId: string) => boolean;
  /** Records a page of deletes. `sides` is JSON text of an object with the document. */
  readonly record: (changes: readonly { mapped: MappedChange; sides: string }[]) => Promise<void>;
}

/** Documents that are looked at in one transaction. */
const pageSize = 500;

/** Deletes documents of an entity that exist in the history and are gone at the source. */
export async function deleteDocuments(
  { db, mapping, slot }: { db: Connection; mapping: Mapping; slot: string },
  { entity, at, actor, context, isGone, record }: Deletion,
): Promise<void> {
  for (const tenant of await tenantsOf(db, mapping, slot)) {
    let after: string | undefined;
    do {
      const { entityIds, next } = await existingDocuments(db, tenant, entity, { after, limit: pageSize });
      const gone = entityIds.filter((id) => isGone(tenant, id));
      const documents = await currentDocuments(db, tenant, entity, gone);
      const deletes = gone.map((entityId, index) => {
        const document = ruledDocument(mapping, entity, documents[index]?.document ?? '{}');
        const difference = differenceOfChange('delete', parseJson(document), undefined);
        const members = {
          identity: randomBytes(16),
          at,
          type: 'delete',
          entity,
          entityId,
          actor,
          related: [],
        } as const;
        const change: Change = {
          ...members,
          ...(difference === undefined ? { paths: '{}' } : contentOf(difference)),
          ...(context === undefined ? {} : { context }),
        };
        return {
          mapped: { kind: 'change', tenant, change, hasActor: true } as const,
          sides: objectText([['before', document]]),
        };
      });
      if (deletes.length > 0) await record(deletes);
      after = next;
    } while (after !== undefined);
  }
}

/** The tenants that this capture has recorded for. A document of another tenant came in another way and is not the source's. */
async function tenantsOf(db: Connection, { tenant }: Mapping, slot: string): Promise<string[]> {
  if (tenant?.kind === 'value') return [tenant.tenant];
  const rows = await db
    .selectFrom('change_recorder')
    .select('tenant')
    .distinct()
    .where('way', '=', 'capture')
    .where('name', '=', slot)
    .orderBy('tenant')
    .execute();
  return rows.map((row) => row.tenant);
}
