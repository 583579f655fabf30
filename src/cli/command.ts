import type { Readable, Writable } from 'node:stream';

/** A command's environment and streams. */
export interface CommandIo {
  environment: Record<string, string | undefined>;
  stdin: Readable;
  stdout: Writable;
  stderr: Writable & { isTTY?: boolean | undefined };
  /** Writes a line to stdout, which carries only the answer (contract 1). */
  answer(line: string): void;
  /** Writes a line to stderr. */
  tell(line: string): void;
  /** Aborted by SIGTERM or SIGINT; the reason is the name of the signal. */
  stop: AbortSignal;
}

/** One command of the command line. */
export interface Command {
  /** The text of `--help`: usage, what the command does, an example. */
  help: string;
  /** Returns the exit code: 0 done, 1 failed. Throws a UsageError for wrong usage. */
  run(args: string[], io: CommandIo): Promise<number>;
}

/** Wrong usage: exit code 2. */
export class UsageError extends Error {
  override name = 'UsageError';
}

/** A signal stopped the process before its work was done. */
export class Stopped extends Error {
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals) {
    super(`stopped by ${signal}`);
    this.name = 'Stopped';
    this.signal = signal;
  }
}
