import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { runCommandLine } from '../../../src/cli/commands/command-line.ts';

export interface Outcome {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs the command line in this process; for commands that end by themselves. */
export async function annals(args: string[], environment: Record<string, string> = {}, stdin = ''): Promise<Outcome> {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const input = new PassThrough();
  input.end(stdin);
  const code = await runCommandLine(args, {
    environment,
    stdin: input,
    stdout,
    stderr,
    answer: (line) => stdout.write(`${line}\n`),
    tell: (line) => stderr.write(`${line}\n`),
    stop: new AbortController().signal,
  });
  stdout.end();
  stderr.end();
  return { code, stdout: await text(stdout), stderr: await text(stderr) };
}

export interface CommandHere {
  /** The first line of its answer; rejects where it ends without one. */
  firstLine: Promise<string>;
  /** Asks it to end, as a signal does. */
  stop(): void;
  ended: Promise<Outcome>;
}

/**
 * Runs a command in this process that continues until it is stopped, for a test that kills nothing: a start takes a
 * quarter of that of a process.
 */
export function startHere(args: string[], environment: Record<string, string>): CommandHere {
  const stop = new AbortController();
  const { promise: firstLine, resolve, reject } = Promise.withResolvers<string>();
  firstLine.catch(() => {});
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const ending = runCommandLine(args, {
    // The log of a service goes to the output of the run.
    environment: { ...environment, LOG_LEVEL: 'silent' },
    stdin: new PassThrough(),
    stdout,
    stderr,
    answer(line) {
      stdout.write(`${line}\n`);
      resolve(line);
    },
    tell: (line) => stderr.write(`${line}\n`),
    stop: stop.signal,
  });
  const ended = ending.then(async (code) => {
    stdout.end();
    stderr.end();
    const outcome = { code, stdout: await text(stdout), stderr: await text(stderr) };
    reject(new Error(`ended with ${code} before its first line: ${outcome.stderr}`));
    return outcome;
  });
  return { firstLine, stop: () => stop.abort('SIGTERM'), ended };
}

/** The launcher of the checkout. */
export const launcher = join(import.meta.dirname, '..', '..', '..', 'bin', 'annals.js');

/** A copy that runs the bundle of this run of tests without a look at the sources; elsewhere that of the checkout. */
export function launcherOfRun(): string {
  return process.env.ANNALS_LAUNCHER_OF_RUN ?? launcher;
}

export interface RunningCommand {
  process: ChildProcess;
  /** The first line on stdout; rejects where the process ends without one. */
  firstLine: Promise<string>;
  ended: Promise<Outcome & { signal: NodeJS.Signals | null }>;
}

/**
 * Runs `annals` in a child process that inherits only PATH; the bundle of the run by default.
 */
export function startAnnals(
  args: string[],
  environment: Record<string, string> = {},
  packageLauncher = launcherOfRun(),
): RunningCommand {
  const child = spawn(process.execPath, [packageLauncher, ...args], {
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  const { promise: firstLine, resolve, reject } = Promise.withResolvers<string>();
  firstLine.catch(() => {});
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
    if (stdout.includes('\n')) resolve(stdout.slice(0, stdout.indexOf('\n')));
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const ended = once(child, 'close').then(([code, signal]) => {
    reject(new Error(`ended with ${code ?? signal} before its first line: ${stderr}`));
    return { code, signal, stdout, stderr };
  });
  return { process: child, firstLine, ended };
}
