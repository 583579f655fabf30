import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { bundleOfCheckout } from '../../build/checkout.js';
import { packageFolder } from '../../src/core/package-folder.ts';
import { launcher } from '../support/server/command.ts';
import { temporaryFolder } from '../support/server/package-copy.ts';

/** A checkout with one module. */
async function smallCheckout(text: string): Promise<string> {
  const root = await temporaryFolder();
  for (const file of ['build', 'package-lock.json']) {
    cpSync(join(packageFolder(), file), join(root, file), { recursive: true });
  }
  for (const folder of ['src', 'dist']) mkdirSync(join(root, folder));
  writeFileSync(join(root, 'src', 'main.ts'), `export const text: string = '${text}';\n`);
  return root;
}

const textOf = async (folder: string) => (await import(pathToFileURL(join(folder, 'main.js')).href)).text;

test('a bundle is rebuilt when a source has changed, and only then', async () => {
  const root = await smallCheckout('before');
  const before = await bundleOfCheckout(root);
  expect(await textOf(before)).toBe('before');
  expect(await bundleOfCheckout(root)).toBe(before);
  writeFileSync(join(root, 'src', 'main.ts'), `export const text: string = 'behind';\n`);
  const after = await bundleOfCheckout(root);
  expect(await textOf(after)).toBe('behind');
  // What still runs from the bundle before may load more of it.
  expect(readdirSync(join(root, 'dist', 'checkout')).sort()).toEqual([basename(before), basename(after)].sort());
});

test('processes that start at once make one bundle', async () => {
  const root = await smallCheckout('one');
  const script = `import { bundleOfCheckout } from ${JSON.stringify(join(packageFolder(), 'build', 'checkout.js'))};
    console.log(await bundleOfCheckout(process.argv[1]));`;
  const run = () => promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script, root]);
  const [first = '', second] = (await Promise.all([run(), run()])).map(({ stdout }) => stdout.trim());
  expect(first).toBe(second);
  expect(readdirSync(join(root, 'dist', 'checkout'))).toEqual([basename(first)]);
});

test('each worker of the bundle starts', async () => {
  const folder = await bundleOfCheckout(packageFolder());
  const workers = globSync('*-worker.js', { cwd: folder }).sort();
  expect(workers).toEqual(['threaded-worker.js']);
  for (const file of workers) {
    const worker = new Worker(join(folder, file));
    expect(await once(worker, 'message')).toEqual(['started']);
    await worker.terminate();
  }
});

test('a start loads neither the packages of vendors nor those of mail, of the Model Context Protocol and of Markdown', async () => {
  const folder = await bundleOfCheckout(packageFolder());
  const texts = new Map<string, string>();
  const load = (file: string) => {
    if (texts.has(file)) return;
    const text = readFileSync(join(folder, file), 'utf8');
    texts.set(file, text);
    for (const [, path = ''] of text.matchAll(/\b(?:import|from) ?"\.\/([\w.-]+\.js)"/g)) load(path);
  };
  for (const command of globSync('{main,serve-*,with-context-*}.js', { cwd: folder })) load(command);
  const maps = [...texts.keys()].map((file) => join(folder, `${file}.map`));
  const sources = maps.flatMap((file): string[] =>
    existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).sources : [],
  );
  const packages = new Set(sources.flatMap((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []));
  expect([...packages]).toEqual(expect.arrayContaining(['fastify', 'pg', 'typebox']));
  const late = /^(?:@ai-sdk\/|@modelcontextprotocol\/|marked|nodemailer|zod)/;
  expect([...packages].filter((name) => late.test(name))).toEqual([]);
  // An import of node:http has Node load the client of fetch: see src/core/node-http.ts.
  const imported = [...texts.values()].flatMap((text) => text.match(/\bfrom ?"node:\w+"/g) ?? []);
  expect(imported.some((line) => line.endsWith('"node:net"'))).toBe(true);
  expect(imported.filter((line) => /"(?:node:)?http"$/.test(line))).toEqual([]);
});

test('a stack names the line of the source', () => {
  const fault = `process.stdout.write = () => { throw new Error('no more') }`;
  const { stderr, status } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(fault)}`, launcher, '--version'],
    { encoding: 'utf8' },
  );
  expect(status).toBe(1);
  const [, line = ''] = /\/src\/cli\/output\.ts:(\d+)/.exec(stderr) ?? [];
  expect(
    readFileSync(join(packageFolder(), 'src', 'cli', 'output.ts'), 'utf8').split('\n')[Number(line) - 1],
  ).toContain('stdout.write(');
});
