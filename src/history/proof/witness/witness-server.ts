import { type FastifyBaseLogger, fastify, LogController } from 'fastify';
import type { HttpServer } from '../../../http/http-server-type.ts';
import { cutOffSlowClients } from '../../../http/slow-clients.ts';
import { addCheckpoint, type WitnessOptions } from './add-checkpoint.ts';

/** The bytes of a request at most: a checkpoint with many signatures, and a proof. */
export const maxWitnessBody = 256 * 1024;

/** Milliseconds in which a client sends its request, and how many are connected at once. */
export const witnessLimits = { request: 10_000, connections: 256 };

/** The server of a witness: `POST /add-checkpoint`, as C2SP's tlog-witness has it, and nothing else. */
export function buildWitness(options: WitnessOptions, logger: FastifyBaseLogger): HttpServer {
  const app: HttpServer = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: maxWitnessBody,
    requestTimeout: witnessLimits.request,
  });
  app.server.maxConnections = witnessLimits.connections;
  cutOffSlowClients(app, witnessLimits.request);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.setErrorHandler((error, _request, reply) => {
    const status = statusOf(error);
    if (status >= 500) logger.error(error, 'the witness could not answer');
    return reply
      .code(status)
      .type('text/plain; charset=utf-8')
      .send(status === 413 ? 'the request is too large\n' : 'the request failed\n');
  });
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).type('text/plain; charset=utf-8').send('there is POST /add-checkpoint alone\n'),
  );
  app.post('/add-checkpoint', (request, reply) => {
    const { status, body } = addCheckpoint(textOf(request.body), options);
    const type = status === 409 ? 'text/x.tlog.size' : 'text/plain; charset=utf-8';
    return reply.code(status).header('content-type', type).send(body);
  });
  return app;
}

/** Empty for what is no UTF-8: no request is. */
function textOf(body: unknown): string {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
  const text = bytes.toString();
  return Buffer.from(text).equals(bytes) ? text : '';
}

function statusOf(error: unknown): number {
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500;
  return status >= 400 && status < 500 ? status : 500;
}
