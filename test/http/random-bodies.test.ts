import { expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { type BodiesDocument, DescribedBodies, operationsWithBody } from '../support/oracle/described-bodies.ts';
import { checkLaw } from '../support/oracle/law.ts';
import { callAgentic } from '../support/server/agents.ts';
import { startTestServer } from '../support/server/server.ts';

const bodiesOfOperation = 2;

const tenant = 'acme';

const server = closeAfterAll(await startTestServer());
const token = await server.token(tenant);
const document = (await (await server.call('/openapi.json')).json()) as BodiesDocument;
await send('POST', `/configuration/${tenant}/configurations`, [{ key: 'x', value: 1 }]);
await send('POST', `/schema/${tenant}/custom-entities`, { id: 'THING', name: { en: 'Thing' } });
await send('PUT', `/schema/${tenant}/custom-entities/THING/instances/x`, { a: { b: [1] } });
await callAgentic(server, { tenant, token, path: '/agents/x', method: 'PUT' }, { name: { en: 'x' } });

interface Fault {
  readonly field: string;
  readonly message: string;
}

/** Why a body that is valid by the document may be refused: what no schema can say. By operation, field and message. */
const beyondSchemas: readonly { operation: RegExp; field: RegExp; message: RegExp; because: string }[] = [
  {
    operation: /^(search|createJob|createView|putView)/,
    field: /^q$/,
    message: /^At position/,
    because: 'a query has a grammar',
  },
  {
    operation: /^createViewerToken$/,
    field: /^(q|hide\.\d+)$/,
    message: /./,
    because: 'a pattern cannot tell every query and path, and a token has a length',
  },
  {
    operation: /^create(Client|Key)$/,
    field: /^(query|hide(\.\d+)?|scopes|models|name)$/,
    message: /./,
    because:
      'a pattern cannot tell every query and path, scopes and models depend on each other, and some names are reserved',
  },
  {
    operation: /View$/,
    field: /^range$/,
    message: /^must (begin|end)|P36500D/,
    because: 'its times have to exist and to follow each other, and its days have a maximum',
  },
  {
    operation: /^put|^replace/,
    field: /^(id|key)$/,
    message: /that of the path|key of the path/,
    because: 'it repeats the path',
  },
  {
    operation: /^createConfigurations$/,
    field: /^\d+\.key$/,
    message: /twice/,
    because: 'keys differ from one another',
  },
  {
    operation: /^replaceConfiguration$/,
    field: /^value$/,
    message: /secured/,
    because: 'it depends on the stored item',
  },
  {
    operation: /Subscription$/,
    field: /^(q|from|to|parked|target\.headers(\..*)?)$/,
    message: /./,
    because: 'a pattern cannot tell every query, header and cursor',
  },
  {
    operation: /Subscription$/,
    field: /^target\.(url|endpoint)$/,
    message: /^must be a URL$|^must begin with https:\/\/$/,
    because: 'a pattern cannot tell every URL, and a service may allow http',
  },
  { operation: /CustomEntityType$/, field: /^jsonSchema/, message: /./, because: 'it is a schema of its own' },
  { operation: /Instance$/, field: /^id$/, message: /bytes of UTF-8/, because: 'a schema counts characters' },
  {
    operation: /^putAgent$/,
    field: /^llmConfig\./,
    message: /^must be a URL$/,
    because: 'a pattern cannot tell every URL',
  },
  {
    operation: /^putAgent$/,
    field: /^(mcpServers(\.|$)|allowHistoryWithTools$)/,
    message: /./,
    because: 'names differ from one another, headers and URLs have no pattern, and members depend on each other',
  },
  {
    operation: /^readMcpTools$/,
    field: /^server$/,
    message: /name of a server/,
    because: 'it depends on the stored agent',
  },
  {
    operation: /Budget$/,
    field: /^(agent|model|user|limitUsd)$/,
    message: /^must be (left out|there)/,
    because: 'members depend on each other',
  },
  {
    operation: /^createJob$/,
    field: /^(format|bom|rows)$/,
    message: /^with proof|^must be left out/,
    because: 'members depend on each other',
  },
  { operation: /^patchInstance$/, field: /^\d+$/, message: /./, because: 'it depends on the stored instance' },
  {
    operation: /^patchInstance$/,
    field: /^(id|name|metadata|$)/,
    message: /./,
    because: 'it is what a patch leads to',
  },
  { operation: /^patchAgent$/, field: /./, message: /./, because: 'it depends on the stored agent' },
];

test('a body that is valid by the document is refused for nothing that the document could have ruled out', async () => {
  const bodies = new DescribedBodies(document);
  const operations = operationsWithBody(document);
  expect(operations.length).toBeGreaterThan(15);
  for (const { operationId, method, path, type, body } of operations) {
    const place = path.replaceAll(/\{(\w+)\}/g, (_match, name: string) => parameterOf(name, path));
    await checkLaw(bodies.arbitrary(body), { runs: bodiesOfOperation }, async (value) => {
      const { status, text } = await send(method, place, value, type);
      if (status !== 400) return;
      const answer = JSON.parse(text) as { message: string; details?: readonly Fault[] };
      const unexplained = (answer.details ?? [{ field: '', message: answer.message }]).filter(
        (fault) => !isBeyondSchemas(operationId, fault),
      );
      expect([operationId, JSON.stringify(value), unexplained]).toEqual([operationId, JSON.stringify(value), []]);
    });
  }
});

function isBeyondSchemas(operationId: string, fault: Fault): boolean {
  return beyondSchemas.some(
    ({ operation, field, message }) =>
      operation.test(operationId) && field.test(fault.field) && message.test(fault.message),
  );
}

function parameterOf(parameter: string, path: string): string {
  if (parameter === 'tenant') return tenant;
  if (parameter !== 'type') return 'x';
  // A type with a random schema would refuse instances that the document allows.
  return path.includes('/instances') ? 'THING' : 'REPLACED';
}

async function send(method: string, path: string, body: unknown, type = 'application/json') {
  const headers = { 'content-type': type };
  const response = await server.call(path, { token, method, headers, body: JSON.stringify(body) });
  return { status: response.status, text: await response.text() };
}
