import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';

const gzipMagic = Buffer.from([0x1f, 0x8b]);
const zstdMagic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
const chunkSize = 64 * 1024;

/**
 * The bytes of a source, decompressed where they are gzip or Zstandard. The first bytes tell the format: no JSON starts with them, and
 * a pipe has no name. Where the source fails or is damaged, the bytes before the damage come first, then the error.
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
  let given = head.length;
  async function* counted(): AsyncGenerator<Buffer> {
    yield head;
    for await (const chunk of chunks) {
      given += chunk.length;
      yield chunk;
    }
  }
  // A failure of the source destroys the decompressor, through which it reaches the reader.
  pipeline(Readable.from(counted()), decompressor).catch(() => {});
  yield* chunksOf(decompressor);
  // The decoder of Zstandard leaves out what follows the last frame, without a word. A damaged frame is such a thing.
  if (decompressor.bytesWritten < given) throw new Error('something that is not Zstandard follows the last frame');
}

function decompressorFor(head: Buffer) {
  if (head.subarray(0, gzipMagic.length).equals(gzipMagic)) return createGunzip({ chunkSize });
  if (head.subarray(0, zstdMagic.length).equals(zstdMagic) || isSkippableFrame(head)) {
    return createZstdDecompress({ chunkSize });
  }
  return undefined;
}

/** Whether Zstandard begins with a frame that a reader skips, as pzstd writes one before each frame (RFC 8878, 3.1.2). */
function isSkippableFrame(head: Buffer): boolean {
  return head.length >= 4 && (head.readUInt32LE(0) & 0xfffffff0) >>> 0 === 0x184d2a50;
}

/** The chunks of a stream. Unlike the stream's own iterator it returns what is buffered before it throws the stream's error. */
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
