import { parentPort } from 'node:worker_threads';
import { compileRegex, RegexFault } from './regex.ts';

/** Some of the names of one task. The first message of a task has the `source`, which is compiled then. */
export interface RegexRequest {
  readonly source: string | undefined;
  readonly names: readonly string[];
  /** Milliseconds of this thread's processor time that the task has left. */
  readonly processorTime: number;
}

export interface RegexReply {
  /** One byte for each name, 1 where it matches; or the reason why there is no result. */
  readonly outcome: Uint8Array | { readonly fault: string } | 'too slow';
  /** Milliseconds of this thread's processor time that this request took. */
  readonly processorTime: number;
}

let matches: (name: string) => boolean = () => false;
/** Many tasks in a row may have the same pattern. */
let compiled: string | undefined;

parentPort?.on('message', (request: RegexRequest) => {
  const start = processorTime();
  const outcome = answer(request, () => processorTime() - start > request.processorTime);
  parentPort?.postMessage({ outcome, processorTime: processorTime() - start } satisfies RegexReply);
});

function answer({ source, names }: RegexRequest, isOverdue: () => boolean): RegexReply['outcome'] {
  try {
    if (source !== undefined && source !== compiled) {
      compiled = undefined;
      matches = compileRegex(source);
      compiled = source;
    }
  } catch (error) {
    if (error instanceof RegexFault) return { fault: error.expected };
    throw error;
  }
  const matched = new Uint8Array(names.length);
  let unchecked = 0;
  for (const [index, name] of names.entries()) {
    matched[index] = matches(name) ? 1 : 0;
    unchecked += name.length + 1;
    if (unchecked < charactersBetweenChecks) continue;
    if (isOverdue()) return 'too slow';
    unchecked = 0;
  }
  return matched;
}

/** Few enough that even the slowest pattern takes well under a second for them. */
const charactersBetweenChecks = 1000;

/** Milliseconds of processor time of this thread. Unlike wall time, it does not count other work of the machine. */
function processorTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
