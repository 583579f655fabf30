import type { Part, QuestionClass } from './questions.ts';

const minute = 60_000;
const day = 86_400_000;
const pages: readonly Part[] = ['first', 'deep', 'last'];
const address = ['street', 'zip', 'city', 'country', 'phone', 'company', 'state', 'floor', 'door', 'note'];

/** Questions for changed paths, for a moment in milliseconds since 1970. `plain` is told which paths a pattern means. */
export function findingClasses(now: number): QuestionClass[] {
  /** The default window, a little longer with each number: another question of the same size. */
  const window = (number: number) => new Date(now - 30 * day - number * minute).toISOString();
  const each = (row: string, q: string, where: string, parts: readonly Part[] = pages): QuestionClass => ({
    row,
    parts,
    variant: (number) => ({
      q: `${q} occurredAt:>="${window(number)}"`.trim(),
      where: `${where} and at >= '${window(number)}'`,
    }),
  });
  const has = (...paths: string[]) => `plain_keys(paths) && array[${paths.map((path) => `'${path}'`).join(', ')}]`;
  const price = 'price.amount';
  const side = (path: string, of: 'before' | 'after') => `(paths -> '${path}' ->> '${of}')`;
  const isLower = `${side(price, 'after')}::numeric < ${side(price, 'before')}::numeric`;

  return [
    each('path, rare', 'path:legacyCode', has('legacyCode'), [...pages, 'histogram', 'facets']),
    each('path, 30 % of entries', `path:${price}`, has(price), [...pages, 'histogram', 'facets']),
    each('path with an entity', `entity:product path:${price}`, `entity = 'product' and ${has(price)}`, [
      ...pages,
      'histogram',
      'facets',
    ]),
    each('path with an actor', `actor:Jane Doe 07 path:${price}`, `actor = 'Jane Doe 07' and ${has(price)}`, [
      ...pages,
      'histogram',
      'facets',
    ]),
    each('path with an actor of 40 %', `actor:Mia Lang path:${price}`, `actor = 'Mia Lang' and ${has(price)}`),
    each('path glob, 10 paths', 'path:address.*', has(...address.map((name) => `address.${name}`)), [
      ...pages,
      'histogram',
      'facets',
    ]),
    each('path at a place in an array', 'path:items.7.quantity', has('items.7.quantity')),
    each(
      'change with a value',
      'change:elemMatch(path:status after:PAID)',
      `${has('status')} and ${side('status', 'after')} = 'PAID'`,
      [...pages, 'histogram', 'facets'],
    ),
    each(
      'change with a value and an entity',
      'entity:order change:elemMatch(path:status after:PAID)',
      `entity = 'order' and ${has('status')} and ${side('status', 'after')} = 'PAID'`,
    ),
    each('change, is:lower', `change:elemMatch(path:${price} is:lower)`, `${has(price)} and ${isLower}`, [
      ...pages,
      'histogram',
      'facets',
    ]),
    each(
      'change, is:lower, with an entity',
      `entity:product change:elemMatch(path:${price} is:lower)`,
      `entity = 'product' and ${has(price)} and ${isLower}`,
    ),
    each('facets of paths', '', 'true', ['facets']),
    each('facets of paths with an entity', 'entity:quote', "entity = 'quote'", ['facets']),
  ];
}
