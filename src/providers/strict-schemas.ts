import { memberOf } from './members.ts';
import type { ProviderName } from './port.ts';

/** The keywords of JSON Schema that a vendor enforces, each with the values that it takes; left out: any value. */
type Enforced = Readonly<Record<string, ((value: unknown) => boolean) | undefined>>;

/** These describe, and constrain nothing. */
const annotations: Enforced = Object.fromEntries(
  [
    ...['title', 'description', 'default', 'examples', 'deprecated', 'readOnly', 'writeOnly'],
    ...['$schema', '$id', '$comment', '$anchor'],
  ].map((name) => [name, undefined]),
);

const isFalse = (value: unknown) => value === false;
const isScalar = (value: unknown) => typeof value !== 'object' || value === null;
const isListOfScalars = (value: unknown) => Array.isArray(value) && value.every(isScalar);
const isWithin = (value: unknown) => typeof value === 'string' && value.startsWith('#');
const anyKeyword = (...names: string[]): Enforced => Object.fromEntries(names.map((name) => [name, undefined]));
const formats =
  (...names: string[]) =>
  (value: unknown) =>
    names.includes(String(value));

const always: Enforced = { ...annotations, ...anyKeyword('type', 'properties', 'required', 'items', 'anyOf', '$defs') };

const anthropicFormat: Enforced = {
  ...always,
  ...anyKeyword('allOf', 'definitions'),
  $ref: isWithin,
  const: isScalar,
  enum: isListOfScalars,
  additionalProperties: isFalse,
  format: formats(...['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid']),
};

/** What the vendors document for their structured outputs, as far as their packages send it. */
const enforced: Partial<Record<ProviderName, Readonly<Record<'tools' | 'format', Enforced>>>> = {
  anthropic: {
    format: anthropicFormat,
    tools: { ...anthropicFormat, pattern: undefined, minItems: (value) => value === 0 || value === 1 },
  },
  google: both({
    ...always,
    ...anyKeyword('additionalProperties', 'prefixItems', 'minItems', 'maxItems', 'minimum', 'maximum'),
    ...anyKeyword('propertyOrdering'),
    $ref: isWithin,
    const: isScalar,
    enum: isListOfScalars,
    format: formats('date-time', 'date', 'time'),
  }),
};

function both(keywords: Enforced): Record<'tools' | 'format', Enforced> {
  return { tools: keywords, format: keywords };
}

/** A keyword, and its place in its schema: `properties.price`. */
export interface Keyword {
  readonly name: string;
  readonly path: readonly (string | number)[];
}

/**
 * The first keyword of a schema that the provider does not enforce in tools or in the format of an answer; undefined
 * without one.
 */
export function unenforcedKeyword(
  provider: ProviderName,
  kind: 'tools' | 'format',
  schema: Readonly<Record<string, unknown>>,
): Keyword | undefined {
  const keywords = enforced[provider]?.[kind];
  return keywords && unenforcedIn(schema, keywords, []);
}

function unenforcedIn(schema: object, keywords: Enforced, path: Keyword['path']): Keyword | undefined {
  for (const [name, value] of Object.entries(schema)) {
    const isKnown = Object.hasOwn(keywords, name);
    if (!isKnown || keywords[name]?.(value) === false) return { name, path };
    for (const [place, inner] of schemasIn(name, value)) {
      const found = unenforcedIn(inner, keywords, [...path, name, ...place]);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** The schemas in the value of a keyword, each with its place in it. */
function schemasIn(name: string, value: unknown): [(string | number)[], object][] {
  if (typeof value !== 'object' || value === null) return [];
  if (['properties', '$defs', 'definitions'].includes(name)) {
    return Object.keys(value).flatMap((key) => objectAt([key], memberOf(value, key)));
  }
  if (Array.isArray(value)) {
    return ['anyOf', 'allOf', 'items', 'prefixItems'].includes(name)
      ? value.flatMap((inner, index) => objectAt([index], inner))
      : [];
  }
  return ['items', 'additionalProperties'].includes(name) ? [[[], value]] : [];
}

function objectAt(place: (string | number)[], value: unknown): [(string | number)[], object][] {
  return typeof value === 'object' && value !== null ? [[place, value]] : [];
}
