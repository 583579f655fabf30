// Arrays in PostgreSQL's binary form (array_recv). They need no quoting in Annals and no parsing in PostgreSQL.

const oids = { int4: 23, int8: 20, text: 25, uuid: 2950 } as const;
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

/** It writes numbers in a part of the time that a buffer takes. */
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
