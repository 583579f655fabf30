import { availableParallelism, totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import type { Config } from '../../core/config/config.ts';
import { maxWorkers } from '../../core/config/values.ts';

const mebibyte = 1024 * 1024;
/** MiB of heap that a worker has at least, on however small a machine. */
const minHeap = 256;

/** The number of processes that answer. */
export function workerCount({ workers }: Config): number {
  return workers === 'max' ? Math.min(maxWorkers, availableParallelism()) : workers;
}

export interface MachineMemory {
  /** Bytes that the processes may have together. */
  readonly memory: number;
  /** Bytes of heap that the runtime would give to each of them. */
  readonly heapLimit: number;
}

/** MiB of heap for each worker: what the runtime gives, but together at most three quarters of the memory. */
export function heapOfWorker(workers: number, { memory, heapLimit } = thisMachine()): number {
  return Math.floor(Math.max(minHeap, Math.min(heapLimit / mebibyte, (memory * 0.75) / workers / mebibyte)));
}

/** Options of the runtime for each worker. A heap limit that the operator has set stays. */
export function runtimeOptions(workers: number, given: readonly string[], variable = ''): string[] {
  const isSet = [...given, variable].some((option) => /--max[-_]old[-_]space[-_]size/.test(option));
  return isSet ? [...given] : [...given, `--max-old-space-size=${heapOfWorker(workers)}`];
}

function thisMachine(): MachineMemory {
  return {
    // In a container its memory limit counts. Without a limit this is 0 or a huge number.
    memory: Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
    heapLimit: getHeapStatistics().heap_size_limit,
  };
}
