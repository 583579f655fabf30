import type { Lsn } from './position.ts';

export interface RelationColumn {
  readonly name: string;
  readonly type: number;
  /** Whether it belongs to the replica identity. */
  readonly isKey: boolean;
}

export interface Relation {
  readonly id: number;
  readonly schema: string;
  readonly name: string;
  /** `d`: the primary key. `i`: an index. `f`: the whole row. `n`: nothing. */
  readonly replicaIdentity: string;
  readonly columns: readonly RelationColumn[];
}

/** The text of a value; undefined: an unchanged TOASTed value, which is not sent. */
type TupleValue = string | null | undefined;
export type Tuple = readonly TupleValue[];

/** A message of pgoutput, protocol version 1. */
export type PgoutputMessage =
  | { kind: 'begin'; commitLsn: Lsn; committedAt: bigint; xid: number }
  | { kind: 'commit'; commitLsn: Lsn; endLsn: Lsn }
  | { kind: 'relation'; relation: Relation }
  | { kind: 'insert'; relation: number; new: Tuple }
  // `old`: the whole row, with REPLICA IDENTITY FULL. `key`: only the columns of the identity, null in all others.
  | { kind: 'update'; relation: number; old?: Tuple; key?: Tuple; new: Tuple }
  | { kind: 'delete'; relation: number; old?: Tuple; key?: Tuple }
  | { kind: 'truncate'; relations: readonly number[] }
  | { kind: 'message'; transactional: boolean; prefix: string; content: Buffer }
  | { kind: 'other' };

class PgoutputError extends Error {
  override name = 'PgoutputError';
}

/**
 * Decodes a message. `committedAt`: microseconds since 1970. Throws a PgoutputError, without content of the message.
 */
export function decodePgoutput(bytes: Buffer): PgoutputMessage {
  const reader = new Reader(bytes);
  try {
    return decode(reader);
  } catch (error) {
    if (error instanceof PgoutputError) throw error;
    throw new PgoutputError('a message of the replication stream breaks off');
  }
}

// Microseconds from 1970 to 2000, PostgreSQL's epoch.
const epoch = 946_684_800_000_000n;

function decode(reader: Reader): PgoutputMessage {
  const tag = reader.character();
  switch (tag) {
    case 'B': {
      const commitLsn = reader.int64();
      return { kind: 'begin', commitLsn, committedAt: reader.int64() + epoch, xid: reader.uint32() };
    }
    case 'C': {
      reader.character();
      return { kind: 'commit', commitLsn: reader.int64(), endLsn: reader.int64() };
    }
    case 'R':
      return { kind: 'relation', relation: relation(reader) };
    case 'I': {
      const id = reader.uint32();
      reader.expect('N');
      return { kind: 'insert', relation: id, new: tuple(reader) };
    }
    case 'U': {
      const id = reader.uint32();
      const first = reader.character();
      if (first === 'N') return { kind: 'update', relation: id, new: tuple(reader) };
      const before = identity(first, reader);
      reader.expect('N');
      return { kind: 'update', relation: id, ...before, new: tuple(reader) };
    }
    case 'D': {
      const id = reader.uint32();
      return { kind: 'delete', relation: id, ...identity(reader.character(), reader) };
    }
    case 'T': {
      const count = reader.uint32();
      reader.character();
      return { kind: 'truncate', relations: Array.from({ length: count }, () => reader.uint32()) };
    }
    case 'M': {
      const transactional = (reader.byte() & 1) === 1;
      reader.int64();
      const prefix = reader.text();
      return { kind: 'message', transactional, prefix, content: reader.bytes(reader.uint32()) };
    }
    // origin, type
    case 'O':
    case 'Y':
      return { kind: 'other' };
    default:
      throw new PgoutputError(`the replication stream has a message of the unknown kind ${JSON.stringify(tag)}`);
  }
}

function relation(reader: Reader): Relation {
  const id = reader.uint32();
  // An empty name means pg_catalog.
  const schema = reader.text() || 'pg_catalog';
  const name = reader.text();
  const replicaIdentity = reader.character();
  const columns = Array.from({ length: reader.uint16() }, () => {
    const isKey = (reader.byte() & 1) === 1;
    const column = { name: reader.text(), type: reader.uint32(), isKey };
    // The type's modifier.
    reader.uint32();
    return column;
  });
  return { id, schema, name, replicaIdentity, columns };
}

function identity(tag: string, reader: Reader): { old: Tuple } | { key: Tuple } {
  if (tag === 'O') return { old: tuple(reader) };
  if (tag === 'K') return { key: tuple(reader) };
  throw new PgoutputError(`the replication stream has a row of the unknown kind ${JSON.stringify(tag)}`);
}

function tuple(reader: Reader): Tuple {
  const count = reader.uint16();
  const values: TupleValue[] = [];
  for (let index = 0; index < count; index++) {
    const tag = reader.character();
    if (tag === 't') values.push(reader.bytes(reader.uint32()).toString('utf8'));
    else if (tag === 'n') values.push(null);
    else if (tag === 'u') values.push(undefined);
    else throw new PgoutputError(`the replication stream has a value of the unknown kind ${JSON.stringify(tag)}`);
  }
  return values;
}

/** Reads from left to right. A read beyond the end throws a RangeError. */
class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  byte(): number {
    return this.#bytes.readUInt8(this.#skip(1));
  }

  character(): string {
    return String.fromCharCode(this.byte());
  }

  expect(tag: string): void {
    const actual = this.character();
    if (actual !== tag)
      throw new PgoutputError(`the replication stream has ${JSON.stringify(actual)} in place of ${tag}`);
  }

  uint16(): number {
    return this.#bytes.readUInt16BE(this.#skip(2));
  }

  uint32(): number {
    return this.#bytes.readUInt32BE(this.#skip(4));
  }

  int64(): bigint {
    return this.#bytes.readBigInt64BE(this.#skip(8));
  }

  bytes(length: number): Buffer {
    const start = this.#skip(length);
    if (this.#at > this.#bytes.length) throw new RangeError('beyond the end');
    return this.#bytes.subarray(start, this.#at);
  }

  /** A null-terminated text. */
  text(): string {
    const end = this.#bytes.indexOf(0, this.#at);
    if (end === -1) throw new RangeError('beyond the end');
    const start = this.#skip(end + 1 - this.#at);
    return this.#bytes.toString('utf8', start, end);
  }

  #skip(length: number): number {
    const start = this.#at;
    this.#at += length;
    return start;
  }
}
