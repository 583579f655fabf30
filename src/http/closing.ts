import type { HttpServer } from './http-server-type.ts';

/**
 * Lets a server that closes finish the requests in flight. Each answer from then on is the last one of its connection:
 * without that, connections would stay open for another minute.
 */
export function closeGracefully(app: HttpServer): void {
  let closing = false;
  app.addHook('preClose', async () => {
    closing = true;
  });
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (closing) reply.header('connection', 'close');
    done();
  });
  app.addHook('onResponse', (_request, _reply, done) => {
    // For an answer whose head had already been sent. Its connection is idle only after this turn.
    if (closing) setImmediate(() => app.server.closeIdleConnections());
    done();
  });
}
