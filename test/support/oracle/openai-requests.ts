import * as fc from 'fast-check';
import described from './openai-requests.json' with { type: 'json' };

/** What is used of a schema of OpenAI's description. */
interface Schema {
  $ref?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  nullable?: boolean;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  required?: string[];
  items?: Schema;
  minItems?: number;
  minimum?: number;
  maximum?: number;
}

type Body = Record<string, unknown>;
type Tie = (name: string) => fc.Arbitrary<unknown>;

const schemas = described.$defs as Record<string, Schema>;
const maxDepth = 8;
/** Members of an object beside the required ones. All at once would nearly always have one that is refused. */
const maxOptional = 6;

function requests(name: string, ...needed: string[]): fc.Arbitrary<Body> {
  const arbitraries = fc.letrec((tie) =>
    Object.fromEntries(
      Object.entries(schemas).map(([key, schema]) => [
        key,
        arbitraryOf(
          key === name ? { ...whole(schema), required: [...(whole(schema).required ?? []), ...needed] } : schema,
          tie,
        ),
      ]),
    ),
  );
  return arbitraries[name] as fc.Arbitrary<Body>;
}

/** A schema with the members of those that it is composed of. */
function whole(schema: Schema): Schema {
  const resolved = schema.$ref === undefined ? schema : (schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {});
  const parts = (resolved.allOf ?? []).map(whole);
  return {
    ...resolved,
    allOf: [],
    properties: Object.assign({}, ...parts.map(({ properties }) => properties), resolved.properties),
    required: [...parts, resolved].flatMap(({ required = [] }) => required),
  };
}

function arbitraryOf(schema: Schema, tie: Tie): fc.Arbitrary<unknown> {
  if (schema.nullable === true) return oneOf([{ type: 'null' }, { ...schema, nullable: false }], tie);
  if (schema.$ref !== undefined) return tie(schema.$ref.split('/').at(-1) ?? '');
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const forms = schema.anyOf ?? schema.oneOf;
  if (forms !== undefined) return oneOf(forms, tie);
  if (schema.allOf?.length === 1 && schema.allOf[0] !== undefined) return arbitraryOf(schema.allOf[0], tie);
  if ((schema.allOf ?? []).length > 1) return arbitraryOf(whole(schema), tie);
  if (Array.isArray(schema.type))
    return oneOf(
      schema.type.map((type) => ({ ...schema, type })),
      tie,
    );
  return ofType(schema, tie);
}

function oneOf(forms: readonly Schema[], tie: Tie): fc.Arbitrary<unknown> {
  // The first one is taken where values are too deep.
  const flat = forms.toSorted((a, b) => Number(a.$ref !== undefined) - Number(b.$ref !== undefined));
  return fc.oneof({ maxDepth, depthIdentifier: 'openai' }, ...flat.map((form) => arbitraryOf(form, tie)));
}

const texts = fc.oneof(
  fc.constantFrom('x', 'AAAA', 'data:image/png;base64,AAAA', 'https://example.com/a', 'jane'),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
);

function ofType(schema: Schema, tie: Tie): fc.Arbitrary<unknown> {
  const minimum = Math.max(schema.minimum ?? -5, -5);
  const maximum = Math.min(schema.maximum ?? 1_100_000, 1_100_000);
  switch (schema.type) {
    case 'string':
      return texts;
    case 'integer':
      return fc.oneof(
        fc.integer({ min: minimum, max: Math.min(maximum, minimum + 16) }),
        fc.integer({ min: minimum, max: maximum }),
      );
    case 'number':
      return fc.double({ min: minimum, max: maximum, noNaN: true });
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array': {
      const { items = {}, minItems = 0 } = schema;
      const limits = { minLength: minItems, maxLength: minItems + 2, depthIdentifier: 'openai' };
      return fc.array(arbitraryOf(items, tie), limits);
    }
    default:
      return schema.type === 'object' || schema.properties !== undefined
        ? objects(schema, tie)
        : fc.jsonValue({ maxDepth: 1 });
  }
}

function objects({ properties = {}, required = [], additionalProperties }: Schema, tie: Tie): fc.Arbitrary<unknown> {
  const members = Object.fromEntries(
    Object.entries(properties).map(([name, member]) => [name, arbitraryOf(member, tie)]),
  );
  const optional = Object.keys(members).filter((name) => !required.includes(name));
  const named = fc
    .subarray(optional, { maxLength: Math.min(optional.length, maxOptional) })
    .chain((chosen) =>
      fc.record(
        Object.fromEntries(
          Object.entries(members).filter(([name]) => required.includes(name) || chosen.includes(name)),
        ),
      ),
    );
  if (typeof additionalProperties !== 'object' && additionalProperties !== true)
    return named.map((value) => ({ ...value }));
  const free = additionalProperties === true ? fc.jsonValue({ maxDepth: 1 }) : arbitraryOf(additionalProperties, tie);
  const others = fc.dictionary(fc.stringMatching(/^free[a-z]{1,5}$/), free, { maxKeys: 2 });
  return fc.tuple(named, others).map(([value, other]) => ({ ...value, ...other }));
}

/** Requests by OpenAI's description, with any model. */
export const arbitraryRequests = {
  'chat/completions': requests('CreateChatCompletionRequest'),
  responses: requests('CreateResponse', 'input'),
};
