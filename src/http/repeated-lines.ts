import type { LogFn, Logger } from 'pino';
import { isAtLimit, isReadOnly, isUnreachable, isWorkerUnreachable } from '../postgres/connections/unreachable.ts';

// Milliseconds. A state ends when its line has not come for so long.
const quiet = 10_000;
const everyMinute = 60_000;
const lookEvery = 5_000;
/** More states at a time are written line by line. */
const maxStates = 100;

interface State {
  /** Writes the line with the number of lines that were left out. */
  write(leftOut: number): void;
  leftOut: number;
  lastAt: number;
  writtenAt: number;
}

/**
 * While the database or a worker of a cluster is away, or takes no writes, everything that needs it fails each second in the same words.
 * Of such warnings the first is written at once; those that follow are counted, and a line tells their number (`repeated`) each minute
 * and at the end.
 * Errors are never left out: the answer 500 of a request has its own line.
 */
export class RepeatedLines {
  readonly #states = new Map<string, State>();
  #timer: NodeJS.Timeout | undefined;

  /** For pino's hook `logMethod`. */
  log(logger: Logger, args: Parameters<LogFn>, method: LogFn, isWarning: boolean): void {
    const line = isWarning ? lineOf(args) : undefined;
    if (line === undefined) {
      method.apply(logger, args);
      return;
    }
    const { fields, message, error } = line;
    const key = `${message} ${workerOf(error)}`;
    const now = performance.now();
    const known = this.#states.get(key);
    if (known !== undefined) {
      known.leftOut += 1;
      known.lastAt = now;
      return;
    }
    method.apply(logger, args);
    if (this.#states.size >= maxStates) return;
    const write = (repeated: number) => method.apply(logger, [{ ...fields, repeated }, message]);
    this.#states.set(key, { write, leftOut: 0, lastAt: now, writtenAt: now });
    this.#timer ??= setInterval(() => this.#look(performance.now()), lookEvery).unref();
  }

  #look(now: number): void {
    for (const [key, state] of this.#states) {
      const isOver = now - state.lastAt >= quiet;
      if (state.leftOut > 0 && (isOver || now - state.writtenAt >= everyMinute)) {
        state.write(state.leftOut);
        state.leftOut = 0;
        state.writtenAt = now;
      }
      if (isOver) this.#states.delete(key);
    }
    if (this.#states.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** How an error tells that the database is not as it should be, for all who ask it. */
const states = [isUnreachable, isWorkerUnreachable, isAtLimit, isReadOnly];

/** The worker that an error of the coordinator names. The words around it differ from one second to the next. */
function workerOf({ message }: Error): string {
  return message.match(/@\S+:\d+/)?.[0] ?? '';
}

function lineOf(args: readonly unknown[]): { fields: object; message: string; error: Error } | undefined {
  const [fields, message] = args;
  if (typeof fields !== 'object' || fields === null || !('err' in fields) || typeof message !== 'string')
    return undefined;
  const error = fields.err;
  if (!(error instanceof Error)) return undefined;
  return states.some((holds) => holds(error)) ? { fields, message, error } : undefined;
}
