import { expect, test } from 'vitest';
import { createKey } from '../../src/access/keys/key-store.ts';
import { createClient } from '../../src/access/oauth/clients.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { startTestServer } from '../support/server/server.ts';

const server = closeAfterAll(await startTestServer());
const token = await server.token('acme');

const post = async (path: string, body: object) => (await server.call(path, { token, json: body })).status;

/** Everything that makes a name. */
const makers: Readonly<Record<string, (name: string) => Promise<number>>> = {
  'a saved view': (name) => post('/changelog/acme/views', { name, q: '' }),
  'a subscription': (name) =>
    post('/changelog/acme/subscriptions', { name, q: '', target: { type: 'webhook', url: 'https://example.com/' } }),
  'a viewer token': (subject) => post('/changelog/acme/viewer-tokens', { q: 'entity:order', subject }),
  'an agent': async (name) => {
    const path = `/ai-service/acme/agentic/agents/agent-${crypto.randomUUID()}`;
    const body = JSON.stringify({ name: { en: name }, llmConfig: { provider: 'shared' } });
    const headers = { 'content-type': 'application/json' };
    return (await server.call(path, { token, method: 'PUT', headers, body })).status;
  },
  'a custom type': (name) =>
    post('/schema/acme/custom-entities', {
      id: `TYPE_${crypto.randomUUID().slice(0, 8).toUpperCase()}`,
      name: { en: name },
    }),
  'a client': async (name) =>
    await statusOf(createClient(server.context.db, { tenant: 'acme', name, scope: 'changelog.changelog_read' })),
  'a key': async (name) =>
    await statusOf(createKey(server.context.db, { tenant: 'acme', name, scopes: ['changelog.changelog_read'] })),
};

async function statusOf(made: Promise<unknown>): Promise<number> {
  return await made.then(
    () => 201,
    (error: { message: string }) => (/turn the direction/.test(error.message) ? 400 : 500),
  );
}

test.each(Object.entries(makers))('%s has no name that turns the direction of a text', async (_what, make) => {
  for (const control of ['\u061c', '\u200e', '\u202e', '\u2066', '\u2069'])
    expect([control, await make(`invoice${control}fdp.exe`)]).toEqual([control, 400]);
  // Other scripts and joined pictures are names.
  expect([200, 201]).toContain(await make('\u05d0\u05d1 \u{1f469}\u200d\u{1f680}'));
});
