import { TimeSlice } from '../../../core/fairness/time-slice.ts';
import { list, type Match, type Matcher, type Text } from '../../../query/ast.ts';
import type { Actor } from '../names/dictionary.ts';

/** The fields of `q` on what an actor may lack, and where the dictionary has it. */
const optionalFields = {
  actorId: 'actorId',
  onBehalfOf: 'onBehalfOfName',
  onBehalfOfId: 'onBehalfOfId',
} as const satisfies Record<string, keyof Actor>;

export type ActorField = keyof typeof optionalFields;

/** Fields that only a reader with `actors: all` may use. */
export function isActorField(field: string): field is ActorField {
  return field in optionalFields;
}

/** A matcher of a field that may be missing. Bare `exists` and `missing` are predicates; quoted, they are texts. */
interface Presence {
  readonly exists: boolean;
  readonly missing: boolean;
  /** The texts and patterns; undefined if there are none. */
  readonly texts: Matcher | undefined;
}

export function presenceOf(matcher: Matcher): Presence {
  const items = matcher.kind === 'list' ? matcher.items : [matcher];
  const has = (word: string) => items.some((item) => item.kind === 'text' && !item.quoted && item.text === word);
  const texts = items.filter((item) => item.kind !== 'text' || !isPresence(item));
  const [only] = texts;
  const isList = texts.length > 1 && matcher.kind === 'list';
  return {
    exists: has('exists'),
    missing: has('missing'),
    texts: isList ? list(matcher.items.filter((item) => texts.includes(item))) : only,
  };
}

/** Whether a text is a predicate, and not itself. */
export function isPresence({ quoted, text }: Text): boolean {
  return !quoted && (text === 'exists' || text === 'missing');
}

/** One byte for each actor: whether it satisfies a term on a field that it may lack. */
export async function matchActors(
  actors: readonly Actor[],
  { field, ...term }: Match & { readonly field: ActorField },
  matchTexts: (texts: readonly string[], term: Match) => Promise<Uint8Array>,
): Promise<Uint8Array> {
  const member = optionalFields[field];
  const { exists, missing, texts } = presenceOf(term.matcher);
  const slice = new TimeSlice();
  const members = new Uint8Array(actors.length);
  const places: number[] = [];
  const values: string[] = [];
  for (const [index, actor] of actors.entries()) {
    if (index % 256 === 0 && slice.isDue) await slice.rest();
    const value = actor[member];
    if (value === undefined ? missing : exists) members[index] = 1;
    else if (value !== undefined && texts !== undefined) {
      places.push(index);
      values.push(value);
    }
  }
  if (texts === undefined) return members;
  const matched = await matchTexts(values, { ...term, field, matcher: texts });
  for (const [index, place] of places.entries()) members[place] = matched[index] ?? 0;
  return members;
}
