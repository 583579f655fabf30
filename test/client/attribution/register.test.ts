import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/server/package-copy.ts';
import { recorded, type Shop, useShop } from './shop.ts';

const run = promisify(execFile);
const openShop = useShop();
const root = join(import.meta.dirname, '../../..');

/** A project that has the built client, and pg in two versions. */
async function createProject(files: Record<string, string>): Promise<string> {
  const folder = await temporaryFolder();
  await mkdir(join(folder, 'node_modules', '@annals'), { recursive: true });
  await symlink(join(root, 'clients/typescript'), join(folder, 'node_modules/@annals/client'));
  for (const name of ['pg', 'pg-8-11', 'pg-pool'])
    await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return folder;
}

async function start(
  folder: string,
  file: string,
  { url }: Shop,
  environment: object = {},
  node = process.execPath,
  flags = ['--import', '@annals/client/register'],
) {
  const { stdout } = await run(node, [...flags, file], {
    cwd: folder,
    env: { PATH: process.env.PATH, DATABASE: url, ...environment },
  });
  return stdout;
}

// The loader of Node 20 has no hooks in the thread. It runs where it is installed.
const oldNode = ['/usr/bin/node', '/usr/local/bin/node'].find((file) => existsSync(file));
const nodes: [string, string][] = [
  ['this Node', process.execPath],
  ...(oldNode ? [['the Node of the system', oldNode] as [string, string]] : []),
];

const program = (load: string) => `${load}
  const { runWithContext } = await import('@annals/client/context');
  let item = 0;
  for (const driver of drivers) {
    const pool = new driver.Pool({ connectionString: process.env.DATABASE, max: 1 });
    await Promise.all(['Ada', 'Ben', 'Cleo'].map((actor) =>
      runWithContext({ actor }, () => pool.query('insert into items values ($1)', [++item]))));
    const client = new driver.Client(process.env.DATABASE);
    await client.connect();
    await runWithContext({ actor: 'Dora' }, () => client.query('insert into items values (' + ++item + ')'));
    await client.end();
    await pool.end();
  }
  const Pool = (await import('pg-pool')).default;
  const pool = new Pool({ connectionString: process.env.DATABASE, max: 1 });
  await Promise.all(['Eve', 'Finn'].map((actor) => runWithContext({ actor }, () => pool.query('insert into items values ($1)', [++item]))));
  await pool.end();
`;

test.each(nodes)(
  'every copy of pg is attributed as it is loaded, by import and require, in %s',
  async (_name, node) => {
    const shop = await openShop();
    const folder = await createProject({
      'esm.mjs': program("import pg from 'pg'; import old from 'pg-8-11'; const drivers = [pg, old];"),
      'cjs.cjs': `(async () => {${program("const drivers = [require('pg'), require('pg-8-11')];")}})();`,
    });
    const expected = ['Ada', 'Ben', 'Cleo', 'Dora', 'Ada', 'Ben', 'Cleo', 'Dora', 'Eve', 'Finn'];
    for (const file of ['esm.mjs', 'cjs.cjs']) {
      await start(folder, file, shop, {}, node);
      expect(await recorded(shop), file).toEqual(expected.map((actor, index) => [index + 1, { actor }]));
      await shop.pool.query('truncate items');
    }
  },
);

test.each(nodes)('attribute(Client) finds the pools of its copy of pg, in %s', async (_name, node) => {
  const shop = await openShop();
  const folder = await createProject({
    'class.mjs': program(`import pg from 'pg';
      import { attribute } from '@annals/client/pg';
      attribute(pg.Client);
      const drivers = [pg];`).replace(/const Pool = [\s\S]*$/, ''),
  });
  await start(folder, 'class.mjs', shop, {}, node, []);
  expect(await recorded(shop)).toEqual(['Ada', 'Ben', 'Cleo', 'Dora'].map((actor, index) => [index + 1, { actor }]));
});

const server = `
  import http from 'node:http';
  import pg from 'pg';
  const pool = new pg.Pool({ connectionString: process.env.DATABASE, max: 1 });
  const server = http.createServer((request, response) => {
    request.resume().on('end', async () => {
      await pool.query('insert into items values ($1)', [Number(request.url.slice(1))]);
      response.end();
    });
  });
  await new Promise((resolve) => server.listen(0, resolve));
  const { port } = server.address();
  const call = (item) => fetch('http://127.0.0.1:' + port + '/' + item, { method: 'POST', body: 'x', headers: { user: 'u-' + item, 'x-request-id': 'r-' + item } });
  await Promise.all(Array.from({ length: 20 }, (_, index) => call(index + 1).then((answer) => answer.text())));
  server.close();
  await pool.end();
`;

test.each(nodes)('ANNALS_CONTEXT says who for each request of an HTTP server, in %s', async (_name, node) => {
  const shop = await openShop();
  const folder = await createProject({
    'server.mjs': server,
    'who.mjs': `
      import pg from 'pg';
      const pool = new pg.Pool({ connectionString: process.env.DATABASE, allowExitOnIdle: true });
      export const options = { trustCorrelation: true };
      export async function resolve(request) {
        await pool.query('select 1');
        return { actorId: request.headers.user };
      }`,
    'none.mjs': 'export const other = 1;',
  });
  await start(folder, 'server.mjs', shop, { ANNALS_CONTEXT: './who.mjs' }, node);
  expect(await recorded(shop)).toEqual(
    Array.from({ length: 20 }, (_, index) => [
      index + 1,
      { actorId: `u-${index + 1}`, correlationId: `r-${index + 1}` },
    ]),
  );
  for (const [file, message] of [
    ['./none.mjs', 'exports no function named resolve'],
    ['./gone.mjs', 'gone.mjs'],
  ])
    await expect(start(folder, 'server.mjs', shop, { ANNALS_CONTEXT: file }, node)).rejects.toThrow(message);
});
