import { chmodSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = '/dev/shm';
/** Bytes: a run writes half of it. */
const neededRoom = 8 * 1024 ** 3;

/**
 * Keeps the run's temporary files in one folder, which is removed at its end, and in memory where there is room: a run
 * makes some thousand databases of a thousand files each, and drops them. That takes a third of the processor time of
 * the tests that use them on a disk.
 */
export function setup(): () => void {
  const { TMPDIR: original } = process.env;
  const ofRun = mkdtempSync(join(original === undefined && hasRoom() ? folder : tmpdir(), 'annals-run-'));
  // The server's account passes through where the tests run as root.
  chmodSync(ofRun, 0o711);
  process.env.TMPDIR = ofRun;
  return () => {
    rmSync(ofRun, { recursive: true, force: true, maxRetries: 3 });
    if (original === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = original;
  };
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    const mount = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .find((line) => line.split(' ')[1] === folder);
    // Some tests run programs that they have copied.
    return mount !== undefined && !mount.includes('noexec') && bavail * bsize >= neededRoom;
  } catch {
    return false;
  }
}
