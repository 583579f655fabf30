import { type Command, UsageError } from '../command.ts';
import { runService } from '../workers/run-service.ts';

export const command: Command = {
  help: `Usage: annals recorder

Runs a process that receives changes over HTTP: POST /recorder/{tenant}/changes. It listens on
ANNALS_RECORDER_PORT (a port, or host:port), else on PORT and HOST, and prints its base URL
when it is ready. With ANNALS_RECORDER_PORT, "annals serve" does the same beside its own port.
ANNALS_RECORDER_MAPPING is the file of a mapping: masks, ignored fields, tables of Debezium's
events. ANNALS_WORKERS is the number of processes, as for serve.

Example:
  ANNALS_RECORDER_PORT=8081 annals recorder`,

  async run(args, io) {
    if (args.length > 0) throw new UsageError(`recorder takes no arguments, and was given ${args[0]}`);
    return await runService(io, async () => (await import('../serve.ts')).recordUntilStopped);
  },
};
