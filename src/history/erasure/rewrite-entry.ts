import { elementsOf, entriesOf, memberOf, objectText, stringOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import { applyRulesAt, type CompiledRules } from '../../recording/mapping/apply-rules.ts';
import { keysOfPath } from '../../recording/rebuild/entry-changes.ts';
import type { SealedSubject } from './subject.ts';

/** What an erasure may change of an entry. `related`, `paths`, `context` and `erased` are JSON texts. */
export interface ErasableEntry {
  readonly entity: string;
  readonly entityId: string;
  readonly name: string | null;
  readonly related: string | null;
  readonly paths: string;
  readonly context: string | null;
  readonly erased: string | null;
  /** Whether it is by the actor. */
  readonly isOfActor: boolean;
  /** Whether who recorded it is erased. */
  readonly isOfRecorder: boolean;
}

export type RewrittenEntry = Pick<ErasableEntry, 'entityId' | 'name' | 'related' | 'paths' | 'context'> & {
  readonly erased: string;
};

/** In place of an erased value. */
export const erasedValue = '"[erased]"';

/**
 * An entry of the subject (by the actor, of the document, related to it, or recorded by the actor) without the subject. Its type, its time, the names of its
 * paths and the number of its related items stay.
 *
 * @param rules the paths of each entity type that were named besides
 */
export function rewriteEntry(
  entry: ErasableEntry,
  { subject, replacement }: SealedSubject,
  rules: ReadonlyMap<string, CompiledRules>,
): RewrittenEntry {
  const gone = new Set<string>(entry.erased === null ? [] : (JSON.parse(entry.erased) as string[]));
  let { entityId, name, related } = entry;
  let isOwn = false;
  if (entry.isOfRecorder) gone.add('recordedBy');
  if ('actor' in subject) {
    const { paths } = entry;
    if (!entry.isOfActor) return { entityId, name, related, paths, context: entry.context, erased: textOf(gone) };
    gone.add('actor');
  } else {
    isOwn = entry.entity === subject.entity && entry.entityId === subject.entityId;
    if (isOwn) {
      entityId = replacement;
      gone.add('entityId');
      if (name !== null) {
        name = replacement;
        gone.add('name');
      }
    }
    const renamed = related === null ? null : relatedWithout(related, subject, replacement);
    if (renamed !== related) gone.add('related');
    related = renamed;
  }
  if (entry.context !== null) gone.add('context');
  const paths = rewritePaths(entry.paths, isOwn ? 'all' : rules.get(entry.entity), gone);
  return { entityId, name, related, paths, context: null, erased: textOf(gone) };
}

function textOf(gone: ReadonlySet<string>): string {
  return JSON.stringify([...gone].sort());
}

function relatedWithout(
  related: string,
  { entity, entityId }: { entity: string; entityId: string },
  replacement: string,
) {
  const items = elementsOf(parseJson(related));
  const isMeant = (item: JsonNode) =>
    stringOf(memberOf(item, 'entity')) === entity && stringOf(memberOf(item, 'entityId')) === entityId;
  if (!items.some(isMeant)) return related;
  return `[${items
    .map((item) =>
      isMeant(item)
        ? objectText(
            entriesOf(item).map(([key, value]) => [
              key,
              key === 'entityId' ? JSON.stringify(replacement) : compactText(value),
            ]),
          )
        : compactText(item),
    )
    .join(',')}]`;
}

/** A value that holds one of the paths, or lies below one, goes as a whole. */
function rewritePaths(text: string, which: 'all' | CompiledRules | undefined, gone: Set<string>): string {
  if (which === undefined) return text;
  let isChanged = false;
  const members = entriesOf(parseJson(text)).map(([path, sides]): [string, string] => {
    const keys = keysOfPath(path);
    const isMeant = (value: JsonNode) => which === 'all' || applyRulesAt(which, keys, value) !== compactText(value);
    const rewritten = entriesOf(sides).map(([side, value]): [string, string] => {
      if (!isMeant(value)) return [side, compactText(value)];
      gone.add(`paths.${path}`);
      isChanged = true;
      return [side, erasedValue];
    });
    return [path, objectText(rewritten)];
  });
  return isChanged ? objectText(members) : text;
}
