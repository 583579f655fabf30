import { clearOnErasure } from '../../core/forgetting.ts';
import { entriesOf, memberOf, membersOf, objectText } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { contentOf, differenceOfChange } from '../../recording/change.ts';
import { ruledDocument } from '../../recording/mapping/history-changes.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import type { SourceChange } from '../../recording/mapping/record-mapped.ts';
import type { MappedChange } from '../../recording/mapping/row-change.ts';
import { markMaskedDifferences } from '../../recording/masked-differences.ts';
import { currentDocuments } from '../../recording/rebuild/current-documents.ts';
import { rebuildDocument } from '../../recording/rebuild/document-rebuild.ts';
import { recordedIdentities } from '../../recording/store.ts';

type MappedUpdate = Extract<MappedChange, { kind: 'change' }>;

/** Characters of all cached documents, and of one. */
const maxCached = 16 * 1024 * 1024;
const maxDocument = 1024 * 1024;

/**
 * Adds the previous values to updates whose log lacks them, if the history has the whole document
 * (docs/decisions/capture.md). Caches recently changed documents.
 */
export class HistoryComparison {
  readonly #mapping: Mapping;
  /** Documents of the history, by the current rules. */
  readonly #documents = new Map<string, string>();
  #size = 0;
  /** The documents after the current transaction. Undefined: unknown. */
  #pending = new Map<string, string | undefined>();

  constructor(mapping: Mapping) {
    this.#mapping = mapping;
    clearOnErasure(this);
  }

  clear(): void {
    this.#documents.clear();
    this.#size = 0;
  }

  /** The changes of a batch, in order, to be recorded in this transaction. */
  async compared(transaction: DatabaseTransaction, changes: readonly SourceChange[]): Promise<SourceChange[]> {
    this.#pending = new Map();
    const recorded = await this.#load(
      transaction,
      changes.flatMap(({ mapped }) => (lacksBefore(mapped) ? [mapped] : [])),
    );
    return changes.map((placed) => {
      const { mapped } = placed;
      if (mapped.kind !== 'change') return placed;
      const key = keyOf(mapped);
      if (!this.#pending.has(key) && !this.#documents.has(key)) return placed;
      if (recorded.has(mapped.change.identity.toHex()))
        return { ...placed, mapped: { kind: 'unchanged', tenant: mapped.tenant } };
      const before = this.#pending.has(key) ? this.#pending.get(key) : this.#documents.get(key);
      const after = documentAfter(mapped, before);
      this.#pending.set(key, after);
      if (!lacksBefore(mapped) || before === undefined || after === undefined) return placed;
      return { ...placed, mapped: withBefore(mapped, before, after) };
    });
  }

  /** Call it after the transaction of the last `compared` has committed. */
  committed(): void {
    for (const [key, document] of this.#pending) {
      this.#size -= this.#documents.get(key)?.length ?? 0;
      this.#documents.delete(key);
      if (document === undefined || document.length > maxDocument) continue;
      this.#documents.set(key, document);
      this.#size += document.length;
    }
    this.#pending = new Map();
    for (const [key, document] of this.#documents) {
      if (this.#size <= maxCached) break;
      this.#documents.delete(key);
      this.#size -= document.length;
    }
  }

  /** Reads documents that are not cached. Returns the identities of changes that are already recorded. */
  async #load(transaction: DatabaseTransaction, updates: readonly MappedUpdate[]): Promise<ReadonlySet<string>> {
    const recorded = new Set<string>();
    for (const [tenant, ofTenant] of Map.groupBy(updates, (mapped) => mapped.tenant)) {
      if (tenant === undefined) continue;
      const recordedIds = await recordedIdentities(
        transaction,
        tenant,
        ofTenant.map(({ change }) => change),
      );
      for (const identity of recordedIds) recorded.add(identity);
      for (const [entity, of] of Map.groupBy(ofTenant, ({ change }) => change.entity)) {
        const unknown = new Map(of.map((mapped) => [keyOf(mapped), mapped.change.entityId]));
        for (const key of unknown.keys()) if (this.#documents.has(key)) unknown.delete(key);
        const documents = await currentDocuments(transaction, tenant, entity, [...unknown.values()]);
        for (const [index, key] of [...unknown.keys()].entries()) {
          const { complete = false, document } = documents[index] ?? {};
          const isKnown = complete && document !== undefined;
          this.#pending.set(key, isKnown ? ruledDocument(this.#mapping, entity, document) : undefined);
        }
      }
    }
    return recorded;
  }
}

function lacksBefore(mapped: MappedChange): mapped is MappedUpdate {
  return mapped.kind === 'change' && mapped.lacksBefore === true;
}

function keyOf({ tenant, change }: MappedUpdate): string {
  return JSON.stringify([tenant, change.entity, change.entityId]);
}

/** The document after a change; undefined if there is none or it is unknown. */
function documentAfter(
  { change, lacksBefore: isLacking }: MappedUpdate,
  before: string | undefined,
): string | undefined {
  const { type, paths, marks = null } = change;
  if (type === 'delete') return undefined;
  const isWhole = marks !== null && JSON.parse(marks).whole === true;
  if (type === 'create' || (isLacking && isWhole)) {
    const { complete, document } = rebuildDocument([{ type, paths, marks, isMarked: true }], []);
    return complete ? document : undefined;
  }
  if (!isLacking || before === undefined) return undefined;
  // The log omits unchanged values: each path is one column.
  const members = new Map(membersOf(parseJson(before)));
  for (const [path, sides] of entriesOf(parseJson(paths))) {
    const value = memberOf(sides, 'after');
    if (value !== undefined) members.set(path.replace(/\\(.)/gs, '$1'), value);
  }
  return objectText(members);
}

/** The change against the previous document. A logged masked value counts as changed, since it cannot be compared. */
function withBefore(mapped: MappedUpdate, before: string, after: string): MappedChange {
  const { change, tenant } = mapped;
  const shown = parseJson(after);
  markMaskedDifferences(
    shown,
    entriesOf(parseJson(change.paths)).map(([path]) => path),
  );
  const difference = differenceOfChange('update', parseJson(before), shown);
  if (difference === undefined) return { kind: 'unchanged', tenant };
  const { paths: _paths, marks: _marks, ...members } = change;
  return { ...mapped, change: { ...members, ...contentOf(difference) } };
}
