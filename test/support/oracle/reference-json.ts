import type { Tree } from './reference-paths.ts';

/**
 * A plain JSON parser for valid texts without blanks that keeps what scalars are written with. JSON.parse will not do:
 * it loses the spelling, and V8 14 confuses escaped keys (nodejs/node issue 63785).
 */
export function referenceParse(text: string): Tree {
  const [tree, rest] = value(text);
  if (rest !== '') throw new Error('something comes after the value');
  return tree;
}

const scalar = /^(?:"(?:[^"\\]|\\.)*"|[-+.0-9eE]+|true|false|null)/;

function value(text: string): [Tree, string] {
  if (text.startsWith('{')) return list(text, member, (members) => ({ members }));
  if (text.startsWith('[')) return list(text, value, (elements) => ({ elements }));
  return takeScalar(text);
}

function takeScalar(text: string): [{ text: string }, string] {
  const [found] = scalar.exec(text) ?? [];
  if (found === undefined) throw new Error('a value was expected');
  return [{ text: found }, text.slice(found.length)];
}

function member(text: string): [[{ text: string }, Tree], string] {
  const [key, afterKey] = takeScalar(text);
  if (!afterKey.startsWith(':')) throw new Error('a colon was expected');
  const [content, rest] = value(afterKey.slice(1));
  return [[key, content], rest];
}

function list<Item>(
  text: string,
  take: (text: string) => [Item, string],
  make: (items: Item[]) => Tree,
): [Tree, string] {
  const items: Item[] = [];
  let rest = text.slice(1);
  while (!/^[}\]]/.test(rest)) {
    const [item, afterItem] = take(items.length === 0 ? rest : rest.replace(/^,/, ''));
    items.push(item);
    rest = afterItem;
  }
  return [make(items), rest.slice(1)];
}
