/** Where traces are exported to. The names are those of OpenTelemetry's specification. */
export interface TraceSettings {
  url: string;
  headers: Record<string, string>;
  sampler: Sampler;
  /** The part of all traces that the samplers with `traceidratio` take. */
  ratio: number;
  /** What every span tells of this process, `service.name` for example. */
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

/** Reads the variables. Undefined: traces are not exported. Calls `onFault` for each variable that is wrong. */
export function readTraceSettings(
  text: (name: string) => string | undefined,
  onFault: (fault: string) => void,
): TraceSettings | undefined {
  function parsed<Value>(
    name: string,
    absent: Value,
    parse: (value: string) => Value | undefined,
    must: string,
  ): Value {
    const value = text(name);
    if (value === undefined) return absent;
    const result = parse(value);
    if (result === undefined) onFault(`${name} must be ${must}`);
    return result ?? absent;
  }

  const mustBeUrl = 'a URL that begins with http:// or https://';
  const mustBePairs = 'a comma-separated list of name=value, percent-encoded';
  const base = parsed('OTEL_EXPORTER_OTLP_ENDPOINT', undefined, parseUrl, mustBeUrl);
  const own = parsed('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', undefined, parseUrl, mustBeUrl);
  const headers = parsed('OTEL_EXPORTER_OTLP_HEADERS', {}, parsePairs, mustBePairs);
  const resource = parsed('OTEL_RESOURCE_ATTRIBUTES', {}, parsePairs, mustBePairs);
  const mustBeSampler = `one of ${samplers.join(', ')}`;
  const sampler = parsed('OTEL_TRACES_SAMPLER', 'parentbased_always_on', parseSampler, mustBeSampler);
  const ratio = parsed('OTEL_TRACES_SAMPLER_ARG', 1, parseRatio, 'a number from 0 to 1');
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

function parseUrl(value: string): string | undefined {
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) ? value : undefined;
}

function parseSampler(value: string): Sampler | undefined {
  return samplers.find((sampler) => sampler === value);
}

function parseRatio(value: string): number | undefined {
  const ratio = Number(value);
  return /^\d*\.?\d+$/.test(value) && ratio <= 1 ? ratio : undefined;
}

function parsePairs(value: string): Record<string, string> | undefined {
  const pairs: Record<string, string> = {};
  for (const pair of value.split(',')) {
    const [, name = '', encoded = ''] = /^\s*([^=\s]+)\s*=(.*)$/.exec(pair) ?? [];
    if (name === '') return undefined;
    try {
      pairs[name] = decodeURIComponent(encoded.trim());
    } catch {
      return undefined;
    }
  }
  return pairs;
}
