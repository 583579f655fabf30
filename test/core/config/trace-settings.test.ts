import { expect, test } from 'vitest';
import { ConfigError, readConfig } from '../../../src/core/config/config.ts';

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/' };

test('traces are exported where an endpoint is set, and nowhere else', () => {
  expect(readConfig({}).traces).toBe(undefined);
  expect(readConfig({ OTEL_SERVICE_NAME: 'x' }).traces).toBe(undefined);
  expect(readConfig({ ...endpoint, OTEL_SDK_DISABLED: 'true' }).traces).toBe(undefined);
  expect(readConfig(endpoint).traces).toEqual({
    url: 'http://collector:4318/v1/traces',
    headers: {},
    sampler: 'parentbased_always_on',
    ratio: 1,
    attributes: { 'service.name': 'annals' },
  });
  const own = { ...endpoint, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces.example/in' };
  expect(readConfig(own).traces?.url).toBe('https://traces.example/in');
});

test('headers and attributes are lists of pairs, percent-encoded; the name of the service wins', () => {
  const traces = readConfig({
    ...endpoint,
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20a=b, x-key = 1',
    OTEL_RESOURCE_ATTRIBUTES: 'service.name=other,deployment.environment.name=test',
    OTEL_SERVICE_NAME: 'shop',
  }).traces;
  expect(traces?.headers).toEqual({ authorization: 'Bearer a=b', 'x-key': '1' });
  expect(traces?.attributes).toEqual({ 'service.name': 'shop', 'deployment.environment.name': 'test' });
});

test('the sampler and its part', () => {
  const sampled = (sampler: string, part?: string) =>
    readConfig({
      ...endpoint,
      OTEL_TRACES_SAMPLER: sampler,
      ...(part === undefined ? {} : { OTEL_TRACES_SAMPLER_ARG: part }),
    }).traces;
  expect(sampled('traceidratio', '0.25')).toMatchObject({ sampler: 'traceidratio', ratio: 0.25 });
  expect(sampled('parentbased_traceidratio', '0')).toMatchObject({ ratio: 0 });
  expect(sampled('always_off', '1')).toMatchObject({ sampler: 'always_off', ratio: 1 });
});

test('wrong values are faults that do not reveal the value', () => {
  const wrong = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318',
    OTEL_EXPORTER_OTLP_HEADERS: 'secret',
    OTEL_RESOURCE_ATTRIBUTES: 'a=%',
    OTEL_TRACES_SAMPLER: 'sometimes',
    OTEL_TRACES_SAMPLER_ARG: '1.1',
  };
  try {
    readConfig(wrong);
    expect.unreachable();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    expect(error.faults.map((fault) => fault.split(' ')[0])).toEqual(Object.keys(wrong));
    expect(error.message).not.toMatch(/secret|sometimes|4318/);
  }
});
