import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { AnnalsError, type ErrorDetail, type ErrorType, maxDetails, statusOfErrorType } from '../core/errors.ts';
import { ProgramReplaced } from '../core/package-folder.ts';
import { isAtLimit, isReadOnly, isUnreachable, isWorkerUnreachable } from '../postgres/connections/unreachable.ts';
import { collectMethods, noSuchOperation } from './allowed-methods.ts';
import { ClientGone } from './client-gone.ts';
import { AccessTokenFault } from './credentials.ts';
import type { HttpServer } from './http-server-type.ts';

/** The body of every error but 401 (spec: error message). */
export const ErrorMessage = Type.Object(
  {
    status: Type.Integer({ minimum: 400, maximum: 599, description: 'The HTTP status code.' }),
    type: Type.Enum(Object.keys(statusOfErrorType), { type: 'string', description: 'One of a closed list.' }),
    message: Type.String({ description: 'For people.' }),
    details: Type.Optional(
      Type.Array(Type.Object({ field: Type.String(), message: Type.String() }, { $id: 'ErrorDetail' }), {
        description: 'The fields with faults, at most the first 10.',
      }),
    ),
  },
  {
    $id: 'ErrorMessage',
  },
);

export const UnauthorizedFault = Type.Object(
  {
    fault: Type.Object(
      { faultstring: Type.String(), detail: Type.Object({ errorcode: Type.String() }, { $id: 'FaultDetail' }) },
      { $id: 'Fault' },
    ),
  },
  {
    $id: 'UnauthorizedFault',
  },
);

interface ErrorMessageBody {
  status: number;
  type: ErrorType;
  message: string;
  details?: readonly ErrorDetail[];
}

export function errorMessageBody(error: AnnalsError): ErrorMessageBody {
  const body: ErrorMessageBody = { status: error.status, type: error.type, message: error.message };
  if (error.details.length > 0) body.details = error.details.slice(0, maxDetails);
  return body;
}

/** Answers errors as the contract says. Call it before any route is added. */
export function answerErrors(app: HttpServer): void {
  collectMethods(app);
  answerErrorsAs(app, { fault: ({ body }) => body, message: errorMessageBody });
  app.setNotFoundHandler((request) => {
    throw noSuchOperation(request);
  });
}

/** The bodies of errors, for a protocol with its own. */
interface ErrorBodies {
  /** Of 401. */
  fault(fault: AccessTokenFault, request: FastifyRequest): unknown;
  /** Of any other error. */
  message(error: AnnalsError, request: FastifyRequest): unknown;
  /** The `WWW-Authenticate` header of 401; default: `Bearer`. */
  challenge?(request: FastifyRequest): string;
}

/** Gives the errors of a plugin's routes their own bodies. Statuses, headers and logs stay the same. */
export function answerErrorsAs(app: HttpServer, bodies: ErrorBodies): void {
  app.setErrorHandler((error, request, reply) => answerError(error, request, reply, bodies));
}

/** Headers of the content that the error replaces. */
const headersOfContent = ['content-disposition', 'content-encoding', 'accept-ranges', 'etag', 'last-modified'];

function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply, bodies: ErrorBodies): FastifyReply {
  for (const header of headersOfContent) reply.removeHeader(header);
  if (reply.getHeader('cache-control') !== 'no-store') reply.removeHeader('cache-control');
  if (error instanceof AccessTokenFault) {
    const challenge = bodies.challenge?.(request) ?? 'Bearer';
    return reply.code(401).header('www-authenticate', challenge).send(bodies.fault(error, request));
  }
  const answer =
    error instanceof AnnalsError ? error : (frameworkError(error, request) ?? internalError(error, request));
  if (answer.status >= 500) {
    if (error instanceof ClientGone) request.log.info(error.message);
    // While a database is away, the logger merges these warnings.
    else if (answer.status === 503 && !(error instanceof ProgramReplaced))
      request.log.warn({ err: error }, 'request failed');
    else request.log.error({ err: error }, 'request failed');
  }
  return reply.code(answer.status).headers(answer.headers).send(bodies.message(answer, request));
}

/** `Retry-After` in seconds while the database is away. */
const databaseRetryAfter = '1';

/** `Retry-After` in seconds while the database is full or read-only, which an operator has to change. */
const limitRetryAfter = '5';

/**
 * A 500 never has internal details; the log line of its request id does (contract 3). The specification's list of
 * changes answers 500 even while the database is away, full or read-only, and 503 only while a worker of a cluster is
 * away.
 */
function internalError(cause: unknown, request: FastifyRequest): AnnalsError {
  const { internalErrorMessage, hidesOutages = false } = request.routeOptions.config;
  const answer = answerOfFault(cause);
  const isServerError = answer.status === 500 || (hidesOutages && !isWorkerUnreachable(cause));
  if (internalErrorMessage === undefined || !isServerError) return answer;
  return new AnnalsError('internal_service_error', internalErrorMessage, { cause });
}

/**
 * The answer to a failure that is not the caller's: 503 while the database is away, full or read-only, and after the
 * program was replaced; otherwise 500.
 */
export function answerOfFault(cause: unknown): AnnalsError {
  if (isWorkerUnreachable(cause) || isUnreachable(cause)) {
    const headers = { 'Retry-After': databaseRetryAfter };
    return new AnnalsError('service_unavailable', 'The database cannot be reached.', { headers, cause });
  }
  if (isAtLimit(cause)) {
    const headers = { 'Retry-After': limitRetryAfter };
    return new AnnalsError('service_unavailable', 'The database is at its limit.', { headers, cause });
  }
  if (isReadOnly(cause)) {
    const headers = { 'Retry-After': limitRetryAfter };
    return new AnnalsError('service_unavailable', 'The database takes no writes.', { headers, cause });
  }
  if (cause instanceof ProgramReplaced) {
    return new AnnalsError('service_unavailable', 'This needs a restart of the service.', { cause });
  }
  return new AnnalsError('internal_service_error', 'An internal error occurred.', { cause });
}

const messageOfStatus: Readonly<Record<number, [ErrorType, string]>> = {
  415: ['unsupported_media_type', 'The content type is not one that this operation accepts.'],
  404: ['resource_not_found', 'There is nothing at this path.'],
};

/** Fastify's own errors, reworded: its messages may quote what the client sent. */
function frameworkError(error: unknown, request: FastifyRequest): AnnalsError | undefined {
  if (!isFrameworkError(error)) return undefined;
  const { statusCode = 500 } = error;
  if (statusCode < 400 || statusCode > 499) return undefined;
  if (statusCode === 413) {
    const message = `The request body must have at most ${request.routeOptions.bodyLimit} bytes.`;
    return new AnnalsError('payload_too_large', message, { cause: error });
  }
  const [type, message] = messageOfStatus[statusCode] ?? ['validation_violation', 'The request could not be read.'];
  return new AnnalsError(type, message, { cause: error });
}

/** An aborted body has a status and no code of Fastify. */
function isFrameworkError(error: unknown): error is FastifyError {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return false;
  return error.code.startsWith('FST_') || error.code === 'ECONNRESET';
}
