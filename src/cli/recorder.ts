import { type Command, UsageError } from './command.ts';
import { recordUntilStopped } from './serve.ts';
import { Stopped } from './stopped.ts';
import { withContext } from './with-context.ts';

export const recorderCommand: Command = {
  help: `Usage: annals recorder

Runs a process that takes changes over HTTP: POST /recorder/{tenant}/changes. It listens on
ANNALS_RECORDER_PORT (a port, or host:port), else on PORT and HOST, and prints its base URL
when it is ready. With ANNALS_RECORDER_PORT, "annals serve" does the same beside its own port.
ANNALS_RECORDER_MAPPING names a mapping: masks, ignored fields, tables of Debezium's events.

Example:
  ANNALS_RECORDER_PORT=8081 annals recorder`,

  async run(args, io) {
    if (args.length > 0) throw new UsageError(`recorder takes no arguments, and was given ${args[0]}`);
    try {
      await withContext(io, (context, config, watch) => recordUntilStopped(context, config, { io, watch }));
    } catch (error) {
      // As for serve: the process was asked to stop before it had started.
      if (!(error instanceof Stopped)) throw error;
    }
    return 0;
  },
};
