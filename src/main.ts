import { constants } from 'node:os';
import { runCommandLine } from './cli/commands/command-line.ts';

// ^C reaches every process of the terminal, and npx passes it on once more: that is one signal, not two.
const echoLimit = 1_000;

/** Runs the command line in this process and sets its exit code. */
export async function main(args: string[], environment: Record<string, string | undefined>): Promise<void> {
  // A reader that closes the pipe early, for example `| head`, is no failure.
  const { stdin, stdout, stderr } = process;
  stdout.on('error', () => {});
  stderr.on('error', () => {});
  // A command that waits, for a database that is away, may have no connection and no timer that keeps the process alive.
  const alive = setInterval(() => {}, 60_000);
  process.exitCode = await runCommandLine(args, {
    environment,
    stdin,
    stdout,
    stderr,
    answer: (line) => stdout.write(`${line}\n`),
    tell: (line) => stderr.write(`${line}\n`),
    stop: stopSignal(),
  });
  clearInterval(alive);
  // Everything is closed by now. If something still keeps the process alive, this timer ends it.
  setTimeout(() => process.exit(), 1_000).unref();
}

/** Aborted by the first signal to end; a second one ends the process at once. */
function stopSignal(): AbortSignal {
  const controller = new AbortController();
  let first = 0;
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (!controller.signal.aborted) {
        first = performance.now();
        controller.abort(name);
      } else if (performance.now() - first > echoLimit) {
        process.exit(128 + constants.signals[name]);
      }
    });
  }
  return controller.signal;
}
