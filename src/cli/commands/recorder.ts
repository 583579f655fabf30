import { parseCommand } from '../arguments.ts';
import type { Command } from '../command.ts';
import { runService } from '../workers/run-service.ts';

export const command: Command = {
  help: `Usage: annals recorder

Receives changes over HTTP: POST /recorder/{tenant}/changes. Listens on ANNALS_RECORDER_PORT
(a port, or host:port), or else on PORT and HOST, and prints its base URL when it is ready.
With ANNALS_RECORDER_PORT, "annals serve" runs a recorder too, beside its own port.
ANNALS_RECORDER_MAPPING is the file of a mapping: masks, ignored fields, tables of Debezium's
events. ANNALS_WORKERS is the number of processes, as for serve.

Example:
  ANNALS_RECORDER_PORT=8081 annals recorder`,

  async run(args, io) {
    parseCommand('recorder', { args, options: {} });
    return await runService(io, async () => (await import('../serve.ts')).recordUntilStopped);
  },
};
