import type { FastifyReply, FastifyRequest } from 'fastify';
import { AnnalsError, invalidField } from '../../core/errors.ts';
import { Semaphore } from '../../core/fairness/semaphore.ts';
import { ofCurrentWork } from '../../core/fairness/work.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { CsvFile, csvType, jsonStream, stream } from '../../http/openapi/answers.ts';
import type { QueryParameters } from '../../http/query-parameters.ts';
import { insufficientScopes } from '../../http/scopes.ts';
import { streamOfTexts } from '../../pagination/page-texts.ts';
import type { EntryRow, PageOfEntries } from '../entries/entry-store.ts';
import { historyBody, timeText } from '../entries/entry-text.ts';
import { showEntries } from '../entries/show-entries.ts';
import { csvHead } from '../export/export-store.ts';
import type { FindPage } from '../search/find-page.ts';
import { parseOwnQuery } from '../search/plan/restriction.ts';
import { clientReads, mayShowContext, type ReadApi, refuseContextWithoutScope, timingOf } from './operation.ts';
import { HistoryPath, HistoryQuery, type HistoryQueryParameters } from './schemas.ts';

/** Maximum entries of a file that is returned at once. */
export const maxEntriesOfFile = 10_000;

interface ListOptions {
  findPage: FindPage;
  sealer: Sealer;
}

/**
 * Concurrent files of one tenant in a process. A client may take a file slowly, so files take at most a quarter of the
 * viewers' concurrent requests, and further ones are refused at once.
 */
export const maxFilesOfTenant = 8;

/** The list of changes, as pages of JSON; for viewers also as a CSV file. */
export function listRoute(app: HttpServer, options: ListOptions, api: ReadApi): void {
  const hasFiles = api.config.isOfViewer === true;
  const files = new Semaphore({ maxOfTenant: maxFilesOfTenant, maxWaitingOfTenant: 0, name: 'files of viewers' });
  const page = jsonStream(api.page, { description: 'A page of changes, newest first.', headers: api.headers });
  const file = stream({ 'text/csv': { schema: CsvFile } }, { description: '' });
  const pageOrFile = {
    ...page,
    headers: ['Content-Disposition'] as const,
    content: { ...page.content, ...file.content },
  };

  app.get(
    `${api.path}/${api.list}`,
    {
      onRequest: hasFiles ? [varyByAccept, refuseContextWithoutScope, checkFile] : refuseContextWithoutScope,
      config: api === clientReads ? { ...api.config, hidesOutages: true } : api.config,
      schema: {
        operationId: api.operationId('listChanges'),
        tags: [api.tag],
        summary: 'Retrieving change history',
        description: hasFiles ? describedFiles : 'Version 0.0.1, preview: some features may not be fully operational.',
        params: HistoryPath,
        querystring: HistoryQuery,
        response: { 200: hasFiles ? pageOrFile : page },
      },
    },
    async (request, reply) => {
      const list = { ...options, request, tenant: request.params.tenant, query: request.query };
      if (!hasFiles || !acceptsCsv(request)) return await sendPage(list, reply);
      const release = await files.acquire(list.tenant, request.work?.signal);
      reply.raw.once('close', release);
      if (reply.raw.closed) release();
      return await sendFile(list, reply);
    },
  );
}

interface ChangesQuery extends ListOptions {
  readonly request: Pick<FastifyRequest, 'credentials'>;
  readonly tenant: string;
  readonly query: HistoryQueryParameters;
}

async function sendPage({ findPage, sealer, request, tenant, query }: ChangesQuery, reply: FastifyReply) {
  const { q = '', page = 1, size = 20, context, ref, valueLimit } = query;
  const { restriction } = request.credentials;
  const withContext = mayShowContext(context, request.credentials);
  const withIdentity = ref === 'true';
  const options = { skip: (page - 1) * size, size, inPieces: true, withContext, withIdentity, restriction };
  const parsed = parseOwnQuery(q, request.credentials);
  const begun = performance.now();
  const found = await findPage(tenant, parsed, options);
  reply.headers(timingOf(found.plan, begun, restriction));
  const shown = await showEntries(sealer, tenant, found, { ref: withIdentity, valueLimit, restriction });
  return await reply.type('application/json; charset=utf-8').send(historyBody(shown, { page, size }));
}

async function sendFile({ findPage, sealer, request, tenant, query: { q = '' } }: ChangesQuery, reply: FastifyReply) {
  const { restriction } = request.credentials;
  reply.type(csvType).header('content-disposition', 'attachment; filename="changes.csv"');
  const options = { skip: 0, size: maxEntriesOfFile, inPieces: 'always', restriction } as const;
  const found = await findPage(tenant, parseOwnQuery(q, request.credentials), options);
  if (found.total > maxEntriesOfFile) {
    throw invalidField('q', `q has ${found.total} changes, and a file at most ${maxEntriesOfFile}`);
  }
  const shown = await showEntries(sealer, tenant, found, { restriction });
  return await reply.send(streamOfTexts(ofCurrentWork(csvText(shown))));
}

const describedFiles = `With \`Accept: text/csv\` all changes of \`q\` as a file, up to ${maxEntriesOfFile}, if the token permits it. Then \`q\` is the one parameter.`;

/** One URL has pages and files, and their errors. */
async function varyByAccept(_request: FastifyRequest, reply: FastifyReply): Promise<void> {
  reply.header('vary', 'Origin, Accept');
}

/** Whether the type is named: a client that accepts anything gets a page. */
function acceptsCsv({ headers: { accept = '' } }: Pick<FastifyRequest, 'headers'>): boolean {
  return accept.split(',').some((range) => /^\s*text\/csv\s*(?:;|$)/i.test(range));
}

/** Refuses a file without permission, or with parameters beside `q`, before the parameters get their defaults. */
async function checkFile(request: FastifyRequest): Promise<void> {
  if (!acceptsCsv(request)) return;
  if (request.credentials.viewer?.mayExport !== true) throw insufficientScopes();
  const sent = request.query as QueryParameters;
  const extra = Object.keys(HistoryQuery.properties).filter((name) => name !== 'q' && sent[name] !== undefined);
  if (extra.length === 0) return;
  const details = extra.map((field) => ({ field, message: 'must be left out: a file has all changes of q' }));
  throw new AnnalsError('validation_violation', 'A file has q as its one parameter.', { details });
}

const partLength = 64 * 1024;

/**
 * The file that an export has of these entries, in parts. It is written from a page, which holds no connection: a
 * client may take it slowly, while the lines of an export come from a transaction that stays open.
 */
async function* csvText({ entries, pieces }: PageOfEntries): AsyncGenerator<string> {
  let part = csvHead();
  for await (const piece of pieces ?? [entries]) {
    for (const entry of piece) {
      part += csvLine(entry);
      if (part.length < partLength) continue;
      yield part;
      part = '';
    }
  }
  yield part;
}

function csvLine(entry: EntryRow): string {
  const { at, type, entity, entityId, name, schemaVersion, actor, related, paths } = entry;
  const { actorId, onBehalfOfName, onBehalfOfId, correlationId } = entry;
  const fields = [timeText(at), type, entity, entityId, name, schemaVersion, actor, related ?? '[]', paths];
  fields.push(actorId, onBehalfOfName, onBehalfOfId, correlationId);
  return `${fields.map(csvField).join()}\r\n`;
}

/** As the routine `csv_field`: a spreadsheet reads no field as a formula. */
function csvField(value: string | null | undefined): string {
  if (value === null || value === undefined) return '';
  return `"${/^[=+\-@\t\n\r＝＋－＠]/.test(value) ? "'" : ''}${value.replaceAll('"', '""')}"`;
}
