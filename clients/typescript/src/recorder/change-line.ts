import { stringifyJson } from '../json/stringify.ts';
import type { RecordedChange } from '../schemas.ts';
import { randomId } from '../transport/random-id.ts';

/** A change of a document of your application. */
export interface NewChange extends Omit<RecordedChange, 'id' | 'at'> {
  /** With `at` it identifies the change; left out: a random one. */
  readonly id?: string | undefined;
  /** When it happened; left out: now. */
  readonly at?: Date | string | undefined;
}

/** Something that happened and changed no document: a sign-in, an export, an approval. */
export interface NewEvent extends Omit<NewChange, 'op' | 'entityId' | 'before' | 'after' | 'masked' | 'schemaVersion'> {
  /** What happened, as an entity type: `sign-in`. */
  readonly entity: string;
  /** Identifies the event among those of its type; left out: a random one. */
  readonly entityId?: string | undefined;
  /** What there is to say about it; each member becomes a path. Left out: nothing. */
  readonly details?: Readonly<Record<string, unknown>> | undefined;
}

/** An event as the creation of a document of its own, which never changes. */
export function changeOfEvent({ entityId, id = randomId(), details = {}, ...event }: NewEvent): NewChange {
  return { id, op: 'create', entityId: entityId ?? id, after: details, ...event };
}

/** The bytes of a change, at most: a request with one change alone may have that many. */
const maxChangeBytes = 16 * 1024 * 1024;

/** Writes changes as lines. It sets the id and the time once, so that the service recognises a repeated line. */
export class ChangeLines {
  readonly #encoder = new TextEncoder();
  #latest = 0;

  /** The line of a change with its end. Throws RangeError where it is too long, TypeError where it is no JSON. */
  write({ id = randomId(), at, ...change }: NewChange): Uint8Array {
    const line = this.#encoder.encode(`${stringifyJson({ id, at: at ?? this.#now(), ...change })}\n`);
    if (line.length <= maxChangeBytes) return line;
    throw new RangeError(
      `A change must have at most ${maxChangeBytes} bytes of JSON, and this one has ${line.length}.`,
    );
  }

  /** Never earlier than the last change: the history orders the changes of a document by time. */
  #now(): Date {
    this.#latest = Math.max(this.#latest, Date.now());
    return new Date(this.#latest);
  }
}

/** The lines in one piece. */
export function joined(lines: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(lines.reduce((sum, { length }) => sum + length, 0));
  let offset = 0;
  for (const line of lines) {
    bytes.set(line, offset);
    offset += line.length;
  }
  return bytes;
}
