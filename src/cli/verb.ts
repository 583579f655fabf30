import type { Readable, Writable } from 'node:stream';

/** What a verb is given of the world around it. */
export interface Surroundings {
  environment: Record<string, string | undefined>;
  stdin: Readable;
  stdout: Writable;
  stderr: Writable & { isTTY?: boolean | undefined };
  /** Writes a line to stdout: the answer, and nothing else (contract 1). */
  answer(line: string): void;
  /** Writes a line to stderr. */
  tell(line: string): void;
  /** Aborted when the process is asked to end; the reason is the name of the signal. */
  stop: AbortSignal;
}

/** One verb of the command line. */
export interface Verb {
  /** What `--help` shows: usage, what it does, an example. */
  help: string;
  /** Answers the exit code: 0 done, 1 failed. Wrong usage is thrown, see UsageError. */
  run(args: string[], surroundings: Surroundings): Promise<number>;
}

/** Wrong usage: exit code 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}

/** Something that the operator can mend: shown as it is, without a stack. Exit code 1. */
export class OperatorError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'OperatorError';
  }
}
