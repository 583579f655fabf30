import cluster from 'node:cluster';
import { appendFileSync, readFileSync } from 'node:fs';
import { GCProfiler, writeHeapSnapshot } from 'node:v8';
import { isMainThread } from 'node:worker_threads';

// Preloaded into processes of Annals. Every HEAP_EVERY seconds it adds a line of figures to the file HEAP_FILE, after a
// collection of garbage where Node was started with --expose-gc. On SIGPIPE, which Node ignores by itself, it writes a heap
// snapshot beside that file.
const { HEAP_FILE: file, HEAP_EVERY: every = '15' } = process.env;
if (file !== undefined && isMainThread) {
  const role = cluster.isWorker ? 'worker' : (process.argv[2] ?? '');
  let profiler = new GCProfiler();
  profiler.start();
  setInterval(() => {
    globalThis.gc?.();
    globalThis.gc?.();
    const collected = profiler.stop()?.statistics.findLast(({ gcType }) => gcType.startsWith('MarkSweep'));
    profiler = new GCProfiler();
    profiler.start();
    const { rss, heapUsed, heapTotal, external, arrayBuffers } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    const figures = {
      pid: process.pid,
      role,
      at: Date.now(),
      cpu: (user + system) / 1000,
      rss,
      heapUsed,
      heapTotal,
      external,
      arrayBuffers,
      afterCollection: collected?.afterGC.heapStatistics.usedHeapSize,
      ...mappings(),
    };
    appendFileSync(file, `${JSON.stringify(figures)}\n`);
  }, Number(every) * 1000).unref();
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
