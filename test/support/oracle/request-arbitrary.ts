import * as fc from 'fast-check';

/** What is used of an OpenAPI document. */
export interface DescribedInterface {
  paths: Record<string, Record<string, DescribedOperation>>;
  components: { parameters: Record<string, Parameter>; schemas: Record<string, { examples?: unknown[] }> };
}

interface DescribedOperation {
  parameters?: (Parameter | Reference)[];
  requestBody?: { content: Record<string, { schema?: { $ref?: string }; example?: unknown }> };
}

interface Parameter {
  name: string;
  in: string;
}

interface Reference {
  $ref: string;
}

export interface RandomRequest {
  /** As in the document: `GET /jobs/{id}`. */
  operation: string;
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string | undefined;
}

/** A request of any operation of the document, with valid, invalid and huge values for all that it takes. */
export function arbitraryRequest(described: DescribedInterface, tenant: string): fc.Arbitrary<RandomRequest> {
  return fc.oneof(...requestsByOperation(described, tenant));
}

/** For each operation of the document the requests of it. */
export function requestsByOperation(described: DescribedInterface, tenant: string): fc.Arbitrary<RandomRequest>[] {
  return Object.entries(described.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) =>
      requestOf(described, { path, method: method.toUpperCase(), operation }, tenant),
    ),
  );
}

function requestOf(
  { components }: DescribedInterface,
  { path, method, operation }: { path: string; method: string; operation: DescribedOperation },
  tenant: string,
): fc.Arbitrary<RandomRequest> {
  const parameters = (operation.parameters ?? []).map((one) =>
    '$ref' in one ? (components.parameters[nameIn(one.$ref)] ?? missing(one.$ref)) : one,
  );
  const named = (place: string) => parameters.filter((one) => one.in === place).map(({ name }) => name);
  const optional = (names: readonly string[], values: fc.Arbitrary<string>) =>
    fc.record(Object.fromEntries(names.map((name) => [name, values])), { requiredKeys: [] });
  const ids = fc.record(
    Object.fromEntries(named('path').map((name) => [name, name === 'tenant' ? fc.constant(tenant) : id])),
  );
  return fc
    .record({
      ids,
      query: fc.dictionary(fc.constantFrom(...named('query'), 'unknown'), fc.oneof(value, text), { maxKeys: 4 }),
      headers: optional(named('header'), fc.oneof(value, fc.constant('00000000-0000-4000-8000-000000000000'))),
      body: bodyOf(components, operation),
    })
    .map(({ ids: pathValues, query, headers, body: { contentType, content } }) => ({
      operation: `${method} ${path}`,
      method,
      path: `${path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(String(pathValues[name])))}?${new URLSearchParams(query)}`,
      headers: { ...printable(headers), ...(content === undefined ? {} : { 'content-type': contentType }) },
      body: content,
    }));
}

const text = fc.string({ unit: 'grapheme', maxLength: 40 }).map((one) => one.toWellFormed());
const id = fc.oneof(
  fc.constantFrom('THING', 'one', 'desk', 'a', '00000000-0000-4000-8000-000000000000'),
  text.filter((one) => one !== '' && !/^\.+$/.test(one)),
);

/** What parameters are made of: valid, out of bounds, and much. */
const value = fc.oneof(
  fc.constantFrom(
    '1',
    '0',
    '-1',
    '500',
    '501',
    '999999999999',
    'true',
    'name',
    '_id',
    'name:DESC,a.b',
    'x'.repeat(10_000),
  ),
  fc.constantFrom('name:*a*', 'name:~^.*a.*$', 'entity:order', 'entity:order entityId:~[0-9]+', 'colour:', '(((('),
  fc.constantFrom(
    `compoundLogicalQuery:(${Array.from({ length: 60 }, (_, index) => `(name:*${index}*)`).join(' OR ')})`,
    `entity:(${Array.from({ length: 100 }, (_, index) => `e${index}`).join(', ')})`,
    `entity:(${Array.from({ length: 250 }, (_, index) => `*${'e'.repeat(10)}${index}`).join(', ')})`.slice(0, 4_095),
    'x'.repeat(60_000),
  ),
);

function bodyOf(
  { schemas }: DescribedInterface['components'],
  { requestBody }: DescribedOperation,
): fc.Arbitrary<{ contentType: string; content: string | undefined }> {
  const content = Object.entries(requestBody?.content ?? {});
  const types = content.map(([type]) => type);
  const examples = content.flatMap(([, { example, schema }]) => {
    const ofSchema = schema?.$ref === undefined ? [] : (schemas[nameIn(schema.$ref)]?.examples ?? []);
    return [...(example === undefined ? [] : [example]), ...ofSchema].map((one) => JSON.stringify(one));
  });
  const valid = fc.constantFrom('{}', ...examples);
  return fc.record({
    contentType: fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom('application/json', ...types) },
      { weight: 1, arbitrary: fc.constantFrom('text/plain', 'application/json; charset=utf-16') },
    ),
    content:
      requestBody === undefined
        ? fc.constant(undefined)
        : fc.oneof(
            { weight: 4, arbitrary: valid },
            { weight: 4, arbitrary: valid.chain(damaged) },
            { weight: 2, arbitrary: fc.json() },
            { weight: 1, arbitrary: fc.constantFrom(...huge) },
          ),
  });
}

/** The last part of a reference to a component. */
function nameIn(reference: string): string {
  return reference.split('/').at(-1) ?? '';
}

function missing(reference: string): never {
  throw new Error(`${reference} leads nowhere`);
}

/** A valid body with some of its values replaced, or cut. */
function damaged(json: string): fc.Arbitrary<string> {
  return fc
    .tuple(fc.nat(json.length), fc.nat(12), fc.constantFrom('', '1', 'null', '"x"', '[]', '{', '\\u0000', '1e400'))
    .map(([at, length, other]) => json.slice(0, at) + other + json.slice(at + length));
}

const huge = [
  `[${'1,'.repeat(150_000)}1]`,
  `{"messages":[${'1,'.repeat(150_000)}1]}`,
  `{${Array.from({ length: 40_000 }, (_, index) => `"k${index}":1`).join(',')}}`,
  `{"name":"${'x'.repeat(900_000)}"}`,
  // Up to the limits, and a little beyond: 100,000 values, 1 MiB.
  ...[99_990, 100_010].map((values) => `{"name":"One","list":[${'0,'.repeat(values)}0]}`),
  ...[-100, 100].map((beyond) => `{"name":"${'é'.repeat(512 * 1024 - 30 + beyond)}"}`),
  `[${Array.from({ length: 90_000 }, (_, index) => `{"field":"${index}"`).join('},')}}]`,
  `${'['.repeat(5_000)}${']'.repeat(5_000)}`,
  JSON.stringify(Array.from({ length: 20 }, (_, index) => ({ op: 'copy', from: '', path: `/c${index}` }))),
];

/** Header values hold visible ASCII alone; what a client cannot send says nothing. */
function printable(headers: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, one]) => [
      name,
      String(one)
        .replaceAll(/[^\x20-\x7e]/g, '?')
        .slice(0, 1_000),
    ]),
  );
}
