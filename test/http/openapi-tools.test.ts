import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { buildRecorderApp } from '../../src/app.ts';
import { temporaryFolder } from '../support/server/package-copy.ts';
import { startTestServer } from '../support/server/server.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');
const modules = join(root, 'node_modules');
/** The documents of the service, of the recorder and of the endpoints for OpenAI and Anthropic clients. */
let text: string;
let recorderText: string;
let openaiText: string;
let anthropicText: string;

interface Linted {
  totals: object;
  problems: { ruleId: string }[];
}

beforeAll(async () => {
  const server = await startTestServer();
  text = await (await server.call('/openapi.json')).text();
  const recorder = await buildRecorderApp(server.context, { mapping: undefined });
  recorderText = recorder.openApiText();
  openaiText = await (await server.call('/openai/openapi.json')).text();
  anthropicText = await (await server.call('/anthropic/openapi.json')).text();
  await recorder.close();
  await server.close();
});

test('the linter has nothing to say of the service, of the recorder and of the endpoints for OpenAI and Anthropic clients', async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'openapi.json'), text);
  const program = join(modules, '@redocly', 'cli', 'bin', 'cli.js');
  const config = join(root, 'redocly.yaml');
  const environment = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  await writeFile(join(folder, 'recorder.json'), recorderText);
  await writeFile(join(folder, 'openai.json'), openaiText);
  await writeFile(join(folder, 'anthropic.json'), anthropicText);
  // The linter does see what is wrong.
  await writeFile(join(folder, 'wrong.json'), recorderText.replace(/"operationId":"\w+",/, ''));
  const files = ['openapi.json', 'recorder.json', 'openai.json', 'anthropic.json', 'wrong.json'];
  const linted = await run(process.execPath, [program, 'lint', ...files, '--config', config, '--format', 'json'], {
    cwd: folder,
    env: environment,
  }).catch((error: { stdout: string }) => error);
  // One JSON object for each file.
  const [service, recorder, openai, anthropic, wrong] = linted.stdout
    .split(/(?=\{\s+"totals")/)
    .map((object) => JSON.parse(object) as Linted);
  const nothing = { totals: { errors: 0, warnings: 0, ignored: 0 }, problems: [] };
  expect(service).toMatchObject(nothing);
  expect(recorder).toMatchObject(nothing);
  expect(openai).toMatchObject(nothing);
  expect(anthropic).toMatchObject(nothing);
  expect(wrong?.problems.map(({ ruleId }) => ruleId)).toEqual(['operation-operationId']);
});

test('generated types compile, with useful names and without unknown answers', async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'openapi.json'), text);
  const generator = join(root, 'clients', 'typescript', 'node_modules', 'openapi-typescript', 'bin', 'cli.js');
  await run(process.execPath, [generator, 'openapi.json', '-o', 'openapi.d.ts'], { cwd: folder });
  await writeFile(join(folder, 'use.ts'), useOfTypes);
  const compiler = join(modules, 'typescript', 'bin', 'tsc');
  const options = ['--strict', '--noEmit', '--skipDefaultLibCheck', '--exactOptionalPropertyTypes', '--types', ''];
  const compiled = await run(process.execPath, [compiler, ...options, 'use.ts'], { cwd: folder }).catch(
    (error: { stdout: string }) => error,
  );
  expect(compiled.stdout).toBe('');
});

/** What a program does with the types. A wrong name or an `unknown` where there is a type does not compile. */
const useOfTypes = `
import type { components, operations } from './openapi.d.ts';

type Answers<Name extends keyof operations> = operations[Name]['responses'];
type Success<Name extends keyof operations> = {
  [Status in keyof Answers<Name>]: Status extends 200 | 201
    ? Answers<Name>[Status] extends { content: infer Content } ? Content[keyof Content] : never
    : never;
}[keyof Answers<Name>];

// Every success of every operation has a type.
type IsUnknown<Type> = unknown extends Type ? true : false;
type Unknown = { [Name in keyof operations]: IsUnknown<Success<Name>> extends true ? Name : never }[keyof operations];
export const none: [Unknown] extends [never] ? true : Unknown = true;

export function latest(page: Success<'listChanges'>): string {
  const entry: components['schemas']['ChangeEntry'] | undefined = page.items[0];
  if (entry === undefined) return String(page.totalElements);
  const type: 'create' | 'update' | 'delete' = entry.type;
  const paths: Record<string, components['schemas']['PathValueChange']> = entry.paths;
  const related: components['schemas']['RelatedItem'][] = entry.related;
  return [type, entry.actor, entry.name ?? '', ...Object.keys(paths), ...related.map((item) => item.entityId)].join();
}

export function told(agent: Success<'getAgent'>, job: Success<'getJob'>, log: Success<'getRequestLog'>): string {
  const provider: 'openai' | 'anthropic' | 'google' | 'shared' | string = agent.llmConfig.provider;
  const status: 'in_progress' | 'success' | 'failure' | 'skipped' = job.status;
  const severity: 'INFO' | 'WARNING' | 'ERROR' = log.severity;
  return provider + status + severity + log.messages.map(({ timestamp, message }) => timestamp + message).join();
}

export function listed(page: Success<'searchInstances'>, made: Success<'createInstance'>): string[] {
  return [made.id, ...page.map((item) => item.id)];
}

export function refused(error: components['responses']['ConflictResource']['content']['application/json']): string {
  return error.type + error.message + (error.details ?? []).map(({ field }) => field).join();
}

export const request: operations['listInstances']['parameters'] = {
  path: { tenant: 'demo', type: 'WARRANTY_CLAIM' },
  query: { q: 'amount:>=10', pageSize: 10, sort: 'name:ASC' },
  header: { 'x-total-count': 'true' },
};

// @ts-expect-error There is no such type of a change.
export const wrong: components['schemas']['ChangeEntry']['type'] = 'rename';
`;
