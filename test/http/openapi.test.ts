import { Type } from 'typebox';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { json } from '../../src/http/openapi/answers.ts';
import { queryInteger } from '../../src/http/query-number.ts';
import { scopes } from '../../src/http/scopes.ts';
import { TenantName } from '../../src/http/tenant-name.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';

interface Operation {
  tags?: string[];
  parameters?: { name: string; in: string; schema: Record<string, unknown> }[];
  requestBody?: { content: Record<string, unknown> };
  responses: Record<string, unknown>;
  security?: unknown;
}

interface SecurityScheme {
  type: string;
  flows: { clientCredentials: { tokenUrl: string; scopes: Record<string, string> } };
}

interface Document {
  openapi: string;
  info: { title: string; version: string };
  tags: { name: string; description: string }[];
  components: {
    schemas: Record<string, unknown>;
    responses: Record<string, unknown>;
    securitySchemes: { oauth2: SecurityScheme };
  };
  paths: Record<string, Record<string, Operation>>;
}

let server: TestServer;
let document: Document;

beforeAll(async () => {
  server = await startTestServer({
    extend: (app) => {
      app.get(
        '/rooms/:tenant/things',
        {
          config: { scopes: ['ai.agent_read', 'ai.agent_manage'] },
          schema: {
            params: Type.Object({ tenant: TenantName }),
            querystring: Type.Object({ page: Type.Optional(queryInteger({ minimum: 1, maximum: 9, default: 1 })) }),
            response: { 200: json(Type.Array(Type.String()), { description: 'Things.' }) },
          },
        },
        async () => [],
      );
    },
  });
  document = (await (await server.call('/openapi.json')).json()) as Document;
});

afterAll(() => server.close());

test('the document is OpenAPI 3.1 of this version, and labels the change history 0.0.1, preview', () => {
  expect(document.openapi).toBe('3.1.0');
  expect(document.info).toMatchObject({ title: 'Annals', version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
  const history = document.tags.find(({ name }) => name === 'Change history');
  expect(history?.description).toContain('Version 0.0.1, preview');
});

test('what guards an operation is told: scopes as alternatives, and the errors they lead to', () => {
  const operation = document.paths['/rooms/{tenant}/things']?.get;
  expect(operation?.security).toEqual([{ oauth2: ['ai.agent_read'] }, { oauth2: ['ai.agent_manage'] }]);
  expect(Object.keys(operation?.responses ?? {})).toEqual(['200', '400', '401', '403', '429', '431', '500', '503']);
  expect(operation?.responses['401']).toEqual({ $ref: '#/components/responses/Unauthorized' });
  expect(document.components.responses.Unauthorized).toMatchObject({
    content: { 'application/json': { schema: { $ref: '#/components/schemas/UnauthorizedFault' } } },
  });
  expect(operation?.responses['403']).toEqual({ $ref: '#/components/responses/InsufficientPermissions' });
  expect(document.components.responses.InsufficientPermissions).toMatchObject({
    content: { 'application/json': { schema: { $ref: '#/components/schemas/ErrorMessage' } } },
  });
  expect(document.components.securitySchemes).toMatchObject({
    oauth2: { type: 'oauth2', flows: { clientCredentials: { tokenUrl: '/oauth/token' } } },
  });
});

test('every scope is told, with a sentence of its own that says what it permits', () => {
  const told = document.components.securitySchemes.oauth2.flows.clientCredentials.scopes;
  expect(Object.keys(told)).toEqual(scopes);
  for (const [scope, permits] of Object.entries(told)) expect(permits, scope).toMatch(/^[A-Z].{10,}\.$/);
  expect(new Set(Object.values(told)).size).toBe(scopes.length);
});

test('numbers of a query are integers with their bounds, as they are checked', () => {
  const page = document.paths['/rooms/{tenant}/things']?.get?.parameters?.find(({ name }) => name === 'page');
  expect(page).toMatchObject({ in: 'query', schema: { type: 'integer', minimum: 1, maximum: 9, default: 1 } });
});

test('the token endpoint takes a form', () => {
  expect(Object.keys(document.paths['/oauth/token']?.post?.requestBody?.content ?? {})).toEqual([
    'application/x-www-form-urlencoded',
  ]);
});

test('every reference leads somewhere, and no operation is without a summary', () => {
  for (const [, reference] of JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)) {
    const [root, section = '', name = ''] = reference?.split('/').slice(1) ?? [];
    expect(root).toBe('components');
    expect(Reflect.get(document.components, section)).toHaveProperty(name);
  }
  for (const [path, operations] of Object.entries(document.paths)) {
    if (path.startsWith('/rooms/')) continue;
    for (const operation of Object.values(operations)) {
      expect(operation).toHaveProperty('summary');
      expect(JSON.stringify(operation.responses)).not.toContain('Default Response');
    }
  }
});

test('every operation has a tag, and every tag is described and used', () => {
  const operations = Object.entries(document.paths).filter(([path]) => !path.startsWith('/rooms/'));
  const used = operations.flatMap(([, operation]) => Object.values(operation).map(({ tags }) => tags?.join() ?? ''));
  expect(new Set(used)).toEqual(new Set(document.tags.map(({ name }) => name)));
  for (const { name, description } of document.tags) expect(description, name).toMatch(/^.{20,}\.$/);
});
