import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';

const gzipMagic = Buffer.from([0x1f, 0x8b]);
const zstdMagic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
const chunkSize = 64 * 1024;

/**
 * The bytes of a source, decompressed if they are gzip or Zstandard by their magic number, since a pipe has no file
 * name. If the source fails or is corrupt, yields the bytes before the fault, then throws.
 */
export async function* decompressedChunks(source: Readable): AsyncGenerator<Buffer> {
  const chunks = chunksOf(source);
  let head: Buffer = Buffer.alloc(0);
  while (head.length < zstdMagic.length) {
    const { value, done } = await chunks.next();
    if (done === true) break;
    head = Buffer.concat([head, value]);
  }
  const decompressor = decompressorFor(head);
  if (decompressor === undefined) {
    yield head;
    yield* chunks;
    return;
  }
  let fed = head.length;
  async function* counted(): AsyncGenerator<Buffer> {
    yield head;
    for await (const chunk of chunks) {
      fed += chunk.length;
      yield chunk;
    }
  }
  // An error of the source destroys the decompressor, which passes it to the reader.
  pipeline(Readable.from(counted()), decompressor).catch(() => {});
  yield* chunksOf(decompressor);
  // The Zstandard decoder silently ignores trailing data, such as a corrupt frame.
  if (decompressor.bytesWritten < fed) throw new Error('data that is not Zstandard follows the last frame');
}

function decompressorFor(head: Buffer) {
  if (head.subarray(0, gzipMagic.length).equals(gzipMagic)) return createGunzip({ chunkSize });
  if (head.subarray(0, zstdMagic.length).equals(zstdMagic) || isSkippableFrame(head)) {
    return createZstdDecompress({ chunkSize });
  }
  return undefined;
}

/** Whether it starts with a skippable Zstandard frame, as pzstd writes (RFC 8878, 3.1.2). */
function isSkippableFrame(head: Buffer): boolean {
  return head.length >= 4 && (head.readUInt32LE(0) & 0xfffffff0) >>> 0 === 0x184d2a50;
}

/**
 * The chunks of a stream. Unlike the stream's own iterator, yields buffered data before it throws the stream's error.
 */
async function* chunksOf(source: Readable): AsyncGenerator<Buffer> {
  let failure: Error | undefined = source.errored ?? undefined;
  let isOver = source.readableEnded;
  let wake = () => {};
  const onReadable = () => wake();
  const onEnd = () => {
    isOver = true;
    wake();
  };
  const onError = (error: Error) => {
    failure = error;
    wake();
  };
  const onClose = () => {
    if (!isOver) failure ??= new Error('it was closed before its end');
    wake();
  };
  source.on('readable', onReadable).on('end', onEnd).on('error', onError).on('close', onClose);
  try {
    for (;;) {
      const chunk: Buffer | string | null = source.read();
      if (chunk !== null) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
      else if (failure !== undefined) throw failure;
      else if (isOver) return;
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    source.off('readable', onReadable).off('end', onEnd).off('close', onClose);
    source.destroy();
  }
}
