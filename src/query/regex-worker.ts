import { parentPort } from 'node:worker_threads';
import { compileRegex, RegexFault } from './regex.ts';

/** Some of the names of one task; `source` comes with the first of them and is compiled then. */
export interface RegexRequest {
  readonly source: string | undefined;
  readonly names: readonly string[];
  /** What the task may still take, in milliseconds of this thread's processor time. */
  readonly processorTime: number;
}

export interface RegexReply {
  /** One byte a name, 1 where it matches; or why there is none. */
  readonly outcome: Uint8Array | { readonly fault: string } | 'too slow';
  /** What this request took, in milliseconds of this thread's processor time. */
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

/** Milliseconds this thread has been at work: unlike the clock, not what else the machine was doing meanwhile. */
function processorTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
