import { describe, expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import {
  type BodiesDocument,
  DescribedBodies,
  operationsWithBody,
  unknownMember,
} from '../support/oracle/described-bodies.ts';
import { startTestServer } from '../support/server/server.ts';

const tenant = 'acme';

const server = closeAfterAll(await startTestServer());
const token = await server.token(tenant);

async function send(method: string, path: string, body: unknown, type = 'application/json') {
  const response = await server.call(path, {
    token,
    method,
    headers: { 'content-type': type },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
}

const fieldsOf = (answer: { body?: { details?: { field: string }[] } }) =>
  answer.body?.details?.map(({ field }) => field) ?? [];

async function readDocument(): Promise<{ bodies: DescribedBodies; operations: ReturnType<typeof operationsWithBody> }> {
  const document = (await (await server.call('/openapi.json')).json()) as BodiesDocument;
  return { bodies: new DescribedBodies(document), operations: operationsWithBody(document) };
}

const pathOf = (path: string) =>
  path.replaceAll(/\{(\w+)\}/g, (_match, name: string) =>
    name === 'tenant' ? tenant : name === 'type' ? 'THING' : 'x',
  );

describe('a member that is not known', () => {
  test('is 400 and named, in every object of every body', async () => {
    const { bodies, operations } = await readDocument();
    const tried: string[] = [];
    for (const { operationId, method, path, type, body } of operations) {
      for (const { value, path: place } of bodies.withUnknownMembers(body)) {
        const answer = await send(method, pathOf(path), value, type);
        expect([operationId, answer.status, fieldsOf(answer)]).toEqual([
          operationId,
          400,
          expect.arrayContaining([place.join('.')]),
        ]);
        tried.push(`${operationId} ${place.slice(0, -1).join('.')}`);
      }
    }
    // Objects of instances are free. Each other operation has at least one object that is not.
    const withClosedObjects = new Set(tried.map((place) => place.split(' ')[0]));
    const free = ['createInstance', 'putInstance'];
    expect(operations.map(({ operationId }) => operationId).filter((id) => !withClosedObjects.has(id))).toEqual(free);
    expect(tried).toEqual(
      expect.arrayContaining([
        'putAgent llmConfig',
        'putAgent llmConfig.selfHostedParams',
        'putAgent metadata',
        'putAgent nativeTools.0',
        'putAgent triggers.0',
        'patchAgent 0',
        'chat ',
        'createCompletion messages.0',
        'createConfigurations 0',
        'createCustomEntityType metadata',
        'patchInstance 0',
        'createJob ',
        'searchAgents ',
      ]),
    );
  });

  test('is free in instances, in schemas of types, in what is only read, and nowhere else', async () => {
    const { bodies, operations } = await readDocument();
    const open = operations.flatMap(({ operationId, body }) => bodies.openObjects(body, operationId));
    expect([...new Set(open)]).toEqual([
      'createCustomEntityType.jsonSchema',
      'putCustomEntityType.jsonSchema',
      'createInstance',
      'createInstance.metadata',
      'putInstance',
      'putInstance.metadata',
      'createBudget.use',
      'createBudget.use.users',
      'putBudget.use',
      'putBudget.use.users',
    ]);
  });

  test('stops the start where a body does not say whether it takes it', async () => {
    const { Type } = await import('typebox');
    const body = Type.Object(
      { lines: Type.Array(Type.Object({ sku: Type.String() })) },
      { additionalProperties: false },
    );
    await expect(
      startTestServer({ extend: (app) => void app.post('/open', { schema: { body } }, async () => 'fine') }),
    ).rejects.toThrow('whether body.lines.items takes further members');
  });

  test('is reported up to ten times, with a long name cut', async () => {
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`m${index}`, index]));
    const answer = await send('POST', `/ai-service/${tenant}/agentic/chat`, { agentId: 'x', message: 'y', ...many });
    expect(fieldsOf(answer)).toEqual(Array.from({ length: 10 }, (_, index) => `m${index}`));
    const long = await send('POST', `/ai-service/${tenant}/jobs/search`, { ['x'.repeat(5_000)]: 1 });
    expect(fieldsOf(long)).toEqual([`${'x'.repeat(200)}…`]);
  });

  test('is reported whatever its name', async () => {
    for (const name of ['__proto__', 'constructor', 'toString', '', 'a.b']) {
      const answer = await send('POST', `/ai-service/${tenant}/jobs/search`, JSON.parse(`{${JSON.stringify(name)}:1}`));
      expect([answer.status, fieldsOf(answer)]).toEqual([400, [name]]);
    }
  });

  test('is 400 at the sign-in of the console', async () => {
    const response = await fetch(`${server.baseUrl}/console/api/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: server.baseUrl },
      body: JSON.stringify({ link: 'x', [unknownMember]: 1 }),
    });
    expect([response.status, fieldsOf({ body: (await response.json()) as object })]).toEqual([400, [unknownMember]]);
  });

  test('is ignored by the token endpoint, as RFC 6749 has it', async () => {
    const client = await server.createClient(tenant);
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: client.clientId,
      client_secret: client.clientSecret,
      [unknownMember]: '1',
    });
    expect((await fetch(`${server.baseUrl}/oauth/token`, { method: 'POST', body: form })).status).toBe(200);
  });
});

describe('what GET answers can be sent back by PUT', () => {
  const agents = `/ai-service/${tenant}/agentic/agents`;
  const model = 'm';
  const apiKey = 'sk-not-a-real-key';
  test.each<[string, string, unknown]>([
    ['a configuration', `/configuration/${tenant}/configurations/plain`, { key: 'plain', value: { a: [1.5] } }],
    [
      'a secured one',
      `/configuration/${tenant}/configurations/sealed`,
      { key: 'sealed', value: 's3cret', secured: true, description: 'd' },
    ],
    ['a type', `/schema/${tenant}/custom-entities/SENT_BACK`, { name: { en: 'Back' }, jsonSchema: { type: 'object' } }],
    [
      'an agent on the shared token',
      `${agents}/shared`,
      { name: { en: 'a' }, triggers: [{ type: 'endpoint', config: {} }] },
    ],
    [
      'an agent of a vendor',
      `${agents}/vendor`,
      { name: { en: 'a' }, llmConfig: { provider: 'google', model, apiKey } },
    ],
    [
      'an agent of a server',
      `${agents}/server`,
      {
        name: { en: 'a' },
        nativeTools: ['change-history', { id: 'change-history', allowedOperations: [] }],
        llmConfig: { provider: 'self_hosted', model, baseUrl: 'https://models.example.com/v1' },
      },
    ],
    [
      'an agent of a server of the family',
      `${agents}/vllm`,
      {
        name: { en: 'a' },
        llmConfig: { provider: 'self_hosted_vllm', model, selfHostedParams: { url: 'https://v.example.com' } },
      },
    ],
  ])('%s', async (_what, path, body) => {
    const isConfiguration = path.startsWith('/configuration');
    const made = isConfiguration
      ? await send('POST', `/configuration/${tenant}/configurations`, [body])
      : await send('PUT', path, body);
    expect(made.status).toBe(201);
    const shown = await (await server.call(path, { token })).json();
    expect((await send('PUT', path, shown)).status).toBe(isConfiguration ? 200 : 204);
    const again = (await (await server.call(path, { token })).json()) as Record<string, unknown>;
    const { metadata: _metadata, version: _version, ...content } = again;
    expect(shown).toMatchObject(content);
  });

  test('an instance, and members that only the service writes are ignored whatever they are', async () => {
    await send('POST', `/schema/${tenant}/custom-entities`, { id: 'THING', name: { en: 'Thing' } });
    const path = `/schema/${tenant}/custom-entities/THING/instances/one`;
    expect((await send('PUT', path, { any: { member: [1] }, metadata: { mixins: { a: 'b' } } })).status).toBe(201);
    const shown = (await (await server.call(path, { token })).json()) as { metadata: object };
    const sent = { ...shown, metadata: { ...shown.metadata, createdAt: 'never', modifiedAt: 5 } };
    expect((await send('PUT', path, sent)).status).toBe(204);
    const { metadata } = (await (await server.call(path, { token })).json()) as { metadata: object };
    expect(metadata).toMatchObject({ mixins: { a: 'b' }, createdAt: Reflect.get(shown.metadata, 'createdAt') });
    const change = async (name: string) =>
      await send('PATCH', path, [{ op: 'replace', path: `/metadata/${name}`, value: '2000-01-01T00:00:00.000Z' }]);
    for (const name of ['createdAt', 'modifiedAt']) {
      const answer = await change(name);
      expect([answer.status, fieldsOf(answer)]).toEqual([400, [`metadata.${name}`]]);
    }
  });
});
