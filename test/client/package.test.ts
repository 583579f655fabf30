import { execFile } from 'node:child_process';
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../support/server/package-copy.ts';
import { startTestServer } from '../support/server/server.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');
const client = join(root, 'clients', 'typescript');

const typed = `import { Annals, type ChangeEntry, type Job } from '@annals/client';
import { type Context, express, fastify, hono, koa, nest, runWithContext } from '@annals/client/context';
import { type JsonObject, stringifyJson } from '@annals/client/json';
import { attribute } from '@annals/client/pg';
import { and, entity, field } from '@annals/client/query';
interface Pool { connect(): Promise<{ query(text: string): Promise<{ rows: unknown[] }>; release(): void }> }
export const attributed = (pool: Pool): Promise<unknown[]> => runWithContext({ actor: 'Ada', actorId: 7 }, async () => {
  const { rows } = await attribute.transaction(attribute(pool, { capture: false }), (client) => client.query('call x()'));
  return rows;
});
interface Signed { headers: Record<string, string>; user?: { name: string } }
const resolve = async ({ user }: Signed): Promise<Context | undefined> => user && { actor: user.name };
export const middlewares = [express, fastify, koa, nest].map((make) => make(resolve, { trustCorrelation: true }));
export const ofHono = hono((c: { req: { header(name: string): string | undefined } }) => ({ actor: c.req.header('x') }));
const annals = new Annals({ baseUrl: '', tenant: 'acme', token: () => '' });
export async function use(): Promise<[ChangeEntry[], Job | undefined, string]> {
  const entries: ChangeEntry[] = [];
  for await (const entry of annals.history.list({ q: and(entity('order')) })) entries.push(entry);
  const { items: [job] } = await annals.jobs.list();
  const shelf: JsonObject = await annals.exact.instances('SHELF').get('a');
  // @ts-expect-error: of parts of items only the id is certain.
  const status: string = (await annals.jobs.list({ fields: 'status', q: field('status').is('x') })).items[0].status;
  return [entries, job, stringifyJson(shelf) + status];
}
`;

test('the packed client works in an empty project, its types too, and holds nothing but its code', async () => {
  const folder = await temporaryFolder();
  const path = `${dirname(process.execPath)}:${process.env.PATH}`;
  // `npm test` has built it before all tests; alone, this test packs what was built last.
  await run('npm', ['pack', '--offline', '--ignore-scripts', '--pack-destination', folder], {
    cwd: client,
    env: { ...process.env, PATH: path },
  });
  const [tarball = 'none'] = await readdir(folder);
  const installed = join(folder, 'node_modules', '@annals', 'client');
  await mkdir(installed, { recursive: true });
  await run('tar', ['xzf', join(folder, tarball), '-C', installed, '--strip-components=1']);
  expect((await readdir(installed)).sort()).toEqual(['LICENSE', 'README.md', 'dist', 'package.json']);
  expect(JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'))).not.toHaveProperty('dependencies');

  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  await copyFile(join(import.meta.dirname, 'consumer.js'), join(folder, 'consumer.js'));
  const server = await startTestServer();
  onTestFinished(() => server.close());
  const { clientId, clientSecret } = await server.createClient('acme');
  const environment = {
    ANNALS_URL: server.baseUrl,
    ANNALS_TENANT: 'acme',
    ANNALS_CLIENT_ID: clientId,
    ANNALS_CLIENT_SECRET: clientSecret,
  };
  const { stdout } = await run(process.execPath, ['consumer.js'], { cwd: folder, env: environment });
  expect(JSON.parse(stdout)).toEqual({
    node: process.versions.node,
    entries: ['i-5', 'i-4', 'i-3', 'i-2', 'i-1'],
    exact: '1.10',
    exported: 5,
    expected: 5,
    error: 'validation_violation',
  });

  // Without types of Node and without skipLibCheck: the declarations need nothing but a browser's or a Node's own.
  await writeFile(join(folder, 'use.ts'), typed);
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  // The declarations of TypeScript itself are not checked, which would take longer than all else.
  const common = {
    noEmit: true,
    skipDefaultLibCheck: true,
    strict: true,
    target: 'es2022',
    lib: ['es2022', 'dom'],
    types: [],
  };
  const resolutions = [{ module: 'nodenext' }, { module: 'esnext', moduleResolution: 'bundler' }];
  for (const resolution of resolutions) {
    const project = { compilerOptions: { ...common, ...resolution }, files: ['use.ts'] };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(project));
    const { stdout: faults } = await run(process.execPath, [compiler, '-p', folder]).catch((error) => error);
    expect(faults).toBe('');
  }
});
