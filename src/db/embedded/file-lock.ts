import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';

/** A lock on a file, held until released or until the kernel drops it with the process, `kill -9` included. */
export interface FileLock {
  release(): void;
}

export type LockMode = 'shared' | 'exclusive';

// SQLite's file locks are the only kernel-dropped ones that Node reaches on Linux, macOS and Windows alike.
// Nothing is ever written, not even where the disk is full: the file stays empty and its journal in memory. Outside
// of WAL mode a reader holds a shared lock for the length of its transaction.
const statementOf: Record<LockMode, string> = {
  shared: 'begin; select count(*) from sqlite_schema',
  exclusive: 'begin exclusive',
};

const sqliteBusy = 5;

/** Takes the lock at once or answers undefined where another holder is in the way. */
export function tryFileLock(path: string, mode: LockMode): FileLock | undefined {
  const file = new DatabaseSync(path, { timeout: 0 });
  try {
    file.exec(`pragma journal_mode = memory; ${statementOf[mode]}`);
  } catch (error) {
    file.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
  let held = true;
  return {
    release() {
      if (!held) return;
      held = false;
      file.close();
    },
  };
}

/** Waits for the lock without holding up the event loop; `onWait` is called once, after five seconds of waiting. */
export async function takeFileLock(path: string, mode: LockMode, onWait: () => void = () => {}): Promise<FileLock> {
  const started = performance.now();
  let told = false;
  for (let pause = 10; ; pause = Math.min(pause * 1.5, 100)) {
    const lock = tryFileLock(path, mode);
    if (lock !== undefined) return lock;
    if (!told && performance.now() - started > 5_000) {
      told = true;
      onWait();
    }
    // Unequal pauses, so that processes started together do not keep meeting each other.
    await sleep(pause * (0.5 + Math.random()));
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy;
}
