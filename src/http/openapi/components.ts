import { isDeepStrictEqual } from 'node:util';
import { type TSchema, type TUnsafe, Type } from 'typebox';

/** Headers of answers, to which operations refer by name. */
const answerHeaders = {
  'X-Request-Id': {
    description: 'Identifies the request in the logs of the service.',
    schema: { type: 'string' },
    example: '0f4d1f5e-6a39-4c0f-9d3c-0c8a1c0b2f11',
  },
  'X-Next-Cursor': {
    description: 'The cursor for `next`. Present only if there is a next page.',
    schema: { type: 'string' },
  },
  'X-Prev-Cursor': {
    description: 'The cursor for `prev`. Present only if there is a previous page.',
    schema: { type: 'string' },
  },
  'X-Total-Count': {
    description: 'The number of items on all pages. Present only if the request header `X-Total-Count` is `true`.',
    schema: { type: 'integer', minimum: 0 },
    example: 42,
  },
  'Server-Timing': {
    description:
      'Of a list of instances: the missing index, if the page was slow without it. Of a read of the change history: how it was answered (`tallies`, `documents`, `search`, `scan` or `merged`), and the milliseconds that it took.',
    schema: { type: 'string' },
    example: 'tallies;dur=2.4',
  },
  Location: {
    description: 'The path of the new resource.',
    schema: { type: 'string', format: 'uri-reference' },
  },
  'Retry-After': {
    description: 'Seconds after which the client may call again.',
    schema: { type: 'integer', minimum: 0 },
    example: 1,
  },
  'Session-Id': {
    description: 'The session of the chat: that of the request, or a new one.',
    schema: { type: 'string', format: 'uuid' },
  },
  'Content-Disposition': {
    description: 'A file name for the download.',
    schema: { type: 'string' },
    example: 'attachment; filename="changes-0199e3a5.ndjson"',
  },
  'Content-Length': {
    description: 'The bytes of the body; missing if it is compressed.',
    schema: { type: 'integer', minimum: 0 },
    example: 1024,
  },
  'WWW-Authenticate': {
    description: 'How to authenticate (RFC 9110, 11.6.1).',
    schema: { type: 'string' },
    example: 'Bearer',
  },
} as const;

export type AnswerHeader = keyof typeof answerHeaders;

/** The name of its component: `X-Next-Cursor` is `NextCursor`. */
function headerComponent(header: string): string {
  return header.replace(/^X-/, '').replaceAll('-', '');
}

type Section = 'schemas' | 'parameters' | 'headers' | 'responses';

export interface Reference {
  $ref: string;
}

/** The components of a document, which operations share by name. */
export class Components {
  readonly #sections: Record<Section, Map<string, unknown>> = {
    schemas: new Map(),
    parameters: new Map(),
    headers: new Map(),
    responses: new Map(),
  };

  /** Stores a component and refers to it. Throws an Error if a different one has its name. */
  refer(section: Section, name: string, component: unknown): Reference {
    const kept = this.#sections[section].getOrInsert(name, component);
    if (!isDeepStrictEqual(kept, component)) throw new Error(`Two different ${section} are called ${name}.`);
    return { $ref: `#/components/${section}/${name}` };
  }

  headers(names: readonly string[]): Record<string, Reference> {
    const all: Readonly<Record<string, object>> = answerHeaders;
    return Object.fromEntries(names.map((name) => [name, this.refer('headers', headerComponent(name), all[name])]));
  }

  /** A schema for OpenAPI: each part with an `$id` becomes a component of that name. */
  schema(schema: unknown): unknown {
    if (Array.isArray(schema)) return schema.map((part) => this.schema(part));
    if (!isObject(schema)) return schema;
    const { $id, ...rest } = schema;
    const plain = enumOfConstants(this.#members(withWords(rest)));
    return typeof $id === 'string' ? this.refer('schemas', $id, plain) : plain;
  }

  /** The sections that have components, sorted by name. */
  toJSON(): Record<string, Record<string, unknown>> {
    const used = Object.entries(this.#sections).filter(([, components]) => components.size > 0);
    return Object.fromEntries(
      used.map(([section, components]) => [
        section,
        Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
      ]),
    );
  }

  #members(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const members = Object.entries(schema).filter(([key]) => !key.startsWith('x-'));
    return Object.fromEntries(members.map(([key, value]) => [key, isData(key) ? value : this.#member(key, value)]));
  }

  #member(key: string, value: unknown): unknown {
    // The keys of these objects are names of members, not keywords.
    if ((key === 'properties' || key === 'patternProperties') && isObject(value)) {
      return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, this.schema(part)]));
    }
    return this.schema(value);
  }
}

/** A parameter or a header for OpenAPI, which has the description and the examples outside the schema. */
export function parameterParts(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { $id, description, examples, ...rest } = schema;
  return {
    ...(description === undefined ? {} : { description }),
    schema: rest,
    ...mediaExamples(examples),
  };
}

/** The examples of a schema as a media type or a parameter has them. */
export function mediaExamples(examples: unknown): Record<string, unknown> {
  if (!Array.isArray(examples) || examples.length === 0) return {};
  if (examples.length === 1) return { example: examples[0] };
  return { examples: Object.fromEntries(examples.map((value, index) => [`example${index + 1}`, { value }])) };
}

/** Shows words that are accepted in any case as an enum, without their pattern. */
function withWords({ 'x-enum': words, ...schema }: Record<string, unknown>): Record<string, unknown> {
  if (words === undefined) return schema;
  const { pattern: _pattern, ...rest } = schema;
  return { ...rest, enum: words };
}

/** TypeBox writes a choice of constants as `anyOf`. Generators make names of an enum, which means the same. */
function enumOfConstants(schema: Record<string, unknown>): Record<string, unknown> {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf) || !anyOf.every((part) => isObject(part) && typeof part.const === 'string')) return schema;
  return { ...rest, type: 'string', enum: anyOf.map((part) => part.const) };
}

/** Whether the keyword has values, not schemas. */
function isData(key: string): boolean {
  return key === 'examples' || key === 'default' || key === 'const' || key === 'enum' || key === 'required';
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * One of these words, in any case. The OpenAPI document has them as an enum, so that generated clients have a type.
 *
 * @example
 * anyCase(['USER', 'SYSTEM'], { examples: ['USER'] });
 */
export function anyCase<Word extends string>(words: readonly Word[], options: object = {}): TUnsafe<string> {
  const pattern = words.map((word) => word.replaceAll(/[A-Z]/g, (letter) => `[${letter}${letter.toLowerCase()}]`));
  return Type.Unsafe<string>({
    ...options,
    type: 'string',
    pattern: `^(${pattern.join('|')})$`,
    'x-enum': words,
    'x-must': `be ${words.slice(0, -1).join(', ')} or ${words.at(-1)}`,
  });
}

/** The schema of a resource in a list, under its own name. Only `id` is required, since `fields` selects members. */
export function listItem(name: string, resource: TSchema): TSchema {
  const { examples: _examples, ...partial } = withoutRequired(resource);
  return Type.Unsafe({
    ...partial,
    required: ['id'],
    $id: name,
    description: 'The whole resource, or only the members in `fields`.',
  });
}

/** The schema with optional members, under the name of the whole one and `Part`. */
function withoutRequired(schema: unknown): Record<string, unknown> {
  const { $id, required: _required, ...rest } = isObject(schema) ? schema : {};
  const part = Object.fromEntries(
    Object.entries(rest).map(([key, value]) => [key, membersWithoutRequired(key, value)]),
  );
  const hasMembers = 'properties' in rest || 'anyOf' in rest;
  return typeof $id === 'string' && hasMembers ? { ...part, $id: `${$id}Part` } : part;
}

function membersWithoutRequired(key: string, value: unknown): unknown {
  if (key === 'items' && isObject(value)) return withoutRequired(value);
  if (key === 'anyOf' && Array.isArray(value)) return value.map(withoutRequired);
  if (key !== 'properties' || !isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, property]) => [name, withoutRequired(property)]));
}
