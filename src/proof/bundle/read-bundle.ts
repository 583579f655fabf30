import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import { codeOf } from '../../core/errors.ts';
import { BundleFault, type BundleLine, parseLine } from './lines.ts';

/**
 * The bytes of a line at most. An entry has 128 MiB of paths at most, which JSON writes in up to twice as many bytes.
 */
const maxLine = 400 * 1024 * 1024;
const newline = 0x0a;

/** The lines of a bundle, from its bytes. Throws a BundleFault for a line that is too long or not of a bundle. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<BundleLine> {
  // Cut at newlines alone: JSON may have other characters that a reader of lines takes for ends.
  let parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    let begin = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, begin)) {
      parts.push(chunk.subarray(begin, end));
      yield parseLine(Buffer.concat(parts));
      parts = [];
      bytes = 0;
      begin = end + 1;
    }
    if (begin === chunk.length) continue;
    parts.push(chunk.subarray(begin));
    bytes += chunk.length - begin;
    if (bytes > maxLine) throw new BundleFault('has a line that is too long');
  }
  if (parts.length > 0) throw new BundleFault('has no end: it was not written wholly');
}

/** The lines of a bundle in a file, which may be packed by gzip. */
export async function* readBundle(path: string): AsyncGenerator<BundleLine> {
  const isPacked = (await firstBytes(path, 2)).equals(Buffer.from([0x1f, 0x8b]));
  const stream = createReadStream(path, { highWaterMark: 256 * 1024 });
  try {
    yield* linesOf(isPacked ? stream.pipe(createGunzip()) : stream);
  } catch (error) {
    if (isPacked && codeOf(error)?.startsWith('Z_')) {
      throw new BundleFault('is packed, and cut or changed', { cause: error });
    }
    throw error;
  } finally {
    stream.destroy();
  }
}

/** The first bytes of a file. */
export async function firstBytes(path: string, count: number): Promise<Buffer> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(count), 0, count, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
