import { type EnvironmentReader, Fault, oneOf, urlWith } from './values.ts';

/** The export of traces, in the terms of OpenTelemetry's specification. */
export interface TraceSettings {
  url: string;
  headers: Record<string, string>;
  sampler: Sampler;
  /** The share of traces that the `traceidratio` samplers take, 0 to 1. */
  ratio: number;
  /** Resource attributes, for example `service.name`. */
  attributes: Record<string, string>;
}

export type Sampler = (typeof samplers)[number];

const samplers = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

/** Reads the variables. Undefined: traces are not exported. */
export function readTraceSettings({ text, parsed }: EnvironmentReader): TraceSettings | undefined {
  const parseUrl = urlWith(['http:', 'https:']);
  const base = parsed('OTEL_EXPORTER_OTLP_ENDPOINT', parseUrl, undefined);
  const own = parsed('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', parseUrl, undefined);
  const headers = parsed('OTEL_EXPORTER_OTLP_HEADERS', parsePairs, {});
  const resource = parsed('OTEL_RESOURCE_ATTRIBUTES', parsePairs, {});
  const sampler = parsed('OTEL_TRACES_SAMPLER', oneOf(samplers), 'parentbased_always_on' as const);
  const ratio = parsed('OTEL_TRACES_SAMPLER_ARG', parseRatio, 1);
  const url = own ?? (base === undefined ? undefined : `${base.replace(/\/+$/, '')}/v1/traces`);
  if (url === undefined || text('OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return undefined;
  const attributes = { 'service.name': 'annals', ...resource };
  const service = text('OTEL_SERVICE_NAME');
  return {
    url,
    headers,
    sampler,
    ratio,
    attributes: service === undefined ? attributes : { ...attributes, 'service.name': service },
  };
}

function parseRatio(value: string): number | Fault {
  const ratio = Number(value);
  return /^\d*\.?\d+$/.test(value) && ratio <= 1 ? ratio : new Fault('must be a number from 0 to 1');
}

function parsePairs(value: string): Record<string, string> | Fault {
  const fault = new Fault('must be a comma-separated list of name=value, percent-encoded');
  const pairs: Record<string, string> = {};
  for (const pair of value.split(',')) {
    const [, name = '', encoded = ''] = /^\s*([^=\s]+)\s*=(.*)$/.exec(pair) ?? [];
    if (name === '') return fault;
    try {
      pairs[name] = decodeURIComponent(encoded.trim());
    } catch {
      return fault;
    }
  }
  return pairs;
}
