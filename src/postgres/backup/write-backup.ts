import { createHash } from 'node:crypto';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress } from 'node:zlib';
import pg from 'pg';
import { type CopyToStreamQuery, to as copyTo } from 'pg-copy-streams';
import { readIndexes, readSequences, type TableToBackUp, tablesToBackUp } from './backed-up-tables.ts';
import {
  authenticate,
  authenticationFile,
  type BackupBegin,
  type BackupManifest,
  backupFormat,
  beginFile,
  checksOfKeys,
  manifestFile,
} from './manifest.ts';
import { endOfArchive, headerOf, paddingOf } from './tar.ts';

interface WriteBackupOptions {
  secretKeys: readonly Uint8Array[];
  /** Milliseconds since 1970. */
  now: number;
  signal?: AbortSignal | undefined;
  /** Called with the bytes of the tables so far, before compression. */
  onProgress?: (bytes: number) => void;
  /** Maximum bytes of a file in the archive; default 4 MiB. */
  partBytes?: number;
}

/** A file's size precedes its content in an archive, so a table is split into files, each buffered in memory. */
const defaultPartBytes = 4 * 1024 * 1024;

/**
 * Writes a backup of one snapshot of the database, while others read and write: a tar archive, compressed with zstd, in
 * constant memory. The pool needs one connection. Ends the output only on failure.
 */
export async function writeBackup(
  pool: pg.Pool,
  output: Writable,
  { signal, ...options }: WriteBackupOptions,
): Promise<BackupManifest> {
  const client = await pool.connect();
  try {
    await client.query('begin isolation level repeatable read, read only');
    // The backup's reader may be slow.
    await client.query('set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0');
    const { promise: manifest, resolve } = Promise.withResolvers<BackupManifest>();
    const archive = Readable.from(archiveOf(client, options, resolve), { objectMode: false });
    const compress = createZstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 } });
    await pipeline(archive, compress, output, { end: false, ...(signal === undefined ? {} : { signal }) });
    await client.query('commit');
    client.release();
    return await manifest;
  } catch (error) {
    // In the middle of a COPY nothing else can be sent, so the connection is closed.
    client.release(true);
    throw error;
  }
}

async function* archiveOf(
  client: pg.ClientBase,
  { secretKeys, now, onProgress, partBytes = defaultPartBytes }: Omit<WriteBackupOptions, 'signal'>,
  finish: (manifest: BackupManifest) => void,
): AsyncGenerator<Buffer, void> {
  const tables = await tablesToBackUp(client);
  // Keeps migrations from changing a table before it is copied.
  const names = tables.map(({ name }) => pg.escapeIdentifier(name)).join(', ');
  await client.query(`lock table ${names} in access share mode`);
  const begin = { ...(await readBegin(client, now)), keys: checksOfKeys(secretKeys) };
  const described = tables.map(({ name, columns }) => ({ name, columns }));
  const beginText = jsonOf({ ...begin, tables: described });
  yield* fileOf(beginFile, beginText, now);
  const copies: TableCopy[] = [];
  let written = 0;
  for (const table of tables) {
    const copy = new TableCopy(client, table);
    copies.push(copy);
    let number = 0;
    for await (const part of copy.parts(partBytes)) {
      number += 1;
      yield* fileOf(`tables/${table.name}/${String(number).padStart(6, '0')}`, part, now);
      written += part.length;
      onProgress?.(written);
    }
  }
  const sequences = await readSequences(client, tables);
  const indexes = await readIndexes(
    client,
    tables.map(({ name }) => name),
  );
  const named = indexes.map(({ table, name, comment }) => ({ table, name, comment }));
  const manifest = { ...begin, tables: copies.map((copy) => copy.summary()), sequences, indexes: named };
  const text = jsonOf(manifest);
  yield* fileOf(manifestFile, text, now);
  const [firstKey] = secretKeys;
  if (firstKey === undefined) throw new RangeError('At least one secret key is needed.');
  yield* fileOf(
    authenticationFile,
    Buffer.from(`${authenticate(firstKey, { begin: beginText, manifest: text })}\n`),
    now,
  );
  yield endOfArchive();
  finish(manifest);
}

async function readBegin(client: pg.ClientBase, now: number): Promise<Omit<BackupBegin, 'keys' | 'tables'>> {
  const { rows } = await client.query<{ number: number; name: string }>(
    'select number, name from migration order by number',
  );
  return {
    format: backupFormat,
    schema: rows.at(-1)?.number ?? 0,
    migrations: rows.map(({ name }) => name),
    createdAt: new Date(now).toISOString(),
  };
}

/** The text of COPY of one table. */
class TableCopy {
  readonly #table: TableToBackUp;
  readonly #stream: CopyToStreamQuery;
  readonly #hash = createHash('sha256');
  #bytes = 0;

  constructor(client: pg.ClientBase, table: TableToBackUp) {
    const columns = table.columns.map((column) => pg.escapeIdentifier(column)).join(', ');
    const name = pg.escapeIdentifier(table.name);
    const source = table.partitioned ? `(select ${columns} from ${name})` : `${name} (${columns})`;
    this.#table = table;
    this.#stream = client.query(copyTo(`copy ${source} to stdout`));
  }

  async *parts(size: number): AsyncGenerator<Buffer, void> {
    let chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of this.#stream) {
      chunks.push(chunk);
      length += chunk.length;
      if (length < size) continue;
      yield this.#count(Buffer.concat(chunks));
      chunks = [];
      length = 0;
    }
    if (length > 0) yield this.#count(Buffer.concat(chunks));
  }

  #count(part: Buffer): Buffer {
    this.#hash.update(part);
    this.#bytes += part.length;
    return part;
  }

  /** Call it once, after a later statement of the connection: the number of rows follows the last byte. */
  summary() {
    const { name, columns } = this.#table;
    return { name, columns, rows: this.#stream.rowCount, bytes: this.#bytes, sha256: this.#hash.digest('hex') };
  }
}

function* fileOf(name: string, content: Buffer, at: number): Generator<Buffer, void> {
  yield headerOf(name, content.length, at);
  yield content;
  yield paddingOf(content.length);
}

function jsonOf(value: object): Buffer {
  return Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
}
