import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ConfigError } from '../../../src/core/config/config.ts';
import { builtInModels, readModels } from '../../../src/desk/models/read-models.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { annals } from '../../support/server/command.ts';
import { startTestServer } from '../../support/server/server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const server = closeAfterAll(await startTestServer());
const folder = temporaryFolder();

test('the listing has the three provider groups in order, each model with id and name', async () => {
  const token = await server.token('acme', { scope: 'ai.agent_read' });
  const response = await server.call('/ai-service/acme/agentic/models', { token });
  expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  const groups = (await response.json()) as typeof builtInModels;
  expect(groups).toEqual(builtInModels);
  expect(groups.map(({ provider }) => provider)).toEqual(['openai', 'anthropic', 'google']);
});

test('managing agents reads the listing too, and no other scope does', async () => {
  const status = async (scope: string) => {
    const token = await server.token('acme', { scope });
    return (await server.call('/ai-service/acme/agentic/models', { token })).status;
  };
  expect(await status('ai.agent_manage')).toBe(200);
  expect(await status('ai.completion_manage')).toBe(403);
});

test.each(builtInModels)('the installed package of $provider names every model of the catalogue', (group) => {
  const path = new URL(`../../../node_modules/@ai-sdk/${group.provider}/dist/index.d.ts`, import.meta.url);
  const types = readFileSync(path, 'utf8');
  const unnamed = group.models.filter(({ id }) => !types.includes(`'${id}'`));
  expect(unnamed).toEqual([]);
  expect(new Set(group.models.map(({ id }) => id)).size).toBe(group.models.length);
});

test('the default model of completions is in the catalogue', () => {
  const ids = builtInModels.find(({ provider }) => provider === 'openai')?.models.map(({ id }) => id);
  expect(ids).toContain(server.context.config.completionModel);
});

test('a file replaces the catalogue; a provider it leaves out has no models, and the order is kept', async () => {
  const file = await write([
    { provider: 'google', models: [{ id: 'g', name: 'G', thinking: false }] },
    { provider: 'openai', models: [{ id: 'o', name: 'O', description: 'ours' }] },
  ]);
  expect(await readModels(file)).toEqual([
    { provider: 'openai', models: [{ id: 'o', name: 'O', description: 'ours' }] },
    { provider: 'anthropic', models: [] },
    { provider: 'google', models: [{ id: 'g', name: 'G', thinking: false }] },
  ]);
});

test.each([
  ['an unknown provider', [{ provider: 'other', models: [] }]],
  ['a provider twice', [1, 2].map(() => ({ provider: 'openai', models: [] }))],
  ['a model twice', [{ provider: 'openai', models: [1, 2].map(() => ({ id: 'o', name: 'O' })) }]],
  ['a model without a name', [{ provider: 'openai', models: [{ id: 'o' }] }]],
  ['a field that is none', [{ provider: 'openai', models: [{ id: 'o', name: 'O', Thinking: true }] }]],
  ['no array', { provider: 'openai', models: [] }],
])('a file with %s is refused at the start', async (_what, content) => {
  await expect(readModels(await write(content))).rejects.toThrow(ConfigError);
});

test('serve does not start on a faulty file and says which setting it is', async () => {
  const missing = await annals(['serve'], {
    DATABASE_URL: server.database.url,
    ANNALS_SECRET_KEY: Buffer.alloc(32, 1).toString('base64'),
    ANNALS_MODELS_FILE: join(folder, 'missing.json'),
    LOG_LEVEL: 'silent',
  });
  expect(missing).toEqual({ code: 2, stdout: '', stderr: 'annals: ANNALS_MODELS_FILE cannot be read (ENOENT)\n' });
});

async function write(content: unknown): Promise<string> {
  const file = join(folder, `${randomUUID()}.json`);
  await writeFile(file, JSON.stringify(content));
  return file;
}
