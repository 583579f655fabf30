import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { runCommandLine } from '../../src/cli/commands/command-line.ts';
import { readConfig } from '../../src/core/config/config.ts';

const docs = join(import.meta.dirname, '../../docs');
const reference = readFileSync(join(docs, 'reference.md'), 'utf8');

/** What stands in code in the first cells of the rows of a section. */
function rowsOf(section: string): Set<string> {
  const [, text = ''] = reference.split(`## ${section}\n`);
  const cells = text.split('\n## ')[0]?.matchAll(/^\| (`.+?) \|/gm) ?? [];
  return new Set([...cells].flatMap(([, cell = '']) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)));
}

test('the reference lists every setting that the start reads, and no other', () => {
  const read = new Set(['ANNALS_SOURCE_URL']);
  const environment = new Proxy<Record<string, string | undefined>>(
    {},
    {
      get(_target, name) {
        read.add(String(name));
        return undefined;
      },
    },
  );
  readConfig(environment);
  // The page about traces has the other variables of OpenTelemetry.
  const traces = readFileSync(join(docs, 'traces.md'), 'utf8');
  const listed = rowsOf('Settings');
  expect([...read].filter((name) => !listed.has(name) && !traces.includes(`\`${name}\``))).toEqual([]);
  expect([...listed].filter((name) => !read.has(name))).toEqual([]);
});

test('the reference lists every command of the command line, and no other', async () => {
  let help = '';
  const io = {
    environment: {},
    stdin: new PassThrough(),
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    answer: (text: string) => {
      help += text;
    },
    tell: () => {},
    stop: new AbortController().signal,
  };
  expect(await runCommandLine(['--help'], io)).toBe(0);
  const commands = new Set([...help.matchAll(/^ {2}(?!annals )([a-z]+) +/gm)].map(([, name = '']) => name));
  expect(commands.size).toBeGreaterThan(15);
  const listed = [...rowsOf('Commands')].flatMap((code) => /^annals (\w+)/.exec(code)?.[1] ?? []);
  expect(new Set(listed)).toEqual(commands);
});
