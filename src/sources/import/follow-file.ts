import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { OperatorError } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Connection, Database, DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { identityOfPosition } from '../../recording/identity.ts';
import { type Line, LineSplitter } from '../../recording/lines.ts';
import type { ValueRules } from '../../recording/mapping/mapping.ts';
import { maxRetries, recordChanges } from '../../recording/record-change.ts';
import { DamagedFileError, type FilePosition, FollowedFile, findLeft, nextRotated } from './followed-file.ts';
import { type ImportCounts, LineBatch } from './line-batch.ts';

interface FollowOptions {
  db: Database;
  tenant: string;
  /** Absolute. */
  path: string;
  rules: ReadonlyMap<string, ValueRules> | undefined;
  /** Continue despite missing bytes. */
  acceptGap: boolean;
  /** Recognizes erased lines. Default: none were erased. */
  sealer?: Sealer | undefined;
  /** Milliseconds since 1970. */
  now: () => number;
  /** When it aborts, what was read is recorded first. */
  signal: AbortSignal;
  /** `end`: the offset after the line. */
  onRejected: (end: number, reason: string) => void;
  onEvent: (what: string) => void;
  /** Called when everything read is recorded. */
  onIdle?: (counts: Readonly<ImportCounts>) => Promise<void>;
}

/** Milliseconds between polls. */
const pollInterval = 250;
const chunkBytes = 256 * 1024;

/**
 * Records the lines of a file as it grows and is rotated, until the signal. The position is stored in the recording
 * transaction, so each line is recorded exactly once, even after a kill. A line without an `id` is identified by its
 * offset. An incomplete last line waits. Throws an OperatorError if another process follows the file, or the next file
 * is missing or damaged.
 */
export async function followFile(options: FollowOptions): Promise<ImportCounts> {
  const follower = new Follower(options);
  try {
    await follower.run();
    return follower.lines.counts;
  } catch (error) {
    if (!(error instanceof DamagedFileError)) throw error;
    throw new OperatorError(
      `gap: a compressed file of ${options.path} is damaged: ${error.message}. Put a whole one in its place`,
    );
  } finally {
    await follower.close();
  }
}

class Follower {
  readonly lines: LineBatch;
  readonly #options: FollowOptions;
  readonly #buffer = Buffer.alloc(chunkBytes);
  #stored: FilePosition | undefined;
  #file: FollowedFile | undefined;
  #head: { head: string; headBytes: number } | undefined;
  #splitter = new LineSplitter();
  /** The offset at which the splitter started, and that up to which the file was read. */
  #start = 0;
  #read = 0;
  /** The end of the last line taken. */
  #end = 0;

  constructor(options: FollowOptions) {
    this.#options = options;
    this.lines = new LineBatch(options.rules, options.onRejected);
  }

  async run(): Promise<void> {
    const { db, tenant, path, signal, onIdle } = this.#options;
    this.#stored = await findPosition(db, tenant, path);
    await this.#openFirst();
    while (!signal.aborted) {
      const isMore = this.#file !== undefined && (await this.#readMore(this.#file));
      if (isMore) continue;
      await this.#flush();
      await onIdle?.(this.lines.counts);
      if (!(await this.#switchFile())) await sleep(pollInterval, undefined, { signal }).catch(() => {});
    }
    await this.#flush();
  }

  async close(): Promise<void> {
    this.lines.close();
    await this.#file?.close();
  }

  /** Opens the file at its position, even if it was renamed. */
  async #openFirst(): Promise<void> {
    const { path, acceptGap, onEvent } = this.#options;
    const stored = this.#stored;
    const file = await FollowedFile.open(path);
    if (stored === undefined) {
      this.#use(file, 0);
      return;
    }
    if (file !== undefined && (await file.isOf(stored))) {
      this.#use(file, stored.recorded, stored);
      return;
    }
    const left = await findLeft(path, stored);
    if (left !== undefined) {
      await file?.close();
      this.#use(left, stored.recorded, stored);
      return;
    }
    const missing =
      `${path} is not the file that was followed before, or was cut, and that one is not beside it. What it had after byte ` +
      `${stored.recorded}, and files between the two, are missing`;
    if (!acceptGap) {
      await file?.close();
      throw new OperatorError(`gap: ${missing}. Put it back, or go on with --accept-gap`);
    }
    onEvent(missing);
    this.#use(file, 0);
  }

  #use(file: FollowedFile | undefined, from: number, head?: { head: string; headBytes: number }): void {
    this.#file = file;
    this.#head = head;
    this.#splitter = new LineSplitter();
    this.#start = from;
    this.#read = from;
    this.#end = from;
  }

  /** Returns whether anything was read. */
  async #readMore(file: FollowedFile): Promise<boolean> {
    const chunk = await file.read(this.#buffer, this.#read);
    if (chunk.length === 0) return false;
    this.#read += chunk.length;
    // The splitter buffers an incomplete line.
    for (const line of this.#splitter.split(Buffer.from(chunk))) {
      this.#head ??= await file.head();
      this.#take(file, line);
      if (this.lines.isFull) await this.#flush();
    }
    return true;
  }

  #take(file: FollowedFile, { bytes, end: endOfSplit }: Line): void {
    const end = this.#start + endOfSplit;
    this.#end = end;
    const line = this.lines.take(bytes, end);
    if (line?.hasId !== false) return;
    line.change.identity = identityOfPosition(`${file.device} ${file.inode} ${this.#head?.head}`, end);
  }

  /** Records the lines and the position in one transaction. */
  async #flush(): Promise<void> {
    const { db, sealer, tenant, path, now } = this.#options;
    const file = this.#file;
    const { headBytes = 0, head = '' } = this.#head ?? {};
    if (file === undefined || this.#head === undefined) return;
    const to: FilePosition = { device: file.device, inode: file.inode, head, headBytes, recorded: this.#end };
    const from = this.#stored;
    const isSame = from?.recorded === to.recorded && from.inode === to.inode && from.head === head;
    if (isSame && this.lines.isEmpty) return;
    const { changes, settle } = this.lines.next();
    const outcomes = await inTransaction(
      db,
      async (transaction) => {
        if (!(await movePosition(transaction, tenant, path, { from, to })))
          throw new OperatorError(`another process follows this file for this tenant: ${path}`);
        return await recordChanges(transaction, tenant, changes, now(), { way: 'import' }, sealer);
      },
      { retries: maxRetries },
    );
    settle(outcomes);
    this.#stored = to;
  }

  /** Switches to the next file if the open one was renamed or truncated. Returns whether there is more to read. */
  async #switchFile(): Promise<boolean> {
    const { path, onEvent } = this.#options;
    const named = await FollowedFile.open(path);
    const file = this.#file;
    if (file === undefined) {
      this.#use(named, 0);
      return named !== undefined;
    }
    const isSame = named?.inode === file.node.inode && named.device === file.node.device;
    if (isSame || named === undefined) {
      await named?.close();
      return await this.#restartIfTruncated(file);
    }
    // Its writer may have written after the last read.
    if ((await file.size()) > this.#read) {
      await named.close();
      return true;
    }
    if (this.#read > this.#end)
      onEvent(`a file of ${path} ended with half a line of ${this.#read - this.#end} bytes, which is not recorded`);
    const next = await nextRotated(path, { node: file.node, writtenAt: await file.writtenAt() });
    await file.close();
    if (next !== undefined) await named.close();
    this.#use(next ?? named, 0);
    return true;
  }

  async #restartIfTruncated(file: FollowedFile): Promise<boolean> {
    const { path, onEvent } = this.#options;
    const size = await file.size();
    const { device, inode } = file;
    const isOther = this.#head !== undefined && !(await file.isOf({ ...this.#head, device, inode, recorded: 0 }));
    if (size >= this.#read && !isOther) return false;
    const copy = this.#head && (await findLeft(path, { ...this.#head, device, inode, recorded: this.#end }));
    if (copy !== undefined) {
      await file.close();
      this.#use(copy, this.#end, this.#head);
      return true;
    }
    onEvent(
      `${path} was cut (copytruncate): what came after byte ${this.#end} before that is lost; it is read from its beginning`,
    );
    this.#use(file, 0);
    return size > 0;
  }
}

async function findPosition(db: Connection, tenant: string, path: string): Promise<FilePosition | undefined> {
  const { rows } = await sql<FilePosition>`
    select device, inode, head, head_bytes as "headBytes", recorded from followed_file
      where tenant = ${tenant} and path = ${path}`.execute(db);
  return rows[0];
}

/** Returns false if the stored position is not `from`: another process follows the file. */
async function movePosition(
  transaction: DatabaseTransaction,
  tenant: string,
  path: string,
  { from, to }: { from: FilePosition | undefined; to: FilePosition },
): Promise<boolean> {
  const { device, inode, head, headBytes, recorded } = to;
  const statement =
    from === undefined
      ? sql`insert into followed_file (tenant, path, device, inode, head, head_bytes, recorded)
          values (${tenant}, ${path}, ${device}, ${inode}, ${head}, ${headBytes}, ${recorded}) on conflict do nothing`
      : sql`update followed_file set device = ${device}, inode = ${inode}, head = ${head}, head_bytes = ${headBytes},
                                    recorded = ${recorded}
          where tenant = ${tenant} and path = ${path} and device = ${from.device} and inode = ${from.inode}
            and head = ${from.head} and recorded = ${from.recorded}`;
  return (await statement.execute(transaction)).numAffectedRows === 1n;
}
