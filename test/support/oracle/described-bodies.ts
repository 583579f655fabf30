import * as fc from 'fast-check';

/** What is used of a schema of the OpenAPI document. */
export interface DescribedSchema {
  $ref?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: DescribedSchema[];
  not?: DescribedSchema;
  properties?: Record<string, DescribedSchema>;
  patternProperties?: Record<string, DescribedSchema>;
  additionalProperties?: boolean | DescribedSchema;
  required?: string[];
  minProperties?: number;
  maxProperties?: number;
  items?: DescribedSchema;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  pattern?: string;
  format?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  readOnly?: boolean;
}

interface DescribedOperation {
  operationId: string;
  requestBody?: { content: Record<string, { schema: DescribedSchema }> };
}

export interface BodiesDocument {
  paths: Record<string, Record<string, DescribedOperation>>;
  components: { schemas: Record<string, DescribedSchema> };
}

/** An operation that takes a JSON body. */
export interface OperationWithBody {
  readonly operationId: string;
  readonly method: string;
  /** With the names of its parameters in braces. */
  readonly path: string;
  readonly type: string;
  readonly body: DescribedSchema;
}

/** Every operation of a document that takes a body, but for the token endpoint, whose body is a form. */
export function operationsWithBody({ paths }: BodiesDocument): OperationWithBody[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { operationId, requestBody }]) => {
      const [type, content] = Object.entries(requestBody?.content ?? {}).find(([name]) => name.endsWith('json')) ?? [];
      if (type === undefined || content === undefined) return [];
      return [{ operationId, method: method.toUpperCase(), path, type, body: content.schema }];
    }),
  );
}

/** A body that would be valid without the member that `path` leads to. */
export interface BodyWithUnknownMember {
  readonly value: unknown;
  readonly path: readonly string[];
}

export const unknownMember = 'memberThatNobodyKnows';

/** Reads the schemas of a document: which values are valid by them, and which are not for one member more. */
export class DescribedBodies {
  readonly #schemas: Record<string, DescribedSchema>;

  constructor({ components }: BodiesDocument) {
    this.#schemas = components.schemas;
  }

  /** For each object of a body, nested ones too, a body in which it has a member that is not known. */
  withUnknownMembers(described: DescribedSchema): BodyWithUnknownMember[] {
    const schema = this.#resolved(described);
    if (schema.anyOf !== undefined) return schema.anyOf.flatMap((form) => this.withUnknownMembers(form));
    if (schema.items !== undefined) {
      return this.withUnknownMembers(schema.items).map(({ value, path }) => ({ value: [value], path: ['0', ...path] }));
    }
    if (schema.properties === undefined) return [];
    const whole = this.#sample(schema);
    const inner = Object.entries(schema.properties).flatMap(([name, member]) =>
      this.withUnknownMembers(member).map(({ value, path }) => ({
        value: { ...whole, [name]: value },
        path: [name, ...path],
      })),
    );
    if (schema.additionalProperties !== false) return inner;
    return [{ value: { ...whole, [unknownMember]: 1 }, path: [unknownMember] }, ...inner];
  }

  /** The names of the objects of a body that take members which the schema does not name. */
  openObjects(described: DescribedSchema, name: string): string[] {
    const schema = this.#resolved(described);
    const forms = (schema.anyOf ?? []).flatMap((form) => this.openObjects(form, name));
    const items = schema.items === undefined ? [] : this.openObjects(schema.items, name);
    const members = Object.entries(schema.properties ?? {}).flatMap(([key, member]) =>
      this.openObjects(member, `${name}.${key}`),
    );
    const isOpen =
      schema.type === 'object' && schema.patternProperties === undefined && schema.additionalProperties !== false;
    return [...(isOpen ? [name] : []), ...forms, ...items, ...members];
  }

  /** Values that are valid by a schema. */
  arbitrary(described: DescribedSchema): fc.Arbitrary<unknown> {
    const schema = this.#resolved(described);
    if (schema.const !== undefined) return fc.constant(schema.const);
    if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
    if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((form) => this.arbitrary(form)));
    return this.#ofType(schema).filter((value) => schema.not?.const === undefined || value !== schema.not.const);
  }

  #ofType(schema: DescribedSchema): fc.Arbitrary<unknown> {
    switch (schema.type) {
      case 'string':
        return arbitraryText(schema);
      case 'integer':
        return fc.integer({
          min: schema.minimum ?? -1_000_000,
          max: Math.min(schema.maximum ?? 1_000_000, 2 ** 31 - 1),
        });
      case 'number':
        return fc.double({ min: schema.minimum ?? -1e6, max: schema.maximum ?? 1e6, noNaN: true });
      case 'boolean':
        return fc.boolean();
      case 'null':
        return fc.constant(null);
      case 'array':
        return this.#arbitraryArray(schema);
      case 'object':
        return this.#arbitraryObject(schema);
      default:
        return fc.jsonValue({ maxDepth: 2 });
    }
  }

  #arbitraryArray({
    items = {},
    minItems = 0,
    maxItems = 100,
    uniqueItems = false,
  }: DescribedSchema): fc.Arbitrary<unknown> {
    const limits = { minLength: minItems, maxLength: Math.min(maxItems, minItems + 3) };
    const item = this.arbitrary(items);
    return uniqueItems
      ? fc.uniqueArray(item, { ...limits, selector: (value) => JSON.stringify(value) })
      : fc.array(item, limits);
  }

  #arbitraryObject(schema: DescribedSchema): fc.Arbitrary<unknown> {
    const {
      properties = {},
      required = [],
      patternProperties,
      additionalProperties,
      minProperties = 0,
      maxProperties,
    } = schema;
    if (maxProperties === 0) return fc.constant({});
    const members = Object.entries(properties).filter(([, member]) => !isForbidden(member));
    const named = fc.record(Object.fromEntries(members.map(([name, member]) => [name, this.arbitrary(member)])), {
      requiredKeys: required,
      noNullPrototype: true,
    });
    const [pattern, value] = Object.entries(patternProperties ?? {})[0] ?? [];
    const free =
      pattern !== undefined && value !== undefined
        ? dictionary(matching(pattern), this.arbitrary(value), minProperties)
        : additionalProperties === true
          ? dictionary(fc.stringMatching(/^free[A-Z][a-z]{1,8}$/), fc.jsonValue({ maxDepth: 2 }), minProperties)
          : fc.constant({});
    return fc.tuple(named, free).map(([one, other]) => ({ ...one, ...other }));
  }

  /** An object with all of its members but those that have to be empty. */
  #sample(schema: DescribedSchema): Record<string, unknown> {
    const { properties = {} } = schema;
    const required = Object.keys(properties).filter((name) => !isForbidden(properties[name]));
    const [whole] = fc.sample(this.#arbitraryObject({ ...schema, required }), 1);
    return whole as Record<string, unknown>;
  }

  #resolved(schema: DescribedSchema): DescribedSchema {
    const name = schema.$ref?.split('/').at(-1);
    return name === undefined ? schema : this.#resolved(this.#schemas[name] ?? {});
  }
}

/** Whether no value is valid. */
function isForbidden(schema: DescribedSchema | undefined): boolean {
  return schema?.not !== undefined && Object.keys(schema.not).length === 0;
}

function dictionary(key: fc.Arbitrary<string>, value: fc.Arbitrary<unknown>, minKeys: number): fc.Arbitrary<object> {
  return fc.dictionary(key, value, { minKeys, maxKeys: minKeys + 2, noNullPrototype: true });
}

function arbitraryText({ pattern, format, minLength = 0, maxLength = 200 }: DescribedSchema): fc.Arbitrary<string> {
  if (format === 'date-time') {
    return fc
      .date({ min: new Date('1970-01-01'), max: new Date('2100-01-01'), noInvalidDate: true })
      .map((date) => date.toISOString());
  }
  if (pattern === undefined) {
    return fc.string({ minLength, maxLength: Math.min(maxLength, minLength + 20), unit: 'grapheme' });
  }
  return matching(pattern).filter((text) => [...text].length >= minLength && [...text].length <= maxLength);
}

/**
 * Texts that match. What must not follow is left out of the making, for which it is no help, and looked at afterwards.
 */
function matching(pattern: string): fc.Arbitrary<string> {
  const whole = new RegExp(pattern, 'u');
  return fc.stringMatching(new RegExp(withoutLookaheads(pattern), 'u')).filter((text) => whole.test(text));
}

function withoutLookaheads(pattern: string): string {
  const start = pattern.indexOf('(?!');
  if (start === -1) return pattern;
  let depth = 0;
  for (const { 0: part, index } of pattern.slice(start).matchAll(/\\.|[()]/g)) {
    if (part === '(') depth += 1;
    if (part === ')') depth -= 1;
    if (depth === 0) return withoutLookaheads(pattern.slice(0, start) + pattern.slice(start + index + 1));
  }
  throw new Error(`${pattern} has a lookahead without an end`);
}
