import { Type } from 'typebox';
import { AnnalsError } from '../../core/errors.ts';
import { within } from '../../core/fairness/deadline.ts';
import type { HttpServer } from '../http-server-type.ts';
import { json } from '../openapi/answers.ts';

/** A database that takes longer counts as away (milliseconds). */
const maxWait = 1_000;

/** Seconds after which to ask again. */
const retryAfter = '1';

/** Probes come every few seconds, so only failed ones are logged. */
const logLevel = 'warn';

const tags = ['Health'];
const Health = Type.Object({ status: Type.Literal('ok') }, { $id: 'Health', examples: [{ status: 'ok' }] });

export interface HealthOptions {
  askDatabase: () => Promise<unknown>;
  /** Whether the database takes writes, as far as is known. */
  takesWrites: () => Promise<boolean>;
  /** Why the process is not ready besides; undefined where nothing is in the way. */
  notReady?: (() => string | undefined) | undefined;
}

export async function healthRoutes(app: HttpServer, options: HealthOptions): Promise<void> {
  app.get(
    '/health/live',
    {
      logLevel,
      schema: {
        operationId: 'getLiveness',
        tags,
        summary: 'Checking whether the process answers',
        response: { 200: json(Health, { description: 'It does.' }) },
      },
    },
    async () => ({ status: 'ok' as const }),
  );

  app.get(
    '/health/ready',
    {
      logLevel,
      config: { errors: ['service_unavailable'] },
      schema: {
        operationId: 'getReadiness',
        tags,
        summary: 'Checking whether the database answers and accepts writes',
        response: { 200: json(Health, { description: 'It does.' }) },
      },
    },
    async () => {
      const headers = { 'Retry-After': retryAfter };
      const reason = options.notReady?.();
      if (reason !== undefined) throw new AnnalsError('service_unavailable', reason, { headers });
      try {
        await within(maxWait, options.askDatabase());
      } catch (cause) {
        throw new AnnalsError('service_unavailable', 'The database does not answer.', { headers, cause });
      }
      if (!(await options.takesWrites())) {
        throw new AnnalsError('service_unavailable', 'The database takes no writes.', { headers });
      }
      return { status: 'ok' as const };
    },
  );
}
