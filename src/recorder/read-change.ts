import { JsonTape } from '../json/tape.ts';
import type { Change } from '../recording/change.ts';
import { readImportLine } from '../recording/import-line.ts';
import type { Mapping } from '../recording/mapping/mapping.ts';
import { Occurrences } from '../recording/occurrences.ts';
import { keptLine } from './kept-line.ts';
import { tooDeep } from './refusal.ts';

/** For whom a body is read. */
export interface Reading {
  /** The name of the client, which is the actor of changes that name none. */
  clientName: string;
  maySetActor: boolean;
  mapping: Mapping | undefined;
}

/** What of a change is kept where it can never be recorded: a line of an import. */
export type Kept =
  /** Its masks are applied. Undefined: nothing. */
  | { line: string | undefined }
  /** No mask holds for it: these bytes of the body. */
  | { start: number; end: number; hasActor: boolean };

/** A change of a body. */
export type ReadChange =
  | { kind: 'change'; change: Change; kept: Kept }
  | { kind: 'unchanged' }
  | { kind: 'ignored' }
  | { kind: 'rejected'; reason: string; kept: Kept };

/** Reads the changes of one body. */
export class ChangeReader {
  readonly #reading: Reading;
  readonly #body: Buffer;
  readonly #tape = new JsonTape();
  // A line without an id is rejected, so nothing is counted.
  readonly #occurrences = new Occurrences();

  constructor(reading: Reading, body: Buffer) {
    this.#reading = reading;
    this.#body = body;
  }

  /** The changes of one JSON text, a part of the body. Throws Refusal where it nests too deep. */
  read(text: Buffer): ReadChange[] {
    return [this.#changeOfLine(text)];
  }

  #changeOfLine(text: Buffer): ReadChange {
    const { clientName, maySetActor, mapping } = this.#reading;
    const read = readImportLine(text, this.#tape, this.#occurrences, mapping?.entities);
    if (read.kind === 'unchanged') return read;
    const reject = (reason: string): ReadChange => ({
      kind: 'rejected',
      reason,
      kept: { line: keptLine(text, clientName, mapping) },
    });
    if (read.kind === 'rejected') {
      if (read.reason.includes('nested too deep')) throw tooDeep();
      return reject(read.reason);
    }
    const { change, hasId, hasActor } = read;
    if (!hasId) return reject('"id" is missing');
    if (hasActor && !maySetActor) return reject('"actor" needs the scope recorder.actor_set');
    if (!hasActor) change.actor = clientName;
    return { kind: 'change', change, kept: this.#keptOf(text, change.entity, hasActor) };
  }

  #keptOf(text: Buffer, entity: string, hasActor: boolean): Kept {
    const { clientName, mapping } = this.#reading;
    if (mapping?.entities.has(entity)) return { line: keptLine(text, clientName, mapping) };
    const start = text.byteOffset - this.#body.byteOffset;
    return { start, end: start + text.length, hasActor };
  }
}
