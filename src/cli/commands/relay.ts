import { measureRelay } from '../../context/installation-figures.ts';
import { readConfig } from '../../core/config/config.ts';
import { OperatorError } from '../../core/errors.ts';
import { createLogger } from '../../http/logger.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import { takenObserver } from '../../metrics/recording.ts';
import { createBatchRecorder } from '../../recording/batches/record-batch.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import { type RecorderTarget, recordOverHttp } from '../../sources/outbox/record-over-http.ts';
import { type RelayOptions, recordDirectly, relay } from '../../sources/outbox/relay.ts';
import { parseCommand } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { mappingOfFile } from '../mapping-file.ts';
import { withObservers } from '../metrics.ts';
import { forOperators, mappingFileOf, requireTenant, sourceOf } from '../source-option.ts';
import { withDatabase } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals relay --mapping FILE [--from URL]

Records the changes in the outbox of "annals outbox" and deletes them there, until stopped.
Several relays share the work.

  --from URL     the application's database; default: ANNALS_SOURCE_URL. PGPASSFILE works
  --mapping FILE which tables become which documents; default: ANNALS_RECORDER_MAPPING
  --to URL       send the changes to a recorder instead of this installation's database, with
                 the client of ANNALS_CLIENT_ID and ANNALS_CLIENT_SECRET. It needs the scopes
                 recorder.change_record and recorder.actor_set
  --strict       stop at an invalid change instead of rejecting it

Example:
  annals relay --mapping mapping.json --from postgres://relay@shop.example/shop
  annals relay --mapping mapping.json --to https://recorder.example`,

  async run(args, io) {
    const { values } = parseCommand('relay', {
      args,
      options: {
        mapping: { type: 'string' },
        from: { type: 'string' },
        to: { type: 'string' },
        strict: { type: 'boolean', default: false },
      },
    });
    return await forOperators(async () => {
      const source = sourceOf(values.from, io);
      const mapping = await mappingOfFile(mappingFileOf(values.mapping, io));
      const config = readConfig(io.environment);
      const log = createLogger(config.logLevel, { write: (line) => void io.stderr.write(line) });
      const run = (recordWith: (metrics: Metrics | undefined) => RelayOptions['record'], signal: AbortSignal) =>
        withObservers(config, { logger: log, tell: io.tell }, async ({ metrics, tracer }) => {
          if (metrics !== undefined) measureRelay(metrics, source);
          const onRunning = () => io.answer(`relay records ${[...mapping.tables.keys()].join(', ')}`);
          await relay({ source, mapping, record: recordWith(metrics), log, tracer, signal, onRunning });
        });
      if (values.to !== undefined) {
        const record = recordOverHttp({ target: targetOf(values.to, mapping, io), strict: values.strict, log });
        await run(() => record, io.stop);
        return 0;
      }
      return await withDatabase(io, async ({ db, sealer, now }, watch) => {
        await requireTenant(db, mapping);
        await run(
          (metrics) => {
            const recordBatch = createBatchRecorder({
              sealer,
              now,
              people: mapping.people,
              onRejected: (kept) => log.warn(kept, 'a change can never be recorded; Annals stores it as rejected'),
              onRecorded: metrics && takenObserver(metrics),
            });
            return recordDirectly({ db, recordBatch, name: 'outbox', strict: values.strict });
          },
          AbortSignal.any([io.stop, watch.signal]),
        );
        if (watch.reason !== undefined) throw new OperatorError(watch.reason);
        return 0;
      });
    });
  },
};

function targetOf(to: string, { tenant }: Mapping, { environment }: CommandIo): RecorderTarget {
  const url = URL.canParse(to) ? new URL(to) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol) || url.search !== '' || url.hash !== '')
    throw new UsageError('--to must be the URL of a recorder: https://recorder.example');
  if (url.username !== '' || url.password !== '')
    throw new UsageError(
      '--to has a user or a password: the client belongs in ANNALS_CLIENT_ID and ANNALS_CLIENT_SECRET',
    );
  const { ANNALS_CLIENT_ID: clientId = '', ANNALS_CLIENT_SECRET: clientSecret = '' } = environment;
  if (clientId === '' || clientSecret === '')
    throw new UsageError('--to needs the client of the recorder: ANNALS_CLIENT_ID and ANNALS_CLIENT_SECRET');
  if (tenant?.kind !== 'value')
    throw new OperatorError(
      'a client of a recorder records for one tenant: with --to the mapping names it as {"value": …}',
    );
  return { url, tenant: tenant.tenant, clientId, clientSecret };
}
