import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';

/** A lock on a file, held until it is released or the process ends, `kill -9` included: the kernel releases it then. */
export interface FileLock {
  release(): void;
}

export type LockMode = 'shared' | 'exclusive';

// SQLite's file locks are the only ones that the kernel releases and that Node reaches on Linux, macOS and Windows. Nothing is ever
// written, so a full disk does no harm: the file stays empty and the journal is in memory. Outside of WAL mode a reader holds a
// shared lock for the length of its transaction.
const statementOf: Record<LockMode, string> = {
  shared: 'begin; select count(*) from sqlite_schema',
  exclusive: 'begin exclusive',
};

const sqliteBusy = 5;

/** Takes the lock at once, or returns undefined where another holder has it. */
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

/** Waits for the lock without blocking the event loop. Calls `onWait` once, after five seconds of waiting. */
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
    // Unequal pauses, so that processes that start together do not keep colliding.
    await sleep(pause * (0.5 + Math.random()));
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy;
}
