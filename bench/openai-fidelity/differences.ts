import { inspect } from 'node:util';
import type { Operation } from './clients.ts';

/** The differences that docs/openai.md lists. */
export type Listed =
  | 'model'
  | 'store'
  | 'include_usage'
  | 'headers of the client'
  | 'headers of Annals'
  | 'status of an error'
  | 'text of 401'
  | 'hosted tools'
  | 'comments of a server';

/** The body that the vendor gets through Annals, written without Annals' own code. */
export function expectedBody(
  body: string,
  { operation, named, model }: { operation: Operation; named: string; model: string },
  listed: Set<Listed>,
): string {
  const value = JSON.parse(body) as { store?: unknown; stream?: unknown; stream_options?: { include_usage?: unknown } };
  let expected = body.replace(JSON.stringify(named), JSON.stringify(model));
  if (named !== model) listed.add('model');
  const hosted = /,\{"type":"web_search"[^{}]*\}/;
  if (hosted.test(expected)) listed.add('hosted tools');
  expected = expected.replace(hosted, '');
  let added = '';
  if (value.store === undefined) added += '"store":false,';
  else expected = expected.replace(/"store":\s*(?:null|false)/, (member) => member.replace('null', 'false'));
  if (!body.includes('"store":false')) listed.add('store');
  if (operation === 'chat/completions' && value.stream === true && value.stream_options?.include_usage !== true) {
    listed.add('include_usage');
    if (value.stream_options === undefined) added += '"stream_options":{"include_usage":true},';
    else expected = expected.replace(/"stream_options":\s*\{/, (start) => `${start}"include_usage":true,`);
  }
  return expected.replace('{', `{${added}`);
}

/** Of the client's own headers these alone reach the vendor. */
const passed = ['content-type', 'openai-beta', 'authorization', 'host'];

/** The headers that the vendor gets through Annals, by those that it gets directly. */
export function expectedHeaders(
  headers: Readonly<Record<string, string>>,
  body: string,
  listed: Set<Listed>,
): Record<string, string> {
  listed.add('headers of the client');
  const kept = Object.entries(headers).filter(([name]) => passed.includes(name));
  return {
    ...Object.fromEntries(kept),
    accept: JSON.parse(body).stream === true ? 'text/event-stream' : 'application/json',
    'accept-encoding': 'identity',
    connection: 'keep-alive',
    'content-length': String(Buffer.byteLength(body)),
  };
}

/** Ids and times that a client draws anew for each call. */
export function withoutChance(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UUID')
    .replaceAll(/fidelity-\w{6}/g, 'FOLDER')
    .replaceAll(/\d+\.\d+ seconds/g, 'SECONDS')
    .replaceAll(/Chunk ID: \w+/g, 'CHUNK')
    .replaceAll(/"client_metadata":\{(?:"(?:[^"\\]|\\.)*"[:,]?)*\}/g, 'METADATA')
    .replaceAll(/(turn_started_at_unix_ms\W+)\d+/g, '$1TIME');
}

/** What both views have to have in common: that of the client directly, with the listed differences, and through Annals. */
export function expectedView(
  directly: unknown,
  through: unknown,
  { isOfServer, listed }: { isOfServer: boolean; listed: Set<Listed> },
): [unknown, unknown] {
  if (isRaw(directly) && isRaw(through)) {
    const comment = /^:.*\n\n/gm;
    if (!isOfServer || !comment.test(directly.body)) return rawViews(directly, through, listed);
    listed.add('comments of a server');
    return rawViews({ ...directly, body: directly.body.replaceAll(comment, '') }, through, listed);
  }
  const [before, after] = [plain(directly), plain(through)];
  const status = statusOf(before);
  if (status === 401) {
    listed.add('text of 401');
    return [false, JSON.stringify(after).includes('The vendor says')];
  }
  if (status === 500) {
    listed.add('status of an error');
    return [
      { ...before, status: 502, message: undefined },
      { ...after, message: undefined },
    ].map(withoutStatusText) as [unknown, unknown];
  }
  return [before, after];
}

interface View {
  readonly [name: string]: unknown;
}

/** The answer to raw HTTP. */
interface RawView extends View {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

function isRaw(view: unknown): view is RawView {
  return typeof view === 'object' && view !== null && 'headers' in view && 'body' in view;
}

const ofVendor = /^(?:x-request-id|openai-processing-ms|x-ratelimit-.*|retry-after.*)$/;

function rawViews(before: RawView, after: RawView, listed: Set<Listed>): [unknown, unknown] {
  listed.add('headers of Annals');
  const of = ({ status, headers, body }: RawView) => ({
    status,
    type: headers['content-type']?.replace(/;.*/, ''),
    headers: Object.entries(headers)
      .filter(([name]) => ofVendor.test(name))
      .sort(),
    body,
  });
  const [expected, found] = [of(before), of(after)];
  if (before.status === 401) {
    listed.add('text of 401');
    return [false, after.body.includes('The vendor says')];
  }
  if (before.status >= 400) {
    if (before.status === 500) listed.add('status of an error');
    const status = before.status === 500 ? 502 : before.status;
    return [
      { ...expected, status, body: JSON.parse(before.body) },
      { ...found, body: JSON.parse(after.body) },
    ];
  }
  return [expected, found];
}

/** A view as plain data, without what belongs to the transport. */
function plain(view: unknown): View {
  const seen = new WeakSet<object>();
  const text = JSON.stringify(view, (name, value: unknown) => {
    if (transport.has(name)) return undefined;
    if (value instanceof Error) return errorView(value);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      if (seen.has(value)) return undefined;
      seen.add(value);
    }
    return value;
  });
  const data: unknown = JSON.parse(withoutChance(text ?? 'null'));
  return typeof data === 'object' && data !== null && !Array.isArray(data) ? (data as View) : { data };
}

const transport = new Set([
  'request',
  'headers',
  'responseHeaders',
  'requestBodyValues',
  'url',
  'stack',
  'timestamp',
  'lc_kwargs',
]);

function errorView(error: Error): View {
  const { status, statusCode, code, type, param, requestID } = error as Error & View;
  return { name: error.name, message: error.message, status: status ?? statusCode, code, type, param, requestID };
}

function statusOf(view: View): unknown {
  return (view.error as View | undefined)?.status;
}

function withoutStatusText(view: View): View {
  const { message: _, ...error } = (view.error ?? {}) as View;
  return { ...error, status: 0 };
}

export function describeFault(expected: unknown, found: unknown): string {
  const text = (value: unknown) =>
    typeof value === 'string' ? value : inspect(value, { depth: 12, breakLength: 120, maxStringLength: 4_000 });
  const [a, b] = [text(expected), text(found)];
  let at = 0;
  while (at < Math.min(a.length, b.length) && a[at] === b[at]) at += 1;
  const around = (whole: string) => JSON.stringify(whole.slice(Math.max(0, at - 120), at + 200));
  return `  expected …${around(a)}\n  found    …${around(b)}`;
}
