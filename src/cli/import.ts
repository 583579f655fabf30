import { open } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import type { RecordBatch } from '../recording/change.ts';
import type { ValueRules } from '../recording/mapping/mapping.ts';
import { type ImportCounts, ImportStoppedError, importChanges } from '../sources/import/import.ts';
import { ProgressLine } from './progress-line.ts';

export interface ImportCommand {
  tenant: string;
  /** A path, or `-` for stdin. */
  file: string;
  record: RecordBatch;
  /** What is masked and left out, by entity. */
  rules?: ReadonlyMap<string, ValueRules> | undefined;
  stdin: Readable;
  stdout: Writable;
  /** Shows progress if it is a terminal. */
  stderr: Writable & { isTTY?: boolean | undefined };
  signal?: AbortSignal | undefined;
}

/**
 * `annals import`: records the changes of a file. Prints their counts as one JSON object on stdout, and each rejected
 * line with its number and the reason on stderr. Returns the exit code: 1 if a line was rejected or anything failed.
 */
export async function runImport(command: ImportCommand): Promise<number> {
  const { tenant, record, rules, stdout, stderr, signal } = command;
  const progress = new ProgressLine(stderr);
  const tell = (text: string) => {
    progress.clear();
    stderr.write(`${text}\n`);
  };
  const input = await openInput(command);
  if (typeof input === 'string') {
    tell(`annals import: ${input}`);
    return 1;
  }
  try {
    const counts = await importChanges({
      source: input.source,
      record,
      rules,
      onRejected: (line, reason) => tell(`line ${line}: ${reason}`),
      onProgress: ({ read }) => progress.show(`into ${tenant}: ${read} lines read`, input.share()),
      ...(signal === undefined ? {} : { signal }),
    });
    progress.clear();
    stdout.write(`${answerOf(counts)}\n`);
    return counts.rejected === 0 ? 0 : 1;
  } catch (error) {
    if (!(error instanceof ImportStoppedError)) throw error;
    tell(`annals import: ${error.message}. What was recorded before stays; the same import can be run again.`);
    stdout.write(`${answerOf(error.counts)}\n`);
    return 1;
  } finally {
    progress.clear();
  }
}

interface Input {
  source: Readable;
  /** The part of the input that has been read, from 0 to 1; undefined if the size is unknown. */
  share(): number | undefined;
}

/** The input, or why it cannot be read. */
async function openInput({ file, stdin }: ImportCommand): Promise<Input | string> {
  if (file === '-') return { source: stdin, share: () => undefined };
  try {
    const handle = await open(file);
    const status = await handle.stat();
    if (status.isDirectory()) {
      await handle.close();
      return `${file} is a folder`;
    }
    const source = handle.createReadStream({ highWaterMark: 256 * 1024 });
    return { source, share: () => (status.size === 0 ? undefined : source.bytesRead / status.size) };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT') return `there is no file ${file}`;
    return `${file} cannot be opened: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function answerOf({ read, recorded, unchanged, duplicate, expired, rejected }: ImportCounts): string {
  return JSON.stringify({ read, recorded, unchanged, duplicate, expired, rejected });
}
