import { Readable } from 'node:stream';
import { invalidField } from '../../core/errors.ts';
import { ofCurrentWork } from '../../core/fairness/work.ts';
import { type Credentials, callerOf } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { CsvFile, csvType, json, stream } from '../../http/openapi/answers.ts';
import { documentRoutes } from '../../http/openapi/document-routes.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import { historyScopes, insufficientScopes, mayReadContext, mayReadHistory, type Scope } from '../../http/scopes.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { Paginator } from '../../pagination/paginator.ts';
import type { FindTenants } from '../../postgres/tenants/tenants-with.ts';
import type { JobReader } from './job-store.ts';
import { Job, JobCreated, JobItem, JobPath, JobsPath, NdjsonFile, NewExport } from './schemas.ts';
import type { Jobs } from './service.ts';

const tags = ['Jobs'];
const readingAll: readonly Scope[] = ['ai.agent_read', 'ai.agent_manage'];
const deletingAll: Scope = 'ai.agent_manage';
// Each of these sees at least the exports of its own client.
const reading: readonly Scope[] = [...readingAll, ...historyScopes];
const deleting: readonly Scope[] = [deletingAll, ...historyScopes];

const fileKinds = {
  NDJSON: { type: 'application/x-ndjson', extension: 'ndjson' },
  CSV: { type: csvType, extension: 'csv' },
} as const;

/** Jobs (contract 8), with paginated lists and searches (spec D). */
export async function jobRoutes(
  app: HttpServer,
  { jobs, paginator }: { jobs: Jobs; paginator: Paginator },
): Promise<void> {
  listRoutes(app, paginator, {
    path: '/ai-service/:tenant/jobs',
    params: JobsPath,
    tags,
    name: 'Jobs',
    many: 'jobs',
    item: JobItem,
    scopes: reading,
    appliesRestriction: true,
    page: (request, query, page) => jobs.list(readerOf(request), query, page),
  });

  app.post(
    '/ai-service/:tenant/jobs',
    {
      config: { scopes: historyScopes, appliesRestriction: true },
      schema: {
        operationId: 'createJob',
        tags,
        summary: 'Exporting change history',
        params: JobsPath,
        body: NewExport,
        response: { 201: json(JobCreated, { description: 'The job was created.', headers: ['Location'] }) },
      },
    },
    async (request, reply) => {
      const { tenant } = request.params;
      const { scopes, clientId, person, restriction } = request.credentials;
      const { q = '', format, bom, rows, context: withContext = false, proof = false } = request.body;
      const options = { q, format, bom, rows, withContext, proof };
      if (proof && (!scopes.includes('changelog.proof_read') || restriction !== undefined)) throw insufficientScopes();
      if (proof && format !== 'NDJSON') throw invalidField('format', 'with proof the format is NDJSON');
      for (const [field, value] of Object.entries({ bom, rows })) {
        if (value !== undefined && format !== 'CSV')
          throw invalidField(field, 'must be left out: it is for the format CSV alone');
      }
      const readsContext = mayReadContext(scopes) && restriction === undefined;
      if (withContext && !readsContext) throw insufficientScopes();
      const jobId = await jobs.startExport(tenant, {
        ...options,
        readsContext,
        requestId: request.id,
        clientId,
        person,
        restriction: restriction?.written,
      });
      return await reply.code(201).header('location', `/ai-service/${tenant}/jobs/${jobId}`).send({ jobId });
    },
  );

  documentRoutes(app, {
    path: '/ai-service/:tenant/jobs/:id',
    params: JobPath,
    tags,
    name: 'Job',
    singular: 'job',
    appliesRestriction: true,
    read: { scopes: reading, schema: Job, find: ({ params, request }) => jobs.find(readerOf(request), params.id) },
    remove: {
      scopes: deleting,
      summary: 'Deleting a job with its file, and stopping it if it runs',
      remove: ({ params, request }) =>
        jobs.remove(readerOf(request), params.id, {
          deletesAll: request.credentials.restriction === undefined && request.credentials.scopes.includes(deletingAll),
        }),
    },
  });

  app.get(
    '/ai-service/:tenant/jobs/:id/content',
    {
      config: { scopes: historyScopes, appliesRestriction: true, errors: ['resource_not_found', 'conflict_resource'] },
      schema: {
        operationId: 'downloadJobContent',
        tags,
        summary: 'Downloading the file of an export',
        params: JobPath,
        response: {
          200: stream(
            { 'application/x-ndjson': { schema: NdjsonFile }, 'text/csv': { schema: CsvFile } },
            { description: 'The file.', headers: ['Content-Disposition', 'Content-Length'] },
          ),
        },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const { format, bytes, pieces } = await jobs.content({ ...readerOf(request), caller: callerOf(request) }, id, {
        // HEAD is no download.
        downloads: request.method === 'GET',
      });
      const { type, extension } = fileKinds[format];
      return await reply
        .type(type)
        .header('content-length', bytes)
        .header('content-disposition', `attachment; filename="changes-${id}.${extension}"`)
        .send(Readable.from(ofCurrentWork(pieces()), { objectMode: false, highWaterMark: 1 }));
    },
  );
}

/** Only readers of the change history see it in jobs (contract 8); with a restriction, in own exports only. */
function readerOf({
  credentials: { tenant, clientId, person, scopes, restriction },
}: {
  credentials: Credentials;
}): JobReader {
  const seesAll = restriction === undefined && scopes.some((scope) => readingAll.includes(scope));
  const readsContext = mayReadContext(scopes) && restriction === undefined;
  return {
    ...{ tenant, clientId, person, readsHistory: mayReadHistory(scopes), readsContext, seesAll },
    restriction: restriction?.written,
  };
}

/** Runs jobs while the server runs. */
export async function jobUpkeep(
  app: HttpServer,
  { jobs, findTenants }: { jobs: Jobs; findTenants: FindTenants },
): Promise<void> {
  whileListening(app, { upkeep: [], begin: async () => jobs.work(findTenants), end: () => jobs.close() });
}
