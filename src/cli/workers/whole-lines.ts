import type { Readable } from 'node:stream';

/** Bytes that wait for the end of their line. A longer line is passed on in parts. */
const maxLine = 1024 * 1024;
const lineFeed = 0x0a;

/** What takes lines; `write` returns false when it wants no more until its next `drain`. */
export interface LineSink {
  write(text: string): boolean;
  once(event: 'drain', listener: () => void): unknown;
}

/**
 * Passes on what a process writes, in whole lines, so that lines of several processes do not mix. Resolves when the process
 * has closed the stream.
 */
export async function passOnLines(source: Readable, sink: LineSink): Promise<void> {
  const pieces: Buffer[] = [];
  let size = 0;

  function passOn(text: string): void {
    if (text === '' || sink.write(text)) return;
    source.pause();
    sink.once('drain', () => source.resume());
  }

  function take(): string {
    const text = Buffer.concat(pieces).toString('utf8');
    pieces.length = 0;
    size = 0;
    return text;
  }

  function keep(piece: Buffer): void {
    pieces.push(piece);
    size += piece.length;
  }

  source.on('data', (chunk: Buffer) => {
    const end = chunk.lastIndexOf(lineFeed) + 1;
    if (end > 0) {
      keep(chunk.subarray(0, end));
      passOn(take());
    }
    if (end < chunk.length) keep(chunk.subarray(end));
    if (size >= maxLine) passOn(take());
  });
  await new Promise<void>((resolve) => {
    source.once('close', resolve);
    source.on('error', () => {});
  });
  // A process that was killed may have written half of its last line.
  if (size > 0) passOn(`${take()}\n`);
}
