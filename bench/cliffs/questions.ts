/** What is asked about the entries: a page of them, the histogram of 60 buckets, or the facets of paths. */
export type Part = 'first' | 'deep' | 'last' | 'histogram' | 'facets';

/** A class of questions: as many variants as one likes, none of which has been asked before. */
export interface QuestionClass {
  row: string;
  /** The variant of a number, in the query language and as a condition on the table `plain`. */
  variant: (number: number) => { q: string; where: string };
  /** Default: the first page and one in the middle. */
  parts?: readonly Part[];
}

const minute = 60_000;
const day = 86_400_000;
const firstNames = ['Jane', 'John', 'Ana', 'Zoë', 'Li', 'Omar', 'Nina', 'Paul', 'Ida', 'Max'];
const lastNames = ['Doe', 'Smith', 'Weber', 'Rossi', 'Kim', 'Novak', 'Silva', 'Berg'];
const entities = [
  'order',
  'customer',
  'company',
  'product',
  'segment',
  'group',
  'group-assignment',
  'coupon',
  'quote',
  'site',
];
const types = ['update', 'create', 'delete'];

/** What is asked, for a moment in milliseconds since 1970. */
export function questionClasses(now: number): QuestionClass[] {
  /** The default window, a little longer with each number: another question of the same size. */
  const window = (number: number) => new Date(now - 30 * day - number * minute).toISOString();
  const within = (number: number, q: string, where: string) => ({
    q: `${q} occurredAt:>="${window(number)}"`.trim(),
    where: `${where} and at >= '${window(number)}'`,
  });
  const last30Days = (q: string, where: string) => ({ q, where: `${where} and at >= '${window(0)}'` });
  const hot = {
    q: 'related:elemMatch(entity:group entityId:hot)',
    where: `related @> '[{"entity":"group","entityId":"hot"}]'`,
  };

  return [
    { row: 'bare request', variant: (number) => last30Days(`entity:nobody${number}`, `entity = 'nobody${number}'`) },
    {
      row: '1 prefix of an id',
      variant: (number) =>
        last30Days(
          `entity:order entityId:d${101 + number}*`,
          `entity = 'order' and entity_id like 'd${101 + number}%'`,
        ),
    },
    {
      row: '2 pattern of an id',
      variant: (number) =>
        last30Days(`entity:order entityId:~${11 + number}$`, `entity = 'order' and entity_id ~ '${11 + number}$'`),
    },
    {
      row: '2 regular expression of an id',
      variant: (number) => {
        const pattern = `^d.*${11 + number}[${number % 10}${(number + 5) % 10}]$`;
        return last30Days(`entity:order entityId:~${pattern}`, `entity = 'order' and entity_id ~ '${pattern}'`);
      },
    },
    {
      row: '3 regular expression of 5,000 names',
      variant: (number) => last30Days(`actor:~${fiveThousand(number)}`, `actor ~ '${fiveThousand(number)}'`),
    },
    {
      row: '3 the same with an entity',
      variant: (number) =>
        last30Days(
          `entity:product actor:~${fiveThousand(number + 50)}`,
          `entity = 'product' and actor ~ '${fiveThousand(number + 50)}'`,
        ),
    },
    {
      row: '4 OR of 8 with times of their own',
      variant: (number) => {
        // The times overlap, and no two begin or end together.
        const arms = Array.from({ length: 8 }, (_, index) => {
          const since = new Date(now - (3 * index + 9) * day - (number + index) * minute).toISOString();
          const before = new Date(now - 2 * index * day - (number + 2 * index) * minute).toISOString();
          const entity = entities[index];
          return {
            q: `(entity:${entity} occurredAt:(>="${since}" AND <"${before}"))`,
            where: `(entity = '${entity}' and at >= '${since}' and at < '${before}')`,
          };
        });
        return last30Days(
          `compoundLogicalQuery:(${arms.map(({ q }) => q).join(' OR ')})`,
          `(${arms.map(({ where }) => where).join(' or ')})`,
        );
      },
    },
    {
      row: '5 entity and type OR a related item with 20,000 entries',
      variant: (number) => {
        const entity = entities[number % 10];
        const type = types[(Math.floor(number / 10) + number) % 3];
        return last30Days(
          `compoundLogicalQuery:((entity:${entity} type:${type}) OR (${hot.q}))`,
          `((entity = '${entity}' and type = '${type}') or ${hot.where})`,
        );
      },
    },
    {
      row: '6 elemMatch of a related item with 20,000 entries',
      variant: (number) => within(number, hot.q, hot.where),
    },
    {
      row: '7 document whose id ten entity types use',
      variant: (number) => {
        const entity = entities[number % 10];
        return within(number, `entity:${entity} entityId:shared`, `entity = '${entity}' and entity_id = 'shared'`);
      },
    },
    {
      row: '7 that id in all entity types',
      variant: (number) =>
        within(
          number,
          `entity:(${entities.join(', ')}) entityId:shared`,
          `entity in (${entities.map((entity) => `'${entity}'`).join(', ')}) and entity_id = 'shared'`,
        ),
    },
    {
      row: 'OR of actor prefix with type, and a document',
      variant: (number) => {
        const actor = `${firstNames[number % 10]} ${lastNames[number % 8]}`;
        return last30Days(
          `compoundLogicalQuery:((type:delete actor:${actor}*) OR (entity:order entityId:d${number}))`,
          `((type = 'delete' and actor like '${actor}%') or (entity = 'order' and entity_id = 'd${number}'))`,
        );
      },
    },
    {
      row: 'regular expression of 100 names',
      variant: (number) => {
        const pattern = `^${firstNames[number % 10]} ${lastNames[(number * 3) % 8]} .*\\d`;
        return last30Days(`actor:~${pattern}`, `actor ~ '${pattern}'`);
      },
    },
    {
      row: 'prefix of 100 names',
      variant: (number) => {
        const prefix = `${firstNames[(number + 3) % 10]} ${lastNames[(number * 5) % 8]} `;
        return last30Days(`actor:${prefix}*`, `actor like '${prefix}%'`);
      },
    },
    { row: 'no filter', variant: (number) => within(number, '', 'true') },
    { row: 'type', variant: (number) => within(number, 'type:delete', "type = 'delete'") },
    { row: 'actor with 40 %', variant: (number) => within(number, 'actor:Mia Lang', "actor = 'Mia Lang'") },
  ];
}

/** Matches 7 of 10 first names and 9 of 10 last digits: some 5,000 of 8,000 names; another pattern for each of 100 numbers. */
function fiveThousand(number: number): string {
  const first = Array.from({ length: 7 }, (_, index) => firstNames[(number + index) % 10]);
  return `^(${first.join('|')}) .*[^${Math.floor(number / 10)}]$`;
}
