import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const manifest = (folder: string): { name: string; version: string } => JSON.parse(read(join(folder, 'package.json')));
const { version } = manifest('.');

const pages = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  cwd: root,
  encoding: 'utf8',
})
  .trim()
  .split('\n')
  .filter((file) => !file.startsWith('docs/decisions/') && file !== 'CHANGELOG.md');

test('no page installs from the registry what is not on it', () => {
  const commands = /npm (?:install|i|add)\b[^\n`]*? (?:annals|@annals\/\w+)(?![\w/-])/;
  // What to write once they are published stands there.
  const others = pages.filter((file) => file !== 'CONTRIBUTING.md');
  expect(others.filter((file) => commands.test(read(file)))).toEqual([]);
});

test('every package, the chart and every file name in a page have one version', () => {
  for (const folder of ['clients/typescript', 'clients/viewer', 'console'])
    expect(manifest(folder).version, folder).toBe(version);
  expect(read('clients/python/pyproject.toml')).toContain(`\nversion = "${version}"\n`);
  expect(read('clients/python/annals/__init__.py')).toContain(`\n__version__ = "${version}"\n`);
  expect(read('deploy/helm/annals/Chart.yaml')).toContain(`\nversion: ${version}\nappVersion: ${version}\n`);
  const mentions = pages.flatMap((file) =>
    [...read(file).matchAll(/annals(?:-client|-viewer)?[-:](\d+\.\d+\.\d+)/g)].map(([, found]) => ({ file, found })),
  );
  expect(mentions.length).toBeGreaterThan(5);
  expect(mentions.filter(({ found }) => found !== version)).toEqual([]);
  expect(read('docs/install.md')).toContain(`The version is ${version}.`);
});

test('the files that the pages name are those that npm pack makes', () => {
  for (const [folder, page] of [
    ['.', 'docs/install.md'],
    ['clients/typescript', 'clients/typescript/README.md'],
    ['clients/viewer', 'clients/viewer/README.md'],
  ] as const) {
    const file = `${manifest(folder).name.replace('@', '').replace('/', '-')}-${version}.tgz`;
    expect(read(page)).toContain(`npm install ${folder === '.' ? '--global ' : ''}./${file}`);
  }
});
