import { measureCapture } from '../../context/installation-figures.ts';
import { readConfig } from '../../core/config/config.ts';
import { OperatorError } from '../../core/errors.ts';
import { createLogger } from '../../http/logger.ts';
import { takenObserver } from '../../metrics/recording.ts';
import type { Source } from '../../postgres/source/source.ts';
import { createBatchRecorder } from '../../recording/batches/record-batch.ts';
import { capture } from '../../sources/capture/capture.ts';
import { deletePosition } from '../../sources/capture/position.ts';
import { removeCapture } from '../../sources/capture/setup.ts';
import { CaptureFigures, defaultSlot, slotPattern } from '../../sources/capture/slot.ts';
import { parseCommand } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { mappingOfFile } from '../mapping-file.ts';
import { withObservers } from '../metrics.ts';
import { forOperators, mappingFileOf, requireTenant, sourceOf } from '../source-option.ts';
import { withDatabase } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals capture --mapping FILE [--from URL] [--snapshot]
       annals capture --remove [--from URL]

Records the changes of a PostgreSQL database (14 or later) from its write-ahead log until
stopped. The application stays as it is. The source needs wal_level = logical.

  --from URL     the source; default: ANNALS_SOURCE_URL. PGPASSFILE works
  --mapping FILE which tables become which documents; default: ANNALS_RECORDER_MAPPING
  --snapshot     record the existing rows at the first start
  --alter        set the replica identity that the tables need
  --identity full
                 with --alter: set replica identity full where a table can have it
  --resync       after a gap: compare the tables with the history and record the differences
  --accept-gap   after a gap: continue without the missing changes
  --strict       stop at an invalid change instead of rejecting it
  --slot NAME    the name of the slot and the publication at the source; default: ${defaultSlot}
  --remove       drop both at the source, even while Annals' own database is unreachable

Example:
  annals capture --mapping mapping.json --from postgres://annals@shop.example/shop`,

  async run(args, io) {
    const { values } = parseCommand('capture', {
      args,
      options: {
        mapping: { type: 'string' },
        from: { type: 'string' },
        slot: { type: 'string', default: defaultSlot },
        snapshot: { type: 'boolean', default: false },
        alter: { type: 'boolean', default: false },
        identity: { type: 'string' },
        resync: { type: 'boolean', default: false },
        'accept-gap': { type: 'boolean', default: false },
        strict: { type: 'boolean', default: false },
        remove: { type: 'boolean', default: false },
      },
    });
    const { slot, identity } = values;
    if (!slotPattern.test(slot)) throw new UsageError('--slot takes small letters, digits and _, a letter first');
    if (values.resync && values['accept-gap']) throw new UsageError('--resync and --accept-gap exclude each other');
    if (identity !== undefined && identity !== 'full') throw new UsageError('--identity takes full');
    if (identity === 'full' && !values.alter) throw new UsageError('--identity full needs --alter');
    return await forOperators(async () => {
      const source = sourceOf(values.from, io);
      if (values.remove) return await remove(source, slot, io);
      const mapping = await mappingOfFile(mappingFileOf(values.mapping, io));
      const config = readConfig(io.environment);
      const log = createLogger(config.logLevel, { write: (line) => void io.stderr.write(line) });
      return await withDatabase(io, async ({ db, url, sealer, now }, watch) => {
        await requireTenant(db, mapping);
        const figures = new CaptureFigures();
        await withObservers(config, { logger: log, tell: io.tell }, async ({ metrics, tracer, atEnd }) => {
          if (metrics !== undefined) atEnd(measureCapture(metrics, figures, url));
          await capture({
            source,
            db,
            mapping,
            slot,
            choice: { ...values, identity, acceptGap: values['accept-gap'] },
            strict: values.strict,
            sealer,
            recordBatch: createBatchRecorder({
              sealer,
              now,
              people: mapping.people,
              onRejected: (kept) => log.warn(kept, 'a change can never be recorded; Annals stores it as rejected'),
              onRecorded: metrics && takenObserver(metrics),
            }),
            log,
            figures,
            tracer,
            signal: AbortSignal.any([io.stop, watch.signal]),
            onRunning: (tables) => io.answer(`capture records ${tables.join(', ') || 'no table'}`),
          });
        });
        if (watch.reason !== undefined) throw new OperatorError(watch.reason);
        return 0;
      });
    });
  },
};

/** The slot and the publication go first: a slot without a reader fills the source's disk. */
async function remove(source: Source, slot: string, io: CommandIo): Promise<number> {
  io.answer(JSON.stringify(await removeCapture(source, slot)));
  try {
    await withDatabase(io, async ({ db }) => await deletePosition(db));
  } catch {
    io.tell(
      "annals: Annals' own database is unreachable and keeps the position: the next capture will need --accept-gap or --resync",
    );
  }
  return 0;
}
