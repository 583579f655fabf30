import { parseJson } from '../../core/json/parse.ts';
import { type JsonNode, JsonSyntaxError, JsonTape } from '../../core/json/tape.ts';
import { readTraceparent } from '../../core/trace.ts';
import type { Change } from '../../recording/change.ts';
import {
  changeOfClient,
  otherTenant,
  type RecordingClient,
  readImportLine,
  refusalOfRow,
} from '../../recording/mapping/import-line.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import type { MappedChange, MappedDocument } from '../../recording/mapping/row-change.ts';
import {
  type CloudEvent,
  CloudEventError,
  lineOfCloudEvent,
  readBinaryEvent,
  readStructuredEvent,
} from './cloud-event.ts';
import { changesOfEvent, type EventResult } from './debezium/changes-of-event.ts';
import { eventHeaders, type ReadEvent, readDebeziumCloudEvent, readDebeziumEvent } from './debezium/read-event.ts';
import { maxLevels, tooDeep } from './limits.ts';
import { storedBinaryEvent, storedEvent, storedLine } from './stored-text.ts';

/** The context of a body: its client and mapping. */
export interface Reading {
  /** The tenant of the path. A change that the mapping assigns to another one is rejected. */
  tenant: string;
  /** The client, which is the default actor. */
  clientName: string;
  maySetActor: boolean;
  mapping: Mapping | undefined;
  /** The request headers about events, by lower-case name. */
  headers: Readonly<Record<string, string>>;
}

/** What Annals stores of a rejected change: an import line, or a row as written by `rejectedRowText`. */
export type StoredSource =
  /** Masked. Undefined: nothing is stored. */
  | { line: string | undefined; isRow?: boolean; identity?: Uint8Array | undefined }
  /** A range of the body that has nothing to mask. */
  | { start: number; end: number; hasActor: boolean };

/** A change of a body. `traceId`: that of its CloudEvent. */
export type ReadChange = ReadKind & { traceId?: string };

type ReadKind =
  | { kind: 'change'; change: Change; stored: StoredSource }
  | { kind: 'unchanged' }
  | { kind: 'ignored' }
  | { kind: 'rejected'; reason: string; stored: StoredSource }
  /** A row of a snapshot, to be compared with the history. */
  | { kind: 'snapshot'; document: Extract<MappedDocument, { kind: 'document' }>; stored: StoredSource }
  /** All documents of the entity were deleted. */
  | { kind: 'truncate'; entity: string; at: number; identity: Uint8Array };

/** Reads the changes of one body. */
export class ChangeReader {
  readonly #reading: Reading;
  readonly #body: Buffer;
  readonly #tape = new JsonTape();
  /** Whether any CloudEvent or Debezium event was read. */
  hasReadEvents = false;

  constructor(reading: Reading, body: Buffer) {
    this.#reading = reading;
    this.#body = body;
  }

  /**
   * The changes of a JSON text in the body: an import line, or a Debezium event. `isAlone`: it is the whole body, so
   * the request headers are the event's. Throws a Refusal if it nests too deep.
   */
  read(text: Buffer, { isAlone }: { isAlone: boolean }): ReadChange[] {
    const change = this.#changeOfLine(text);
    if (change.kind !== 'rejected') return [change];
    const value = parsed(text);
    const event = value && readDebeziumEvent(value);
    if (event === undefined) return [change];
    this.hasReadEvents = true;
    return this.#changesOf(event, isAlone, () => this.#storedEvent(text));
  }

  /** The changes of a CloudEvent as one JSON text. */
  readStructured(text: Buffer, { isAlone }: { isAlone: boolean }): ReadChange[] {
    this.hasReadEvents = true;
    const value = parsed(text);
    if (value === undefined)
      return [{ kind: 'rejected', reason: 'cannot be read as JSON', stored: this.#storedEvent(text) }];
    return this.#changesOfCloudEvent(
      () => readStructuredEvent(value),
      isAlone,
      () => this.#storedEvent(text),
    );
  }

  /** The changes of a CloudEvent in binary mode: its data is the body. */
  readBinary(body: Buffer): ReadChange[] {
    this.hasReadEvents = true;
    const { headers, mapping } = this.#reading;
    return this.#changesOfCloudEvent(
      () => readBinaryEvent(Object.entries(headers), body.toString('utf8')),
      true,
      () => ({ line: storedBinaryEvent(headers, body, mapping) }),
    );
  }

  #changesOfCloudEvent(read: () => CloudEvent, isAlone: boolean, stored: () => StoredSource): ReadChange[] {
    try {
      const cloudEvent = read();
      const changes = this.#changesOfReadEvent(cloudEvent, isAlone, stored);
      const trace = readTraceparent(cloudEvent.attributes.get('traceparent'));
      return trace === undefined ? changes : changes.map((change) => ({ ...change, traceId: trace.traceId }));
    } catch (error) {
      if (!(error instanceof CloudEventError)) throw error;
      if (error.message.includes('nested too deep')) throw tooDeep();
      return [{ kind: 'rejected', reason: error.message, stored: stored() }];
    }
  }

  #changesOfReadEvent(cloudEvent: CloudEvent, isAlone: boolean, stored: () => StoredSource): ReadChange[] {
    const event = readDebeziumCloudEvent(cloudEvent.attributes, cloudEvent.data);
    if (event !== undefined) return this.#changesOf(event, isAlone, stored);
    const { line, identity } = lineOfCloudEvent(cloudEvent);
    return [this.#changeOfLine(Buffer.from(line), identity)];
  }

  #changeOfLine(text: Buffer, identity?: Buffer): ReadChange {
    const { clientName, mapping } = this.#reading;
    const read = readImportLine(text, this.#tape, undefined, mapping?.entities);
    const judged = changeOfClient(read, this.#client, identity);
    if (judged.kind === 'unchanged') return judged;
    if (judged.kind === 'change') {
      return {
        kind: 'change',
        change: judged.change,
        stored: this.#storedOf(text, judged.change.entity, judged.hasActor, identity),
      };
    }
    if (judged.reason.includes('nested too deep')) throw tooDeep();
    return { ...judged, stored: { line: storedLine(text, clientName, mapping), identity } };
  }

  get #client(): RecordingClient {
    const { clientName: name, tenant, maySetActor } = this.#reading;
    return { name, tenant, maySetActor };
  }

  #storedOf(text: Buffer, entity: string, hasActor: boolean, identity: Uint8Array | undefined): StoredSource {
    const { clientName, mapping } = this.#reading;
    const start = text.byteOffset - this.#body.byteOffset;
    const end = start + text.length;
    // Small buffers may share memory without overlapping.
    const isPart = text.buffer === this.#body.buffer && start >= 0 && end <= this.#body.length;
    if (!isPart || mapping?.entities.has(entity)) return { line: storedLine(text, clientName, mapping), identity };
    return { start, end, hasActor };
  }

  #storedEvent(text: Buffer): StoredSource {
    return { line: storedEvent(text, this.#reading.mapping) };
  }

  /** `stored`: what is stored of an event that cannot be mapped. */
  #changesOf(event: ReadEvent, isAlone: boolean, stored: () => StoredSource): ReadChange[] {
    const { mapping, headers, clientName, tenant } = this.#reading;
    // A batch of Debezium's sink has only the headers of its first event.
    const ofEvent = isAlone ? eventHeaders((name) => headers[name]) : {};
    const result = changesOfEvent(mapping, event, ofEvent, { actor: clientName, tenant });
    if (result.kind !== 'changes') return [this.#changeOfOther(result, stored)];
    const row: StoredSource = { line: result.content(), isRow: true };
    return result.changes.map((mapped) => this.#changeOfRow(mapped, row));
  }

  #changeOfOther(result: Exclude<EventResult, { kind: 'changes' }>, storedOfEvent: () => StoredSource): ReadChange {
    if (result.kind === 'ignored') return result;
    const stored = result.kind === 'snapshot' ? { line: result.content(), isRow: true } : storedOfEvent();
    if (result.kind === 'rejected') return { ...result, stored };
    const tenant = result.kind === 'snapshot' ? result.document.tenant : result.tenant;
    if (!this.#isOwn(tenant)) return { kind: 'rejected', reason: otherTenant, stored };
    if (result.kind === 'snapshot') return { kind: 'snapshot', document: result.document, stored };
    const { table, at, identity } = result;
    return { kind: 'truncate', entity: table.entity, at, identity };
  }

  #changeOfRow(mapped: MappedChange, stored: StoredSource): ReadChange {
    const refusal = refusalOfRow(mapped, this.#client);
    if (refusal !== undefined) return { kind: 'rejected', reason: refusal, stored };
    if (mapped.kind === 'unchanged') return { kind: 'unchanged' };
    if (mapped.kind === 'rejected') return { kind: 'rejected', reason: mapped.reason, stored };
    return { kind: 'change', change: mapped.change, stored };
  }

  #isOwn(tenant: string | undefined): boolean {
    return tenant === undefined || tenant === this.#reading.tenant;
  }
}

/** Undefined if it is not JSON. Throws a Refusal if it nests too deep. */
function parsed(text: Buffer): JsonNode | undefined {
  try {
    // The envelope of an event adds levels around its documents.
    return parseJson(text, maxLevels + 4);
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    if (error.message.startsWith('nested too deep')) throw tooDeep();
    return undefined;
  }
}
