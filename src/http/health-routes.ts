import { Type } from 'typebox';
import { within } from '../concurrency/deadline.ts';
import { AnnalsError } from '../errors.ts';
import type { HttpServer } from './http-server-type.ts';
import { json } from './openapi/answers.ts';

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
        summary: 'Whether the process answers',
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
        summary: 'Whether the database answers too',
        response: { 200: json(Health, { description: 'It does.' }) },
      },
    },
    async () => {
      const reason = options.notReady?.();
      if (reason !== undefined)
        throw new AnnalsError('service_unavailable', reason, { headers: { 'Retry-After': retryAfter } });
      try {
        await within(maxWait, options.askDatabase());
      } catch (cause) {
        const headers = { 'Retry-After': retryAfter };
        throw new AnnalsError('service_unavailable', 'The database does not answer.', { headers, cause });
      }
      return { status: 'ok' as const };
    },
  );
}
