import type { IncomingMessage } from 'node:http';
import type { FastifyServerOptions } from 'fastify';
import { enterTrace, readTraceparent, type Span, type TraceContext, type Tracer } from '../core/trace.ts';
import type { HttpServer } from './http-server-type.ts';
import { bindTrace } from './logger.ts';

interface RequestTrace {
  readonly context: TraceContext;
  /** Undefined if spans are not exported. */
  readonly span: Span | undefined;
}

const traces = new WeakMap<IncomingMessage, RequestTrace>();

/** Begins the trace of each request; its logger's lines have the id. */
export function requestLoggers(tracer: Tracer | undefined): NonNullable<FastifyServerOptions['childLoggerFactory']> {
  return (logger, bindings, options, message) => {
    const trace = beginTrace(message, tracer);
    if (trace === undefined) return logger.child(bindings, options);
    traces.set(message, trace);
    return bindTrace(logger.child({ ...bindings, trace_id: trace.context.traceId }, options));
  };
}

/** Probes are frequent and not traced. */
const probes = '/health/';

function beginTrace(message: IncomingMessage, tracer: Tracer | undefined): RequestTrace | undefined {
  const { traceparent, tracestate } = message.headers;
  const parent = traceparent === undefined ? undefined : readTraceparent(traceparent, tracestate);
  if (tracer === undefined || message.url?.startsWith(probes) === true) {
    return parent === undefined ? undefined : { context: parent, span: undefined };
  }
  const span = tracer.begin(message.method ?? '', { kind: 'server', parent });
  return { context: span.context, span };
}

/** Makes the trace of a request the current one during its work, and ends its span. Call it before routes are added. */
export function traceRequests(app: HttpServer): void {
  app.addHook('onRequest', (request, reply, done) => {
    const span = traces.get(request.raw)?.span;
    if (span !== undefined) {
      reply.raw.once('close', () => {
        const { statusCode } = reply.raw;
        const { url: route = '' } = request.routeOptions;
        span.end({
          name: route === '' ? request.method : `${request.method} ${route}`,
          attributes: {
            'http.request.method': request.method,
            ...(route === '' ? {} : { 'http.route': route }),
            'http.response.status_code': statusCode,
            'annals.request_id': request.id,
          },
          hasFailed: statusCode >= 500,
        });
      });
    }
    done();
  });

  // Not before: the events of a body come from the socket, which belongs to no request.
  app.addHook('preValidation', (request, _reply, done) => {
    const trace = traces.get(request.raw);
    if (trace === undefined) done();
    else enterTrace(trace.context, done);
  });
}
