import { isDeepStrictEqual } from 'node:util';
import { answerHeaders, headerComponent } from './headers.ts';

type Section = 'schemas' | 'parameters' | 'headers' | 'responses';

export interface Reference {
  $ref: string;
}

/** The components of a document: what several operations share, each under its name. */
export class Components {
  readonly #sections: Record<Section, Map<string, unknown>> = {
    schemas: new Map(),
    parameters: new Map(),
    headers: new Map(),
    responses: new Map(),
  };

  /** Keeps a component and refers to it. Throws an Error if another one has the same name. */
  refer(section: Section, name: string, component: unknown): Reference {
    const kept = this.#sections[section].getOrInsert(name, component);
    if (!isDeepStrictEqual(kept, component)) throw new Error(`Two different ${section} are called ${name}.`);
    return { $ref: `#/components/${section}/${name}` };
  }

  headers(names: readonly string[]): Record<string, Reference> {
    const all: Readonly<Record<string, object>> = answerHeaders;
    return Object.fromEntries(names.map((name) => [name, this.refer('headers', headerComponent(name), all[name])]));
  }

  /** A schema as OpenAPI has it: each part with an `$id` becomes a component of that name. */
  schema(schema: unknown): unknown {
    if (Array.isArray(schema)) return schema.map((part) => this.schema(part));
    if (!isObject(schema)) return schema;
    const { $id, ...rest } = schema;
    const plain = enumOfConstants(this.#members(withWords(rest)));
    return typeof $id === 'string' ? this.refer('schemas', $id, plain) : plain;
  }

  /** The sections that have components, these in the order of their names. */
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
    // The keys of these objects are names that clients know, not keywords.
    if ((key === 'properties' || key === 'patternProperties') && isObject(value)) {
      return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, this.schema(part)]));
    }
    return this.schema(value);
  }
}

/** A parameter or a header as OpenAPI has it: the description and the examples stand beside the schema. */
export function parameterParts(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { $id, description, examples, ...rest } = schema;
  return {
    ...(description === undefined ? {} : { description }),
    schema: rest,
    ...mediaExamples(examples),
  };
}

/** The examples of a schema in the form of a media type or a parameter. */
export function mediaExamples(examples: unknown): Record<string, unknown> {
  if (!Array.isArray(examples) || examples.length === 0) return {};
  if (examples.length === 1) return { example: examples[0] };
  return { examples: Object.fromEntries(examples.map((value, index) => [`example${index + 1}`, { value }])) };
}

/** Words in any case (`any-case.ts`) are told as they are written, without the pattern that takes them in all cases. */
function withWords({ 'x-enum': words, ...schema }: Record<string, unknown>): Record<string, unknown> {
  if (words === undefined) return schema;
  const { pattern: _pattern, ...rest } = schema;
  return { ...rest, enum: words };
}

/** TypeBox writes a choice of constants as `anyOf`. An enum says the same, and generators make names of it. */
function enumOfConstants(schema: Record<string, unknown>): Record<string, unknown> {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf) || !anyOf.every((part) => isObject(part) && typeof part.const === 'string')) return schema;
  return { ...rest, type: 'string', enum: anyOf.map((part) => part.const) };
}

/** Whether the keyword has values of clients and no schemas. */
function isData(key: string): boolean {
  return key === 'examples' || key === 'default' || key === 'const' || key === 'enum' || key === 'required';
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
