import {
  createTraceState,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { FastifyBaseLogger } from 'fastify';
import type { TraceSettings } from '../core/config/trace-settings.ts';
import { within } from '../core/fairness/deadline.ts';
import type { TraceContext, Tracer } from '../core/trace.ts';

interface OpenTelemetryOptions {
  settings: TraceSettings;
  version: string;
  logger: FastifyBaseLogger;
  /** Milliseconds between two exports; default 1,000. */
  exportEvery?: number;
  /** Maximum milliseconds of an export; default 5,000. */
  maxExport?: number;
}

// Limits of the queue for a collector that is slow or away. Further spans are dropped.
const maxWaitingSpans = 2_048;
const maxSpansOfExport = 512;
const maxAttributeLength = 1_000;
/** Milliseconds. */
const defaultMaxExport = 5_000;
const maxClose = 3_000;
const warnEvery = 60_000;

const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };

/** Exports spans by OTLP over HTTP. Registers nothing global, so nothing else in the process is traced. */
export function createTracer({
  settings,
  version,
  logger,
  exportEvery = 1_000,
  maxExport = defaultMaxExport,
}: OpenTelemetryOptions): Tracer {
  const { url, headers, attributes: resource } = settings;
  const exporter = new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis: maxExport });
  const processor = new BatchSpanProcessor({
    exporter: warning(exporter, logger),
    maxQueueSize: maxWaitingSpans,
    maxExportBatchSize: maxSpansOfExport,
    scheduledDelayMillis: exportEvery,
    exportTimeoutMillis: maxExport,
  });
  const provider = new TracerProvider({
    sampler: samplerOf(settings),
    resource: resourceFromAttributes({ 'service.version': version, ...resource }),
    spanLimits: { attributeValueLengthLimit: maxAttributeLength },
    spanProcessors: [processor],
  });
  const tracer = provider.getTracer('annals', version);

  return {
    begin(name, { kind, parent, link, attributes = {} }) {
      const context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, spanContextOf(parent));
      const links = link === undefined ? [] : [{ context: spanContextOf(link) }];
      const span = tracer.startSpan(name, { kind: kinds[kind], attributes, links }, context);
      return {
        context: traceContextOf(span.spanContext()),
        end({ name: lastName, attributes: lastAttributes, hasFailed = false } = {}) {
          if (lastName !== undefined) span.updateName(lastName);
          if (lastAttributes !== undefined) span.setAttributes(lastAttributes);
          if (hasFailed) span.setStatus({ code: SpanStatusCode.ERROR });
          span.end();
        },
      };
    },

    async close() {
      await within(maxClose, provider.shutdown()).catch(() => {});
    },
  };
}

/** Warns of failed exports, at most once a minute, without the errors, which may have the address and headers. */
function warning(exporter: SpanExporter, logger: FastifyBaseLogger): SpanExporter {
  let next = Number.NEGATIVE_INFINITY;
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        // 0: success, 1: failure.
        if (result.code !== 0 && performance.now() >= next) {
          next = performance.now() + warnEvery;
          logger.warn({ spans: spans.length }, 'traces could not be exported; they are dropped');
        }
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => await exporter.forceFlush?.(),
  };
}

function samplerOf({ sampler, ratio }: TraceSettings): Sampler {
  const root = sampler.endsWith('always_off')
    ? new AlwaysOffSampler()
    : sampler.endsWith('traceidratio')
      ? new TraceIdRatioBasedSampler(ratio)
      : new AlwaysOnSampler();
  return sampler.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
}

function spanContextOf({ traceId, spanId, isSampled, state }: TraceContext): SpanContext {
  return {
    traceId,
    spanId,
    traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
    ...(state === undefined ? {} : { traceState: createTraceState(state) }),
  };
}

function traceContextOf({ traceId, spanId, traceFlags, traceState }: SpanContext): TraceContext {
  const isSampled = (traceFlags & TraceFlags.SAMPLED) !== 0;
  return { traceId, spanId, isSampled, state: traceState?.serialize() };
}
