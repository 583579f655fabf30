import { type Change, changeOfDocuments, type RelatedItem } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import type { TestServer } from '../../../test/support/server/server.ts';

export interface RecordedDocument {
  readonly entity: string;
  readonly entityId?: string;
  readonly actor?: string;
  readonly name?: string;
  readonly related?: readonly RelatedItem[];
  /** When the first version was written, in milliseconds since 1970; left out: a second ago for each version. */
  readonly from?: number;
  /** The document before the first version, as JSON text; left out: there was none. */
  readonly before?: string;
  /** Of each change, as JSON text. */
  readonly context?: string;
  /** Who exactly, for whom, and what belongs together; of each change. */
  readonly who?: Pick<Change, 'actorId' | 'onBehalfOf' | 'correlationId'>;
}

/** Records that a document was written in these versions, one second apart; the last may be undefined, for its deletion. JSON texts. */
export async function recordLife(
  { context: { db } }: TestServer,
  tenant: string,
  document: RecordedDocument,
  versions: readonly (string | undefined)[],
): Promise<void> {
  const {
    entity,
    entityId = '1',
    actor = 'Robin',
    name,
    related = [],
    from = Date.now() - versions.length * 1_000,
  } = document;
  const { context, who = {} } = document;
  let { before } = document;
  const changes = versions.flatMap((after, index) => {
    const type = before === undefined ? 'create' : after === undefined ? 'delete' : 'update';
    const change = changeOfDocuments({
      type,
      entity,
      entityId,
      actor,
      name,
      related,
      at: from + index * 1_000,
      before,
      after,
    });
    before = after;
    return change === 'unchanged' ? [] : [{ ...change, ...who, ...(context === undefined ? {} : { context }) }];
  });
  await createRecorder(db, tenant, () => Date.now())(changes);
}
