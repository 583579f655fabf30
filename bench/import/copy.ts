import type pg from 'pg';

/** The driver's connection where COPY is concerned; its published types leave that out. */
interface CopyConnection {
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(reason: string): void;
}

/** What the driver tells whatever it was given to run, as far as COPY needs it. */
abstract class Copy {
  readonly done: Promise<void>;
  readonly #statement: string;
  readonly #settle: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(statement: string) {
    this.#statement = statement;
    this.done = this.#settle.promise;
  }

  submit(connection: unknown): void {
    (connection as CopyConnection).query(this.#statement);
  }

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.#settle.resolve();
  }

  handleError(error: Error): void {
    this.#settle.reject(error);
  }
}

class CopyOut extends Copy {
  readonly chunks: Buffer[] = [];

  handleCopyData({ chunk }: { chunk: Buffer }): void {
    this.chunks.push(Buffer.from(chunk));
  }
}

class CopyIn extends Copy {
  readonly #chunks: readonly Buffer[];

  constructor(statement: string, chunks: readonly Buffer[]) {
    super(statement);
    this.#chunks = chunks;
  }

  handleCopyInResponse(connection: CopyConnection): void {
    for (const chunk of this.#chunks) connection.sendCopyFromChunk(chunk);
    connection.endCopyFrom();
  }
}

const chunkBytes = 64 * 1024;

/** The rows of a statement as COPY writes them in binary, in chunks of a size that is good to send. */
export async function copyOut(client: pg.Client, select: string): Promise<Buffer[]> {
  const copy = client.query(new CopyOut(`copy (${select}) to stdout (format binary)`));
  await copy.done;
  const all = Buffer.concat(copy.chunks);
  return Array.from({ length: Math.ceil(all.length / chunkBytes) }, (_, index) =>
    all.subarray(index * chunkBytes, (index + 1) * chunkBytes),
  );
}

/** Copies such rows into a table. */
export async function copyIn(client: pg.Client, table: string, chunks: readonly Buffer[]): Promise<void> {
  await client.query(new CopyIn(`copy ${table} from stdin (format binary)`, chunks)).done;
}
