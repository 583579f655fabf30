import type { Readable } from 'node:stream';

/** Characters. Longer lines are passed on in parts. */
const maxLine = 1024 * 1024;

/** `write` returns false when the sink is full until its next `drain`. */
export interface LineSink {
  write(text: string): boolean;
  once(event: 'drain', listener: () => void): unknown;
}

/**
 * Passes on the output of a process in whole lines, so that lines of several processes do not mix. Resolves when the
 * process closes the stream.
 */
export async function passOnLines(source: Readable, sink: LineSink): Promise<void> {
  let rest = '';
  source.setEncoding('utf8').on('data', (chunk: string) => {
    const text = rest + chunk;
    const isTooLong = text.length - (text.lastIndexOf('\n') + 1) >= maxLine;
    const end = isTooLong ? text.length : text.lastIndexOf('\n') + 1;
    rest = text.slice(end);
    if (end === 0 || sink.write(text.slice(0, end))) return;
    source.pause();
    sink.once('drain', () => source.resume());
  });
  await new Promise<void>((resolve) => {
    source.once('close', resolve);
    source.on('error', () => {});
  });
  // A killed process may have written half of its last line.
  if (rest !== '') sink.write(`${rest}\n`);
}
