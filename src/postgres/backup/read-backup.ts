import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { createZstdDecompress } from 'node:zlib';
import { codeOf, hasCode, OperatorError } from '../../core/errors.ts';
import {
  authenticationFile,
  type BackupBegin,
  type BackupManifest,
  beginFile,
  checkKeys,
  isAuthentic,
  manifestFile,
  noBackup,
  readBegin,
  readManifest,
} from './manifest.ts';
import { type ArchivedFile, readArchive } from './tar.ts';

interface TableOfBackup {
  readonly name: string;
  /** The text of COPY. Read it to its end. */
  readonly content: AsyncIterable<Buffer>;
}

/**
 * Reads a backup once, from its beginning to its end, and verifies it.
 *
 * @example
 * const reader = await BackupReader.open(createReadStream('annals.backup'));
 * reader.useKeys(secretKeys);
 * for await (const { name, content } of reader.tables()) await store(name, content);
 * reader.manifest.tables; // checked
 */
export class BackupReader {
  readonly begin: BackupBegin;
  readonly #files: AsyncIterator<ArchivedFile>;
  readonly #read = new Map<string, { bytes: number; sha256: string }>();
  readonly #beginText: Buffer;
  #keys: readonly Uint8Array[] | undefined;
  #manifest: BackupManifest | undefined;

  private constructor(beginText: Buffer, files: AsyncIterator<ArchivedFile>) {
    this.begin = readBegin(beginText.toString('utf8'));
    this.#beginText = beginText;
    this.#files = files;
  }

  /** Reads the beginning. Throws an OperatorError for an unknown format. The signal ends the read with its reason. */
  static async open(input: Readable, { signal }: { signal?: AbortSignal | undefined } = {}): Promise<BackupReader> {
    const files = readArchive(decompressed(input, signal));
    const first = await files.next();
    if (first.done || first.value.name !== beginFile) throw new OperatorError(noBackup);
    return new BackupReader(await contentOf(first.value), files);
  }

  /**
   * Sets the keys that authenticate the backup, before its tables are read. Throws an OperatorError if they do not fit.
   * Returns the number of the backup's other keys that are missing.
   */
  useKeys(secretKeys: readonly Uint8Array[]): number {
    const missing = checkKeys(this.begin, secretKeys);
    this.#keys = secretKeys;
    return missing;
  }

  /** The manifest, once all tables are read and verified. */
  get manifest(): BackupManifest {
    if (this.#manifest === undefined) throw new Error('the backup was not read to its end');
    return this.#manifest;
  }

  /**
   * The tables, each to be read before the next one. Throws an OperatorError at the end if they do not match the
   * manifest, or if no key authenticates the backup.
   */
  async *tables(): AsyncGenerator<TableOfBackup, void> {
    let file = await this.#next();
    while (file.name !== manifestFile) {
      const name = tableOf(file);
      if (this.#read.has(name)) throw new OperatorError(noBackup);
      const table = this.#tableFrom(name, file);
      yield { name, content: table.content };
      file = await table.after();
    }
    const manifest = await contentOf(file);
    await this.#authenticate(manifest);
    this.#check(readManifest(manifest.toString('utf8')));
    if (!(await this.#files.next()).done) throw new OperatorError(noBackup);
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
    if (done) throw new OperatorError('The backup is not complete: it has no manifest.');
    return value;
  }

  async #authenticate(manifest: Buffer): Promise<void> {
    if (this.#keys === undefined) throw new Error('the keys of the backup were not given');
    const { value, done } = await this.#files.next();
    if (done || value.name !== authenticationFile) throw new OperatorError(changed);
    const code = (await contentOf(value)).toString('utf8').trim();
    if (!isAuthentic(this.#keys, { begin: this.#beginText, manifest }, code)) throw new OperatorError(changed);
  }

  #check(manifest: BackupManifest): void {
    const nothing = { bytes: 0, sha256: createHash('sha256').digest('hex') };
    for (const { name, bytes, sha256 } of manifest.tables) {
      const read = this.#read.get(name) ?? nothing;
      if (read.bytes !== bytes || read.sha256 !== sha256) {
        throw new OperatorError(`The backup is damaged: its table ${name} does not match its manifest.`);
      }
    }
    const unknown = [...this.#read.keys()].find((name) => !manifest.tables.some((table) => table.name === name));
    if (unknown !== undefined) throw new OperatorError(`The backup is damaged: its manifest has no table ${unknown}.`);
    this.#manifest = manifest;
  }
}

function tableOf({ name }: ArchivedFile): string {
  const [, table] = /^tables\/([^/]+)\/\d+$/.exec(name) ?? [];
  if (table === undefined) throw new OperatorError(noBackup);
  return table;
}

const changed =
  'The backup was altered: none of the secret keys authenticates it. Use another copy, or the key that it was made with.';

/** Bytes. Descriptions of a backup have some 20 kB. */
export const maxDescription = 4 * 1024 * 1024;

async function contentOf(file: ArchivedFile): Promise<Buffer> {
  if (file.size > maxDescription) throw new OperatorError(noBackup);
  return await buffer(Readable.from(file.content, { objectMode: false }));
}

/** Words errors of the compression for operators; those of the input, for example a missing file, stay. */
async function* decompressed(input: Readable, signal?: AbortSignal): AsyncGenerator<Buffer, void> {
  const unpack = createZstdDecompress({ chunkSize: 256 * 1024 });
  const onAbort = () =>
    unpack.destroy(signal?.reason instanceof Error ? signal.reason : new Error(String(signal?.reason)));
  signal?.addEventListener('abort', onAbort, { once: true });
  // Pipes do not propagate errors.
  input.once('error', (error) => unpack.destroy(error));
  let read = 0;
  input.on('data', (chunk: Uint8Array) => {
    read += chunk.length;
  });
  try {
    for await (const chunk of input.pipe(unpack)) yield chunk;
    // Bytes after the last frame are not unpacked.
    if (unpack.bytesWritten !== read) throw new OperatorError('The backup was altered: something follows its end.');
  } catch (error) {
    if (hasCode(error, 'Z_BUF_ERROR')) throw new OperatorError('The backup is not complete: it ends too early.');
    const isOfZstd = codeOf(error)?.startsWith('ZSTD_');
    throw isOfZstd ? new OperatorError(noBackup, { cause: error }) : error;
  } finally {
    signal?.removeEventListener('abort', onAbort);
    input.destroy();
  }
}
