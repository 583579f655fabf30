import { Readable } from 'node:stream';
import { ClientGone } from './client-gone.ts';
import type { HttpServer } from './http-server-type.ts';

/**
 * Begins an answer that is read while it is sent only when its first piece is there: a failure before it is answered as every error is.
 * Fastify would send the error with the headers of the stream, and no body of ours where these are not of JSON.
 */
export function awaitFirstPieces(app: HttpServer): void {
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (!(payload instanceof Readable)) return done();
    if (payload.closed && payload.errored !== null) return done(payload.errored);
    if (payload.closed || (payload.readableLength > 0 && payload.errored === null)) return done();
    const settle = () => {
      payload.off('readable', begin).off('close', begin).off('error', fail);
      reply.raw.off('close', leave);
    };
    // The request's time may be over, and its answer sent.
    const finish = (error?: Error) => {
      settle();
      if (reply.raw.headersSent) payload.destroy();
      else if (error === undefined) done();
      else done(error);
    };
    const begin = () => finish();
    const fail = (error: Error) => finish(error);
    const leave = () => void payload.destroy(new ClientGone());
    // An empty stream is readable too, at its end.
    payload.on('readable', begin).on('close', begin).on('error', fail);
    reply.raw.on('close', leave);
    if (reply.raw.closed) leave();
  });
}
