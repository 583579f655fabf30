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
  '\ud800',
  'a\ud83d',
  '\udc00\ud800',
  'a\udfffb',
  '\0\ud800',
  'name:\udead',
  '/\ud800',
  '😀\udc00',
  `${'é'.repeat(300)}\udbff`,
] as const;

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
  /** Headers that every operation reads. */
  readonly headers: readonly string[];
  /** Requests with each text, by kind: parameters of the path, of the query, headers, names of members, values. */
  readonly rounds: number;
}

/** Requests of every operation with a text that cannot be stored in one place, which other parts lead to. Deletes come last. */
export function unstorableRequests(document: UnstorableDocument, options: UnstorableOptions): UnstorableRequest[] {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const draw = new Draw(document, options);
  return operations
    .toSorted((one, other) => Number(one.method === 'DELETE') - Number(other.method === 'DELETE'))
    .flatMap((one) => draw.requestsOf(one));
}

class Draw {
  readonly #document: UnstorableDocument;
  readonly #options: UnstorableOptions;
  readonly #bodies: DescribedBodies;
  readonly #random = new Random();

  constructor(document: UnstorableDocument, options: UnstorableOptions) {
    this.#document = document;
    this.#options = options;
    this.#bodies = new DescribedBodies({ paths: {}, components: { schemas: document.components?.schemas ?? {} } });
  }

  requestsOf({ path, method, operation }: { path: string; method: string; operation: Operation }): UnstorableRequest[] {
    const parameters = (operation.parameters ?? []).map((one) => this.#parameter(one));
    const named = (kind: string) => parameters.filter((one) => one.in === kind).map(({ name }) => name);
    const described = Object.entries(operation.requestBody?.content ?? {});
    // The document says of lines that they are a text.
    const contents = described.map(([type, content]): [string, Content] => [
      type,
      content.schema?.type === 'string' ? (described.find(([, other]) => other !== content)?.[1] ?? content) : content,
    ]);
    const places: [kind: string, names: readonly string[]][] = [
      ['path', named('path')],
      ['query', [...named('query'), 'unknown']],
      ['header', [...named('header'), ...this.#options.headers]],
      ['member name', contents.map(([type]) => type)],
      ['value', contents.map(([type]) => type)],
    ];
    return places.flatMap(([kind, names]) => {
      if (names.length === 0) return [];
      return Array.from({ length: unstorable.length * this.#options.rounds }, (_, turn) => {
        const name = names[turn % names.length] ?? '';
        const text = unstorable[(turn + Math.floor(turn / unstorable.length)) % unstorable.length] ?? '';
        return this.#request({ path, method, parameters, contents }, { kind, name, text });
      });
    });
  }

  #request(
    {
      path,
      method,
      parameters,
      contents,
    }: { path: string; method: string; parameters: readonly Parameter[]; contents: readonly [string, Content][] },
    { kind, name, text }: { kind: string; name: string; text: string },
  ): UnstorableRequest {
    const ofPath = (parameter: string) =>
      kind === 'path' && parameter === name ? escaped(text) : encodeURIComponent(this.#known(parameter));
    const query = parameters
      .filter((one) => one.in === 'query' && (one.required === true || (kind === 'query' && one.name === name)))
      .map((one) => `${one.name}=${kind === 'query' && one.name === name ? escaped(text) : this.#valid(one)}`);
    if (kind === 'query' && name === 'unknown') query.push(`${escaped(text)}=${escaped(text)}`);
    const isOfBody = kind === 'member name' || kind === 'value';
    const [type, content] = contents.find(([one]) => isOfBody && one === name) ?? contents[0] ?? [];
    const valid = content === undefined ? undefined : this.#body(content);
    const body = !isOfBody ? valid : kind === 'value' ? this.#withValue(valid, text) : this.#withMember(valid, text);
    return {
      place: `${method} ${path}, ${kind} ${name} ${JSON.stringify(text.slice(-20))}`,
      method,
      path: `${path.replaceAll(/\{(\w+)\}/g, (_all, parameter: string) => ofPath(parameter))}${query.length === 0 ? '' : '?'}${query.join('&')}`,
      headers: {
        ...(type === undefined ? {} : { 'content-type': type }),
        ...(kind === 'header' ? { [name]: this.#random.pick(inHeader)(text) } : {}),
      },
      body: body === undefined ? undefined : bodyText(body, type ?? ''),
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
    return encodeURIComponent(textOf(example ?? this.#sample(schema)));
  }

  #body({ schema = {}, example, examples = {} }: Content): unknown {
    const written = [example, ...Object.values(examples).map(({ value }) => value)].filter((one) => one !== undefined);
    return written.length > 0 && this.#random.below(2) === 0 ? this.#random.pick(written) : this.#sample(schema);
  }

  #sample(schema: DescribedSchema): unknown {
    return fc.sample(this.#bodies.arbitrary(schema), { numRuns: 1, seed: seed + this.#random.below(1_000_000) })[0];
  }

  /** With a member of this name in one of its objects, or in place of it. */
  #withMember(value: unknown, name: string): unknown {
    return this.#changed(
      value,
      (one) => isObject(one),
      (one) => ({ ...(one as object), [name]: name }),
      { [name]: 1 },
    );
  }

  #withValue(value: unknown, text: string): unknown {
    return this.#changed(
      value,
      (one) => typeof one === 'string',
      () => text,
      text,
    );
  }

  #changed(
    value: unknown,
    fits: (one: unknown) => boolean,
    change: (one: unknown) => unknown,
    otherwise: unknown,
  ): unknown {
    const all: unknown[] = [];
    JSON.stringify({ '': value }, (key, one: unknown) => {
      if (key !== '' || all.length > 0 || one === value) if (fits(one)) all.push(one);
      return one;
    });
    if (all.length === 0) return otherwise;
    let left = this.#random.below(all.length);
    const visit = (one: unknown): unknown => {
      if (fits(one) && left-- === 0) return change(one);
      if (Array.isArray(one)) return one.map(visit);
      return isObject(one) ? Object.fromEntries(Object.entries(one).map(([key, member]) => [key, visit(member)])) : one;
    };
    return visit(value);
  }
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
