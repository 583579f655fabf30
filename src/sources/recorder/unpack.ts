import { constants, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { Refusal } from './refusal.ts';

export type Encoding = 'identity' | 'gzip' | 'zstd';

/** A frame that asks for a larger window is refused: a body of the maximum size does not need one. */
const maxWindowLog = 24;

/**
 * Unpacks the bytes of a body, up to the limit. Throws Refusal where the body is longer or damaged, or where something
 * follows its packed bytes.
 */
export function unpack(bytes: Uint8Array, encoding: Encoding, maxLength: number): Uint8Array {
  if (encoding === 'identity') return bytes;
  try {
    if (encoding === 'gzip') return gunzipSync(bytes, { maxOutputLength: maxLength });
    const params = { [constants.ZSTD_d_windowLogMax]: maxWindowLog };
    const options = { maxOutputLength: maxLength, params, info: true };
    const unpacked: unknown = zstdDecompressSync(bytes, options);
    const { buffer, engine } = unpacked as { buffer: Uint8Array; engine: { bytesWritten: number } };
    // The decoder leaves out what follows the last frame, without a word. A damaged frame is such a thing, and its changes would be lost.
    if (engine.bytesWritten < bytes.length) throw new Error('something follows the last frame');
    return buffer;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ERR_BUFFER_TOO_LARGE')
      throw new Refusal('longer', 'The request body is too long once it is unpacked.');
    throw new Refusal('unreadable', `The request body is damaged or incomplete ${encoding}.`);
  }
}
