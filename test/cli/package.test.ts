import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { access, readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { startAnnals } from '../support/server/command.ts';
import { createEmptyTestDatabase } from '../support/server/database.ts';
import { copyPackage, linkModules, temporaryFolder } from '../support/server/package-copy.ts';

const run = promisify(execFile);

test('the packed package migrates an empty database and serves', { timeout: 300_000 }, async () => {
  const source = await copyPackage();
  const target = await temporaryFolder();
  const path = `${dirname(process.execPath)}:${process.env.PATH}`;
  await run('npm', ['pack', '--offline', '--pack-destination', target], {
    cwd: source,
    env: { ...process.env, PATH: path },
  });
  const [tarball] = await readdir(target);
  await run('tar', ['xzf', join(target, tarball ?? 'none'), '-C', target]);
  const folder = join(target, 'package');
  expect(await readdir(folder)).not.toContain('src');
  await access(join(folder, 'console', 'dist', 'index.html'));
  // Each link of the README leads to a file of the package, or to the web.
  for (const [, link = ''] of (await readFile(join(folder, 'README.md'), 'utf8')).matchAll(/\]\(([^)#\s]+)/g)) {
    if (!/^https?:/.test(link)) await access(join(folder, link));
  }
  await linkModules(folder);

  const database = await createEmptyTestDatabase();
  const service = startAnnals(
    ['serve'],
    { DATABASE_URL: database.url, ANNALS_SECRET_KEY: randomBytes(32).toString('base64'), PORT: '0', LOG_LEVEL: 'warn' },
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
  expect((await database.pool.query('select from routine')).rowCount).toBeGreaterThan(20);
});
