import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { takeFileLock, tryFileLock } from '../../../src/postgres/embedded/file-lock.ts';
import { letOthersWork } from '../../support/server/patience.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

let folder: string;

beforeEach(async () => {
  folder = temporaryFolder();
});

test('any number share a lock, and an exclusive one has it alone', () => {
  const path = join(folder, 'a.lock');
  const shared = [tryFileLock(path, 'shared'), tryFileLock(path, 'shared')];
  expect(tryFileLock(path, 'exclusive')).toBeUndefined();
  shared[0]?.release();
  expect(tryFileLock(path, 'exclusive')).toBeUndefined();
  shared[1]?.release();
  const exclusive = tryFileLock(path, 'exclusive');
  expect(exclusive).toBeDefined();
  expect(tryFileLock(path, 'shared')).toBeUndefined();
  expect(tryFileLock(path, 'exclusive')).toBeUndefined();
  exclusive?.release();
  tryFileLock(path, 'shared')?.release();
});

test('who waits for a lock gets it when it is released', async () => {
  const path = join(folder, 'a.lock');
  const first = await takeFileLock(path, 'exclusive');
  const waiting = takeFileLock(path, 'exclusive');
  first.release();
  (await waiting).release();
});

test('who waits for a lock for five seconds says so, once', async () => {
  const path = join(folder, 'a.lock');
  const first = await takeFileLock(path, 'exclusive');
  const notice = Promise.withResolvers<void>();
  let times = 0;
  const waiting = takeFileLock(path, 'exclusive', () => {
    times += 1;
    notice.resolve();
  });
  await notice.promise;
  await letOthersWork(300);
  first.release();
  (await waiting).release();
  expect(times).toBe(1);
});
