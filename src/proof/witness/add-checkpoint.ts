import { type FastifyBaseLogger, fastify, LogController } from 'fastify';
import { cutOffSlowClients } from '../../http/connections.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { cosign, parseCheckpoint } from '../log/checkpoint.ts';
import type { CheckpointFile } from '../log/checkpoint-file.ts';
import { emptyRoot, isConsistent } from '../log/merkle.ts';
import { decodeBase64, isSignedBy, type Signer, type Verifier } from '../log/note.ts';

/** The bytes of a request at most: a checkpoint with many signatures, and a proof. */
export const maxWitnessBody = 256 * 1024;

/** Milliseconds in which a client sends its request, and how many are connected at once. */
export const witnessLimits = { request: 10_000, connections: 256 };

/** The server of a witness: `POST /add-checkpoint`, as C2SP's tlog-witness has it, and nothing else. */
export function buildWitness(options: WitnessOptions, logger: FastifyBaseLogger): HttpServer {
  const app: HttpServer = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: maxWitnessBody,
    requestTimeout: witnessLimits.request,
  });
  app.server.maxConnections = witnessLimits.connections;
  cutOffSlowClients(app, witnessLimits.request);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.setErrorHandler((error, _request, reply) => {
    const status = statusOf(error);
    if (status >= 500) logger.error(error, 'the witness could not answer');
    return reply
      .code(status)
      .type('text/plain; charset=utf-8')
      .send(status === 413 ? 'the request is too large\n' : 'the request failed\n');
  });
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).type('text/plain; charset=utf-8').send('there is POST /add-checkpoint alone\n'),
  );
  app.post('/add-checkpoint', (request, reply) => {
    const { status, body } = addCheckpoint(textOf(request.body), options);
    const type = status === 409 ? 'text/x.tlog.size' : 'text/plain; charset=utf-8';
    return reply.code(status).header('content-type', type).send(body);
  });
  return app;
}

/** Empty for what is no UTF-8: no request is. */
function textOf(body: unknown): string {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
  const text = bytes.toString();
  return Buffer.from(text).equals(bytes) ? text : '';
}

function statusOf(error: unknown): number {
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500;
  return status >= 400 && status < 500 ? status : 500;
}

/** What a witness answers to `add-checkpoint` of C2SP's tlog-witness. */
export interface WitnessAnswer {
  readonly status: 200 | 400 | 403 | 404 | 409 | 422;
  readonly body: string;
}

export interface WitnessOptions {
  readonly signer: Signer;
  /** The logs that it knows. */
  readonly logs: () => readonly Verifier[];
  /** The newest checkpoint that it signed of each log. */
  readonly signed: CheckpointFile;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** The hashes of a proof at most. */
const maxHashes = 63;

/**
 * Signs a checkpoint that extends the newest one that this witness signed of its log, and stores it before it answers.
 * Anything else gets no signature.
 */
export function addCheckpoint(body: string, { signer, logs, signed, now }: WitnessOptions): WitnessAnswer {
  const request = parseRequest(body);
  if (request === undefined) return { status: 400, body: 'this is no request to add a checkpoint\n' };
  const { oldSize, hashes, note } = request;
  const checkpoint = parseCheckpoint(note);
  if (checkpoint === undefined) return { status: 400, body: 'this is no checkpoint\n' };
  const { origin, size, root } = checkpoint;
  const own = logs().filter(({ name }) => name === origin);
  if (own.length === 0) return { status: 404, body: 'the witness does not know this log\n' };
  const signatures = own.map((log) => isSignedBy(checkpoint.note, log));
  if (signatures.includes('wrong') || !signatures.includes(true)) {
    return { status: 403, body: 'the checkpoint is not signed by the key of its log\n' };
  }
  if (oldSize > size) return { status: 400, body: 'the old size is greater than the size of the checkpoint\n' };
  const before = signed.newest(origin);
  if (oldSize !== (before?.size ?? 0)) return { status: 409, body: `${before?.size ?? 0}\n` };
  const old = { size: oldSize, root: before?.root ?? emptyRoot };
  if (!isConsistent(old, { size, root }, hashes)) {
    return { status: 422, body: 'the proof does not lead from the old tree to the new one\n' };
  }
  const line = cosign(checkpoint.note.text, signer, Math.floor(now() / 1000));
  if (!signed.advance(origin, before, { size, root, note: note + line })) {
    return { status: 409, body: `${signed.newest(origin)?.size ?? 0}\n` };
  }
  return { status: 200, body: line };
}

interface Request {
  readonly oldSize: number;
  readonly hashes: readonly Buffer[];
  readonly note: string;
}

function parseRequest(body: string): Request | undefined {
  const end = body.indexOf('\n\n');
  const [first, ...lines] = body.slice(0, Math.max(end, 0)).split('\n');
  const oldSize = Number(/^old (0|[1-9]\d{0,15})$/.exec(first ?? '')?.[1]);
  const hashes = lines.map(decodeBase64).filter((hash) => hash?.length === 32);
  const whole = hashes.filter((hash) => hash !== undefined);
  if (!Number.isSafeInteger(oldSize) || whole.length !== lines.length || whole.length > maxHashes) return undefined;
  return { oldSize, hashes: whole, note: body.slice(end + 2) };
}
