import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { Type } from 'typebox';
import { Parse } from 'typebox/value';
import { onTestFinished } from 'vitest';
import type { Tracer } from '../../../src/core/trace.ts';
import { createLogger } from '../../../src/http/logger.ts';
import { createTracer } from '../../../src/metrics/open-telemetry.ts';

const Values = Type.Array(Type.Object({ key: Type.String(), value: Type.Record(Type.String(), Type.Unknown()) }));
const SpanData = Type.Object({
  traceId: Type.String(),
  spanId: Type.String(),
  parentSpanId: Type.Optional(Type.String()),
  traceState: Type.Optional(Type.String()),
  name: Type.String(),
  kind: Type.Number(),
  attributes: Values,
  links: Type.Array(Type.Object({ traceId: Type.String(), spanId: Type.String() })),
  status: Type.Object({ code: Type.Number() }),
});
const Export = Type.Object({
  resourceSpans: Type.Array(
    Type.Object({
      resource: Type.Object({ attributes: Values }),
      scopeSpans: Type.Array(Type.Object({ spans: Type.Array(SpanData) })),
    }),
  ),
});

export interface Seen {
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  name: string;
  kind: number;
  attributes: Record<string, unknown>;
  links: readonly { traceId: string; spanId: string }[];
  hasFailed: boolean;
  service: unknown;
}

/** A collector that speaks OTLP over HTTP with JSON. */
export interface Collector {
  server: Server;
  url: string;
  spans: Seen[];
  /** Everything that came, as text. */
  bodies: string[];
  headers: (string | string[] | undefined)[];
}

export async function startCollector(): Promise<Collector> {
  const spans: Seen[] = [];
  const bodies: string[] = [];
  const headers: (string | string[] | undefined)[] = [];
  const listener = createServer(async (request, response) => {
    const body: unknown = await json(request);
    headers.push(request.headers['x-key']);
    bodies.push(JSON.stringify(body));
    for (const { resource, scopeSpans } of Parse(Export, body).resourceSpans) {
      const { 'service.name': service } = valuesOf(resource.attributes);
      for (const span of scopeSpans.flatMap((scope) => scope.spans)) {
        const { attributes, parentSpanId, status, ...rest } = span;
        spans.push({ ...rest, parentSpanId, attributes: valuesOf(attributes), hasFailed: status.code === 2, service });
      }
    }
    response.setHeader('content-type', 'application/json').end('{}');
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  return { server: listener, url: `http://127.0.0.1:${port}`, spans, bodies, headers };
}

function valuesOf(values: readonly { key: string; value: Record<string, unknown> }[]): Record<string, unknown> {
  return Object.fromEntries(values.map(({ key, value }) => [key, Object.values(value)[0]]));
}

/** A collector and a tracer that exports to it, for one test alone. */
export async function startTracing(): Promise<{ spans: Seen[]; tracer: Tracer }> {
  const { server, url, spans } = await startCollector();
  const tracer = createTracer({
    settings: { url: `${url}/v1/traces`, headers: {}, sampler: 'always_on', ratio: 1, attributes: {} },
    version: '1',
    logger: createLogger('silent'),
    exportEvery: 20,
  });
  onTestFinished(async () => {
    await tracer.close();
    server.closeAllConnections();
    server.close();
  });
  return { spans, tracer };
}

/** The traces by their roots: the name and the attributes of each, and the names of what is below it. */
export function treesOf(
  spans: readonly Seen[],
): { name: string; changes: unknown; hasFailed: boolean; steps: string[] }[] {
  const roots = spans.filter(({ parentSpanId }) => parentSpanId === undefined);
  return roots.map(({ name, attributes, hasFailed, spanId, traceId }) => ({
    name,
    changes: Number(attributes['annals.changes']),
    hasFailed,
    steps: spans
      .filter((span) => span.traceId === traceId && span.parentSpanId === spanId)
      .map((span) => span.name)
      .sort(),
  }));
}
