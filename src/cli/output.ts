import { fstatSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { Writable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { CommandIo } from './command.ts';

type Output = CommandIo['stderr'];

/** Milliseconds that a slow reader of stdout or stderr has after a signal. */
const stopLimit = 1_000;
/** As shells report a program that SIGPIPE ended: its reader is gone, which needs no message. */
const readerGone = 128 + constants.signals.SIGPIPE;

/**
 * Runs a command with the streams of this process. Returns its exit code once all its output is written, however slow
 * the reader. A failed write makes the exit code non-zero.
 */
export async function runWithOutput(
  rest: Pick<CommandIo, 'environment' | 'stop'>,
  run: (io: CommandIo) => Promise<number>,
): Promise<number> {
  const outputs = { stdout: openOutput(process.stdout, 1), stderr: openOutput(process.stderr, 2) };
  const faults = new Map<string, Error>();
  for (const [name, output] of Object.entries(outputs)) {
    output.on('error', (error) => void (faults.has(name) || faults.set(name, error)));
  }
  const { stdout, stderr } = outputs;
  const tell = (line: string): void => void stderr.write(`${line}\n`);
  const answer = (line: string): void => void stdout.write(`${line}\n`);
  let code = await run({ ...rest, ...outputs, stdin: process.stdin, answer, tell });
  for (const [name, output] of Object.entries(outputs)) {
    const late = await flushed(output, rest.stop);
    // The event of a failed write comes in a later turn than its failure.
    await nextTurn();
    const fault = late ?? faults.get(name);
    if (fault === undefined) continue;
    const isReaderGone = 'code' in fault && fault.code === 'EPIPE';
    if (!isReaderGone) tell(`annals: ${name} cannot be written: ${fault.message}`);
    code ||= isReaderGone ? readerGone : 1;
  }
  return code;
}

/** Writes a text. Resolves once it is flushed, or with the error of the write. */
export async function written(output: Writable, text: string): Promise<Error | undefined> {
  return await new Promise((resolve) => {
    output.write(text, (error) => resolve(error ?? undefined));
  });
}

/** Resolves when all output is flushed, or with an error if the reader is still behind a second after a signal. */
async function flushed(output: Writable, stop: AbortSignal): Promise<Error | undefined> {
  // An empty write to a closed pipe fails too, although nothing was lost.
  if (output.writableLength === 0) return undefined;
  return await new Promise((resolve) => {
    let timer: NodeJS.Timeout | undefined;
    const onStop = (): void => {
      const late = new Error('the process was stopped before its reader had read everything');
      timer = setTimeout(() => resolve(late), stopLimit);
    };
    if (stop.aborted) onStop();
    else stop.addEventListener('abort', onStop, { once: true });
    void written(output, '').then((fault) => {
      clearTimeout(timer);
      stop.removeEventListener('abort', onStop);
      resolve(fault);
    });
  });
}

/** Node's own stream for a file mistakes a short write, as on a full disk, for a complete one. */
function openOutput(stream: Output, descriptor: number): Output {
  if (!fstatSync(descriptor).isFile()) return stream;
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      try {
        writeFileSync(descriptor, chunk);
        done();
      } catch (error) {
        done(error instanceof Error ? error : new Error(String(error)));
      }
    },
  });
}
