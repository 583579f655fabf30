import type { HistoryMessages } from '../history-element.ts';
import type { TextName } from './en.ts';

/** Words for what the history names. */
export interface Names {
  entity(type: string): string;
  actor(name: string): string;
  field(entity: string, path: string): string;
  /** A member of the objects of a list, as the heading of a column. */
  member(entity: string, list: string, name: string): string;
  /** The host's word for a value; undefined where there is none. */
  value(entity: string, path: string, value: string): string | undefined;
  /** What the history may call something for which the host has a word with this part. */
  meanings(part: string): { readonly entities: string[]; readonly paths: string[]; readonly values: string[] };
}

export function namesOf(messages: HistoryMessages = {}, text: (name: TextName) => string): Names {
  const [entities, fields, actors] = [wordsOf(messages.entities), wordsOf(messages.fields), wordsOf(messages.actors)];
  const values = Object.fromEntries(
    Object.entries(messages.values ?? {}).map(([path, words]) => [path, wordsOf(words)] as const),
  );
  const systems: Readonly<Record<string, string>> = {
    system: text('system'),
    external: text('external'),
    unknown: text('unknown'),
  };
  return {
    entity: (type) => own(entities, type) ?? readable(type),
    actor: (name) => own(actors, name) ?? own(systems, name) ?? name,
    field(entity, path) {
      if (path === '') return text('whole');
      const keys = keysOf(path);
      for (let length = keys.length; length > 0; length -= 1) {
        const known = ofPath(fields, entity, keys.slice(0, length));
        if (known !== undefined) return [numbered(known, keys), ...keys.slice(length).map(readableKey)].join(' › ');
      }
      return keys.map(readableKey).join(' › ');
    },
    member(entity, list, name) {
      const known = ofPath(fields, entity, [...keysOf(list), '0', name]);
      // A word with a place is for one element.
      return known === undefined || known.includes('{n}') ? readable(name) : known;
    },
    value: (entity, path, value) => own(ofPath(values, entity, keysOf(path)) ?? {}, value),
    meanings(part) {
      const wanted = part.toLowerCase();
      const having = (words: Readonly<Record<string, string>>) =>
        Object.entries(words).flatMap(([name, word]) => (word.toLowerCase().includes(wanted) ? [name] : []));
      return {
        entities: having(entities),
        paths: having(fields).map((name) => name.slice(name.indexOf(':') + 1)),
        values: [...new Set(Object.values(values).flatMap(having))],
      };
    },
  };
}

/** The words of a host. What is no text is left out: a page without types may give anything. */
function wordsOf(given: Readonly<Record<string, unknown>> | null | undefined): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(given ?? {}).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

/** The host's entry for a path, for one entity type before all of them. A star of it is any key. */
function ofPath<Entry>(
  of: Readonly<Record<string, Entry>>,
  entity: string,
  keys: readonly string[],
): Entry | undefined {
  const path = keys.join('.');
  const anyPlace = keys.map((key) => (isPlace(key) ? '*' : key)).join('.');
  for (const name of [`${entity}:${path}`, `${entity}:${anyPlace}`, path, anyPlace]) {
    const found = own(of, name);
    if (found !== undefined) return found;
  }
  const pattern = Object.keys(of).find((name) => {
    const [type, rest] = name.includes(':')
      ? [name.slice(0, name.indexOf(':')), name.slice(name.indexOf(':') + 1)]
      : [entity, name];
    const wanted = keysOf(rest);
    return (
      type === entity &&
      wanted.length === keys.length &&
      wanted.every((key, index) => key === '*' || key === keys[index])
    );
  });
  return pattern === undefined ? undefined : own(of, pattern);
}

/** Names of the data, such as `constructor`, are no members of objects. */
function own<Entry>(of: Readonly<Record<string, Entry>>, name: string): Entry | undefined {
  return Object.hasOwn(of, name) ? of[name] : undefined;
}

/** The keys of a path as entries have it. A dot in a key has a backslash before it there, and so has a backslash. */
function keysOf(path: string): string[] {
  return path.split(/(?<=(?<!\\)(?:\\\\)*)\./).map((key) => key.replace(/\\([.\\])/g, '$1'));
}

/** `Item {n}` with the first place of the path that is one of an array. */
function numbered(word: string, keys: readonly string[]): string {
  const place = keys.find(isPlace);
  return place === undefined ? word : word.replaceAll('{n}', readableKey(place));
}

function isPlace(key: string): boolean {
  return /^\d+$/.test(key);
}

/** A place of an array, counted from 1 as people do, or a name. */
function readableKey(key: string): string {
  return isPlace(key) ? String(BigInt(key) + 1n) : readable(key);
}

/** `shippingAddress`, `shipping_address` and `SHIPPING-ADDRESS` as `Shipping address`. */
function readable(name: string): string {
  const words = name
    .replace(/(?<=[\p{Ll}\d])(?=\p{Lu})/gu, ' ')
    .replace(/[\s_-]+/g, ' ')
    .trim();
  if (words === '') return name;
  const lower = words.toLowerCase();
  const [first = ''] = lower;
  return first.toUpperCase() + lower.slice(first.length);
}
