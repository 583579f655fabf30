import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { traceHeaders } from '../../core/trace.ts';
import { type BoundedResponse, HttpClient, retryAfterOf } from '../../outbound/http-client.ts';
import { lineOfChange } from '../../recording/mapping/import-line.ts';
import { RefusedChangesError, type SourceChange } from '../../recording/mapping/record-mapped.ts';
import { relayHeader, relayHeaderOf } from '../relay-header.ts';
import type { SourceLog } from '../source-log.ts';

/** Records changes of the outbox, in one transaction. Idempotent. */
export type RecordRelayed = (changes: readonly SourceChange[]) => Promise<void>;

interface HttpRecording {
  readonly target: RecorderTarget;
  readonly strict: boolean;
  readonly log: SourceLog;
}

/** Limits of a request, below the recorder's (recording.md 4), which may measure slightly more. */
const maxLines = 2_000;
const maxBytes = 7 * 1024 * 1024;

/**
 * Records through a recorder, in order (docs/decisions/outbox.md). Each change's id derives from its outbox row, so
 * retries are duplicates there.
 */
export function recordOverHttp({ target, strict, log }: HttpRecording): RecordRelayed {
  const client = new RecorderClient(target);

  async function send(lines: readonly Line[]): Promise<void> {
    const result = await client.send(
      lines.map(({ text }) => text),
      { strict, derived: lines.map(({ isDerived }) => isDerived === true) },
    );
    if (result.kind === 'refused') throw new RefusedChangesError(result.message, {});
    if (result.kind === 'taken') {
      for (const { index, reason } of result.rejected) {
        const position = lines[index]?.position ?? '';
        log.warn(
          { place: position, reason: lines[index]?.reason ?? reason },
          'a change can never be recorded, and the recorder keeps it aside',
        );
      }
      return;
    }
    const [first] = lines;
    if (first === undefined) return;
    if (lines.length > 1) {
      const half = Math.ceil(lines.length / 2);
      await send(lines.slice(0, half));
      await send(lines.slice(half));
      return;
    }
    const reason = 'is larger than the recorder takes';
    if (strict || first.stub === undefined)
      throw new RefusedChangesError(`the change at ${first.position} ${reason}`, {});
    await send([{ text: first.stub, position: first.position, reason, stub: undefined }]);
  }

  return async (changes) => {
    let lines: Line[] = [];
    let bytes = 0;
    for (const change of changes) {
      const line = lineOf(change, target.tenant, strict);
      if (line === undefined) continue;
      const size = Buffer.byteLength(line.text) + 1;
      if (lines.length > 0 && (lines.length === maxLines || bytes + size > maxBytes)) {
        await send(lines);
        lines = [];
        bytes = 0;
      }
      lines.push(line);
      bytes += size;
    }
    if (lines.length > 0) await send(lines);
  };
}

interface Line {
  readonly text: string;
  readonly position: string;
  /** Whether the relay derived its correlation id. */
  readonly isDerived?: boolean;
  /** Why it will be rejected, if known. */
  readonly reason?: string | undefined;
  /** Sent instead if it is too large: the recorder rejects it and stores its position. */
  readonly stub: string | undefined;
}

function lineOf({ mapped, position, content }: SourceChange, tenant: string, strict: boolean): Line | undefined {
  if (mapped.kind === 'unchanged') return undefined;
  const stub = JSON.stringify({ place: position });
  if (mapped.kind === 'rejected') {
    const { reason } = mapped;
    if (strict) throw new RefusedChangesError(`1 change was rejected: that at ${position}: ${reason}`, {});
    return { text: mapped.content, position, reason, stub };
  }
  if (mapped.tenant !== tenant) throw new Error('a relay to a recorder records for one tenant');
  const id = `annals:relay:${Buffer.from(mapped.change.identity).toString('hex')}`;
  const isDerived = mapped.change.derived?.correlationId === true;
  return { text: lineOfChange(mapped.change, content(), id), position, isDerived, stub };
}

/** A recorder, and the tenant and client to record as. */
export interface RecorderTarget {
  /** The recorder's base URL. */
  readonly url: URL;
  readonly tenant: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** The recorder refuses the client or its input: an operator must act. */
export class RecorderError extends Error {
  override name = 'RecorderError';
}

/** The recorder is unavailable or busy. Retryable. */
export class RecorderBusyError extends Error {
  /** Milliseconds to wait, if the recorder says so. */
  readonly retryAfter: number | undefined;

  constructor(message: string, retryAfter?: number, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RecorderBusyError';
    this.retryAfter = retryAfter;
  }
}

type SendResult =
  | { readonly kind: 'taken'; readonly rejected: readonly { readonly index: number; readonly reason: string }[] }
  /** The body is beyond a limit of the recorder. Nothing was taken. */
  | { readonly kind: 'too large' }
  /** With `strict`: a change cannot be recorded. Nothing was taken. */
  | { readonly kind: 'refused'; readonly message: string };

/** Milliseconds, and the bytes of an answer with the reasons of 2,000 rejected changes. */
const recorderAnswer = { time: 120_000, bytes: 16 * 1024 * 1024 };

const http = new HttpClient({ connectTimeout: 10_000 });

/** Maximum milliseconds of Retry-After that are honored. */
const maxRetryAfter = 300_000;

const requiredScopes = ['recorder.change_record', 'recorder.actor_set'];

const pack = promisify(gzip);

/**
 * Sends lines to a recorder. Throws a RecorderError if it refuses the client, and a RecorderBusyError if the lines may
 * be sent again.
 */
export class RecorderClient {
  readonly #target: RecorderTarget;
  readonly #authorization: string;
  #isChecked = false;

  constructor(target: RecorderTarget) {
    this.#target = target;
    const pair = [target.clientId, target.clientSecret].map(encodeURIComponent).join(':');
    this.#authorization = `Basic ${Buffer.from(pair).toString('base64')}`;
  }

  /** `derived`: of which lines the relay derived the correlation id. Default: none. */
  async send(
    lines: readonly string[],
    { strict, derived = [] }: { strict: boolean; derived?: readonly boolean[] },
  ): Promise<SendResult> {
    if (!this.#isChecked) await this.#checkScopes();
    this.#isChecked = true;
    const { tenant } = this.#target;
    const answer = await this.#post(
      `recorder/${encodeURIComponent(tenant)}/changes${strict ? '?strict=true' : ''}`,
      {
        'content-type': 'application/x-ndjson',
        'content-encoding': 'gzip',
        [relayHeader]: relayHeaderOf(derived),
      },
      await pack(lines.join('\n')),
    );
    if (answer.status === 413) return { kind: 'too large' };
    if (answer.status === 422) return { kind: 'refused', message: messageOf(answer.body) };
    // A 400 with `rejected`: all changes were rejected, and the recorder stored them.
    const { rejected } = answer.body;
    const hasCounts = rejected !== undefined;
    if (answer.status !== 200 && !(answer.status === 400 && hasCounts)) throw refusal(answer);
    if (!hasCounts) throw new RecorderError('the recorder answers something else than counts: check the URL of --to');
    return { kind: 'taken', rejected: rejected.map(({ index = 0, reason = '' }) => ({ index, reason })) };
  }

  /** Without a scope, the recorder would reject and store every change. */
  async #checkScopes(): Promise<void> {
    const answer = await this.#post(
      'oauth/token',
      { 'content-type': 'application/x-www-form-urlencoded' },
      'grant_type=client_credentials',
    );
    if (answer.status !== 200) throw refusal(answer);
    const scopes = answer.body.scope?.split(' ') ?? [];
    const missing = requiredScopes.filter((scope) => !scopes.includes(scope));
    if (missing.length > 0) throw new RecorderError(`the client of ANNALS_CLIENT_ID lacks ${missing.join(' and ')}`);
  }

  async #post(path: string, headers: Record<string, string>, body: string | Uint8Array<ArrayBuffer>): Promise<Answer> {
    const { url } = this.#target;
    const address = new URL(path, url.pathname.endsWith('/') ? url : `${url.href}/`);
    let response: BoundedResponse;
    try {
      const all = { ...headers, ...traceHeaders(), authorization: this.#authorization };
      response = await http.send(address, { headers: all, body }, recorderAnswer);
      // The recorder is idempotent: fewer lines have a shorter answer.
      if (response.cut === 'bytes') return { status: 413, body: {} };
      if (response.cut !== undefined) throw new Error('the answer was cut');
    } catch (error) {
      throw new RecorderBusyError('the recorder does not answer', undefined, { cause: error });
    }
    const { status } = response;
    // A redirect is not followed; a page for maintenance may be one.
    if (status === 429 || status >= 500 || (status >= 300 && status <= 399)) {
      const wait = retryAfterOf(response);
      throw new RecorderBusyError(`the recorder answers ${status}`, wait && Math.min(wait, maxRetryAfter));
    }
    return { status, body: bodyOf(response.body.toString()) };
  }
}

interface Answer {
  readonly status: number;
  readonly body: {
    readonly rejected?: readonly { readonly index?: number; readonly reason?: string }[];
    readonly scope?: string;
    readonly error?: { readonly message?: string };
    readonly message?: string;
  };
}

/** The members that have the type they should have: another server may answer. */
function bodyOf(text: string): Answer['body'] {
  let value: Record<string, unknown>;
  try {
    value = Object(JSON.parse(text));
  } catch {
    return {};
  }
  const { rejected, scope, error, message } = value;
  return {
    ...(Array.isArray(rejected) && { rejected: rejected.map((item) => Object(item)) }),
    ...(typeof scope === 'string' && { scope }),
    ...(typeof error === 'object' && error !== null && { error }),
    ...(typeof message === 'string' && { message }),
  };
}

function refusal({ status, body }: Answer): RecorderError {
  const what: Record<number, string> = {
    401: 'does not know the client of ANNALS_CLIENT_ID and ANNALS_CLIENT_SECRET',
    403: 'refuses the client of ANNALS_CLIENT_ID: it is of another tenant, or lacks a scope',
    404: 'has no such address: check the URL of --to',
  };
  return new RecorderError(`the recorder ${what[status] ?? `answers ${status}: ${messageOf(body)}`}`);
}

/** The error message, which has no content of changes. */
function messageOf({ error, message }: Answer['body']): string {
  return error?.message ?? message ?? 'without a reason';
}
