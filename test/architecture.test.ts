import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { drawArchitecture } from './support/architecture/draw.ts';
import {
  cyclesOfFolders,
  importsOf,
  isAgainstTheDirection,
  layerOf,
  moduleOf,
  sourceFiles,
} from './support/architecture/imports.ts';

const root = join(import.meta.dirname, '..');
const files = sourceFiles(root);
const imports = importsOf(root, files);

test('every module stands in a layer', () => {
  expect(files.length).toBeGreaterThan(50);
  for (const file of files) expect(layerOf(moduleOf(file)), file).not.toBe(-1);
});

test('imports lead to lower layers, and never from one module into another of its layer', () => {
  expect(imports.filter(isAgainstTheDirection).map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
});

test('the query language and the pagination know the core alone', () => {
  const others = imports.filter(
    ({ from, to }) =>
      ['query', 'pagination'].includes(moduleOf(from)) && ![moduleOf(from), 'core'].includes(moduleOf(to)),
  );
  expect(others).toEqual([]);
});

test('inside a module no import leads back up: its folders have an order', () => {
  expect(cyclesOfFolders(imports)).toEqual([]);
});

test.each<{ what: string; steps: [string, string][]; expected: string[] }>([
  {
    what: 'to and fro',
    steps: [
      ['a/b/1.ts', 'a/2.ts'],
      ['a/3.ts', 'a/b/4.ts'],
    ],
    expected: ['a/b → a', 'a → a/b'],
  },
  {
    what: 'over a third folder',
    steps: [
      ['a/b/1.ts', 'a/c/2.ts'],
      ['a/c/3.ts', 'a/d/4.ts'],
      ['a/d/4.ts', 'a/b/1.ts'],
    ],
    expected: ['a/b → a/c', 'a/c → a/d', 'a/d → a/b'],
  },
  {
    what: 'in one direction',
    steps: [
      ['a/b/1.ts', 'a/2.ts'],
      ['a/b/3.ts', 'a/c/4.ts'],
      ['a/1.ts', 'b/1.ts'],
    ],
    expected: [],
  },
])('the search for imports that lead back up: $what', ({ steps, expected }) => {
  expect(cyclesOfFolders(steps.map(([from, to]) => ({ from, to })))).toEqual(expected);
});

test('what is imported is there, and nothing is imported from outside of src', () => {
  for (const { from, to } of imports) expect(files, from).toContain(to);
});

test('imports of every kind are checked', () => {
  expect(imports.filter(({ to }) => to === 'core/errors.ts').length).toBeGreaterThan(10);
  expect(imports).toContainEqual({ from: 'access/oauth/clients.ts', to: 'access/oauth/tables.ts' });
});

test('the guide to the architecture names every folder of the sources', () => {
  const guide = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
  const folders = new Set(files.map((file) => dirname(file)).filter((folder) => folder !== '.'));
  const isNamed = (folder: string) => guide.includes(`\`${folder}/\``) || guide.includes(`\`${basename(folder)}/\``);
  expect([...folders].filter((folder) => !isNamed(folder))).toEqual([]);
});

test('the picture of the architecture is what the code is: npx node test/support/architecture/write.ts', () => {
  expect(readFileSync(join(root, 'docs/images/architecture.svg'), 'utf8')).toBe(drawArchitecture(files, imports));
});

/** A function literal that is assigned to a property: `owner.name = () => …`, with `=`, `??=` or `||=`. */
const assignedFunction =
  /[\w)\]](?:\.#?\w+|\[[^\]\n]*\])\s+(?:\?\?|\|\|)?=\s+(?:async\s+)?(?:function\b|\([^()]*\)(?::\s*[\w<>[\]|. ]+)?\s*=>|\w+\s*=>)/g;

test('no function literal is assigned to a property, so that requests are garbage soon (docs/decisions/requests.md)', () => {
  const found = files.flatMap((file) =>
    [...readFileSync(join(root, 'src', file), 'utf8').matchAll(assignedFunction)].map(([text]) => `${file}: ${text}`),
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
