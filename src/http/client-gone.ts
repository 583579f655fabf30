import type { FastifyReply } from 'fastify';

/** The client closed its connection before the answer was written: the reason that ends its work. */
export class ClientGone extends Error {
  constructor() {
    super('the client has gone');
    this.name = 'ClientGone';
  }
}

/** The status in the log of a request whose client is gone, which is no error. */
export const clientClosedRequest = 499;

/** Calls the listener when the client closes its connection before the answer is written. */
export function onClientGone(reply: FastifyReply, listener: (reason: ClientGone) => void): void {
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) listener(new ClientGone());
  });
}

/** A signal that is aborted when the client closes its connection before the answer is written. */
export function whenClientGone(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  onClientGone(reply, (reason) => controller.abort(reason));
  return controller.signal;
}
