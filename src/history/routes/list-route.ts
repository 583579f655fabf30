import type { FastifyReply, FastifyRequest } from 'fastify';
import { AnnalsError, invalidField } from '../../core/errors.ts';
import { Semaphore } from '../../core/fairness/semaphore.ts';
import { ofCurrentWork } from '../../core/fairness/work.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Restriction } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { CsvFile, csvType, jsonStream, stream } from '../../http/openapi/answers.ts';
import type { QueryParameters } from '../../http/query-parameters.ts';
import { insufficientScopes } from '../../http/scopes.ts';
import { streamOfTexts } from '../../pagination/page-texts.ts';
import { historyBody } from '../entries/entry-text.ts';
import { showEntries } from '../entries/show-entries.ts';
import { csvText, maxEntriesOfFile } from '../export/csv-file.ts';
import type { FindPage } from '../search/find-page.ts';
import { parseOwnQuery } from '../search/plan/restriction.ts';
import { clientReads, mayShowContext, type ReadApi, refuseContextWithoutScope, timingOf } from './operation.ts';
import { HistoryPath, HistoryQuery } from './schemas.ts';

interface ListOptions {
  findPage: FindPage;
  sealer: Sealer;
}

/**
 * Files of one tenant that are made or sent at once, in a process. Anybody may take a file slowly, so files have a quarter of the places of viewers and
 * nobody waits for one in a place.
 */
export const maxFilesOfTenant = 8;

/** The list of changes. */
export function listRoute(app: HttpServer, { findPage, sealer }: ListOptions, at: ReadApi): void {
  const files =
    at.config.isOfViewer === true
      ? new Semaphore({ maxOfTenant: maxFilesOfTenant, maxWaitingOfTenant: 0, name: 'files of viewers' })
      : undefined;
  const page = jsonStream(at.page, { description: 'A page of changes, newest first.', headers: at.headers });
  const file = stream({ 'text/csv': { schema: CsvFile } }, { description: '' });
  const pageOrFile = {
    ...page,
    headers: ['Content-Disposition'] as const,
    content: { ...page.content, ...file.content },
  };

  app.get(
    `${at.path}/${at.list}`,
    {
      onRequest: files ? [varyByAccept, refuseContextWithoutScope, checkFile] : refuseContextWithoutScope,
      config: at === clientReads ? { ...at.config, hidesOutages: true } : at.config,
      schema: {
        operationId: at.operationId('listChanges'),
        tags: [at.tag],
        summary: 'Retrieving change history',
        description: files ? ofFiles : 'Version 0.0.1, preview: some features may not be fully operational.',
        params: HistoryPath,
        querystring: HistoryQuery,
        response: { 200: files ? pageOrFile : page },
      },
    },
    async (request, reply) => {
      const { q = '', page: number = 1, size = 20, context, valueLimit } = request.query;
      const { tenant } = request.params;
      const { restriction } = request.credentials;
      if (files !== undefined && asksForFile(request)) {
        const release = await files.acquire(tenant, request.work?.signal);
        reply.raw.once('close', release);
        if (reply.raw.closed) release();
        reply.type(csvType).header('content-disposition', 'attachment; filename="changes.csv"');
        return await reply.send(streamOfTexts(await fileOf(tenant, q, restriction)));
      }
      const withContext = mayShowContext(context, request.credentials);
      const withIdentity = request.query.ref === 'true';
      const query = parseOwnQuery(q, restriction);
      const asked = { skip: (number - 1) * size, size, inPieces: true, withContext, withIdentity, restriction };
      const begun = performance.now();
      const found = await findPage(tenant, query, asked);
      reply.headers(timingOf(found.plan, begun, restriction));
      const shown = await showEntries(sealer, tenant, found, { ref: withIdentity, valueLimit, restriction });
      const body = historyBody(shown, { page: number, size });
      return await reply.type('application/json; charset=utf-8').send(body);
    },
  );

  async function fileOf(
    tenant: string,
    q: string,
    restriction: Restriction | undefined,
  ): Promise<AsyncIterable<string>> {
    const asked = { skip: 0, size: maxEntriesOfFile, inPieces: 'always', restriction } as const;
    const found = await findPage(tenant, parseOwnQuery(q, restriction), asked);
    if (found.total > maxEntriesOfFile) {
      throw invalidField('q', `q has ${found.total} changes, and a file at most ${maxEntriesOfFile}`);
    }
    return ofCurrentWork(csvText(await showEntries(sealer, tenant, found, { restriction })));
  }
}

const ofFiles = `With \`Accept: text/csv\` all changes of \`q\` as a file, up to ${maxEntriesOfFile}, if the token permits it. Then \`q\` is the one parameter.`;

/** One address has pages and files, and their errors. */
async function varyByAccept(_request: FastifyRequest, reply: FastifyReply): Promise<void> {
  reply.header('vary', 'Origin, Accept');
}

/** Whether the type is named: what takes anything gets a page. */
function asksForFile({ headers: { accept = '' } }: Pick<FastifyRequest, 'headers'>): boolean {
  return accept.split(',').some((range) => /^\s*text\/csv\s*(?:;|$)/i.test(range));
}

/** Refuses a file that the caller may not have, or a part of one, before the parameters get their defaults. */
async function checkFile(request: FastifyRequest): Promise<void> {
  if (!asksForFile(request)) return;
  if (request.credentials.viewer?.mayExport !== true) throw insufficientScopes();
  const given = request.query as QueryParameters;
  const others = Object.keys(HistoryQuery.properties).filter((name) => name !== 'q' && given[name] !== undefined);
  if (others.length === 0) return;
  const details = others.map((field) => ({ field, message: 'must be left out: a file has all changes of q' }));
  throw new AnnalsError('validation_violation', 'A file has q as its one parameter.', { details });
}
