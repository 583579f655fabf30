import { answerRequests } from '../core/concurrency/thread-worker.ts';
import { compileRegex, RegexFault } from './regex.ts';

/** Some of the names of a call. Between two parts of one call there may be parts of others. */
export interface RegexRequest {
  readonly source: string;
  readonly names: readonly string[];
  /** Milliseconds of this thread's processor time that the call has left. */
  readonly processorTime: number;
}

export interface RegexReply {
  /** One byte for each name, 1 where it matches; or the reason why there is no result. */
  readonly outcome: Uint8Array | { readonly fault: string } | 'too slow';
  /** Milliseconds of this thread's processor time that this request took. */
  readonly processorTime: number;
}

/** The latest patterns, because calls of several tenants take turns. */
const compiled = new Map<string, (name: string) => boolean>();
const maxCompiled = 4;

answerRequests((request: RegexRequest): RegexReply => {
  const start = processorTime();
  const outcome = answer(request, () => processorTime() - start > request.processorTime);
  return { outcome, processorTime: processorTime() - start };
});

function answer({ source, names }: RegexRequest, isOverdue: () => boolean): RegexReply['outcome'] {
  let matches: (name: string) => boolean;
  try {
    matches = matcherOf(source);
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

function matcherOf(source: string): (name: string) => boolean {
  const known = compiled.get(source);
  if (known !== undefined) return known;
  if (compiled.size === maxCompiled) compiled.delete(compiled.keys().next().value ?? '');
  const matches = compileRegex(source);
  compiled.set(source, matches);
  return matches;
}

/** Few enough that even the slowest pattern takes well under a second for them. */
const charactersBetweenChecks = 1000;

/** Milliseconds of processor time of this thread. Unlike wall time, it does not count other work of the machine. */
function processorTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
