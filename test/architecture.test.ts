import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';

const source = join(import.meta.dirname, '..', 'src');

/**
 * The dependency direction: main, cli → app → context → modules → ports → query | pagination | recording | providers | http → json | db → concurrency → errors.
 * A part may import from the layers below its own and from itself; parts of one layer do not know each other.
 */
const layers: readonly (readonly string[])[] = [
  ['main', 'cli'],
  ['app'],
  ['context'],
  ['installation-figures'],
  [
    'changelog',
    'models',
    'completions',
    'configuration',
    'agents',
    'jobs',
    'mail',
    'custom-entities',
    'oauth',
    'demo',
    'capture',
    'console',
    'relay',
    'docs',
    'recorder',
    'usage',
    'metrics',
    'tracing',
  ],
  // What one module makes and another uses, as types; context.ts hands it over.
  ['ports'],
  ['query', 'pagination', 'recording', 'providers', 'http'],
  ['json', 'db'],
  ['concurrency'],
  ['errors', 'sealing', 'repeat', 'stop-signal', 'config', 'package-folder'],
];

// The two doors of the command line, one after the other.
const allowed = new Set(['main → cli']);
// What knows no table, no tenant and no clock has no business in the database either.
const forbidden = new Set(['query → db', 'pagination → db', 'json → db']);

interface Import {
  from: string;
  to: string;
}

function importsOf(file: string): Import[] {
  const text = readFileSync(join(source, file), 'utf8');
  const pattern = /\b(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g;
  return [...text.matchAll(pattern)].map(([, path = '']) => ({
    from: file,
    to: relative(source, join(source, dirname(file), path)),
  }));
}

function partOf(file: string): string {
  return (file.split('/')[0] ?? '').replace(/\.ts$/, '');
}

function layerOf(part: string): number {
  return layers.findIndex((parts) => parts.includes(part));
}

const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
const imports = files.flatMap(importsOf);

test('every module stands in a layer', () => {
  expect(files.length).toBeGreaterThan(50);
  for (const file of files) expect(layerOf(partOf(file)), file).not.toBe(-1);
});

test('the guide to the architecture names every folder of the sources', () => {
  const guide = readFileSync(join(source, '../docs/architecture.md'), 'utf8');
  const folders = new Set(files.map((file) => dirname(file)).filter((folder) => folder !== '.'));
  const isNamed = (folder: string) => guide.includes(`\`${folder}/\``) || guide.includes(`\`${basename(folder)}/\``);
  expect([...folders].filter((folder) => !isNamed(folder))).toEqual([]);
});

test('imports lead to lower layers, and never from one module into another of its layer', () => {
  const against = imports.filter(({ from, to }) => {
    const [importer, imported] = [partOf(from), partOf(to)];
    const step = `${importer} → ${imported}`;
    if (forbidden.has(step)) return true;
    return importer !== imported && layerOf(imported) <= layerOf(importer) && !allowed.has(step);
  });
  expect(against.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
});

test('what is imported is there, and nothing is imported from outside of src', () => {
  for (const { from, to } of imports) expect(files, from).toContain(to);
});

test('imports of every kind are checked', () => {
  const errors = imports.filter(({ to }) => to === 'errors.ts');
  expect(errors.length).toBeGreaterThan(10);
  expect(imports).toContainEqual({ from: 'oauth/clients.ts', to: 'oauth/tables.ts' });
});

/** A function literal that is assigned to a property: `owner.name = () => …`, with `=`, `??=` or `||=`. */
const assignedFunction =
  /[\w)\]](?:\.#?\w+|\[[^\]\n]*\])\s+(?:\?\?|\|\|)?=\s+(?:async\s+)?(?:function\b|\([^()]*\)(?::\s*[\w<>[\]|. ]+)?\s*=>|\w+\s*=>)/g;

test('no function literal is assigned to a property, so that requests are garbage soon (decision 0058)', () => {
  const found = files.flatMap((file) =>
    [...readFileSync(join(source, file), 'utf8').matchAll(assignedFunction)].map(([text]) => `${file}: ${text}`),
  );
  expect(found).toEqual([]);
});

test.each([
  'request.release = () => {};',
  'this.#giveBack = (error?: Error): void => end(error);',
  'args[args.length - 1] = async (...results: unknown[]) => results;',
  'of(one).listener ??= function listen() {};',
  'one.two = three => three;',
])('the search for function literals finds %s', (text) => {
  expect(text.match(assignedFunction)).toHaveLength(1);
});

test.each([
  'const release = () => {};',
  'request.release = release;',
  'one.two === (() => 1)',
  'return { end: () => {} };',
])('the search for function literals leaves out %s', (text) => {
  expect(text.match(assignedFunction)).toBeNull();
});
