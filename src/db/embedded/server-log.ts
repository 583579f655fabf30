import { copyFile, open, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { giveTo, type Home } from './home.ts';

const largestLog = 4 * 1024 * 1024;

/** The file that the server writes what it says to. */
export function serverLogFile(home: Home): string {
  return join(home.folder, 'server.log');
}

/** Opens the log for a server about to start; `start` is where its part of the log begins. */
export async function openServerLog(home: Home) {
  const path = serverLogFile(home);
  const file = await open(path, 'a', 0o600);
  await giveTo(home.user, path);
  await boundServerLog(home);
  return { file, path, start: (await file.stat()).size };
}

/** Keeps the log within bounds: one that has grown too long is put aside, over the one put aside before. */
export async function boundServerLog(home: Home): Promise<void> {
  const path = serverLogFile(home);
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || found.size <= largestLog) return;
  await copyFile(path, `${path}.old`);
  // The server keeps writing into the same file; opened for appending, it goes on at the new end.
  await truncate(path);
}
