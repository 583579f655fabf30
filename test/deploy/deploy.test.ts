import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { runCommandLine } from '../../src/cli/commands/command-line.ts';
import { knownVariables, secretVariables } from '../support/chart/variables.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const units = readdirSync(join(root, 'deploy/systemd')).map((name) => ({ name, text: read(`deploy/systemd/${name}`) }));
const dockerfile = read('Dockerfile');
const compose = parse(read('compose.yaml'));

test('every variable that is named anywhere is one of the settings', () => {
  const named = [dockerfile, read('compose.yaml'), read('docs/deploy.md'), read('deploy/helm/annals/values.yaml')]
    .concat(units.map(({ text }) => text))
    .flatMap((text) => text.match(/\b(?:ANNALS|OTEL|SMTP|DATABASE|LOG|POSTGRES|XDG)_[A-Z_]+\b/g) ?? []);
  const all = new Set([...named, ...Object.keys(compose.services.annals.environment)]);
  expect(all).toContain('ANNALS_SECRET_KEY');
  const known = knownVariables();
  expect([...all].filter((name) => !known.has(name))).toEqual([]);
});

test('no secret stands in a file: each is a reference', () => {
  for (const [name, value] of Object.entries<string>({
    ...compose.services.annals.environment,
    ...compose.services.database.environment,
  })) {
    if (secretVariables.test(name)) expect(value, name).toMatch(/^(postgres:\/\/annals:)?\$\{\w+:\?/);
  }
  for (const { name, text } of units)
    expect(text.match(/^Environment=(.*)$/gm), name).toEqual(['Environment=XDG_CACHE_HOME=/var/cache']);
  const files = execFileSync('git', ['ls-files', 'deploy', 'Dockerfile', 'compose.yaml', '.dockerignore'], {
    cwd: root,
    encoding: 'utf8',
  });
  for (const file of files.trim().split('\n')) {
    expect(read(file), file).not.toMatch(/[A-Za-z0-9+/]{43}=|BEGIN [A-Z ]*PRIVATE KEY|:\/\/\w+:\w+@/);
  }
});

test('processes run without privileges, on a file system that they cannot write', () => {
  expect(dockerfile).toMatch(/^USER \d+:\d+$/m);
  expect(compose.services.annals).toMatchObject({ read_only: true, tmpfs: ['/tmp'], cap_drop: ['ALL'] });
  for (const { name, text } of units) {
    expect(text, name).toMatch(/^User=annals$/m);
    expect(text, name).toMatch(/^ProtectSystem=strict$/m);
    expect(text, name).toMatch(/^NoNewPrivileges=true$/m);
  }
});

test('the image, compose.yaml and the health check use one port and a path of the service', () => {
  const port = /\bPORT=(\d+) /.exec(dockerfile)?.[1];
  expect(dockerfile).toContain(`EXPOSE ${port}\n`);
  expect(compose.services.annals.ports).toEqual([`127.0.0.1:8080:${port}`]);
  const path = /\/health\/\w+/.exec(dockerfile)?.[0];
  expect(read('src/http/health/health-routes.ts')).toContain(`'${path}',`);
});

test('what the Dockerfile copies is in the repository and not ignored', () => {
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  }).split('\n');
  const ignored = read('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !/^[#!*]/.test(line));
  const copied = [...dockerfile.matchAll(/^COPY ((?!--from)[^\n]+)$/gm)].flatMap(([, operands = '']) =>
    operands.split(' ').slice(0, -1),
  );
  expect(copied.length).toBeGreaterThan(10);
  for (const source of copied) {
    expect(existsSync(join(root, source)), source).toBe(true);
    expect(
      files.some((file) => file === source || file.startsWith(source)),
      source,
    ).toBe(true);
    expect(
      ignored.some((folder) => `${source}/`.startsWith(`${folder}/`)),
      source,
    ).toBe(false);
  }
  // Nothing of the package is missing that the service reads.
  const { files: packed }: { files: string[] } = JSON.parse(read('package.json'));
  for (const folder of packed.filter((name) => !/^(!|examples|clients)/.test(name)))
    expect(dockerfile, folder).toMatch(new RegExp(`\\b${folder}/? `));
});

test('the units run commands that are there, with options that are there', async () => {
  const help = async (command: string) => {
    const lines: string[] = [];
    const io = { environment: {}, stdin: process.stdin, stdout: process.stdout, stderr: process.stderr };
    const code = await runCommandLine([command, '--help'], {
      ...io,
      answer: (line) => void lines.push(line),
      tell: (line) => void lines.push(line),
      stop: new AbortController().signal,
    });
    expect(code).toBe(0);
    return lines.join('\n');
  };
  expect(units.map(({ name }) => name)).toEqual([
    'annals-capture.service',
    'annals-recorder.service',
    'annals-relay.service',
    'annals.service',
  ]);
  for (const { name, text } of units) {
    const [, command = '', options = ''] = /^ExecStart=\/usr\/local\/bin\/annals (\w+)(.*)$/m.exec(text) ?? [];
    const usage = await help(command);
    expect(usage, name).toContain(`Usage: annals ${command}`);
    for (const option of options.match(/--\w+/g) ?? []) expect(usage, name).toContain(option);
  }
});
