import type { FastifyRequest, preValidationHookHandler } from 'fastify';
import { AnnalsError } from '../core/errors.ts';
import { TimeSlice } from '../core/fairness/time-slice.ts';
import { enterWork } from '../core/fairness/work.ts';
import { type JsonMeasure, JsonMeter } from '../core/json/measure.ts';
import { parseJsonInSlices } from '../core/json/parse-in-slices.ts';
import type { HttpServer } from './http-server-type.ts';

/** Levels of arrays and objects in a body (contract: how changes are recorded, limits). */
export const maxBodyLevels = 100;

/** JSON values in a body (contract: one tenant cannot stop another). */
export const maxBodyValues = 100_000;

/** Bodies of more values are large: they are parsed and validated in slices, few at once. */
export const maxValuesOfSmallBody = 10_000;

/**
 * Decoding a longer body and counting its values takes milliseconds, so only one is read in a turn of the loop. A value
 * has at least a character and a comma, so a large body is always longer.
 */
export const maxBytesReadAtOnce = 2 * maxValuesOfSmallBody;

/** Counting the values of so many characters takes tenths of a millisecond. */
const charactersBetweenPauses = 32 * 1024;

/** Longer bodies are decoded only when they may be processed: waiting as text they would need memory twice. */
export const maxBytesDecodedAhead = 256 * 1024;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The operation reads its body itself: compressed, or of other types than JSON. */
    readsAnyBody?: boolean;
    /** The operation passes its body on, so a byte order mark is refused rather than ignored. */
    refusesByteOrderMark?: boolean;
    /** JSON values of its body, at most; left out: `maxBodyValues`. */
    maxValues?: number;
  }

  interface FastifyRequest {
    /** The text of the JSON body, for modules that keep exact numbers (contract: how changes are recorded). */
    bodyText: string;
  }
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true });
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);
const largeBodies = new WeakSet<object>();

/**
 * Accepts JSON bodies only; modules may add other types. Keys such as `__proto__` are data: JSON.parse makes them own
 * properties, harmless as long as no code copies by assignment.
 */
export function acceptJsonBodies(app: HttpServer): void {
  app.decorateRequest('bodyText', '');
  app.removeAllContentTypeParsers();
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    const fault = unreadableBody(request);
    done(fault !== null && request.routeOptions.config.readsAnyBody === true ? null : fault);
  });
  acceptJsonOf(app, 'application/json');
}

/** Reads bodies of one more content type as JSON, for the routes of a plugin and no others. */
export function acceptJsonOf(app: HttpServer, contentType: string): void {
  app.addContentTypeParser<Buffer>(contentType, { parseAs: 'buffer' }, (request, body, done) => {
    if (body.length > maxBytesReadAtOnce) {
      readInTurn(request, [body]).then((value) => done(null, value), done);
      return;
    }
    try {
      takeText(request, body);
      done(null, body.length === 0 ? undefined : parseJson(request.bodyText));
    } catch (error) {
      done(error instanceof Error ? error : new Error('The body could not be read.', { cause: error }));
    }
  });
}

/** Whether the body has so many values that validating it takes long. */
export function isLargeBody(value: unknown): boolean {
  return typeof value === 'object' && value !== null && largeBodies.has(value);
}

/** What is wrong with a body before it is read; null if nothing is. */
function unreadableBody({ headers }: FastifyRequest): AnnalsError | null {
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding.toLowerCase() !== 'identity') return unsupported('The request body must not be compressed.');
  const charset = charsetParameter.exec(headers['content-type'] ?? '')?.[1];
  if (charset === undefined || utf8Names.has(charset.toLowerCase())) return null;
  return unsupported('The charset of the request body must be UTF-8.');
}

const charsetParameter = /;\s*charset\s*=\s*"?([^\s";]*)/i;
const utf8Names: ReadonlySet<string> = new Set(['utf-8', 'utf8']);

/** Keeps the text of a short body. */
function takeText(request: FastifyRequest, body: Buffer): void {
  request.bodyText = textOf(request, body);
  const meter = new JsonMeter(request.bodyText, { maxDepth: maxBodyLevels, maxValues: maxValuesOf(request) });
  meter.read(request.bodyText.length);
  checkMeasure(request, meter);
}

/** Keeps the text of a long body. Returns the number of its values. */
async function takeTextInSlices(request: FastifyRequest, body: Buffer | undefined, slice: TimeSlice): Promise<number> {
  request.bodyText = textOf(request, body ?? Buffer.alloc(0));
  const meter = new JsonMeter(request.bodyText, { maxDepth: maxBodyLevels, maxValues: maxValuesOf(request) });
  while (!meter.isDone) {
    meter.read(charactersBetweenPauses);
    if (slice.isDue) await slice.rest();
  }
  checkMeasure(request, meter);
  return meter.values;
}

function maxValuesOf({ routeOptions }: FastifyRequest): number {
  return routeOptions.config.maxValues ?? maxBodyValues;
}

function checkMeasure(request: FastifyRequest, { values, isTooDeep }: JsonMeasure): void {
  if (isTooDeep) throw notValid(`The request body is nested deeper than ${maxBodyLevels} levels.`);
  const maxValues = maxValuesOf(request);
  if (values > maxValues) {
    throw new AnnalsError('payload_too_large', `The request body must have at most ${maxValues} JSON values.`);
  }
}

function textOf({ routeOptions }: FastifyRequest, body: Buffer): string {
  if (routeOptions.config.refusesByteOrderMark === true && body.subarray(0, 3).equals(byteOrderMark)) {
    throw new UnreadableJson('The request body must not begin with a byte order mark.');
  }
  try {
    return strictUtf8.decode(body);
  } catch {
    throw new UnreadableJson('The request body is not UTF-8.');
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message quotes the body, which may contain a secret.
    throw new UnreadableJson();
  }
}

/**
 * Reads a long body in its tenant's turn, since many bodies may arrive in one turn of the loop. Takes the body out of
 * `unread`, so that its bytes can be freed while its text is processed.
 */
async function readInTurn(request: FastifyRequest, unread: Buffer[]): Promise<unknown> {
  const slice = request.work === null ? new TimeSlice() : enterWork(request.work, () => new TimeSlice());
  const isLong = (unread[0]?.length ?? 0) > maxBytesDecodedAhead;
  if (isLong) await request.admitLargeBody();
  await slice.rest();
  const values = await takeTextInSlices(request, unread.pop(), slice);
  if (values > maxValuesOfSmallBody) {
    if (!isLong) await request.admitLargeBody();
    return await parseLargeBody(request, slice);
  }
  request.releaseLargeBody?.();
  return parseJson(request.bodyText);
}

async function parseLargeBody(request: FastifyRequest, slice: TimeSlice): Promise<unknown> {
  const value = await parseJsonInSlices(request.bodyText, slice).catch((error: unknown) => {
    throw error instanceof SyntaxError ? new UnreadableJson() : error;
  });
  if (typeof value === 'object' && value !== null) largeBodies.add(value);
  return value;
}

/**
 * The text of the body, for operations that no longer need its validated values. These are dropped: they take ten times
 * the memory of the text.
 */
export function textAlone(request: FastifyRequest): string {
  request.body = undefined;
  return request.bodyText;
}

/** The body is not JSON. Protocols with error codes of their own distinguish this from invalid content. */
export class UnreadableJson extends AnnalsError {
  constructor(message = 'The request body is not valid JSON.') {
    super('validation_violation', message);
  }
}

function notValid(message: string): AnnalsError {
  return new AnnalsError('validation_violation', message);
}

function unsupported(message: string): AnnalsError {
  return new AnnalsError('unsupported_media_type', message);
}

/** For searches: a missing body counts as `{}`, which has no filter (contract 10). */
export const optionalBody: preValidationHookHandler = (request, _reply, done) => {
  if (request.body === undefined) request.body = {};
  done();
};
