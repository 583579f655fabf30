import { Type } from 'typebox';
import { within } from '../concurrency/deadline.ts';
import { AnnalsError } from '../errors.ts';
import type { HttpServer } from './http-server-type.ts';

/** A database slower than this does not count as there (milliseconds). */
const patience = 1_000;

/** Probes come every few seconds; only their failures are worth a line. */
const logLevel = 'warn';

const Health = Type.Object({ status: Type.Literal('ok') });

export async function healthRoutes(app: HttpServer, options: { askDatabase: () => Promise<unknown> }): Promise<void> {
  app.get(
    '/health/live',
    { logLevel, schema: { tags: ['Health'], summary: 'Whether the process answers', response: { 200: Health } } },
    async () => ({ status: 'ok' as const }),
  );

  app.get(
    '/health/ready',
    {
      logLevel,
      schema: {
        tags: ['Health'],
        summary: 'Whether the database answers too',
        response: { 200: Health, 503: Type.Ref('ErrorMessage#') },
      },
    },
    async () => {
      try {
        await within(patience, options.askDatabase());
      } catch (cause) {
        throw new AnnalsError('service_unavailable', 'The database does not answer.', { cause });
      }
      return { status: 'ok' as const };
    },
  );
}
