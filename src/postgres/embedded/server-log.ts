import { copyFile, open, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { giveTo, type Home } from './home.ts';

const maxLogBytes = 4 * 1024 * 1024;

/** The file of the server's log. */
export function serverLogFile(home: Home): string {
  return join(home.folder, 'server.log');
}

/** Opens the log for a server that is about to start. `start` is the offset where its part of the log begins. */
export async function openServerLog(home: Home) {
  const path = serverLogFile(home);
  const file = await open(path, 'a', 0o600);
  await giveTo(home.user, path);
  await boundServerLog(home);
  return { file, path, start: (await file.stat()).size };
}

/** Keeps the log bounded: moves a log that is too long aside, over the previous one. */
export async function boundServerLog(home: Home): Promise<void> {
  const path = serverLogFile(home);
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || found.size <= maxLogBytes) return;
  await copyFile(path, `${path}.old`);
  // The server keeps the file open for appending, so it continues at the new end.
  await truncate(path);
}
