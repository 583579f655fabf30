// Arrays in PostgreSQL's binary format (array_recv), which need no quoting here and no parsing in PostgreSQL.

const oids = { int4: 23, int8: 20, text: 25, uuid: 2950 } as const;
const int4s = 1007;
const headerBytes = 20;

export function int4Array(values: readonly number[]): Buffer {
  const { buffer, at } = begun('int4', values.length, values.length * 8);
  const view = viewOf(buffer);
  values.forEach((value, index) => {
    view.setInt32(at + index * 8, 4);
    view.setInt32(at + index * 8 + 4, value);
  });
  return buffer;
}

/** Safe integers. */
export function int8Array(values: readonly number[]): Buffer {
  const { buffer, at } = begun('int8', values.length, values.length * 12);
  const view = viewOf(buffer);
  values.forEach((value, index) => {
    view.setInt32(at + index * 12, 8);
    view.setInt32(at + index * 12 + 4, Math.floor(value / 2 ** 32));
    view.setUint32(at + index * 12 + 8, value - Math.floor(value / 2 ** 32) * 2 ** 32);
  });
  return buffer;
}

/** Each has 16 bytes. */
export function uuidArray(values: readonly Uint8Array[]): Buffer {
  const { buffer, at } = begun('uuid', values.length, values.length * 20);
  const view = viewOf(buffer);
  values.forEach((value, index) => {
    view.setInt32(at + index * 20, 16);
    buffer.set(value, at + index * 20 + 4);
  });
  return buffer;
}

/** Texts without NUL; null becomes NULL. */
export function textArray(values: readonly (string | null)[]): Buffer {
  // A UTF-16 unit takes at most three bytes.
  const maxBytes = values.reduce((bytes, value) => bytes + 4 + (value === null ? 0 : value.length * 3), 0);
  const { buffer, at: begin } = begun('text', values.length, maxBytes);
  const view = viewOf(buffer);
  let at = begin;
  for (const value of values) {
    const bytes = value === null ? -1 : buffer.write(value, at + 4);
    view.setInt32(at, bytes);
    at += 4 + Math.max(0, bytes);
  }
  return buffer.subarray(0, at);
}

/** Writes an array of a composite type: for each element `begin`, then its fields in the order of the type. */
export class CompositeArray {
  readonly #fields: number;
  #buffer = Buffer.allocUnsafe(4096);
  #view = viewOf(this.#buffer);
  #at = headerBytes;
  #length = 0;
  #begin = 0;

  /** `fields`: the number of fields of the type. */
  constructor(fields: number) {
    this.#fields = fields;
  }

  begin(): void {
    this.#endElement();
    this.#reserve(8);
    this.#begin = this.#at;
    this.#view.setInt32(this.#at + 4, this.#fields);
    this.#at += 8;
    this.#length += 1;
  }

  int4(value: number): void {
    const at = this.#field(oids.int4, 4);
    this.#view.setInt32(at, value);
  }

  /** A safe integer. */
  int8(value: number): void {
    const at = this.#field(oids.int8, 8);
    this.#view.setInt32(at, Math.floor(value / 2 ** 32));
    this.#view.setUint32(at + 4, value - Math.floor(value / 2 ** 32) * 2 ** 32);
  }

  text(value: string | null | undefined): void {
    // A UTF-16 unit takes at most three bytes.
    this.#reserve(8 + (value?.length ?? 0) * 3);
    const bytes = value == null ? -1 : this.#buffer.write(value, this.#at + 8);
    this.#view.setInt32(this.#at, oids.text);
    this.#view.setInt32(this.#at + 4, bytes);
    this.#at += 8 + Math.max(0, bytes);
  }

  uuid(value: Uint8Array | undefined): void {
    const at = this.#field(oids.uuid, value === undefined ? null : 16);
    if (value !== undefined) this.#buffer.set(value, at);
  }

  int4s(values: readonly number[]): void {
    let at = this.#field(int4s, headerBytes + values.length * 8);
    for (const value of [1, 0, oids.int4, values.length, 1]) {
      this.#view.setInt32(at, value);
      at += 4;
    }
    for (const value of values) {
      this.#view.setInt32(at, 4);
      this.#view.setInt32(at + 4, value);
      at += 8;
    }
  }

  /** The array. Its first 12 bytes lack the type's OID, which differs from database to database. */
  end(): Buffer {
    this.#endElement();
    this.#view.setInt32(0, 1);
    this.#view.setInt32(4, 0);
    this.#view.setInt32(12, this.#length);
    this.#view.setInt32(16, 1);
    return this.#buffer.subarray(0, this.#at);
  }

  #endElement(): void {
    if (this.#length > 0) this.#view.setInt32(this.#begin, this.#at - this.#begin - 4);
  }

  /** Begins a field with this many bytes, or null. Returns their position. */
  #field(oid: number, bytes: number | null): number {
    this.#reserve(8 + (bytes ?? 0));
    this.#view.setInt32(this.#at, oid);
    this.#view.setInt32(this.#at + 4, bytes ?? -1);
    this.#at += 8 + (bytes ?? 0);
    return this.#at - (bytes ?? 0);
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#at + bytes));
    this.#buffer.copy(larger, 0, 0, this.#at);
    this.#buffer = larger;
    this.#view = viewOf(larger);
  }
}

/** A field of a composite value: the OID of its type, and its bytes, or undefined for null. */
export type CompositeField = readonly [type: number, value: Uint8Array | undefined];

export const compositeField = {
  int4: (value: number): CompositeField => [oids.int4, int4Bytes(value)],
  text: (value: string | undefined): CompositeField => [
    oids.text,
    value === undefined ? undefined : Buffer.from(value),
  ],
  uuid: (value: Uint8Array): CompositeField => [oids.uuid, value],
  int4s: (values: readonly number[]): CompositeField => [int4s, int4Array(values)],
  texts: (values: readonly (string | null)[]): CompositeField => [1009, textArray(values)],
  uuids: (values: readonly Uint8Array[]): CompositeField => [2951, uuidArray(values)],
} as const;

/** A composite value, its fields in the order of its type. */
export function composite(fields: readonly CompositeField[]): Buffer {
  const parts = fields.flatMap(([type, value]) => [
    int4Bytes(type),
    int4Bytes(value?.length ?? -1),
    ...(value === undefined ? [] : [value]),
  ]);
  return Buffer.concat([int4Bytes(fields.length), ...parts]);
}

function int4Bytes(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeInt32BE(value);
  return bytes;
}

/** Sets the OID of the elements' type in an array of `CompositeArray`. */
export function setElementType(array: Buffer, oid: number): void {
  array.writeUInt32BE(oid, 8);
}

/** A DataView writes numbers several times as fast as a Buffer. */
function viewOf(buffer: Buffer): DataView {
  return new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}

/** One dimension with 1 as its first index. An empty array has no dimension. */
function begun(type: keyof typeof oids, length: number, bytes: number): { buffer: Buffer; at: number } {
  const empty = length === 0;
  const buffer = Buffer.allocUnsafe(empty ? 12 : headerBytes + bytes);
  buffer.writeInt32BE(empty ? 0 : 1, 0);
  // The length of a value says whether it is null. PostgreSQL does not need the flag for nulls.
  buffer.writeInt32BE(0, 4);
  buffer.writeInt32BE(oids[type], 8);
  if (empty) return { buffer, at: 12 };
  buffer.writeInt32BE(length, 12);
  buffer.writeInt32BE(1, 16);
  return { buffer, at: headerBytes };
}
