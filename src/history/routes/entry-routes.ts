import type { Sealer } from '../../core/sealing.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { jsonStream } from '../../http/openapi/answers.ts';
import { streamOfTexts } from '../../pagination/page-texts.ts';
import { changeIsGone, openRef } from '../entries/entry-ref.ts';
import type { PageOfEntries } from '../entries/entry-store.ts';
import { entryText } from '../entries/entry-text.ts';
import { showEntries } from '../entries/show-entries.ts';
import type { HistoryReads } from '../history-reads.ts';
import { mayShowContext, type ReadApi, refuseContextWithoutScope, timingOf } from './operation.ts';
import { EntryQuery, HistoryPath } from './schemas.ts';

/** One entry of the history (contract 4, further reads). */
export function entryRoutes(
  app: HttpServer,
  { reads, sealer }: { reads: HistoryReads; sealer: Sealer },
  api: ReadApi,
): void {
  app.get(
    `${api.path}/entries`,
    {
      onRequest: refuseContextWithoutScope,
      config: { ...api.config, errors: ['resource_not_found'] },
      schema: {
        operationId: api.operationId('getEntry'),
        tags: [api.tag],
        summary: 'Retrieving one change',
        description: 'The change with a `ref`. The list of changes shows refs with `ref=true`.',
        params: HistoryPath,
        querystring: EntryQuery,
        response: { 200: jsonStream(api.change, { description: 'The change.', headers: api.headers }) },
      },
    },
    async (request, reply) => {
      const { ref, context, valueLimit } = request.query;
      const { tenant } = request.params;
      const { restriction } = request.credentials;
      const withContext = mayShowContext(context, request.credentials);
      const begun = performance.now();
      const found = await reads.entry(tenant, openRef(sealer, tenant, ref), { withContext, restriction });
      if (found === undefined) throw changeIsGone();
      reply.headers(timingOf(found.plan, begun, restriction));
      const shown = await showEntries(sealer, tenant, found, { ref: true, valueLimit, restriction });
      return await reply.type('application/json; charset=utf-8').send(entryBody(shown));
    },
  );
}

function entryBody({ entries, pieces }: PageOfEntries) {
  return pieces === undefined ? entries.map(entryText).join('') : streamOfTexts(textsOf(pieces));
}

async function* textsOf(pieces: NonNullable<PageOfEntries['pieces']>): AsyncGenerator<string> {
  for await (const piece of pieces) for (const entry of piece) yield entryText(entry);
}
