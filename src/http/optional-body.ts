import type { preValidationHookHandler } from 'fastify';

/** For searches: a request without a body counts as one with `{}`, which has no filter (contract 10). */
export const optionalBody: preValidationHookHandler = (request, _reply, done) => {
  if (request.body === undefined) request.body = {};
  done();
};
