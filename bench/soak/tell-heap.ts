import { appendFileSync, readFileSync } from 'node:fs';
import { getHeapStatistics, writeHeapSnapshot } from 'node:v8';
import { isMainThread } from 'node:worker_threads';

// Preloaded into the service by memory.ts. On SIGUSR2 it collects garbage, where Node lets it, and adds a line of figures to the
// file HEAP_FILE. On SIGPIPE, which Node ignores by itself, it writes a heap snapshot beside that file.
const { HEAP_FILE: file } = process.env;
if (file !== undefined && isMainThread) {
  process.on('SIGUSR2', () => {
    globalThis.gc?.();
    globalThis.gc?.();
    const { rss, heapUsed, heapTotal, external, arrayBuffers } = process.memoryUsage();
    const { malloced_memory: malloced, total_global_handles_size: handles } = getHeapStatistics();
    const resources = process.getActiveResourcesInfo().length;
    const figures = { rss, heapUsed, heapTotal, external, arrayBuffers, malloced, handles, resources, ...mappings() };
    appendFileSync(file, `${JSON.stringify(figures)}\n`);
  });
  process.on('SIGPIPE', () => void writeHeapSnapshot(`${file}.${Date.now()}.heapsnapshot`));
}

/** Resident bytes by what they are mapped for. */
function mappings(): Record<'heap' | 'anonymous' | 'files', number> {
  const resident = { heap: 0, anonymous: 0, files: 0 };
  let kind: keyof typeof resident = 'anonymous';
  for (const line of readFileSync('/proc/self/smaps', 'utf8').split('\n')) {
    const head = /^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)$/.exec(line);
    if (head !== null) kind = head[1] === '[heap]' ? 'heap' : head[1]?.startsWith('/') ? 'files' : 'anonymous';
    const size = /^Rss: +(\d+) kB/.exec(line)?.[1];
    if (size !== undefined) resident[kind] += Number(size) * 1024;
  }
  return resident;
}
