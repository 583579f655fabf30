import { elementsOf, entriesOf, memberOf, objectText, stringOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import { keysOfPath } from '../../core/path-pattern.ts';
import { applyRulesAt, type CompiledRules } from '../../recording/mapping/apply-rules.ts';
import { isIn, isPersonMember, replaceInText } from './replace-in-text.ts';
import type { SealedSubject, Subject } from './subject.ts';

/** The erasable parts of an entry. `related`, `paths`, `context` and `erased` are JSON texts. */
export interface ErasableEntry {
  readonly entity: string;
  readonly entityId: string;
  readonly name: string | null;
  readonly related: string | null;
  readonly paths: string;
  readonly context: string | null;
  readonly erased: string | null;
  /** Whether the subject is its actor, and whether the actor's id goes with the name. */
  readonly isOfActor: boolean;
  readonly isOfActorId: boolean;
  /** Whether its actor acted on behalf of the subject, and whether that id goes with the name. */
  readonly isOnBehalf: boolean;
  readonly isOnBehalfId: boolean;
  /** Whether the subject recorded it. */
  readonly isOfRecorder: boolean;
  /** Whether it is of Annals' own object, whose name and values may contain the person. */
  readonly isOfService: boolean;
}

type PathKeys = ReturnType<typeof keysOfPath>;

export type RewrittenEntry = Pick<ErasableEntry, 'entityId' | 'name' | 'related' | 'paths' | 'context'> & {
  readonly erased: string;
};

/** Replaces an erased value. */
const erasedValue = '"[erased]"';

/**
 * An entry without the subject: its actor, for whom that acted, recorder, document or related document, or a name in an own object. Its
 * type, its time, the names of its paths and the number of its related items stay.
 *
 * @param rules additional paths to erase, by entity type
 */
export function rewriteEntry(
  entry: ErasableEntry,
  sealed: SealedSubject,
  rules: ReadonlyMap<string, CompiledRules>,
): RewrittenEntry {
  const { subject, replacement } = sealed;
  const gone = new Set<string>(entry.erased === null ? [] : (JSON.parse(entry.erased) as string[]));
  let { entityId, name, related } = entry;
  let isOwn = false;
  if (entry.isOfRecorder) gone.add('recordedBy');
  if (!('entity' in subject)) {
    const { paths } = entry;
    if (!entry.isOfActor && !entry.isOnBehalf && !entry.isOfService) {
      const isMeant = hasPerson(entry.context, subject);
      if (isMeant) gone.add('context');
      return { entityId, name, related, paths, context: isMeant ? null : entry.context, erased: textOf(gone) };
    }
    noteNames(entry, gone);
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
  if (entry.isOfService && name !== null && replaceInText(name, sealed) !== name) {
    name = replacement;
    gone.add('name');
  }
  const named = rules.get(entry.entity);
  const isMeant = (keys: PathKeys, value: JsonNode) =>
    isOwn ||
    (named !== undefined && applyRulesAt(named, keys, value) !== compactText(value)) ||
    (entry.isOfService && isIn(compactText(value), sealed, isPersonPath(keys)));
  const paths =
    isOwn || named !== undefined || entry.isOfService ? rewritePaths(entry.paths, isMeant, gone) : entry.paths;
  const isGone = entry.context !== null && (gone.size > 0 || isIn(entry.context, sealed));
  if (isGone) gone.add('context');
  return { entityId, name, related, paths, context: isGone ? null : entry.context, erased: textOf(gone) };
}

function isPersonPath(keys: PathKeys): boolean {
  return isPersonMember(keys.at(-1) ?? '', keys.at(-2));
}

/** Notes which names and ids go: the dictionary of actors has them. */
function noteNames({ isOfActor, isOfActorId, isOnBehalf, isOnBehalfId }: ErasableEntry, gone: Set<string>): void {
  if (isOfActor) gone.add('actor');
  if (isOfActorId) gone.add('actorId');
  if (!isOnBehalf) return;
  if (isOnBehalfId) gone.delete(behalfName);
  gone.add(isOnBehalfId ? 'onBehalfOf' : behalfName);
}

/** In `erased`: the name alone, where an erasure by the name leaves the id beside it. */
const behalfName = 'onBehalfOf.name';

/**
 * Whether a member of a context equals the id of the person, where the subject names such members. The context goes as
 * a whole: it is one field of the proof, so nothing would prove members that stay.
 */
export function hasPerson(context: string | null, subject: Subject): boolean {
  if (context === null || !('actorId' in subject) || subject.context === undefined) return false;
  const { actorId, context: names } = subject;
  return entriesOf(parseJson(context)).some(
    ([name, value]) => names.includes(name) && (stringOf(value) ?? compactText(value)) === actorId,
  );
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

/** A value that contains one of the paths, or lies below one, is erased as a whole. */
function rewritePaths(text: string, isMeant: (keys: PathKeys, value: JsonNode) => boolean, gone: Set<string>): string {
  let isChanged = false;
  const members = entriesOf(parseJson(text)).map(([path, sides]): [string, string] => {
    const keys = keysOfPath(path);
    const rewritten = entriesOf(sides).map(([side, value]): [string, string] => {
      if (!isMeant(keys, value)) return [side, compactText(value)];
      gone.add(`paths.${path}`);
      isChanged = true;
      return [side, erasedValue];
    });
    return [path, objectText(rewritten)];
  });
  return isChanged ? objectText(members) : text;
}
