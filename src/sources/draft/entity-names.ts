import type { TableName } from '../../postgres/source/table-names.ts';
import { snakeCase } from '../../recording/mapping/secret-names.ts';
import { isOwnEntity } from '../../recording/own-entities.ts';

/** Gives each table an entity type of its own: `public.OrderLines` is `order-line`. */
export class EntityNames {
  /** The schema of the table that has the name. */
  readonly #schemas = new Map<string, string>();

  assign({ schema, name }: TableName): string {
    const words = wordsOf(name);
    const [all, singular] = [words.join('-'), singularOf(words).join('-')];
    const prefix = wordsOf(schema).join('-');
    // The entity of `orders`, beside a table `order` of the same schema.
    const plural = this.#schemas.get(singular) === schema ? [all] : [];
    const candidates = [singular, ...plural, `${prefix}-${singular}`, `${prefix}-${all}`];
    let entity = candidates.find((candidate) => this.#isFree(candidate));
    for (let number = 2; entity === undefined; number += 1) {
      if (this.#isFree(`${prefix}-${all}-${number}`)) entity = `${prefix}-${all}-${number}`;
    }
    this.#schemas.set(entity, schema);
    return entity;
  }

  #isFree(entity: string): boolean {
    return !this.#schemas.has(entity) && !isOwnEntity(entity);
  }
}

function wordsOf(name: string): string[] {
  const words = snakeCase(name)
    .split('_')
    .filter((word) => word !== '');
  return words.length === 0 ? [name] : words;
}

function singularOf(words: readonly string[]): string[] {
  return words.map((word, position) => (position === words.length - 1 ? singularWord(word) : word));
}

const irregular: ReadonlyMap<string, string> = new Map(
  Object.entries({
    people: 'person',
    men: 'man',
    women: 'woman',
    children: 'child',
    movies: 'movie',
    cookies: 'cookie',
    caches: 'cache',
    indices: 'index',
    matrices: 'matrix',
    vertices: 'vertex',
    criteria: 'criterion',
    analyses: 'analysis',
    quizzes: 'quiz',
    shelves: 'shelf',
    leaves: 'leaf',
    heroes: 'hero',
    potatoes: 'potato',
    tomatoes: 'tomato',
  }),
);

/** The same in the singular, or no plural at all. */
const unchanged =
  /(?:ss|us|is|^(?:series|species|news|sms|gps|dns|https?|aws|canvas|atlas|gas|bias|alias|lens|analytics|statistics|logistics|media|data))$/;

/** Endings of plurals, the first that fits, with how many letters they have more than the singular and what stands there instead. */
const endings: readonly (readonly [ending: RegExp, cut: number, instead: string])[] = [
  [/[^aeiou]ies$/, 3, 'y'],
  [/(?:ss|sh|ch|x|(?:stat|vir|bon|camp|cens|b)us|alias|canvas|atlas|lens|gas|bias)es$/, 2, ''],
  [/s$/, 1, ''],
];

function singularWord(word: string): string {
  const known = irregular.get(word);
  if (known !== undefined || unchanged.test(word)) return known ?? word;
  const [, cut = 0, instead = ''] = endings.find(([ending]) => ending.test(word)) ?? [];
  const singular = word.slice(0, word.length - cut) + instead;
  return singular.length < 2 ? word : singular;
}
