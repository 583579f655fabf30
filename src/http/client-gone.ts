import type { FastifyReply } from 'fastify';

/** Why work ends whose client has gone before its answer was written: no fault of anybody's. */
export class ClientGone extends Error {
  constructor() {
    super('the client has gone');
    this.name = 'ClientGone';
  }
}

/** Tells when the client goes before its answer is written. */
export function onClientGone(reply: FastifyReply, listener: (reason: ClientGone) => void): void {
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) listener(new ClientGone());
  });
}

/** Aborted then. */
export function whenClientGone(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  onClientGone(reply, (reason) => controller.abort(reason));
  return controller.signal;
}
