import { closeSync, fdatasyncSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** What the disk takes to keep a few kilobytes, in milliseconds: the floor of any durable reservation. */
export function durableWrites(folder: string, count: number): number[] {
  const page = Buffer.alloc(8_192, 1);
  const file = openSync(join(folder, 'durable-writes'), 'w');
  for (let written = 0; written < 64; written += 1) writeSync(file, page);
  fsyncSync(file);
  const taken: number[] = [];
  for (let write = 0; write < count; write += 1) {
    const at = performance.now();
    writeSync(file, page, 0, page.length, (write % 64) * page.length);
    fdatasyncSync(file);
    taken.push(performance.now() - at);
  }
  closeSync(file);
  return taken;
}
