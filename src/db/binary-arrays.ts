// Arrays as PostgreSQL takes them in binary (array_recv): nothing of them has to be quoted here or parsed there.

const oids = { int4: 23, int8: 20, text: 25, uuid: 2950 } as const;
const headerBytes = 20;

export function int4Array(values: readonly number[]): Buffer {
  const { buffer, at } = begun('int4', values.length, values.length * 8);
  values.forEach((value, index) => {
    buffer.writeInt32BE(4, at + index * 8);
    buffer.writeInt32BE(value, at + index * 8 + 4);
  });
  return buffer;
}

/** Safe integers. */
export function int8Array(values: readonly number[]): Buffer {
  const { buffer, at } = begun('int8', values.length, values.length * 12);
  values.forEach((value, index) => {
    buffer.writeInt32BE(8, at + index * 12);
    buffer.writeInt32BE(Math.floor(value / 2 ** 32), at + index * 12 + 4);
    buffer.writeUInt32BE(value - Math.floor(value / 2 ** 32) * 2 ** 32, at + index * 12 + 8);
  });
  return buffer;
}

/** Of 16 bytes each. */
export function uuidArray(values: readonly Uint8Array[]): Buffer {
  const { buffer, at } = begun('uuid', values.length, values.length * 20);
  values.forEach((value, index) => {
    buffer.writeInt32BE(16, at + index * 20);
    buffer.set(value, at + index * 20 + 4);
  });
  return buffer;
}

/** Texts without NUL; null is a null. */
export function textArray(values: readonly (string | null)[]): Buffer {
  // No character takes more than three bytes for each of its UTF-16 units.
  const most = values.reduce((bytes, value) => bytes + 4 + (value === null ? 0 : value.length * 3), 0);
  const { buffer, at: begin } = begun('text', values.length, most);
  let at = begin;
  for (const value of values) {
    const bytes = value === null ? -1 : buffer.write(value, at + 4);
    buffer.writeInt32BE(bytes, at);
    at += 4 + Math.max(0, bytes);
  }
  return buffer.subarray(0, at);
}

/** One dimension from 1 on; an empty array has none. */
function begun(type: keyof typeof oids, length: number, bytes: number): { buffer: Buffer; at: number } {
  const empty = length === 0;
  const buffer = Buffer.allocUnsafe(empty ? 12 : headerBytes + bytes);
  buffer.writeInt32BE(empty ? 0 : 1, 0);
  // Nulls are told by their lengths; the flag that there may be some is of no use to the reader.
  buffer.writeInt32BE(0, 4);
  buffer.writeInt32BE(oids[type], 8);
  if (empty) return { buffer, at: 12 };
  buffer.writeInt32BE(length, 12);
  buffer.writeInt32BE(1, 16);
  return { buffer, at: headerBytes };
}
