import { DaysQuery, parseDays } from '../../http/days.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import { type Usage, UsageAnswer, UsagePath } from './service.ts';

/** The usage of a tenant (contract 14). */
export async function usageRoutes(
  app: HttpServer,
  { usage, now }: { usage: Pick<Usage, 'read'>; now: () => number },
): Promise<void> {
  app.get(
    '/usage/:tenant',
    {
      config: { scopes: ['usage.usage_read'] },
      schema: {
        operationId: 'getUsage',
        tags: ['Usage'],
        summary: 'Retrieving the usage by day',
        description: 'One item for each UTC day, the oldest first, also for days without usage.',
        params: UsagePath,
        querystring: DaysQuery,
        response: { 200: json(UsageAnswer, { description: 'The usage by day.' }) },
      },
    },
    async (request) => await usage.read(request.params.tenant, parseDays(request.query, now())),
  );
}

/** Counts the requests of each tenant, one per line of the request log. Call it before routes are registered. */
export function countRequests(app: HttpServer, usage: Pick<Usage, 'countRequest'>): void {
  app.addHook('onResponse', (request, _reply, done) => {
    const tenant = request.verifiedCredentials?.tenant;
    if (tenant !== undefined) usage.countRequest(tenant);
    done();
  });
}
