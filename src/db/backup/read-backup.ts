import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { createZstdDecompress } from 'node:zlib';
import { hasCode } from '../write-once.ts';
import { BackupError } from './backup-error.ts';
import {
  type BackupBegin,
  type BackupManifest,
  beginFile,
  manifestFile,
  noBackup,
  readBegin,
  readManifest,
} from './manifest.ts';
import { type ArchivedFile, readArchive } from './tar.ts';

/** A table of a backup as it is read. */
export interface TableOfBackup {
  readonly name: string;
  /** What COPY wrote, as text. To be read to its end. */
  readonly content: AsyncIterable<Buffer>;
}

/**
 * Reads a backup from its beginning to its end, once, and checks it meanwhile.
 *
 * @example
 * const reader = await BackupReader.open(createReadStream('annals.backup'));
 * for await (const { name, content } of reader.tables()) await store(name, content);
 * reader.manifest.tables; // checked
 */
export class BackupReader {
  readonly begin: BackupBegin;
  readonly #files: AsyncIterator<ArchivedFile>;
  readonly #read = new Map<string, { bytes: number; sha256: string }>();
  #manifest: BackupManifest | undefined;

  private constructor(begin: BackupBegin, files: AsyncIterator<ArchivedFile>) {
    this.begin = begin;
    this.#files = files;
  }

  /**
   * Reads the beginning. Throws a BackupError where it is not that of a backup that this version knows. The signal ends the
   * reading with its reason.
   */
  static async open(input: Readable, signal?: AbortSignal): Promise<BackupReader> {
    const files = readArchive(decompressed(input, signal));
    const first = await files.next();
    if (first.done || first.value.name !== beginFile) throw new BackupError(noBackup);
    return new BackupReader(readBegin(await contentOf(first.value)), files);
  }

  /** What the backup tells at its end: only after all tables were read, and equal what it tells. */
  get manifest(): BackupManifest {
    if (this.#manifest === undefined) throw new Error('the backup was not read to its end');
    return this.#manifest;
  }

  /** The tables, each to be read before the next one. Throws a BackupError where they are not as the manifest tells. */
  async *tables(): AsyncGenerator<TableOfBackup, void> {
    let file = await this.#next();
    while (file.name !== manifestFile) {
      const name = tableOf(file);
      if (this.#read.has(name)) throw new BackupError(noBackup);
      const table = this.#tableFrom(name, file);
      yield { name, content: table.content };
      file = await table.after();
    }
    this.#check(readManifest(await contentOf(file)));
    if (!(await this.#files.next()).done) throw new BackupError(noBackup);
  }

  /** The content of a table, from its first file to its last one, and the file that follows. */
  #tableFrom(name: string, first: ArchivedFile): { content: AsyncIterable<Buffer>; after(): Promise<ArchivedFile> } {
    const hash = createHash('sha256');
    let bytes = 0;
    let file = first;
    const next = () => this.#next();
    const content = (async function* (): AsyncGenerator<Buffer, void> {
      while (file.name.startsWith(`tables/${name}/`)) {
        for await (const chunk of file.content) {
          hash.update(chunk);
          bytes += chunk.length;
          yield chunk;
        }
        file = await next();
      }
    })();
    return {
      content,
      after: async () => {
        for await (const _rest of content);
        this.#read.set(name, { bytes, sha256: hash.digest('hex') });
        return file;
      },
    };
  }

  async #next(): Promise<ArchivedFile> {
    const { value, done } = await this.#files.next();
    if (done) throw new BackupError('The backup is not complete: it has no manifest.');
    return value;
  }

  #check(manifest: BackupManifest): void {
    const nothing = { bytes: 0, sha256: createHash('sha256').digest('hex') };
    for (const { name, bytes, sha256 } of manifest.tables) {
      const read = this.#read.get(name) ?? nothing;
      if (read.bytes !== bytes || read.sha256 !== sha256) {
        throw new BackupError(`The backup is damaged: its table ${name} is not as its manifest tells.`);
      }
    }
    const unknown = [...this.#read.keys()].find((name) => !manifest.tables.some((table) => table.name === name));
    if (unknown !== undefined) throw new BackupError(`The backup is damaged: its manifest has no table ${unknown}.`);
    this.#manifest = manifest;
  }
}

function tableOf({ name }: ArchivedFile): string {
  const [, table] = /^tables\/([^/]+)\/\d+$/.exec(name) ?? [];
  if (table === undefined) throw new BackupError(noBackup);
  return table;
}

async function contentOf(file: ArchivedFile): Promise<string> {
  return await text(Readable.from(file.content, { objectMode: false }));
}

/** Errors of the compression in words for operators; those of the input, a file that is missing for instance, as they are. */
async function* decompressed(input: Readable, signal?: AbortSignal): AsyncGenerator<Buffer, void> {
  const unpack = createZstdDecompress({ chunkSize: 256 * 1024 });
  const onAbort = () =>
    unpack.destroy(signal?.reason instanceof Error ? signal.reason : new Error(String(signal?.reason)));
  signal?.addEventListener('abort', onAbort, { once: true });
  // A pipe does not pass errors on.
  input.once('error', (error) => unpack.destroy(error));
  try {
    for await (const chunk of input.pipe(unpack)) yield chunk;
  } catch (error) {
    if (hasCode(error, 'Z_BUF_ERROR')) throw new BackupError('The backup is not complete: it ends too early.');
    const isOfZstd = error instanceof Error && 'code' in error && String(error.code).startsWith('ZSTD_');
    throw isOfZstd ? new BackupError(noBackup, { cause: error }) : error;
  } finally {
    signal?.removeEventListener('abort', onAbort);
    input.destroy();
  }
}
