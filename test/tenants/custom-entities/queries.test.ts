import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseDocumentQuery } from '../../../src/query/parse.ts';
import { createSortIndex } from '../../../src/tenants/custom-entities/sort-indexes.ts';
import { arbitraryDocuments, arbitraryFilter } from '../../support/oracle/document-arbitrary.ts';
import { finds } from '../../support/oracle/document-evaluator.ts';
import { checkLaw, someOf } from '../../support/oracle/law.ts';
import { readInstances, storeInstances } from '../../support/server/instances.ts';
import { type SchemaClient, schemaClient } from '../../support/server/schema-client.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';

const filters = 100;

let server: TestServer;
let token: string;
let client: SchemaClient;

beforeAll(async () => {
  server = await startTestServer();
  token = await server.token('acme');
  client = schemaClient(server, 'acme', token);
  await client.type('THING');
  await client.type('RANDOM');
  const documents = {
    text: '"a":"abc","n":1,"b":true,"z":null,"o":{"k":"v","l":[{"m":5},"x"]}',
    number: '"a":"1","n":1.0,"b":"true","o":"v"',
    large: '"a":1,"n":9007199254740993,"b":false',
    double: '"a":"ABC","n":9007199254740992,"o":{"k":null}',
    odd: '"a":"exists","n":-0.0,"b":null,"z":"null"',
    nul: '"a":"a\\u0000c","n":"1"',
  };
  for (const [id, members] of Object.entries(documents)) await client.put(`/THING/instances/${id}`, `{${members}}`);
  await client.type('NAMED');
  const named = {
    map: { name: { en: 'AB CD desk', de: 'Preise' }, code: 'x AB CD' },
    text: { name: 'AB CD desk', code: 'AB' },
    none: { code: 'ab cd' },
  };
  for (const [id, members] of Object.entries(named)) await client.put(`/NAMED/instances/${id}`, members);
});

afterAll(() => server.close());

async function idsOf(q: string, type = 'THING'): Promise<string[]> {
  const page = await readInstances(server, { tenant: 'acme', type, token, by: 'search', q }, {});
  expect([q, page.status, page.body]).toEqual([q, 200, expect.any(Array)]);
  return page.ids;
}

describe('q over instances', () => {
  test.each<[string, string[]]>([
    ['n:1', ['number', 'text']],
    ['n:1.00', ['number', 'text']],
    ['n:10e-1', ['number', 'text']],
    ['n:"1"', ['nul']],
    ['n:9007199254740993', ['large']],
    ['n:0', ['odd']],
    ['a:1', ['large']],
    ['a:"1"', ['number']],
    ['b:true', ['text']],
    ['b:"true"', ['number']],
    ['b:false', ['large']],
    ['b:null', ['double', 'nul', 'odd']],
    ['b:missing', ['double', 'nul']],
    ['b:exists', ['large', 'number', 'odd', 'text']],
    ['z:"null"', ['odd']],
    ['a:"exists"', ['odd']],
    ['n:>1', ['double', 'large']],
    ['n:>=1', ['double', 'large', 'number', 'text']],
    ['n:<1', ['odd']],
    ['n:(>=0 AND <9007199254740993)', ['double', 'number', 'odd', 'text']],
    ['n:>9007199254740992', ['large']],
    ['n:(>=9007199254740993)', ['large']],
    ['a:(>"a")', ['nul', 'odd', 'text']],
    ['a:>"a"', ['nul', 'odd', 'text']],
    ['a:(>="ABC" AND <="a")', ['double']],
    ['a:<1', []],
    ['a:*b*', ['text']],
    ['a:a*c', ['nul', 'text']],
    ['a:(abc, 1)', ['large', 'text']],
    ['a:("1", A*)', ['double', 'number']],
    ['a:~^[aA]', ['double', 'nul', 'text']],
    ['a:~"c$" n:1', ['text']],
    ['o.k:v', ['text']],
    ['o.k:null', ['double', 'large', 'nul', 'number', 'odd']],
    ['o.l.0.m:5', ['text']],
    ['o.l.1:x', ['text']],
    ['o.l.00.m:exists', []],
    ['o:v', ['number']],
    ['id:text', ['text']],
    ['_id:(text, odd)', ['odd', 'text']],
    ['id:>"nul"', ['number', 'odd', 'text']],
    ['metadata.version:1', ['double', 'large', 'nul', 'number', 'odd', 'text']],
    ['metadata.createdAt:>"2020" metadata.createdAt:<"2020"', []],
    ['compoundLogicalQuery:((n:1 a:abc) OR (b:false))', ['large', 'text']],
    ['compoundLogicalQuery:(((n:1) OR (n:0)) AND (b:exists))', ['number', 'odd', 'text']],
    ['nothing.at.all:null', ['double', 'large', 'nul', 'number', 'odd', 'text']],
    ['', ['double', 'large', 'nul', 'number', 'odd', 'text']],
  ])('%s', async (q, expected) => {
    expect(await idsOf(q)).toEqual(expected);
  });

  test.each<[string, string[]]>([
    ['name:~desk', ['map', 'text']],
    ['name:(~AB CD)', ['map', 'text']],
    ['name:(~"AB CD") code:(~^AB$)', ['text']],
    ['name.en:~(AB CD)', ['map']],
    ['name:Preise', ['map']],
    ['name:"AB CD desk"', ['map', 'text']],
    ['name:AB*', ['map', 'text']],
    ['name:(Preise, x)', ['map']],
    ['name:>="P"', ['map']],
    ['name:exists', ['map', 'text']],
    ['name:missing', ['none']],
    ['code:(~AB CD)', ['map']],
    ['compoundLogicalQuery:((code:(~AB CD)) OR (name:missing))', ['map', 'none']],
  ])('%s finds an expression in parentheses, and looks into each language of a name', async (q, expected) => {
    expect(await idsOf(q, 'NAMED')).toEqual(expected);
  });

  test.each([
    'a:(~AB',
    'a:(~AB, CD)x',
    'a:(~AB b:c)',
    'a',
    'a:',
    'a:>',
    'a:>x',
    'a:>true',
    'a:>"x',
    'a:(>1',
    'a:(>1 AND)',
    'a:(>1 OR <2)',
    'n:1e99999',
    'n:>1e99999',
    `n:${'9'.repeat(501)}`,
    'a:~(?=x)',
    'a:b AND c:d',
    'compoundLogicalQuery:(a:b)',
    'a\u0000:b',
    'a:x\u0000',
    'a:'.padEnd(5000, 'x'),
  ])('%j is 400 with a position', async (q) => {
    const page = await readInstances(server, { tenant: 'acme', type: 'THING', token, by: 'search', q }, {});
    expect(page.status).toBe(400);
    expect(page.body).toMatchObject({
      type: 'validation_violation',
      details: [{ field: 'q', message: expect.stringMatching(/^At position \d+: expected /) }],
    });
  });

  test.each([
    "a:x' or true --",
    'a:"x\') or true; drop table custom_instance --"',
    "a:*'; select 1",
    "o.k:('a','b')",
    "a:~'|.*",
  ])('no text of %j becomes SQL', async (q) =>
    expect(await idsOf(q)).toEqual(
      q.startsWith('a:~') ? await idsOf('a:exists compoundLogicalQuery:((a:*) OR (a:""))') : [],
    ),
  );

  test('q must be a text', async () => {
    expect(await client.post('/THING/instances/search', { q: 7 })).toMatchObject({ status: 400 });
    expect((await client.post('/THING/instances/search', 'null')).status).toBe(400);
    expect((await client.post('/THING/instances/search', {})).status).toBe(200);
  });

  test('a search without a body has no filter', async () => {
    const path = '/schema/acme/custom-entities/THING/instances/search';
    for (const headers of [{}, { 'content-type': 'application/json' }]) {
      const response = await server.call(path, { token, method: 'POST', headers });
      expect([response.status, await response.json()]).toMatchObject([200, { length: 6 }]);
    }
  });
});

// Indexes of fields add conditions on keys, in both directions of the keys.
test.each([
  ['without indexes of fields', [], filters],
  ['with indexes of fields', ['a', 'b:DESC', 'c', 'm', 'm.x:DESC', 'm.y.z', 'l', 'l.x'], filters / 2],
])('filters and totals agree with an evaluator that tests each document: %s', async (_how, indexes, runs) => {
  for (const sort of indexes) await createSortIndex(server.context.db, sort);
  const place = { tenant: 'acme', type: 'RANDOM' };
  const filtersOfCollection = 20;
  const scenario = fc.record({ documents: arbitraryDocuments, queries: someOf(arbitraryFilter, filtersOfCollection) });
  await checkLaw(scenario, { runs: Math.ceil(runs / filtersOfCollection) }, async ({ documents, queries }) => {
    await storeInstances(server, place, documents);
    for (const q of queries) {
      const query = parseDocumentQuery(q);
      const expected = documents.filter((document) => finds(query, document)).map(({ id }) => id);
      const headers = { 'X-Total-Count': 'true' };
      const page = await readInstances(server, { ...place, token, by: 'search', q }, { pageSize: 500 }, headers);
      expect({ q, ids: page.ids.toSorted(), total: page.total }).toEqual({
        q,
        ids: expected.toSorted(),
        total: String(expected.length),
      });
    }
  });
});
