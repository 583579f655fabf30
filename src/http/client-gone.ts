import type { FastifyReply } from 'fastify';

/** The client closed its connection before the answer was written. Work for it ends with this reason; nothing failed. */
export class ClientGone extends Error {
  constructor() {
    super('the client has gone');
    this.name = 'ClientGone';
  }
}

/** The status of a request whose client has gone and reads no answer. It separates that case from an error in the logs. */
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
