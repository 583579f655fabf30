import { Type } from 'typebox';
import { AnnalsError } from '../../core/errors.ts';
import { within } from '../../core/fairness/deadline.ts';
import type { HttpServer } from '../http-server-type.ts';
import { json } from '../openapi/answers.ts';

/** Milliseconds after which the database counts as away. */
const maxWait = 1_000;

/** Seconds. */
const retryAfter = '1';

/** Probes are frequent, so only failures are logged. */
const logLevel = 'warn';

const tags = ['Health'];
const Health = Type.Object({ status: Type.Literal('ok') }, { $id: 'Health', examples: [{ status: 'ok' }] });

export interface HealthOptions {
  askDatabase: () => Promise<unknown>;
  takesWrites: () => Promise<boolean>;
  /** Any other reason why the process is not ready. */
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
