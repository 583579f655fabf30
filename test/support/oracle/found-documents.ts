import type { Change } from '../../../src/recording/change.ts';

/** Entries without a name that the newest name of a document is sought behind. */
const maxNameless = 1_000;

export interface DocumentQuestion {
  entity?: string | undefined;
  prefix: string;
  changedBefore?: number | undefined;
  size: number;
}

/** The documents that a search finds, by reading all entries. `entries` are those that the tenant has, newest first. */
export function foundDocuments(
  entries: readonly Omit<Change, 'identity'>[],
  { entity, prefix, changedBefore, size }: DocumentQuestion,
): object[] {
  const histories = new Map<string, Omit<Change, 'identity'>[]>();
  for (const entry of entries) {
    const key = JSON.stringify([entry.entity, entry.entityId]);
    const history = histories.get(key);
    if (history === undefined) histories.set(key, [entry]);
    else history.push(entry);
  }
  const documents = [...histories.values()].flatMap((history) => {
    const [latest] = history;
    if (latest === undefined) return [];
    const name = history.slice(0, maxNameless).find((entry) => entry.name !== undefined)?.name;
    return { entity: latest.entity, entityId: latest.entityId, ...(name === undefined ? {} : { name }), at: latest.at };
  });
  const matching = documents
    .filter((document) => entity === undefined || document.entity === entity)
    .filter((document) => changedBefore === undefined || document.at < changedBefore)
    .filter((document) => document.entityId.startsWith(prefix) || hasWords(document.name ?? '', prefix));
  const rankOf = ({ entityId, name = '' }: { entityId: string; name?: string }) => {
    if (prefix !== '' && entityId === prefix) return 0;
    return hasWords(name, prefix) && isSame([...name], [...prefix]) ? 1 : 2;
  };
  const ranks = changedBefore === undefined ? [0, 1, 2] : [2];
  return ranks
    .flatMap((rank) => matching.filter((document) => rankOf(document) === rank))
    .slice(0, size)
    .map((document) => ({ ...document, at: new Date(document.at).toISOString() }));
}

function hasWords(name: string, prefix: string): boolean {
  const [prefixWords, nameWords] = [prefix, name].map((text) =>
    text.split(/[^\p{L}\p{N}\p{M}]+/u).filter((word) => word !== ''),
  ) as [string[], string[]];
  return (
    prefixWords.length > 0 &&
    prefixWords.every((word) => nameWords.some((nameWord) => begins([...nameWord], [...word])))
  );
}

function isSame(name: readonly string[], text: readonly string[]): boolean {
  return name.length === text.length && begins(name, text);
}

function begins(word: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((character, place) => {
    const counterpart = word[place];
    return counterpart !== undefined && new RegExp(`^${RegExp.escape(character)}$`, 'iu').test(counterpart);
  });
}
