import { isUtf8 } from 'node:buffer';
import { constants, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { codeOf } from '../../core/errors.ts';
import { measureJson } from '../../core/json/measure.ts';
import { kindOf } from '../../core/json/members.ts';
import { parseOnTape } from '../../core/json/parse.ts';
import { cellAt, endCell, firstChild, JsonSyntaxError, JsonTape, nextChild, startCell } from '../../core/json/tape.ts';
import { LineSplitter } from '../../recording/lines.ts';
import { maxBytes, maxBytesOfOne, maxChanges, maxLevels, maxValues, Refusal, tooDeep } from './limits.ts';
import { ChangeReader, type ReadChange, type Reading } from './read-change.ts';

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

export type BodyFormat = 'lines' | 'json' | 'cloud event' | 'cloud events' | 'binary cloud event';

export interface BodyRequest extends Reading {
  bytes: Uint8Array;
  encoding: Encoding;
  format: BodyFormat;
  /** Maximum bytes of the decompressed body. */
  reserved: number;
}

/** A change with the 0-based index of its value in the body. An event may be two changes. */
type IndexedChange = ReadChange & { index: number };

/** `bytes`: the decompressed body, if it was compressed. */
export interface ReadBody {
  changes: IndexedChange[];
  /** Whether there were CloudEvents or Debezium events. */
  hasEvents: boolean;
  bytes: Uint8Array | undefined;
}

/** The changes of a body, in order. Throws a Refusal if the body exceeds a limit or is unreadable as a whole. */
export function readBody({ bytes, encoding, format, reserved, ...reading }: BodyRequest): ReadBody {
  const unpacked = unpack(bytes, encoding, reserved);
  const body = Buffer.from(unpacked.buffer, unpacked.byteOffset, unpacked.byteLength);
  const reader = new ChangeReader(reading, body);
  const changes = format === 'lines' ? changesOfLines(body, reader) : changesOfJson(body, reader, format);
  if ((changes.at(-1)?.index ?? 0) > 0 && body.length > maxBytes) {
    throw new Refusal('tooLarge', `A body of several changes must have at most ${maxBytes} bytes.`);
  }
  return { changes, hasEvents: reader.hasReadEvents, bytes: encoding === 'identity' ? undefined : unpacked };
}

function changesOfLines(body: Buffer, reader: ChangeReader): IndexedChange[] {
  const changes: IndexedChange[] = [];
  let index = 0;
  const counter = new ValueCounter(body);
  const splitter = new LineSplitter(maxBytesOfOne);
  for (const lines of [splitter.split(body), splitter.end()]) {
    for (const { bytes } of lines) {
      if (bytes === undefined) throw tooLong();
      counter.add(bytes);
      if (index === maxChanges) throw tooMany();
      for (const change of reader.read(bytes, { isAlone: false })) changes.push({ ...change, index });
      index += 1;
    }
  }
  return changes;
}

function changesOfJson(body: Buffer, reader: ChangeReader, format: BodyFormat): IndexedChange[] {
  if (!isUtf8(body)) throw new Refusal('unreadable', 'The request body is not UTF-8.');
  const start = body.subarray(0, byteOrderMark.length).equals(byteOrderMark) ? byteOrderMark.length : 0;
  new ValueCounter(body).add(body);
  if (format === 'binary cloud event') return reader.readBinary(body).map((change) => ({ ...change, index: 0 }));
  const tape = new JsonTape();
  try {
    // An array and an envelope may surround the document.
    parseOnTape(tape, body, start, body.length, maxLevels + 5);
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    if (error.message.startsWith('nested too deep')) throw tooDeep();
    throw new Refusal('unreadable', `The request body cannot be read as JSON: ${error.message}.`);
  }
  const textOf = (node: number) =>
    body.subarray(cellAt(tape.cells, node + startCell), cellAt(tape.cells, node + endCell));
  const isArray = kindOf({ tape, node: 0 }) === 'array';
  if (format === 'cloud events' && !isArray)
    throw new Refusal('unreadable', 'A batch of CloudEvents must be a JSON array.');
  const read = (text: Buffer, isAlone: boolean) =>
    format === 'json' ? reader.read(text, { isAlone }) : reader.readStructured(text, { isAlone });
  if (!isArray) {
    const only = textOf(0);
    if (only.length > maxBytesOfOne) throw tooLong();
    return read(only, true).map((change) => ({ ...change, index: 0 }));
  }
  const elements: Buffer[] = [];
  for (let node = firstChild(tape, 0); node !== -1; node = nextChild(tape, node)) {
    if (elements.length === maxChanges) throw tooMany();
    const element = textOf(node);
    if (element.length > maxBytesOfOne) throw tooLong();
    elements.push(element);
  }
  return elements.flatMap((element, index) => read(element, false).map((change) => ({ ...change, index })));
}

/** A shorter body cannot exceed the limit, since each value takes at least two bytes. */
const minBytesToCount = maxValues * 2;

class ValueCounter {
  readonly #isNeeded: boolean;
  #values = 0;

  constructor(body: Buffer) {
    this.#isNeeded = body.length >= minBytesToCount;
  }

  add(json: Buffer): void {
    if (!this.#isNeeded) return;
    // Only ASCII characters delimit values, so UTF-8 need not be decoded.
    this.#values += measureJson(json.toString('latin1'), Number.POSITIVE_INFINITY).values;
    if (this.#values > maxValues) {
      throw new Refusal('tooLarge', `The request body must have at most ${maxValues} JSON values.`);
    }
  }
}

function tooMany(): Refusal {
  return new Refusal('tooLarge', `The request body must have at most ${maxChanges} changes.`);
}

function tooLong(): Refusal {
  return new Refusal('tooLarge', `A change must have at most ${maxBytesOfOne} bytes.`);
}

export type Encoding = 'identity' | 'gzip' | 'zstd';

/** Refuses frames with a larger window, which a body of the maximum size does not need. */
const maxWindowLog = 24;

/** Decompresses a body. Throws a Refusal if it exceeds `maxLength`, is damaged, or has trailing data. */
function unpack(bytes: Uint8Array, encoding: Encoding, maxLength: number): Uint8Array {
  if (encoding === 'identity') return bytes;
  try {
    if (encoding === 'gzip') return gunzipSync(bytes, { maxOutputLength: maxLength });
    const params = { [constants.ZSTD_d_windowLogMax]: maxWindowLog };
    const options = { maxOutputLength: maxLength, params, info: true };
    const unpacked: unknown = zstdDecompressSync(bytes, options);
    const { buffer, engine } = unpacked as { buffer: Uint8Array; engine: { bytesWritten: number } };
    // The decoder silently ignores trailing data, such as a corrupt frame, whose changes would be lost.
    if (engine.bytesWritten < bytes.length) throw new Error('trailing data after the last frame');
    return buffer;
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ERR_BUFFER_TOO_LARGE')
      throw new Refusal('longer', 'The request body is too long once it is unpacked.');
    throw new Refusal('unreadable', `The request body is damaged or incomplete ${encoding}.`);
  }
}
