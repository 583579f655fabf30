import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { runImport } from '../../src/cli/commands/import.ts';
import type { RecordChanges } from '../../src/recording/change.ts';

const folder = await mkdtemp(join(tmpdir(), 'annals import '));
afterAll(async () => {
  await rm(folder, { recursive: true });
});

const record: RecordChanges = async (batch) => batch.map(() => 'recorded');
const good = '{"op":"insert","entity":"order","entityId":"1","at":"2024-05-06T07:08:09Z","after":{"token":"hunter2"}}';

async function run(file: string, { stdin = '', isTTY = false } = {}) {
  const stdout = new PassThrough();
  const stderr = Object.assign(new PassThrough(), { isTTY });
  const exit = await runImport({ tenant: 'acme', file, record }, { stdin: Readable.from([stdin]), stdout, stderr });
  return { exit, stdout: await text(stdout.end()), stderr: await text(stderr.end()) };
}

const answer = (read: number, recorded: number, rejected: number) =>
  `{"read":${read},"recorded":${recorded},"unchanged":0,"duplicate":0,"expired":0,"rejected":${rejected}}\n`;

test('a good file: the counts on stdout, nothing on stderr, exit 0', async () => {
  const file = join(folder, 'good.ndjson.gz');
  await writeFile(file, gzipSync(`${good}\n${good}\n`));
  expect(await run(file)).toEqual({ exit: 0, stdout: answer(2, 2, 0), stderr: '' });
});

test('a bad line: its number and the reason on stderr, the rest is recorded, exit 1', async () => {
  const result = await run('-', { stdin: `${good}\n\n${good.replace('insert', 'hunter2')}\n${good}x\n${good}` });
  expect(result).toEqual({
    exit: 1,
    stdout: answer(4, 2, 2),
    stderr:
      'line 3: "op" is not insert, create, update, replace or delete\n' +
      `line 4: cannot be read as JSON: expected the end of the text at character ${good.length + 1}\n`,
  });
});

test('a missing file, or a folder: a message and exit 1', async () => {
  const missing = join(folder, 'missing');
  expect(await run(missing)).toEqual({ exit: 1, stdout: '', stderr: `annals import: there is no file ${missing}\n` });
  expect(await run(folder)).toEqual({ exit: 1, stdout: '', stderr: `annals import: ${folder} is a folder\n` });
});

test('a damaged file: the counts of what was recorded, a message and exit 1', async () => {
  const file = join(folder, 'damaged.gz');
  await writeFile(file, gzipSync(`${good}\n${good}\n`).subarray(0, -4));
  const result = await run(file);
  expect(result).toMatchObject({ exit: 1, stdout: answer(2, 2, 0) });
  expect(result.stderr).toMatch(/^annals import: the input could not be read to its end: unexpected end of file\./);
});

test('progress is drawn on a terminal alone, and taken away at the end', async () => {
  const { stderr } = await run('-', { stdin: `${good}\n`, isTTY: true });
  expect(stderr).toContain('into acme: 1 lines read');
  expect(stderr.endsWith('\r\x1b[K')).toBe(true);
});
