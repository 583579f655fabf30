import { readConfig } from '../config.ts';
import { createLogger } from '../http/logger.ts';
import { createTakeChanges } from '../recording/take-changes.ts';
import { recordDirectly, relay } from '../relay/relay.ts';
import { parseCommand } from './arguments.ts';
import { type Command, OperatorError } from './command.ts';
import { mappingOfFile } from './mapping-file.ts';
import { forOperators, mappingFileOf, requireTenant, sourceOf } from './source-option.ts';
import { withDatabase } from './with-database.ts';

export const relayCommand: Command = {
  help: `Usage: annals relay --mapping FILE [--from URL]

Records the changes that the triggers of "annals outbox" wrote, and then deletes them
there, until it is stopped. Several relays share the work.

  --from URL     the application's database; default: ANNALS_SOURCE_URL. PGPASSFILE works
  --mapping FILE which tables become which documents; default: ANNALS_RECORDER_MAPPING
  --strict       stop at a change that can never be recorded, instead of keeping it aside

Example:
  annals relay --mapping mapping.json --from postgres://relay@shop.example/shop`,

  async run(args, io) {
    const { values } = parseCommand('relay', {
      args,
      options: {
        mapping: { type: 'string' },
        from: { type: 'string' },
        strict: { type: 'boolean', default: false },
      },
    });
    return await forOperators(async () => {
      const source = sourceOf(values.from, io);
      const mapping = await mappingOfFile(mappingFileOf(values.mapping, io));
      const { logLevel } = readConfig(io.environment);
      const log = createLogger(logLevel, { write: (line) => void io.stderr.write(line) });
      return await withDatabase(io, async ({ db, sealer, now }, watch) => {
        await requireTenant(db, mapping);
        const takeChanges = createTakeChanges({
          sealer,
          now,
          onKept: (kept) => log.warn(kept, 'a change can never be recorded and is kept aside'),
        });
        await relay({
          source,
          mapping,
          record: recordDirectly({ db, takeChanges, name: 'outbox', strict: values.strict }),
          log,
          signal: AbortSignal.any([io.stop, watch.signal]),
          onRunning: () => io.answer(`relay records ${[...mapping.tables.keys()].join(', ')}`),
        });
        if (watch.reason !== undefined) throw new OperatorError(watch.reason);
        return 0;
      });
    });
  },
};
