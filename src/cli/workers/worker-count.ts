import { availableParallelism, totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import type { Config } from '../../core/config/config.ts';
import { maxWorkers } from '../../core/config/values.ts';

const mebibyte = 1024 * 1024;
/** MiB of heap of a worker, also on small machines. */
const minHeap = 256;

/** The number of processes that answer. */
export function workerCount({ workers }: Config): number {
  return workers === 'max' ? Math.min(maxWorkers, availableParallelism()) : workers;
}

interface MachineMemory {
  /** Bytes for all processes together. */
  readonly memory: number;
  /** Bytes of heap that the runtime would give each of them. */
  readonly heapLimit: number;
}

/** MiB of heap for each worker: the runtime's default, but together at most three quarters of the memory. */
export function heapOfWorker(workers: number, { memory, heapLimit } = thisMachine()): number {
  return Math.floor(Math.max(minHeap, Math.min(heapLimit / mebibyte, (memory * 0.75) / workers / mebibyte)));
}

/** Node's options for each worker. A heap limit that the operator has set stays. */
export function runtimeOptions(workers: number, options: readonly string[], variable = ''): string[] {
  const isSet = [...options, variable].some((option) => /--max[-_]old[-_]space[-_]size/.test(option));
  return isSet ? [...options] : [...options, `--max-old-space-size=${heapOfWorker(workers)}`];
}

function thisMachine(): MachineMemory {
  return {
    // A container's memory limit counts; without one this is 0 or a huge number.
    memory: Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
    heapLimit: getHeapStatistics().heap_size_limit,
  };
}
