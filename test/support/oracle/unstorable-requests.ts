import * as fc from 'fast-check';
import { type BodiesDocument, DescribedBodies, type DescribedSchema } from './described-bodies.ts';
import { Random, seed } from './random.ts';

/** What is used of an OpenAPI document. */
export interface UnstorableDocument {
  paths: Record<string, Record<string, Operation>>;
  components?: { parameters?: Record<string, Parameter>; schemas?: BodiesDocument['components']['schemas'] };
}

interface Operation {
  parameters?: (Parameter | { $ref: string })[];
  requestBody?: { content: Record<string, Content> };
}

interface Content {
  schema?: DescribedSchema;
  example?: unknown;
  examples?: Record<string, { value?: unknown }>;
}

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  schema?: DescribedSchema & { examples?: unknown[]; default?: unknown };
  example?: unknown;
}

export interface UnstorableRequest {
  /** Which part has the text: `GET /jobs/{id}, query pageSize`. */
  readonly place: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | undefined;
}

/** No text column of PostgreSQL takes these as they stand, and no `jsonb` does. */
const unstorable = [
  [
    '\0',
    'a\0b',
    '\0\0\0',
    'a\0',
    '\0:DESC',
    'name:\0',
    '\u0001\0\u0002',
    '~\0',
    '"\0"',
    '{"a":"\0"}',
    `${'x'.repeat(300)}\0`,
  ],
  [
    '\ud800',
    'a\ud83d',
    '\udc00\ud800',
    'a\udfffb',
    '\0\ud800',
    'name:\udead',
    '/\ud800',
    '😀\udc00',
    `${'é'.repeat(300)}\udbff`,
  ],
] as const;

/** Bodies that are drawn of a schema: with some, most members that may be left out are there. */
const drawnBodies = 3;

/** In a URL or a header the text is escaped; half of a surrogate pair by the bytes that UTF-8 would have. */
const escaped = (text: string) =>
  text.replaceAll(/[\s\S]/gu, (character) =>
    character.isWellFormed()
      ? encodeURIComponent(character)
      : [
          ...Buffer.from([
            0xed,
            0xa0 | ((character.charCodeAt(0) >> 6) & 0x1f),
            0x80 | (character.charCodeAt(0) & 0x3f),
          ]),
        ]
          .map((byte) => `%${byte.toString(16)}`)
          .join(''),
  );

/** What a header can hold of it. */
const inHeader = [
  escaped,
  (text: string) => Buffer.from(text).toString('base64url'),
  (text: string) => `Basic ${Buffer.from(`acme.${text}:${text}`).toString('base64')}`,
  (text: string) => JSON.stringify(text).replaceAll(/[^\x20-\x7e]/g, '?'),
];

export interface UnstorableOptions {
  /** For parameters of paths, so that a request meets what is there. */
  readonly known: Readonly<Record<string, readonly string[]>>;
  /** The same for members of bodies. */
  readonly members: Readonly<Record<string, string>>;
  /** Headers that every operation reads: each operation gets one of them. */
  readonly headers: readonly string[];
  /** Requests for each place and class of text. */
  readonly rounds: number;
}

/**
 * For each place of every operation that takes text, a request with a NUL there and one with half of a surrogate pair;
 * the rest of the request is valid. Places are parameters, headers, the members of a body that are texts, and the names
 * of members in each object of it. The forms of the text take turns, so that each kind of place has all of them.
 * Deletes come last.
 */
export function unstorableRequests(document: UnstorableDocument, options: UnstorableOptions): UnstorableRequest[] {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    // Beside the methods stand the parameters of all of them.
    Object.entries(methods).flatMap(([method, operation]) =>
      method === 'parameters' ? [] : [{ path, method: method.toUpperCase(), operation }],
    ),
  );
  const draw = new Draw(document, options);
  return operations
    .toSorted((one, other) => Number(one.method === 'DELETE') - Number(other.method === 'DELETE'))
    .flatMap((one, index) => draw.requestsOf(one, index));
}

type Kind = 'path' | 'query' | 'header' | 'member name' | 'value';

interface Place {
  readonly kind: Kind;
  /** Of a parameter; of a body the path that leads to it. */
  readonly name: string;
  /** The body with such a text there; left out where the text is elsewhere. */
  readonly body?: { readonly type: string; with(text: string): unknown };
}

interface Described {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}

/** What an operation takes, its references followed. */
interface Taken extends Pick<Described, 'path' | 'method'> {
  readonly parameters: readonly Parameter[];
  readonly contents: readonly [type: string, content: Content][];
}

class Draw {
  readonly #document: UnstorableDocument;
  readonly #options: UnstorableOptions;
  readonly #bodies: DescribedBodies;
  readonly #random = new Random();
  readonly #turns = new Map<string, number>();

  constructor(document: UnstorableDocument, options: UnstorableOptions) {
    this.#document = document;
    this.#options = options;
    this.#bodies = new DescribedBodies({ paths: {}, components: { schemas: document.components?.schemas ?? {} } });
  }

  requestsOf({ path, method, operation }: Described, index: number): UnstorableRequest[] {
    const parameters = (operation.parameters ?? []).map((one) => this.#parameter(one));
    const described = Object.entries(operation.requestBody?.content ?? {});
    // The document says of lines that they are a text.
    const contents = described.map(([type, content]): [string, Content] => [
      type,
      content.schema?.type === 'string' ? (described.find(([, other]) => other !== content)?.[1] ?? content) : content,
    ]);
    const taken = { path, method, parameters, contents };
    const named = (kind: Kind, more: readonly string[] = []) =>
      [...parameters.filter((one) => one.in === kind).map(({ name }) => name), ...more].map((name) => ({ kind, name }));
    return Array.from({ length: this.#options.rounds }, (_, round) => {
      const { [(index + round) % this.#options.headers.length]: shared = '' } = this.#options.headers;
      const places: Place[] = [
        ...named('path'),
        ...named('query', ['unknown']),
        ...named('header', [shared]),
        ...contents.flatMap(([type, content]) => this.#placesOf(type, content)),
      ];
      return places.flatMap((place) =>
        unstorable.map((texts) => this.#request(taken, place, this.#next(texts, place.kind))),
      );
    }).flat();
  }

  /** The form of such a text whose turn it is in places of that kind. */
  #next(texts: readonly string[], kind: Kind): string {
    const turn = this.#turns.get(`${kind} ${texts[0]}`) ?? this.#random.below(100);
    this.#turns.set(`${kind} ${texts[0]}`, turn + 1);
    return texts[turn % texts.length] ?? '';
  }

  #request(
    { path, method, parameters, contents }: Taken,
    { kind, name, body }: Place,
    text: string,
  ): UnstorableRequest {
    const ofPath = (parameter: string) =>
      kind === 'path' && parameter === name ? escaped(text) : encodeURIComponent(this.#known(parameter));
    const query = parameters
      .filter((one) => one.in === 'query' && (one.required === true || (kind === 'query' && one.name === name)))
      .map((one) => `${one.name}=${kind === 'query' && one.name === name ? escaped(text) : this.#valid(one)}`);
    if (kind === 'query' && name === 'unknown') query.push(`${escaped(text)}=${escaped(text)}`);
    const [first] = contents;
    const type = body?.type ?? first?.[0];
    const sent = body?.with(text) ?? (first && this.#drawn(first[1])[0]);
    return {
      place: `${method} ${path}, ${kind} ${name} ${JSON.stringify(text.slice(-20))}`,
      method,
      path: `${path.replaceAll(/\{(\w+)\}/g, (_all, parameter: string) => ofPath(parameter))}${query.length === 0 ? '' : '?'}${query.join('&')}`,
      headers: {
        ...(type === undefined ? {} : { 'content-type': type }),
        ...(kind === 'header' ? { [name]: this.#random.pick(inHeader)(text) } : {}),
      },
      body: sent === undefined ? undefined : bodyText(sent, type ?? ''),
    };
  }

  #parameter(one: Parameter | { $ref: string }): Parameter {
    if (!('$ref' in one)) return one;
    const found = this.#document.components?.parameters?.[one.$ref.split('/').at(-1) ?? ''];
    if (found === undefined) throw new Error(`${one.$ref} leads nowhere`);
    return found;
  }

  #known(parameter: string): string {
    return this.#random.pick(this.#options.known[parameter] ?? ['x']);
  }

  #valid({ schema = {}, example = schema.examples?.[0] ?? schema.default }: Parameter): string {
    return encodeURIComponent(textOf(example ?? this.#samples(schema, 1)[0]));
  }

  /** Its examples and some values that are valid by its schema, in random order. */
  #drawn({ schema = {}, example, examples = {} }: Content): unknown[] {
    const written = [example, ...Object.values(examples).map(({ value }) => value)].filter((one) => one !== undefined);
    const { members } = this.#options;
    const known = (body: unknown) =>
      isObject(body)
        ? Object.fromEntries(
            Object.entries(body).map(([name, value]) => [name, Object.hasOwn(members, name) ? members[name] : value]),
          )
        : body;
    return this.#random.shuffled([...written, ...this.#samples(schema, drawnBodies)]).map(known);
  }

  #samples(schema: DescribedSchema, count: number): unknown[] {
    return fc.sample(this.#bodies.arbitrary(schema), { numRuns: count, seed: seed + this.#random.below(1_000_000) });
  }

  /** Each member that is a text in one of some bodies, and each object, where the text becomes the name of a member. */
  #placesOf(type: string, content: Content): Place[] {
    const places = new Map<string, Place>();
    const add = (kind: Kind, path: readonly string[], change: (text: string) => unknown) => {
      // The items of a list are one place.
      const name = path.map((key) => (/^\d+$/.test(key) ? '*' : key)).join('.');
      places.getOrInsert(`${kind} ${name}`, { kind, name: `${type} ${name}`, body: { type, with: change } });
    };
    for (const body of this.#drawn(content)) {
      for (const { path, value } of within(body)) {
        if (typeof value === 'string') add('value', path, (text) => replaced(body, path, text));
        if (isObject(value)) add('member name', path, (text) => replaced(body, path, { ...value, [text]: text }));
      }
    }
    add('value', [], (text) => text);
    add('member name', [], (text) => ({ [text]: 1 }));
    return [...places.values()];
  }
}

function within(value: unknown, path: readonly string[] = []): { path: readonly string[]; value: unknown }[] {
  const members = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  return [{ path, value }, ...members.flatMap(([key, member]) => within(member, [...path, key]))];
}

function replaced(value: unknown, [key, ...rest]: readonly string[], by: unknown): unknown {
  if (key === undefined) return by;
  const change = (one: unknown, name: string) => (name === key ? replaced(one, rest, by) : one);
  if (Array.isArray(value)) return value.map((one, index) => change(one, String(index)));
  return Object.fromEntries(Object.entries(value as object).map(([name, one]) => [name, change(one, name)]));
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** JSON may have members such as `toString`, so `String` can fail. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function bodyText(body: unknown, type: string): string {
  if (type === 'application/x-www-form-urlencoded') {
    const fields = isObject(body) ? Object.entries(body) : [];
    return fields.map(([name, value]) => `${escaped(name)}=${escaped(textOf(value))}`).join('&');
  }
  if (type !== 'application/x-ndjson')
    return typeof body === 'string' && !type.includes('json') ? body : JSON.stringify(body);
  return (Array.isArray(body) ? body : [body])
    .map((line) => (typeof line === 'string' ? line : JSON.stringify(line)))
    .join('\n');
}
