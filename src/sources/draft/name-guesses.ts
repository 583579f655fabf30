import type { TableName } from '../../postgres/source/source-catalogue.ts';
import { isOwnEntity } from '../../recording/change.ts';
import { snakeCase, soundsSecret } from '../../recording/mapping/secret-names.ts';
import type { ApplicationColumn, ApplicationTable } from './application-tables.ts';

/** Assigns each table a unique entity type: `public.OrderLines` is `order-line`. */
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

/** Words that are not plurals, or have the same form in the singular. */
const unchanged =
  /(?:ss|us|is|^(?:series|species|news|sms|gps|dns|https?|aws|canvas|atlas|gas|bias|alias|lens|analytics|statistics|logistics|media|data))$/;

/** Plural endings, the first match: letters to cut, and the replacement. */
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

/** Best first. */
const names = [
  'name',
  'title',
  'label',
  'display_name',
  'full_name',
  'subject',
  'headline',
  'caption',
  'username',
  'user_name',
  'handle',
  'code',
  'sku',
  'number',
  'reference',
  'slug',
];

/** The column that most likely names a document, among those that may be shown. */
export function guessName(entity: string, columns: readonly ApplicationColumn[]): string | undefined {
  const texts = columns.filter(({ category }) => category === 'S');
  // The `title` of a person is "Dr".
  const isPerson = columns.some((column) => /^(?:first|last|family)_name$/.test(snakeCase(column.name)));
  const candidates = [...names.slice(0, 1), `${entity.replaceAll('-', '_')}_name`, ...names.slice(1)];
  for (const name of candidates) {
    if (isPerson && name === 'title') continue;
    const match = texts.find((column) => snakeCase(column.name) === name);
    if (match !== undefined) return match.name;
  }
  return undefined;
}

const times = '(?:_(?:at|on|date|time|timestamp|ts))?$';
const touched = new RegExp(
  [
    `^(?:last_)?(?:updated?|modified|modification|changed|touched|refreshed|heartbeat)${times}`,
    `^last_(?:seen|active|activity|access(?:ed)?|used?|visit(?:ed)?|log(?:ged)?_?in|sync(?:ed)?|ping|check(?:ed)?|poll(?:ed)?|index(?:ed)?|request)${times}`,
    `^(?:current|last)_sign_in${times}`,
    '^(?:date|time)_(?:updated|modified|changed)$',
    '^mtime$',
  ].join('|'),
);

/** Whether the column only says when the row was written or used, so that its update is no change. */
export function isTouched({ name, category }: ApplicationColumn): boolean {
  return category === 'D' && touched.test(snakeCase(name));
}

const writers = /^(?:last_)?(?:updated?|modified|changed|edited)_by(?:_(?:user|admin|name))?(?:_(?:id|uuid))?$/;

/** Whether the column most likely says who wrote the row last. */
export function namesWriter({ name }: Pick<ApplicationColumn, 'name'>): boolean {
  return writers.test(snakeCase(name));
}

const people =
  /^(?:(?:auth|admin|app|application|backend|staff|strapi|directus|up|internal)_)?(?:users?|people|persons?|admins?|administrators?|employees?|operators?|staff(?:_members?)?)$/;

/** Whether the rows of a table with this name most likely are the people who use the application. */
export function soundsLikePeople(table: string): boolean {
  return people.test(snakeCase(table));
}

/** Tables of secrets whose columns' names do not say so. */
const secretTables =
  /(?:^|_)(?:secret|token|credential|(?:api|access|licen[cs]e)_?key|gift_?card|voucher|invitation|invite|one_time_password|otp|credit_card|bank_account)s?$/;
const valueOfSecret = /^(?:key|code|number|value|hash|data)$/;
/** Tables whose JSON most likely has credentials or payment data. */
const confidential =
  /(?:^|_)(?:auth|authentication|identity|identities|credential|oauth|sso|saml|mfa|session|payment|secret|token)s?(?:_|$)/;

/** Whether the column most likely has a secret. */
export function isSecret({ name, type, category }: ApplicationColumn, table: ApplicationTable): boolean {
  const [column, of] = [snakeCase(name), snakeCase(table.name)];
  // Booleans, dates, durations and enums are not secrets themselves.
  if ('BDTE'.includes(category)) return false;
  if (soundsSecret(column)) return category !== 'N' || !/(?:token|credential|cookie|session|hash)s?$/.test(column);
  if (/^(?:credit_|debit_)?card$/.test(column)) return true;
  if (isJson({ type })) return confidential.test(of);
  if (category === 'N') return false;
  return /(?:^|_)(?:hash|digest)$/.test(column) || (secretTables.test(of) && valueOfSecret.test(column));
}

export function isJson({ type }: Pick<ApplicationColumn, 'type'>): boolean {
  return type === 'json' || type === 'jsonb';
}

const leftOut: readonly (readonly [what: string, names: RegExp])[] = [
  [
    'migrations of the schema',
    /(?:^|_)migrations?(?:_lock|_history|_internal)?$|^(?:ar_internal_metadata|typeorm_metadata|databasechangelog(?:lock)?|sequelize_?meta|alembic_version|goose_db_version|flyway_schema_history|schema_versions?)$/,
  ],
  [
    'a queue or jobs',
    /(?:^|_)(?:jobs?|queues?|outbox|dead_letters?|scheduled_tasks?|workflow_executions?)(?:_(?:records?|buffers?|batch(?:es)?|runs?|executions?|items?|messages?|events?|schedules?|logs?|locks?))*$|^(?:celery|oban|good_job|solid_queue|delayed_job|hangfire|qrtz)_/,
  ],
  [
    'sessions',
    /^(?:(?:user|auth|http|web|login|admin|api|django|express|client|browser|active_record|refresh|strapi|directus)_)?sessions?$/,
  ],
  ['a cache', /(?:^|_)caches?(?:_(?:entries|items?|locks?))?$/],
  ['locks', /(?:^|_)locks?$/],
  ['an index for searches, made of other tables', /(?:^|_)search_index(?:_items?)?$/],
];
const schemasLeftOut: ReadonlyMap<string, string> = new Map([
  ...['pgboss', 'graphile_worker', 'pgmq', 'cron', 'hangfire', 'oban', 'river'].map(
    (schema) => [schema, 'a queue or jobs'] as const,
  ),
  ['hdb_catalog', 'metadata of Hasura'],
]);

/** The kind of a table whose changes are most likely uninteresting; undefined for others. */
export function guessLeftOut({ schema, name }: ApplicationTable): string | undefined {
  const ofSchema = schemasLeftOut.get(schema);
  if (ofSchema !== undefined) return ofSchema;
  const words = snakeCase(name).replaceAll(/^_+|_+$/g, '');
  return leftOut.find(([, pattern]) => pattern.test(words))?.[0];
}

const tenantNames: ReadonlySet<string> = new Set(
  ['tenant', 'organization', 'organisation', 'org', 'workspace', 'account', 'company'].flatMap((word) => [
    word,
    `${word}_id`,
  ]),
);

export function soundsLikeTenant(column: string): boolean {
  return tenantNames.has(snakeCase(column));
}
