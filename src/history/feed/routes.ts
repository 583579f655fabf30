import type { Readable } from 'node:stream';
import { Semaphore } from '../../core/fairness/semaphore.ts';
import { onClientGone, whenClientGone } from '../../http/client-gone.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { type Answer, jsonText, jsonType, stream } from '../../http/openapi/answers.ts';
import { historyOperation, mayShowContext, refuseContextWithoutScope } from '../routes/operation.ts';
import { HistoryPath } from '../routes/schemas.ts';
import { parseOwnQuery } from '../search/plan/restriction.ts';
import { EventStream, longPortions, maxPortionBytes, OpenStreams } from './event-stream.ts';
import { type Feed, readAnswer } from './feed.ts';
import { RestoredCursor } from './feed-cursor.ts';
import { exampleOfFeedEvents, FeedAnswer, FeedEvents, FeedHeaders, FeedQuery, feedLimits } from './schemas.ts';

/** Answers that are being read or sent. Each has at most about 1 MiB, or one change. */
export const feedAnswers = { places: 64, maxWaitingOfTenant: 1_000, name: 'answers of the feed' };

export async function feedRoutes(app: HttpServer, { feed }: { feed: Feed }): Promise<void> {
  const streams = new OpenStreams();
  const answers = new Semaphore(feedAnswers);
  const memory = new Semaphore(longPortions);
  const stopping = new AbortController();
  app.addHook('preClose', async () => {
    stopping.abort();
    streams.close();
  });

  app.get(
    '/changelog/:tenant/feed',
    {
      onRequest: refuseContextWithoutScope,
      config: { ...historyOperation, work: 'follows', errors: ['cursor_invalid'] },
      schema: {
        operationId: 'followChanges',
        tags: ['Change history'],
        summary: 'Following the change history',
        description:
          'The changes behind a cursor, oldest first, and those to come: with `wait`, or as server-sent events. Each committed change that matches comes at least once.',
        params: HistoryPath,
        querystring: FeedQuery,
        headers: FeedHeaders,
        response: { 200: feedAnswer },
      },
    },
    async (request, reply) => {
      const { q = '', after = 'now', limit = feedLimits.defaultItems, wait = 0, context } = request.query;
      const { tenant } = request.params;
      const withContext = mayShowContext(context, request.credentials);
      parseOwnQuery(q, request.credentials);
      const lastEventId = request.headers['last-event-id'];
      const begin = await (lastEventId
        ? feed.positionOf(tenant, lastEventId, 'Last-Event-ID')
        : feed.positionOf(tenant, after));
      const options = { q, withContext, after: begin };
      if (!acceptsEvents(request.headers.accept)) {
        const ends = { signal: whenClientGone(reply), stopping: stopping.signal };
        const answer = await readAnswer(feed, tenant, { ...options, ...ends, limit, wait, answers });
        onAnswered(reply.raw, answer.release);
        return await reply.type(jsonType).header('cache-control', 'no-store').send(answer.text);
      }
      const reading = new AbortController();
      onClientGone(reply, (reason) => reading.abort(reason));
      const portions = feed.portions(tenant, { ...options, ...portion, signal: reading.signal });
      const first = await portions.next().then(
        ({ value }) => value,
        (error: unknown) => {
          if (error instanceof RestoredCursor) return error;
          throw error;
        },
      );
      reading.signal.throwIfAborted();
      if (first === undefined) throw new Error('a feed has ended before it began');
      const events = new EventStream({
        response: reply.raw,
        verifyAgain: () => request.verifyAgain(),
        begin: { position: begin.position, cursor: feed.cursorOf(tenant, begin) },
        portions,
        reading,
        first,
        // A change longer than the maximum of a tenant counts as the maximum.
        takeMemory: (bytes) => memory.tryAcquire(tenant, Math.min(bytes, longPortions.places / 2)),
      });
      onClientGone(reply, () => events.end());
      streams
        .run(events)
        .catch((error: unknown) => request.log.warn({ err: error }, 'a stream of the feed has failed'));
      return await reply
        .headers({ 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
        .type('text/event-stream')
        .send(events.body);
    },
  );
}

const portion = { maxItems: 1_000, maxBytes: maxPortionBytes };

const events = stream(
  { 'text/event-stream': { schema: FeedEvents, example: exampleOfFeedEvents } },
  { description: 'The changes.' },
);
const feedAnswer: Answer<string | Readable> = {
  ...events,
  content: { ...jsonText(FeedAnswer, events).content, ...events.content },
};

function acceptsEvents(accept: string | undefined): boolean {
  return accept !== undefined && /(?:^|,)\s*text\/event-stream\s*(?:[;,]|$)/i.test(accept);
}

function onAnswered(
  response: { once(event: 'close', listener: () => void): unknown; closed: boolean },
  then: () => void,
) {
  if (response.closed) then();
  else response.once('close', then);
}
