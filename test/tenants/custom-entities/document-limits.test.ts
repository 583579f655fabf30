import { expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { agentKey, callAgentic } from '../../support/server/agents.ts';
import { schemaClient } from '../../support/server/schema-client.ts';
import { startTestServer } from '../../support/server/server.ts';

// A stored instance or agent has at most 1 MiB and 100,000 JSON values after the write (contract 11).
const maxBytes = 1_048_576;
const maxValues = 100_000;

const server = closeAfterAll(await startTestServer());
const token = await server.token('acme', { name: 'Jane Doe' });
const client = schemaClient(server, 'acme', token);
await client.type('THING');

/** The bytes that an instance of this id has without its text. */
async function bytesOfEmpty(id: string): Promise<number> {
  await client.post('/THING/instances', { id, text: '' });
  const { text } = await client.get(`/THING/instances/${id}`);
  await client.remove(`/THING/instances/${id}`);
  return Buffer.byteLength(text);
}

test('an instance of 1 MiB is stored, one byte more is 413', async () => {
  const room = maxBytes - (await bytesOfEmpty('large'));
  const made = (length: number) => client.put('/THING/instances/large', { text: 'x'.repeat(length) });
  expect(await made(room + 1)).toMatchObject({ status: 413, body: { type: 'payload_too_large' } });
  expect((await made(room)).status).toBe(201);
  expect(Buffer.byteLength((await client.get('/THING/instances/large')).text)).toBe(maxBytes);
  const patch = (value: string) => client.patch('/THING/instances/large', [{ op: 'replace', path: '/text', value }]);
  expect((await patch('x'.repeat(room + 1))).status).toBe(413);
  expect((await patch('x'.repeat(room - 1))).status).toBe(204);
});

test('an instance of 100,000 values is stored, one more is 413', async () => {
  // The document, its id, metadata with three members, and the list itself.
  const room = maxValues - 7;
  const made = (count: number) => client.put('/THING/instances/many', `{"list":[${Array(count).fill(0).join()}]}`);
  expect(await made(room + 1)).toMatchObject({ status: 413, body: { type: 'payload_too_large' } });
  expect((await made(room - 1)).status).toBe(201);
  const add = (value: unknown) => client.patch('/THING/instances/many', [{ op: 'add', path: '/list/0', value }]);
  expect((await add([{}])).status).toBe(413);
  expect((await add({})).status).toBe(204);
  expect((await add({})).status).toBe(413);
});

test('a patch of 1 KiB that doubles a document is refused, and the document stays', async () => {
  await client.put('/THING/instances/doubled', { kept: true });
  const patch = [
    { op: 'add', path: '/a', value: {} },
    ...Array.from({ length: 20 }, (_, index) => ({ op: 'copy', from: '', path: `/a/${index}` })),
  ];
  expect(JSON.stringify(patch).length).toBeLessThan(1_024);
  expect((await client.patch('/THING/instances/doubled', patch)).status).toBe(413);
  expect((await client.get('/THING/instances/doubled')).body).toMatchObject({ kept: true, metadata: { version: 1 } });
});

test('an agent grows by patches to 1 MiB and 100,000 values and no further', async () => {
  const call = (method: string, path: string, sent?: unknown) =>
    callAgentic(server, { tenant: 'acme', token, path, method }, sent);
  const llmConfig = { provider: 'openai', model: 'gpt-5.4-mini', apiKey: agentKey };
  const body = { name: { en: 'Large' }, llmConfig };
  const empty = async (id: string) => {
    expect((await call('PUT', `/agents/${id}`, body)).status).toBe(201);
    return await (await call('GET', `/agents/${id}`)).text();
  };
  const patched = async (id: string, description: object) =>
    (await call('PATCH', `/agents/${id}`, [{ op: 'ADD', path: '/description', value: description }])).status;

  const bytesOf = (texts: object) => Buffer.byteLength(`"description":${JSON.stringify(texts)},`);
  const ofBytes = (bytes: number) => {
    // 20 bytes for the name of each, and 100 for the rest.
    const count = Math.floor((bytes - 100) / 10_020);
    const texts = Object.fromEntries(Array.from({ length: count }, (_, index) => [`l${index}`, 'x'.repeat(10_000)]));
    return { ...texts, last: 'x'.repeat(bytes - bytesOf({ ...texts, last: '' })) };
  };
  const room = maxBytes - Buffer.byteLength(await empty('large'));
  expect(await patched('large', ofBytes(room + 1))).toBe(413);
  expect(await patched('large', ofBytes(room))).toBe(204);

  await empty('many');
  const counted = countValues(JSON.parse(await (await call('GET', '/agents/many')).text()));
  // The map itself is a value as well. A body has room for no more values, so the last ones come in a second patch.
  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [index.toString(36), '']));
  expect(await patched('many', many(maxValues - counted - 21))).toBe(204);
  const more = (count: number) =>
    call(
      'PATCH',
      '/agents/many',
      Array.from({ length: count }, (_, index) => ({ op: 'ADD', path: `/description/_${index}`, value: '' })),
    );
  expect((await more(21)).status).toBe(413);
  expect((await more(20)).status).toBe(204);
});

function countValues(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce((sum: number, inner) => sum + countValues(inner), 1);
}
