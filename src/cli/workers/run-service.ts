import { readConfig } from '../../core/config/config.ts';
import { type CommandIo, Stopped } from '../command.ts';
import type { Serve } from '../serve.ts';
import { withMigratedDatabase } from '../with-database.ts';
import { workerVariable } from './messages.ts';
import { superviseWorkers } from './supervise.ts';
import { workerCount } from './worker-count.ts';

/**
 * Runs a service in this process, or in as many workers as set. Returns the exit code. `load` loads the service, which
 * the supervising process does not need.
 */
export async function runService(io: CommandIo, load: () => Promise<Serve>): Promise<number> {
  if (io.environment[workerVariable] !== undefined) {
    const { runWorker } = await import('./run-worker.ts');
    return await runWorker(io, await load());
  }
  const count = workerCount(readConfig(io.environment));
  try {
    if (count > 1) {
      await withMigratedDatabase(io, (database) => superviseWorkers(io, database, count));
    } else {
      const { withContext } = await import('../with-context.ts');
      const serve = await load();
      await withContext(io, (context, config, watch) => serve(context, config, { io, watch }));
    }
  } catch (error) {
    // A signal before the start is a success too.
    if (!(error instanceof Stopped)) throw error;
  }
  return 0;
}
