import { constants } from 'node:os';
import { runCommandLine } from './cli/commands/command-line.ts';
import { runWithOutput } from './cli/output.ts';

// ^C reaches every process of the terminal, and npx passes it on once more: that is one signal, not two.
const echoLimit = 1_000;

/** Runs the command line in this process and sets its exit code. */
export async function main(args: string[], environment: Record<string, string | undefined>): Promise<void> {
  // A command that waits, for a database that is away, may have no connection and no timer that keeps the process
  // alive.
  const alive = setInterval(() => {}, 60_000);
  process.exitCode = await runWithOutput({ environment, stop: stopSignal() }, (io) => runCommandLine(args, io));
  clearInterval(alive);
  // Everything is written and closed by now. If something still keeps the process alive, this timer ends it.
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
