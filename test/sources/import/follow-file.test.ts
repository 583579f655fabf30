import { appendFile, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { followFile } from '../../../src/sources/import/follow-file.ts';
import { nextRotated } from '../../../src/sources/import/followed-file.ts';
import type { ImportCounts } from '../../../src/sources/import/line-batch.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const at = '2026-01-15T14:05:12.250Z';
let folder: string;
let path: string;
let tenant: string;
let tenants = 0;
const running: Following[] = [];

interface Following {
  events: string[];
  rejected: [number, string][];
  stop(): Promise<ImportCounts>;
  ended: Promise<ImportCounts>;
}

const database = closeAfterAll(await createTestDatabase());

beforeEach(async () => {
  folder = temporaryFolder();
  path = join(folder, 'changes.ndjson');
  tenants += 1;
  tenant = `t${tenants}`;
  await createTenant(database.db, tenant);
});

afterEach(async () => {
  await Promise.allSettled(running.splice(0).map(({ stop }) => stop()));
});

function follow({ acceptGap = false } = {}): Following {
  const stopper = new AbortController();
  const events: string[] = [];
  const rejected: [number, string][] = [];
  const ended = followFile({
    db: database.db,
    tenant,
    path,
    rules: undefined,
    acceptGap,
    now: () => Date.now(),
    signal: stopper.signal,
    onRejected: (end, reason) => rejected.push([end, reason]),
    onEvent: (what) => events.push(what),
  });
  ended.catch(() => {});
  const stop = async () => {
    stopper.abort();
    return await ended;
  };
  const following = { events, rejected, stop, ended };
  running.push(following);
  return following;
}

const line = (entityId: string, members: object = {}) =>
  `${JSON.stringify({ op: 'insert', entity: 'order', entityId, at, after: { a: 1 }, ...members })}\n`;

async function recorded(): Promise<string[]> {
  const { rows } = await database.pool.query<{ id: string }>(
    'select entity_id as id from change_entry where tenant = $1 order by at, sequence',
    [tenant],
  );
  return rows.map(({ id }) => id);
}

const untilRecorded = async (...ids: string[]) => await expect.poll(recorded, { timeout: 30_000 }).toEqual(ids);

test('records what a file has and what is added, and half a line once it has its end', async () => {
  await writeFile(path, line('1') + line('2', { id: 'x' }));
  const following = follow();
  await untilRecorded('1', '2');
  const half = line('3');
  await appendFile(path, half.slice(0, 20));
  await appendFile(path, half.slice(20, -1));
  await appendFile(path, `\n${line('4')}`);
  await untilRecorded('1', '2', '3', '4');
  expect(await following.stop()).toMatchObject({ read: 4, recorded: 4, rejected: 0 });
});

test('equal lines without an id are as many changes as there are lines, and none is recorded twice', async () => {
  await writeFile(path, line('1') + line('1'));
  const first = follow();
  await untilRecorded('1', '1');
  await first.stop();
  await appendFile(path, line('1'));
  const second = follow();
  await untilRecorded('1', '1', '1');
  expect(await second.stop()).toMatchObject({ read: 1, recorded: 1 });
});

test('begins before there is a file, and rejects a line by its place', async () => {
  const following = follow();
  await writeFile(path, `{"op":\n${line('1')}`);
  await untilRecorded('1');
  expect(following.rejected).toEqual([[7, expect.stringMatching(/^cannot be read as JSON/)]]);
});

test('continues with the new file where the old one was renamed, after the end of the old one', async () => {
  await writeFile(path, line('1'));
  const following = follow();
  await untilRecorded('1');
  await rename(path, `${path}.1`);
  await appendFile(`${path}.1`, line('2'));
  await writeFile(path, line('3'));
  await untilRecorded('1', '2', '3');
  expect(following.events).toEqual([]);
});

test('a rename while the file is not followed loses nothing', async () => {
  await writeFile(path, line('1'));
  const first = follow();
  await untilRecorded('1');
  await first.stop();
  await appendFile(path, line('2'));
  await rename(path, `${path}.1`);
  await writeFile(path, line('3'));
  const second = follow();
  await untilRecorded('1', '2', '3');
  expect(second.events).toEqual([]);
});

test('reports where a file was truncated, and reads it from its beginning', async () => {
  await writeFile(path, line('1') + line('2'));
  const following = follow();
  await untilRecorded('1', '2');
  await truncate(path);
  await expect.poll(() => following.events, { timeout: 30_000 }).toEqual([expect.stringContaining('was cut')]);
  await appendFile(path, line('3'));
  await untilRecorded('1', '2', '3');
});

test('stops where the followed file no longer exists, and says from which byte on; continues where that is accepted', async () => {
  await writeFile(path, line('1'));
  const first = follow();
  await untilRecorded('1');
  await first.stop();
  await rm(path);
  await writeFile(join(folder, 'other'), '');
  await writeFile(join(folder, 'changes-of-another.ndjson'), line('other'));
  await writeFile(path, line('two'));
  const missing = `What it had after byte ${line('1').length}, and files between the two, are missing`;
  await expect(follow().ended).rejects.toThrow(missing);
  expect(await recorded()).toEqual(['1']);
  const accepting = follow({ acceptGap: true });
  await untilRecorded('1', 'two');
  expect(accepting.events).toEqual([expect.stringContaining(missing)]);
});

/** Rotates as logrotate does: by numbers or by dates, perhaps compressed, perhaps by a copy. */
const rotations: [string, () => Promise<void>][] = [
  ['by numbers', () => shift('')],
  ['by numbers, with gzip from the second on', () => shift('.gz')],
  ['by numbers, with Zstandard from the second on', () => shift('.zst')],
  ['by dates', () => rename(path, `${path}-2026011${dated++}`)],
  ['by dates before the extension', () => rename(path, join(folder, `changes-2026-01-1${dated++}.ndjson`))],
  [
    'by a copy that is compressed',
    async () => {
      await writeFile(`${path}-2026011${dated++}.gz`, gzipSync(await readFile(path)));
      await truncate(path);
    },
  ],
];
let dated = 1;

async function shift(compression: '' | '.gz' | '.zst'): Promise<void> {
  for (let number = 8; number >= 2; number--)
    await rename(`${path}.${number}${compression}`, `${path}.${number + 1}${compression}`).catch(() => {});
  if (compression === '') await rename(`${path}.1`, `${path}.2`).catch(() => {});
  else {
    const bytes = await readFile(`${path}.1`).catch(() => undefined);
    if (bytes !== undefined) {
      await writeFile(`${path}.2${compression}`, compression === '.gz' ? gzipSync(bytes) : zstdCompressSync(bytes));
      await rm(`${path}.1`);
    }
  }
  await rename(path, `${path}.1`);
}

test.each(rotations)(
  'three rotations while the file is not followed lose nothing and repeat nothing: %s',
  async (_how, rotate) => {
    dated = 1;
    await writeFile(path, line('old'));
    await rotate();
    await writeFile(path, line('1'));
    const first = follow();
    await untilRecorded('1');
    await first.stop();
    for (const id of ['2', '3', '4']) {
      await appendFile(path, line(`${id}a`));
      await rotate();
      await appendFile(path, line(`${id}b`));
    }
    const second = follow();
    await untilRecorded('1', '2a', '2b', '3a', '3b', '4a', '4b');
    await appendFile(path, line('5'));
    await untilRecorded('1', '2a', '2b', '3a', '3b', '4a', '4b', '5');
    expect(second.events).toEqual([]);
    await second.stop();
    const third = follow();
    await appendFile(path, line('6'));
    await untilRecorded('1', '2a', '2b', '3a', '3b', '4a', '4b', '5', '6');
    expect(third.events).toEqual([]);
  },
);

test('a start in the middle of a compressed file continues there, and lines without an id keep their identity', async () => {
  await writeFile(path, line('1'));
  const first = follow();
  await untilRecorded('1');
  await first.stop();
  await appendFile(path, line('1') + line('1'));
  await writeFile(`${path}.1.gz`, gzipSync(await readFile(path)));
  await rm(path);
  await writeFile(path, line('2'));
  await follow().stop();
  follow();
  await untilRecorded('1', '1', '1', '2');
});

test('a compressed file that is damaged stops, and says where', async () => {
  await writeFile(path, line('1'));
  const first = follow();
  await untilRecorded('1');
  await first.stop();
  await appendFile(path, line('2'));
  await rename(path, `${path}.2`);
  await writeFile(`${path}.1.gz`, gzipSync(line('3')).subarray(0, -4));
  await writeFile(path, line('4'));
  await expect(follow().ended).rejects.toThrow('is damaged: unexpected end of file. Put a whole one in its place');
  await writeFile(`${path}.1.gz`, gzipSync(line('3')));
  follow();
  await untilRecorded('1', '2', '3', '4');
});

test('two rotations between two looks lose nothing', async () => {
  await writeFile(path, line('1'));
  const following = follow();
  await untilRecorded('1');
  await writeFile(`${path}.new`, line('2'));
  await rename(path, `${path}.2`);
  await rename(`${path}.new`, `${path}.1`);
  await writeFile(path, line('3'));
  await untilRecorded('1', '2', '3');
  expect(following.events).toEqual([]);
});

test('the compressed copy of a file that is gone was written at the same time, and does not follow it', async () => {
  const copy = `${path}.1.gz`;
  await writeFile(copy, gzipSync('{}\n'));
  const { mtimeNs } = await stat(copy, { bigint: true });
  const node = { device: '0', inode: '0' };
  expect(await nextRotated(path, { node, writtenAt: mtimeNs })).toBeUndefined();
  const next = await nextRotated(path, { node, writtenAt: mtimeNs - 1n });
  expect(next).toBeDefined();
  await next?.close();
});

test('two that follow one file never record a line twice: one of them ends', async () => {
  await writeFile(path, line('1'));
  const [one, other] = [follow(), follow()];
  await untilRecorded('1');
  for (let id = 2; id < 6; id++) {
    await appendFile(path, line(String(id)));
    await expect.poll(async () => (await recorded()).length, { timeout: 30_000 }).toBe(id);
  }
  const ends = await Promise.allSettled([one.stop(), other.stop()]);
  expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  expect(ends.find(({ status }) => status === 'rejected')).toMatchObject({
    reason: expect.objectContaining({ message: expect.stringMatching(/^another process follows this file/) }),
  });
  expect(await recorded()).toEqual(['1', '2', '3', '4', '5']);
});
