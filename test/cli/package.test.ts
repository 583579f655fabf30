import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { access, readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { stateFile } from '../../build/checkout.js';
import { maxInlineCharacters } from '../../src/core/fairness/threads.ts';
import { annals, startAnnals } from '../support/server/command.ts';
import { createEmptyTestDatabase } from '../support/server/database.ts';
import { copyPackage, linkModules, temporaryFolder, unpackPackage } from '../support/server/package-copy.ts';

const run = promisify(execFile);

test('the packed package migrates an empty database and serves it, and has the shop of the demo', {
  timeout: 300_000,
}, async () => {
  const source = await copyPackage();
  const folder = await temporaryFolder();
  const path = `${dirname(process.execPath)}:${process.env.PATH}`;
  // The pages are those of the run: `prepare` would build them once more.
  const env = { ...process.env, PATH: path };
  const { scripts } = JSON.parse(await readFile(join(source, 'package.json'), 'utf8'));
  await run('sh', ['-c', scripts.build], { cwd: source, env });
  await unpackPackage(source, folder);
  expect(await readdir(folder)).not.toContain('src');
  for (const page of ['console', 'clients/viewer'])
    expect(await readdir(join(folder, page, 'dist'))).not.toContain(stateFile);
  for (const file of [
    'console/dist/index.html',
    'clients/viewer/dist/viewer.js',
    'deploy/grafana/annals.json',
    'deploy/prometheus/alerts.yaml',
  ]) {
    await access(join(folder, file));
  }
  const licences = await readFile(join(folder, 'dist', 'licences.txt'), 'utf8');
  expect(licences).toMatch(/^fastify \d+\.\d+\.\d+ \(MIT\)\n\nMIT License\n\nCopyright/m);
  // Each link of the README leads to a file of the package, or to the web.
  for (const [, link = ''] of (await readFile(join(folder, 'README.md'), 'utf8')).matchAll(/\]\(([^)#\s]+)/g)) {
    if (!/^https?:/.test(link)) await access(join(folder, link));
  }
  await linkModules(folder);

  const database = await createEmptyTestDatabase();
  const environment = { DATABASE_URL: database.url, ANNALS_SECRET_KEY: randomBytes(32).toString('base64') };
  const service = startAnnals(
    ['serve'],
    { ...environment, PORT: '0', LOG_LEVEL: 'warn' },
    join(folder, 'bin', 'annals.js'),
  );
  onTestFinished(async () => {
    service.process.kill('SIGKILL');
    await service.ended;
    await database.drop();
  });
  const baseUrl = await service.firstLine;
  expect(await (await fetch(`${baseUrl}/health/ready`)).json()).toEqual({ status: 'ok' });
  expect((await fetch(`${baseUrl}/docs/guides/operations`)).status).toBe(200);
  expect((await fetch(`${baseUrl}/docs/viewer/swagger-ui.css`)).status).toBe(200);
  expect((await fetch(`${baseUrl}/viewer.js`)).status).toBe(200);
  expect((await database.pool.query('select from routine')).rowCount).toBeGreaterThan(20);

  // The shop is in a file of the package, and made in a thread.
  const shop = `const { preparedShop } = await import('${pathToFileURL(join(folder, 'dist', 'demo-prepared-shop.js'))}');
    console.log((await preparedShop(Date.now())).changes.length);`;
  const { stdout: changes } = await run(process.execPath, ['--input-type=module', '--eval', shop]);
  expect(Number(changes)).toBeGreaterThan(4_000);

  // A long document is read in a thread, which loads its part of the bundle.
  const types = `${baseUrl}/schema/acme/custom-entities`;
  const headers = {
    authorization: `Bearer ${await tokenOf(baseUrl, environment)}`,
    'content-type': 'application/json',
  };
  const post = async (url: string, body: object) =>
    (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).status;
  expect(await post(types, { id: 'NOTE', name: { en: 'Note' } })).toBe(201);
  expect(await post(`${types}/NOTE/instances`, { text: 'x'.repeat(2 * maxInlineCharacters) })).toBe(201);
});

async function tokenOf(baseUrl: string, environment: Record<string, string>): Promise<string> {
  await annals(['tenant', 'create', 'acme'], environment);
  const scope = 'schema.schema_manage schema.custominstance_manage';
  const { stdout } = await annals(['client', 'create', '--tenant', 'acme', '--scope', scope], environment);
  const { clientId, clientSecret }: { clientId: string; clientSecret: string } = JSON.parse(stdout);
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret };
  const answer = await fetch(`${baseUrl}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) });
  const { access_token: token } = (await answer.json()) as { access_token: string };
  return token;
}
