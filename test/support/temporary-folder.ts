import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new folder in that of the run, which is removed at the run's end. */
export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'annals-test-'));
}
