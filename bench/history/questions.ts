import { hash } from 'node:crypto';

/** The parts of an answer that are measured. */
export type Part = 'first' | 'deep' | 'last' | 'histogram' | 'facets';

/** A class of questions: any number of variants, each in the query language and as a condition on the table `plain`. */
export interface QuestionClass {
  readonly row: string;
  readonly variant: (number: number) => { q: string; where: string };
  readonly parts: readonly Part[];
}

/** The id of an actor, as data.sql makes it. */
const idOf = (actor: string) => `u-${hash('md5', actor).slice(0, 8)}`;

const minute = 60_000;
const day = 86_400_000;
const pages: readonly Part[] = ['first', 'deep'];
const allPages: readonly Part[] = ['first', 'deep', 'last'];
const everything: readonly Part[] = [...allPages, 'histogram', 'facets'];
const firstNames = ['Jane', 'John', 'Ana', 'Zoë', 'Li', 'Omar', 'Nina', 'Paul', 'Ida', 'Max'];
const lastNames = ['Doe', 'Smith', 'Weber', 'Rossi', 'Kim', 'Novak', 'Silva', 'Berg'];
const entities = 'order customer company product segment group group-assignment coupon quote site'.split(' ');
const types = ['update', 'create', 'delete'];
const address = 'street zip city country phone company state floor door note'.split(' ');

/**
 * All classes, at a moment in milliseconds since 1970. No variant repeats another, so nothing that is cached of a query
 * helps.
 */
export function questionClasses(now: number): QuestionClass[] {
  const since = (milliseconds: number) => new Date(now - milliseconds).toISOString();
  /** The default window, one minute longer with each number. */
  const widened = (q: string, where: string) => (number: number) => {
    const from = since(30 * day + number * minute);
    return { q: `${q} occurredAt:>="${from}"`.trim(), where: `${where} and at >= '${from}'` };
  };
  const fixed = (row: string, q: string, where: string, parts = pages): QuestionClass => ({
    row,
    parts,
    variant: widened(q, where),
  });
  /** What differs in each variant, within the default window. */
  const varied = (row: string, of: (number: number) => [q: string, where: string]): QuestionClass => ({
    row,
    parts: pages,
    variant(number) {
      const [q, where] = of(number);
      return { q, where: `${where} and at >= '${since(30 * day)}'` };
    },
  });
  const hot = ['related:elemMatch(entity:group entityId:hot)', `related @> '[{"entity":"group","entityId":"hot"}]'`];
  const has = (...paths: string[]) => `plain_keys(paths) && array[${paths.map((path) => `'${path}'`).join(', ')}]`;
  const side = (path: string, of: 'before' | 'after') => `(paths -> '${path}' ->> '${of}')`;
  const price = 'price.amount';
  const isLower = `${side(price, 'after')}::numeric < ${side(price, 'before')}::numeric`;
  const isPaid = `${has('status')} and ${side('status', 'after')} = 'PAID'`;

  return [
    varied('bare request', (n) => [`entity:nobody${n}`, `entity = 'nobody${n}'`]),
    fixed('no filter', '', 'true'),
    fixed('entity', 'entity:order', "entity = 'order'"),
    fixed('entity and type', 'entity:product type:create', "entity = 'product' and type = 'create'"),
    fixed('type', 'type:delete', "type = 'delete'"),
    fixed('actor with 40 %', 'actor:Mia Lang', "actor = 'Mia Lang'"),
    fixed('rare actor', 'actor:Jane Doe 07', "actor = 'Jane Doe 07'"),
    fixed('rare actor by id', `actorId:${idOf('Jane Doe 07')}`, `actor_id = '${idOf('Jane Doe 07')}'`),
    fixed('actor with 40 % by id', `actorId:${idOf('Mia Lang')}`, `actor_id = '${idOf('Mia Lang')}'`),
    {
      row: 'correlation id, at any time',
      parts: pages,
      variant(n) {
        const id = hash('md5', `c${1_000 + 7 * n}`).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
        return { q: `correlationId:${id} occurredAt:>="1970-01-01T00:00:00Z"`, where: `correlation = '${id}'` };
      },
    },
    varied('address in the context', (n) => [`context.ip:10.0.${n}.${4 * n}`, `ip = '10.0.${n}.${4 * n}'`]),
    fixed('entity with three entries', 'entity:warehouse', "entity = 'warehouse'"),
    varied('prefix of 100 names', (n) => {
      const prefix = `${firstNames[(n + 3) % 10]} ${lastNames[(n * 5) % 8]} `;
      return [`actor:${prefix}*`, `actor like '${prefix}%'`];
    }),
    varied('regular expression of 100 names', (n) => {
      const pattern = `^${firstNames[n % 10]} ${lastNames[(n * 3) % 8]} .*\\d`;
      return [`actor:~${pattern}`, `actor ~ '${pattern}'`];
    }),
    varied('pattern of 1,000 names', (n) => [`actor:*${lastNames[n % 8]} *`, `actor like '%${lastNames[n % 8]} %'`]),
    varied('regular expression of 5,000 names', (n) => [`actor:~${manyNames(n)}`, `actor ~ '${manyNames(n)}'`]),
    varied('the same with an entity', (n) => [
      `entity:product actor:~${manyNames(n + 50)}`,
      `entity = 'product' and actor ~ '${manyNames(n + 50)}'`,
    ]),
    varied('one document', (n) => [`entity:order entityId:d${n}`, `entity = 'order' and entity_id = 'd${n}'`]),
    varied('prefix of an id', (n) => [
      `entity:order entityId:d${101 + n}*`,
      `entity = 'order' and entity_id like 'd${101 + n}%'`,
    ]),
    varied('pattern of an id', (n) => [
      `entity:order entityId:~${11 + n}$`,
      `entity = 'order' and entity_id ~ '${11 + n}$'`,
    ]),
    varied('regular expression of an id', (n) => {
      const pattern = `^d.*${11 + n}[${n % 10}${(n + 5) % 10}]$`;
      return [`entity:order entityId:~${pattern}`, `entity = 'order' and entity_id ~ '${pattern}'`];
    }),
    ...['one', 'all'].map(
      (row): QuestionClass => ({
        row: `document whose id ten entity types use, in ${row} of them`,
        parts: pages,
        variant(n) {
          const of = row === 'all' ? entities : [entities[n % 10] ?? ''];
          const where = `entity in ('${of.join("', '")}') and entity_id = 'shared'`;
          return widened(`entity:(${of.join(', ')}) entityId:shared`, where)(n);
        },
      }),
    ),
    fixed(
      'rare related item',
      'related:elemMatch(entity:group entityId:g77)',
      `related @> '[{"entity":"group","entityId":"g77"}]'`,
    ),
    fixed('related item with 20,000 entries', hot[0] ?? '', hot[1] ?? ''),
    fixed('related type', 'related.entity:group', `related @> '[{"entity":"group"}]'`),
    varied('OR of entity and type, and that related item', (n) => {
      const [entity, type] = [entities[n % 10], types[(Math.floor(n / 10) + n) % 3]];
      return [
        `compoundLogicalQuery:((entity:${entity} type:${type}) OR (${hot[0]}))`,
        `((entity = '${entity}' and type = '${type}') or ${hot[1]})`,
      ];
    }),
    varied('OR of actor prefix with type, and a document', (n) => {
      const actor = `${firstNames[n % 10]} ${lastNames[n % 8]}`;
      return [
        `compoundLogicalQuery:((type:delete actor:${actor}*) OR (entity:order entityId:d${n}))`,
        `((type = 'delete' and actor like '${actor}%') or (entity = 'order' and entity_id = 'd${n}'))`,
      ];
    }),
    varied('OR of 8 with times of their own', (n) => {
      // The times overlap, and no two begin or end together.
      const arms = entities.slice(0, 8).map((entity, index) => {
        const from = since((3 * index + 9) * day + (n + index) * minute);
        const before = since(2 * index * day + (n + 2 * index) * minute);
        return [
          `(entity:${entity} occurredAt:(>="${from}" AND <"${before}"))`,
          `(entity = '${entity}' and at >= '${from}' and at < '${before}')`,
        ];
      });
      const joined = (place: number, operator: string) => arms.map((arm) => arm[place]).join(operator);
      return [`compoundLogicalQuery:(${joined(0, ' OR ')})`, `(${joined(1, ' or ')})`];
    }),
    fixed('path, rare', 'path:legacyCode', has('legacyCode'), everything),
    fixed('path, 30 % of entries', `path:${price}`, has(price), everything),
    fixed('path with an entity', `entity:product path:${price}`, `entity = 'product' and ${has(price)}`, everything),
    fixed(
      'path with a rare actor',
      `actor:Jane Doe 07 path:${price}`,
      `actor = 'Jane Doe 07' and ${has(price)}`,
      everything,
    ),
    fixed(
      'path with an actor of 40 %',
      `actor:Mia Lang path:${price}`,
      `actor = 'Mia Lang' and ${has(price)}`,
      allPages,
    ),
    fixed('path glob, 10 paths', 'path:address.*', has(...address.map((name) => `address.${name}`)), everything),
    fixed('path at a place in an array', 'path:items.7.quantity', has('items.7.quantity'), allPages),
    fixed('change with a value', 'change:elemMatch(path:status after:PAID)', isPaid, everything),
    fixed(
      'change with a value and an entity',
      'entity:order change:elemMatch(path:status after:PAID)',
      `entity = 'order' and ${isPaid}`,
      allPages,
    ),
    fixed('change, is:lower', `change:elemMatch(path:${price} is:lower)`, `${has(price)} and ${isLower}`, everything),
    fixed(
      'change, is:lower, with an entity',
      `entity:product change:elemMatch(path:${price} is:lower)`,
      `entity = 'product' and ${has(price)} and ${isLower}`,
      allPages,
    ),
    fixed('facets of paths', '', 'true', ['histogram', 'facets']),
    fixed('facets of paths with an entity', 'entity:quote', "entity = 'quote'", ['histogram', 'facets']),
  ];
}

/**
 * Matches 7 of 10 first names and 9 of 10 last digits, some 5,000 of 8,000 names; another pattern for each of 100
 * numbers.
 */
function manyNames(number: number): string {
  const first = Array.from({ length: 7 }, (_, index) => firstNames[(number + index) % 10]);
  return `^(${first.join('|')}) .*[^${Math.floor(number / 10)}]$`;
}
