import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';

/** A lock on a file. The kernel releases it when the process ends, also by `kill -9`. */
export interface FileLock {
  release(): void;
}

type LockMode = 'shared' | 'exclusive';

// SQLite's locks are the only ones that the kernel releases and that Node offers on Linux, macOS and Windows. Nothing
// is written, so a full disk does no harm: the file stays empty, and the journal is in memory. Outside WAL mode a
// reader has a shared lock for the length of its transaction.
const statementOf: Record<LockMode, string> = {
  shared: 'begin; select count(*) from sqlite_schema',
  exclusive: 'begin exclusive',
};

const sqliteBusy = 5;

/** Takes the lock, or returns undefined if it is taken. */
export function tryFileLock(path: string, mode: LockMode): FileLock | undefined {
  const file = new DatabaseSync(path, { timeout: 0 });
  try {
    file.exec(`pragma journal_mode = memory; ${statementOf[mode]}`);
  } catch (error) {
    file.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
  return {
    release() {
      if (file.isOpen) file.close();
    },
  };
}

/** Waits for the lock without blocking the event loop. Calls `onWait` once, after five seconds of waiting. */
export async function takeFileLock(path: string, mode: LockMode, onWait: () => void = () => {}): Promise<FileLock> {
  const started = performance.now();
  let isAnnounced = false;
  for (let pause = 10; ; pause = Math.min(pause * 1.5, 100)) {
    const lock = tryFileLock(path, mode);
    if (lock !== undefined) return lock;
    if (!isAnnounced && performance.now() - started > 5_000) {
      isAnnounced = true;
      onWait();
    }
    // Jitter keeps processes that start together from colliding again.
    await sleep(pause * (0.5 + Math.random()));
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy;
}
