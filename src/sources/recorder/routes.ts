import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { AnnalsError, maxDetails } from '../../core/errors.ts';
import { readTraceparent } from '../../core/trace.ts';
import { ErrorMessage } from '../../http/error-answers.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import { compileValidator } from '../../http/validation.ts';
import type { Database } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { type RecordBatch, type RecordedBatch, RejectedChangesError } from '../../recording/batches/record-batch.ts';
import { withDerivedCorrelation } from '../../recording/change.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import { maxRetries } from '../../recording/record-change.ts';
import { asDerived, readRelayHeader, relayHeader } from '../relay-header.ts';
import type { BodyReader } from './body-reader.ts';
import { bodyLimit } from './limits.ts';
import type { BodyFormat, Encoding, ReadBody } from './read-body.ts';
import type { ReadChange, StoredSource } from './read-change.ts';
import { type Recordable, recordRead } from './record-changes.ts';
import { ChangesPath, ChangesQuery, describedBodies, RecordedChange, RecordedCounts } from './schemas.ts';
import { lineWithActor, lineWithoutCorrelation } from './stored-text.ts';

interface RecorderRoutesOptions {
  db: Database;
  bodies: BodyReader;
  recordBatch: RecordBatch;
  /** Its rules also apply to documents that the history has already. */
  mapping: Mapping | undefined;
}

const formats: Readonly<Record<string, BodyFormat>> = {
  'application/x-ndjson': 'lines',
  'application/ndjson': 'lines',
  'application/jsonl': 'lines',
  'application/json': 'json',
  'application/cloudevents+json': 'cloud event',
  'application/cloudevents-batch+json': 'cloud events',
};

const encodings: Readonly<Record<string, Encoding>> = {
  identity: 'identity',
  gzip: 'gzip',
  'x-gzip': 'gzip',
  zstd: 'zstd',
};

/** Changes that applications send (recording.md 4). */
export async function recorderRoutes(
  app: HttpServer,
  { db, bodies, recordBatch, mapping }: RecorderRoutesOptions,
): Promise<void> {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>(Object.keys(formats), { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  );

  app.post(
    '/recorder/:tenant/changes',
    {
      bodyLimit,
      config: { scopes: ['recorder.change_record'], readsAnyBody: true, errors: ['change_rejected'] },
      // The threads check the body.
      validatorCompiler: (part) => (part.httpPart === 'body' ? (value) => ({ value }) : compileValidator(part)),
      schema: {
        operationId: 'recordChanges',
        tags: ['Recording'],
        summary: 'Recording changes',
        description:
          'Records one change, a JSON array of changes, or one change a line as application/x-ndjson. Also takes CloudEvents ' +
          '(structured, batched or in binary mode), and events of Debezium in each of these forms. The body may be ' +
          'compressed, with `Content-Encoding: gzip` or `zstd`. The answer comes after the commit. Without an answer, send ' +
          'the request again: changes that were recorded before count as duplicates.',
        params: ChangesPath,
        querystring: ChangesQuery,
        consumes: Object.keys(formats),
        body: RecordedChange,
        bodies: describedBodies,
        response: {
          200: json(RecordedCounts, { description: 'The changes are committed.' }),
          400: json(Type.Union([RecordedCounts, ErrorMessage]), {
            description:
              'Annals rejected every change of a JSON or NDJSON body and stored them: do not send them again. Or the request is not ' +
              'valid, and the body is an `ErrorMessage`. CloudEvents and events of Debezium are 200 even if all are rejected.',
          }),
        },
      },
    },
    async (request, reply) => {
      const body = request.body as unknown as Buffer | null;
      const { changes, hasEvents } = await readChanges(bodies, request, body ?? Buffer.alloc(0));
      const { counts, rejected } = await record({ db, recordBatch, mapping }, request, changes);
      // A sink of events would stop for good at a 400; an application that looks only at the status has to notice.
      const isRefused = !hasEvents && counts.read > 0 && counts.rejected === counts.read;
      return await reply.code(isRefused ? 400 : 200).send({ ...counts, rejected: [...rejected] });
    },
  );
}

interface Received {
  changes: Recordable[];
  hasEvents: boolean;
}

async function readChanges(bodies: BodyReader, request: FastifyRequest, body: Buffer): Promise<Received> {
  const { tenant, clientName, scopes } = request.credentials;
  const asked = {
    bytes: body,
    encoding: encodingOf(request),
    format: formatOf(request),
    tenant,
    clientName,
    maySetActor: scopes.includes('recorder.actor_set'),
    headers: headersOfEvents(request),
  };
  const reserved = request.reservedBytes;
  let read = await bodies.read({ ...asked, reserved });
  if (read === 'longer' && reserved < bodyLimit) {
    await request.reserveBody(bodyLimit);
    read = await bodies.read({ ...asked, reserved: bodyLimit });
  }
  if (read === 'longer') {
    throw new AnnalsError(
      'payload_too_large',
      `The request body must have at most ${bodyLimit} bytes after decompression.`,
    );
  }
  return { changes: recordables(read, body, request), hasEvents: read.hasEvents };
}

/** Those of CloudEvents in binary mode, and of Debezium's sink. */
function headersOfEvents({ headers }: FastifyRequest): Record<string, string> {
  const named = Object.entries(headers).flatMap(([name, value]) =>
    /^(?:ce-|x-debezium-|content-type$)/.test(name) ? [[name, String(value)] as const] : [],
  );
  return Object.fromEntries(named);
}

/** `correlationId`: derived, for changes without one. */
function recordables({ changes, bytes }: ReadBody, body: Buffer, request: FastifyRequest): Recordable[] {
  const derived = derivedCorrelation(changes, request);
  const isDerivedByRelay = readRelayHeader(request.headers[relayHeader]);
  const text = bytes === undefined ? body : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const { clientName } = request.credentials;
  return changes.map(({ traceId, ...read }): Recordable => {
    if (read.kind === 'unchanged' || read.kind === 'ignored') return read;
    const correlationId = derived(read, traceId);
    if (read.kind === 'truncate') return { ...read, correlationId };
    const { stored, ...change } = read;
    const position = `request ${request.id}, change ${read.index}`;
    const made = 'line' in stored ? { isRow: stored.isRow === true, identity: stored.identity } : {};
    const source = { position, line: () => lineOf(stored, text, clientName), correlationId, ...made };
    if (change.kind === 'rejected') return { ...change, source };
    if (change.kind === 'change') {
      const { correlationId: sent } = change.change;
      if (sent !== undefined && isDerivedByRelay(read.index)) {
        const line = () => lineWithoutCorrelation(source.line());
        return { ...change, change: asDerived(change.change), source: { ...source, line, correlationId: sent } };
      }
      return { ...change, change: withDerivedCorrelation(change.change, correlationId), source };
    }
    const { document } = change;
    const ofDocument = withDerivedCorrelation(document.change, correlationId);
    return { ...change, document: { ...document, change: ofDocument }, source };
  });
}

/**
 * What changes without a correlation id get: that of the whole request if it says so, else the trace of their event or
 * of a request with one change. Rows of a snapshot belong to no trace, and what a relay sends not to that of the relay.
 */
function derivedCorrelation(changes: ReadBody['changes'], { id, headers, query }: FastifyRequest) {
  const trace = readTraceparent(headers.traceparent)?.traceId;
  const { correlation } = query as { correlation?: string };
  const ofRequest = correlation === 'request' ? (trace ?? id) : undefined;
  const isAlone = changes.every(({ index }) => index === 0) && headers[relayHeader] === undefined;
  return ({ kind }: Pick<ReadChange, 'kind'>, ofEvent: string | undefined): string | undefined =>
    ofRequest ?? (kind === 'snapshot' ? undefined : (ofEvent ?? (isAlone ? trace : undefined)));
}

function lineOf(stored: StoredSource, body: Buffer, clientName: string): string | undefined {
  if ('line' in stored) return stored.line;
  const line = body.subarray(stored.start, stored.end);
  return stored.hasActor ? line.toString('utf8') : lineWithActor(line, clientName);
}

async function record(
  { db, recordBatch, mapping }: Pick<RecorderRoutesOptions, 'db' | 'recordBatch' | 'mapping'>,
  request: FastifyRequest,
  changes: readonly Recordable[],
): Promise<RecordedBatch> {
  const { tenant, clientId, clientName } = request.credentials;
  const { strict } = request.query as { strict?: string };
  const recordedBy = { way: 'recorder', by: clientName } as const;
  const batch = {
    tenant,
    client: clientId,
    recordedBy,
    changes,
    strict: strict === 'true',
    actor: clientName,
    mapping,
  };
  try {
    return await recordRead((work) => inTransaction(db, work, { retries: maxRetries }), recordBatch, batch);
  } catch (error) {
    throw error instanceof RejectedChangesError ? refused(error, isDivided(batch)) : error;
  }
}

/** Whether `recordRead` may have committed a part of the batch before it refuses the rest. */
function isDivided({ changes, strict }: { changes: readonly Recordable[]; strict: boolean }): boolean {
  return !strict && changes.some(({ kind }) => kind === 'truncate');
}

function refused({ rejected, isFull }: RejectedChangesError, divided: boolean): AnnalsError {
  const count = rejected.length === 1 ? '1 of the changes' : `${rejected.length} of the changes`;
  const why = isFull ? ' The tenant keeps as many rejected changes as it may (annals rejected).' : '';
  const others = divided ? 'Those before and after a truncate are recorded by themselves.' : 'None was.';
  return new AnnalsError('change_rejected', `${count} cannot be recorded. ${others}${why}`, {
    details: rejected.slice(0, maxDetails).map(({ index, reason }) => ({ field: String(index), message: reason })),
  });
}

function formatOf({ headers }: FastifyRequest): BodyFormat {
  if (headers['ce-specversion'] !== undefined) return 'binary cloud event';
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase() ?? '';
  const format = formats[type];
  if (format === undefined) {
    const types = Object.keys(formats).join(', ');
    throw new AnnalsError('unsupported_media_type', `The content type must be one of ${types}.`);
  }
  return format;
}

function encodingOf({ headers }: FastifyRequest): Encoding {
  const encoding = encodings[headers['content-encoding']?.trim().toLowerCase() ?? 'identity'];
  if (encoding !== undefined) return encoding;
  throw new AnnalsError('unsupported_media_type', 'The content encoding must be gzip, zstd or identity.');
}
