import { Type } from 'typebox';
import { expect, test } from 'vitest';
import { statusOfErrorType } from '../../src/core/errors.ts';
import { TenantName } from '../../src/http/chosen-id.ts';
import { json } from '../../src/http/openapi/answers.ts';
import { queryInteger } from '../../src/http/query-parameters.ts';
import { scopes } from '../../src/http/scopes.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { startTestRecorder } from '../support/server/recorder.ts';
import { startTestServer } from '../support/server/server.ts';

interface ResponseObject {
  $ref?: string;
  description?: string;
  headers?: Record<string, unknown>;
  content?: Record<string, { schema?: unknown; examples?: Record<string, { value: unknown }> }>;
}

interface Operation {
  tags?: string[];
  parameters?: { name?: string; in?: string; schema?: Record<string, unknown>; $ref?: string }[];
  requestBody?: { content: Record<string, unknown> };
  operationId?: string;
  responses: Record<string, ResponseObject>;
  security?: unknown;
}

interface SecurityScheme {
  type: string;
  flows: { clientCredentials: { tokenUrl: string; scopes: Record<string, string> } };
}

interface Document {
  openapi: string;
  servers: { url: string }[];
  info: { title: string; version: string };
  tags: { name: string; description: string }[];
  components: {
    schemas: Record<string, unknown>;
    responses: Record<string, ResponseObject>;
    securitySchemes: { oauth2: SecurityScheme };
  };
  paths: Record<string, Record<string, Operation>>;
}

const server = closeAfterAll(
  await startTestServer({
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
  }),
);
const document = (await (await server.call('/openapi.json')).json()) as Document;

test('the document is OpenAPI 3.1 of this version, and labels the change history 0.0.1, preview', () => {
  expect(document.openapi).toBe('3.1.0');
  expect(document.info).toMatchObject({ title: 'Annals', version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
  const history = document.tags.find(({ name }) => name === 'Change history');
  expect(history?.description).toContain('Version 0.0.1, preview');
});

test('an operation documents its guards: scopes as alternatives, and the errors they lead to', () => {
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

test('every scope is documented, with a sentence of its own that says what it permits', () => {
  const descriptions = document.components.securitySchemes.oauth2.flows.clientCredentials.scopes;
  expect(Object.keys(descriptions)).toEqual(scopes);
  for (const [scope, permits] of Object.entries(descriptions)) expect(permits, scope).toMatch(/^[A-Z].{10,}\.$/);
  expect(new Set(Object.values(descriptions)).size).toBe(scopes.length);
});

test('numbers of a query are integers with their bounds, as they are checked', () => {
  const page = document.paths['/rooms/{tenant}/things']?.get?.parameters?.find(({ name }) => name === 'page');
  expect(page).toMatchObject({ in: 'query', schema: { type: 'integer', minimum: 1, maximum: 9, default: 1 } });
});

test('the token endpoint takes a form', () => {
  expect(Object.keys(document.paths['/oauth/token']?.post?.requestBody?.content ?? {})).toEqual([
    'application/x-www-form-urlencoded',
  ]);
  // Another content type is an error of the form (RFC 6749): 400.
  expect(Object.keys(document.paths['/oauth/token']?.post?.responses ?? {})).not.toContain('415');
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

test('every object has a name, and words accepted in any case are documented as an enum', async () => {
  const recorder = await startTestRecorder(server);
  const ofRecorder = (await (await fetch(`${recorder.baseUrl}/openapi.json`)).json()) as Document;
  await recorder.close();
  const inline: string[] = [];
  const look = (part: unknown, place: string, isComponent: boolean): void => {
    if (typeof part !== 'object' || part === null) return;
    if ('properties' in part && !isComponent) inline.push(place);
    for (const [key, inner] of Object.entries(part)) {
      if (key !== 'example' && key !== 'examples') look(inner, `${place}/${key}`, false);
    }
  };
  for (const { components, paths } of [document, ofRecorder]) {
    for (const [name, schema] of Object.entries(components.schemas)) look(schema, name, true);
    look(paths, 'paths', false);
  }
  expect(inline).toEqual([]);
  const words = (name: string, member: string) =>
    (document.components.schemas[name] as { properties: Record<string, unknown> }).properties[member];
  expect(words('CompletionMessage', 'role')).toMatchObject({ type: 'string', enum: ['USER', 'SYSTEM', 'ASSISTANT'] });
  expect(words('AgentPatchOperation', 'op')).toMatchObject({ type: 'string', enum: ['ADD', 'REMOVE', 'REPLACE'] });
  for (const name of ['createdAt', 'modifiedAt']) {
    expect(words('MetadataInput', name)).toEqual({ type: 'string', format: 'date-time', readOnly: true });
  }
  expect(Object.keys(ofRecorder.paths['/recorder/{tenant}/changes']?.post?.requestBody?.content ?? {})).toHaveLength(6);
});

test('the list of operations is complete: a name never changes, and a new operation is added here', () => {
  const named = Object.entries(document.paths)
    .filter(([path]) => !path.startsWith('/rooms/'))
    .flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, { operationId }]) => `${operationId} ${method} ${path}`),
    );
  expect(named.sort()).toEqual(allOperations.trim().split('\n'));
});

test('every operation has a success with a schema, and the errors that its guard and its body lead to', () => {
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, { responses, security, requestBody }] of Object.entries(operations)) {
      const what = `${method} ${path}`;
      const successes = Object.entries(responses).filter(([status]) => status.startsWith('2'));
      expect(successes.length, what).toBeGreaterThan(0);
      for (const [status, { description, content, headers }] of successes) {
        expect(description, what).toMatch(/^[A-Z].+\.$/);
        expect(headers, what).toHaveProperty('X-Request-Id');
        if (status === '204') expect(content, what).toBeUndefined();
        else
          expect(
            Object.values(content ?? {}).every(({ schema }) => schema !== undefined),
            what,
          ).toBe(true);
        if (status !== '204') expect(Object.keys(content ?? {}).length, what).toBeGreaterThan(0);
      }
      const errors = [
        ...(Array.isArray(security) && security.length > 0 ? ['400', '401', '403', '429', '500', '503'] : []),
        ...(requestBody === undefined ? [] : ['413']),
        ...('application/json' in (requestBody?.content ?? {}) ? ['415'] : []),
      ];
      expect(Object.keys(responses), what).toEqual(expect.arrayContaining(errors));
    }
  }
});

test('an example of an error has the status that it stands under', () => {
  const shared = Object.entries(document.components.responses);
  expect(shared.length).toBeGreaterThan(10);
  const examples = shared.flatMap(([, response]) => examplesOf(response));
  for (const operations of Object.values(document.paths)) {
    for (const { responses } of Object.values(operations)) {
      for (const [status, response] of Object.entries(responses)) {
        const name = response.$ref?.split('/').at(-1);
        const own = name === undefined ? response : document.components.responses[name];
        for (const example of examplesOf(own))
          if (example.status !== undefined) expect(example.status).toBe(Number(status));
      }
    }
  }
  for (const { type } of examples) if (type !== undefined) expect(Object.keys(statusOfErrorType)).toContain(type);
});

test('pages name their cursors and their total, and a download its media types', () => {
  const headersOf = (path: string, method = 'get') => document.paths[path]?.[method]?.responses['200']?.headers;
  const pages = ['X-Next-Cursor', 'X-Prev-Cursor', 'X-Total-Count'];
  expect(Object.keys(headersOf('/ai-service/{tenant}/jobs') ?? {})).toEqual(expect.arrayContaining(pages));
  expect(Object.keys(headersOf('/ai-service/{tenant}/jobs/search', 'post') ?? {})).toEqual(
    expect.arrayContaining(pages),
  );
  const content = document.paths['/ai-service/{tenant}/jobs/{id}/content']?.get?.responses['200']?.content;
  expect(Object.keys(content ?? {})).toEqual(['application/x-ndjson', 'text/csv']);
  const events = document.paths['/ai-service/{tenant}/agentic/chat-stream']?.post?.responses['200']?.content;
  expect(Object.keys(events ?? {})).toEqual(['text/event-stream']);
});

test('what several operations share is a component', () => {
  const path = document.paths['/ai-service/{tenant}/jobs']?.get?.parameters;
  expect(path).toContainEqual({ $ref: '#/components/parameters/Tenant' });
  expect(path).toContainEqual({ $ref: '#/components/parameters/PageSize' });
  expect(document.components.schemas.ChangeEntry).toMatchObject({
    properties: { type: { type: 'string', enum: ['create', 'update', 'delete'] } },
  });
});

test('where no public address is set the document is its own server', () => {
  expect(document.servers).toEqual([{ url: '/' }]);
});

interface ErrorExample {
  status?: number;
  type?: string;
}

function examplesOf(response: ResponseObject | undefined): ErrorExample[] {
  const examples = Object.values(response?.content ?? {}).flatMap((media) => Object.values(media.examples ?? {}));
  return examples.map(({ value }) => value as ErrorExample);
}

const allOperations = `
chat post /ai-service/{tenant}/agentic/chat
chatAsync post /ai-service/{tenant}/agentic/chat-async
chatStream post /ai-service/{tenant}/agentic/chat-stream
createBudget post /usage/{tenant}/budgets
createClient post /access/{tenant}/clients
createCompletion post /ai-service/{tenant}/completions
createConfigurations post /configuration/{tenant}/configurations
createCustomEntityType post /schema/{tenant}/custom-entities
createInstance post /schema/{tenant}/custom-entities/{type}/instances
createJob post /ai-service/{tenant}/jobs
createKey post /access/{tenant}/keys
createSubscription post /changelog/{tenant}/subscriptions
createView post /changelog/{tenant}/views
createViewerToken post /changelog/{tenant}/viewer-tokens
deleteAgent delete /ai-service/{tenant}/agentic/agents/{id}
deleteBudget delete /usage/{tenant}/budgets/{id}
deleteClient delete /access/{tenant}/clients/{id}
deleteConfiguration delete /configuration/{tenant}/configurations/{key}
deleteCustomEntityType delete /schema/{tenant}/custom-entities/{type}
deleteGrant delete /access/{tenant}/grants/{id}
deleteInstance delete /schema/{tenant}/custom-entities/{type}/instances/{id}
deleteJob delete /ai-service/{tenant}/jobs/{id}
deleteKey delete /access/{tenant}/keys/{id}
deleteParkedChanges delete /changelog/{tenant}/subscriptions/{id}/parked
deleteSession delete /access/{tenant}/sessions/{id}
deleteSubscription delete /changelog/{tenant}/subscriptions/{id}
deleteView delete /changelog/{tenant}/views/{id}
downloadJobContent get /ai-service/{tenant}/jobs/{id}/content
endSessions post /access/{tenant}/sessions/end
followChanges get /changelog/{tenant}/feed
getAgent get /ai-service/{tenant}/agentic/agents/{id}
getBudget get /usage/{tenant}/budgets/{id}
getCheckpoint get /changelog/{tenant}/log/checkpoint
getClient get /access/{tenant}/clients/{id}
getCompletionUsage get /ai-service/{tenant}/completions/usage
getConfiguration get /configuration/{tenant}/configurations/{key}
getCosts get /usage/{tenant}/costs
getCustomEntityType get /schema/{tenant}/custom-entities/{type}
getDocument get /changelog/{tenant}/documents
getEntry get /changelog/{tenant}/entries
getFacets get /changelog/{tenant}/facets
getGrant get /access/{tenant}/grants/{id}
getHistogram get /changelog/{tenant}/histogram
getInstance get /schema/{tenant}/custom-entities/{type}/instances/{id}
getJob get /ai-service/{tenant}/jobs/{id}
getKey get /access/{tenant}/keys/{id}
getLiveness get /health/live
getLog get /changelog/{tenant}/log
getProof get /changelog/{tenant}/log/proof
getReadiness get /health/ready
getRequestLog get /ai-service/{tenant}/agentic/logs/requests/{id}
getSentRequest get /changelog/{tenant}/subscriptions/{id}/attempts/{attempt}/request
getSession get /access/{tenant}/sessions/{id}
getSessionLog get /ai-service/{tenant}/agentic/logs/sessions/{id}
getSubscription get /changelog/{tenant}/subscriptions/{id}
getTile get /changelog/{tenant}/log/tile/{level}/{path}
getUsage get /usage/{tenant}
getView get /changelog/{tenant}/views/{id}
getViewerEntry get /viewer/{tenant}/entries
getViewerFacets get /viewer/{tenant}/facets
getViewerHistogram get /viewer/{tenant}/histogram
issueToken post /oauth/token
listAccesses get /changelog/{tenant}/accesses
listActors get /changelog/{tenant}/actors
listAgents get /ai-service/{tenant}/agentic/agents
listBudgets get /usage/{tenant}/budgets
listChanges get /changelog/{tenant}/changelogs
listClients get /access/{tenant}/clients
listConfigurations get /configuration/{tenant}/configurations
listCustomEntityTypes get /schema/{tenant}/custom-entities
listErasures get /changelog/{tenant}/erasures
listGrants get /access/{tenant}/grants
listInstances get /schema/{tenant}/custom-entities/{type}/instances
listJobs get /ai-service/{tenant}/jobs
listKeys get /access/{tenant}/keys
listModelCalls get /usage/{tenant}/calls
listModels get /ai-service/{tenant}/agentic/models
listNames get /changelog/{tenant}/names
listRecorders get /changelog/{tenant}/recorders
listRequestLogs get /ai-service/{tenant}/agentic/logs/requests
listSessionLogs get /ai-service/{tenant}/agentic/logs/sessions
listSessions get /access/{tenant}/sessions
listSigningKeys get /.well-known/jwks.json
listSubscriptionAttempts get /changelog/{tenant}/subscriptions/{id}/attempts
listSubscriptions get /changelog/{tenant}/subscriptions
listViewerChanges get /viewer/{tenant}/changes
listViews get /changelog/{tenant}/views
narrowClient patch /access/{tenant}/clients/{id}
narrowKey patch /access/{tenant}/keys/{id}
patchAgent patch /ai-service/{tenant}/agentic/agents/{id}
patchInstance patch /schema/{tenant}/custom-entities/{type}/instances/{id}
pauseSubscription post /changelog/{tenant}/subscriptions/{id}/pause
previewSubscription get /changelog/{tenant}/subscriptions/{id}/preview
putAgent put /ai-service/{tenant}/agentic/agents/{id}
putBudget put /usage/{tenant}/budgets/{id}
putCustomEntityType put /schema/{tenant}/custom-entities/{type}
putInstance put /schema/{tenant}/custom-entities/{type}/instances/{id}
putSubscription put /changelog/{tenant}/subscriptions/{id}
putView put /changelog/{tenant}/views/{id}
readMcpTools post /ai-service/{tenant}/agentic/agents/{id}/mcp-tools
replaceConfiguration put /configuration/{tenant}/configurations/{key}
replaySubscription post /changelog/{tenant}/subscriptions/{id}/replay
resumeSubscription post /changelog/{tenant}/subscriptions/{id}/resume
rotateClient post /access/{tenant}/clients/{id}/rotate
rotateKey post /access/{tenant}/keys/{id}/rotate
rotateSubscriptionKey post /changelog/{tenant}/subscriptions/{id}/rotate
searchAccesses post /changelog/{tenant}/accesses/search
searchAgents post /ai-service/{tenant}/agentic/agents/search
searchBudgets post /usage/{tenant}/budgets/search
searchClients post /access/{tenant}/clients/search
searchErasures post /changelog/{tenant}/erasures/search
searchGrants post /access/{tenant}/grants/search
searchInstances post /schema/{tenant}/custom-entities/{type}/instances/search
searchJobs post /ai-service/{tenant}/jobs/search
searchKeys post /access/{tenant}/keys/search
searchModelCalls post /usage/{tenant}/calls/search
searchRequestLogs post /ai-service/{tenant}/agentic/logs/requests/search
searchSessionLogs post /ai-service/{tenant}/agentic/logs/sessions/search
searchSessions post /access/{tenant}/sessions/search
searchSubscriptionAttempts post /changelog/{tenant}/subscriptions/{id}/attempts/search
searchSubscriptions post /changelog/{tenant}/subscriptions/search
searchViews post /changelog/{tenant}/views/search
streamCompletion post /ai-service/{tenant}/completions-stream
testSubscription post /changelog/{tenant}/subscriptions/{id}/test
`;
