import { type CursorPage, type FieldsParameters, type ListParameters, listWalk } from '../pages/cursor-page.ts';
import type { Walk } from '../pages/walk.ts';
import type { ChangeEntry, Job, JobItem, NewExport } from '../schemas.ts';
import { linesOf } from '../streams/lines.ts';
import { parseAnswer, plainAnswers } from '../transport/answer-json.ts';
import { ApiError } from '../transport/api-error.ts';
import { type CallOptions, jsonBody, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';
import { sleep } from '../transport/waiting.ts';

export interface ExportParameters extends Omit<NewExport, 'type' | 'q'> {
  /** A query of the change history. Without an `occurredAt` from-bound: the 30 days before this call. */
  readonly q?: string | { toString(): string } | undefined;
}

export interface WaitOptions extends CallOptions {
  /** Milliseconds until the wait is given up; left out: no limit but the signal. The job goes on. */
  readonly limit?: number | undefined;
}

/** The file of an export. */
export interface ExportFile {
  /** `application/x-ndjson` or `text/csv`. */
  readonly contentType: string;
  readonly bytes: number;
  /** Comes as fast as it is read. A file that breaks off is an ApiError of its reader. */
  readonly body: ReadableStream<Uint8Array>;
}

/** Work that outlives its request: chats, and exports of the change history. */
export class Jobs {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#path = path`/ai-service/${tenant}/jobs`;
  }

  list(parameters?: ListParameters, options?: CallOptions): Walk<Job, CursorPage<Job>>;
  list(parameters: FieldsParameters, options?: CallOptions): Walk<JobItem, CursorPage<JobItem>>;
  list(
    parameters: ListParameters | FieldsParameters = {},
    options?: CallOptions,
  ): Walk<Job | JobItem, CursorPage<Job | JobItem>> {
    const read = plainAnswers<Job | JobItem>().many;
    return listWalk({ transport: this.#transport, path: this.#path, options, read }, parameters);
  }

  async get(id: string, options?: CallOptions): Promise<Job> {
    return await this.#transport.fetchJson({ method: 'GET', path: this.#of(id) }, options);
  }

  /** Deletes a job with its file. One that runs stops. */
  async delete(id: string, options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'DELETE', path: this.#of(id) }, options);
  }

  /** Starts an export of the change history. */
  async export({ q, ...rest }: ExportParameters, options?: CallOptions): Promise<{ jobId: string }> {
    const body = jsonBody({ type: 'EXPORT', q: q === undefined ? undefined : String(q), ...rest });
    return await this.#transport.fetchJson({ method: 'POST', path: this.#path, body }, options);
  }

  /**
   * Waits until a job has ended, and asks less and less often. A job that failed is an ApiError with its `type`; one
   * that was skipped is returned.
   *
   * @example
   * const { jobId } = await annals.jobs.export({ q: 'entity:order', format: 'NDJSON' });
   * await annals.jobs.wait(jobId, { limit: 60_000 });
   * for await (const entry of annals.jobs.entries(jobId)) …
   */
  async wait(id: string, { limit, ...options }: WaitOptions = {}): Promise<Job> {
    const until = limit === undefined ? Number.POSITIVE_INFINITY : Date.now() + limit;
    for (let pause = minPause; ; pause = Math.min(pause * 1.5, maxPause)) {
      const job = await this.get(id, options);
      if (job.status === 'failure') throw errorOfJob(job);
      if (job.status !== 'in_progress') return job;
      const left = until - Date.now();
      if (left <= 0) throw new ApiError('timeout', `The job ${id} has not ended within ${limit} ms.`);
      await sleep(Math.min(left, pause * (0.75 + Math.random() / 4)), options.signal);
    }
  }

  /** The file of an export that has succeeded, as a stream. */
  async content(id: string, options?: CallOptions): Promise<ExportFile> {
    const { headers, body } = await this.#transport.stream(
      { method: 'GET', path: `${this.#of(id)}/content`, headers: { accept: '*/*' } },
      options,
    );
    // A compressed answer does not tell the length of the file.
    const length = headers.get('content-length');
    const isToldByJob = length === null || headers.has('content-encoding');
    const bytes = isToldByJob ? await this.#bytesOf(id, body, options) : Number(length);
    return { contentType: headers.get('content-type') ?? '', bytes, body };
  }

  /** The bytes of an export's file. Cancels the download where the job cannot be read. */
  async #bytesOf(id: string, body: ReadableStream, options: CallOptions | undefined): Promise<number> {
    try {
      return (await this.get(id, options)).metadata.bytes ?? 0;
    } catch (error) {
      await body.cancel();
      throw error;
    }
  }

  /** The entries of an export in the format NDJSON, one at a time, however many there are. */
  async *entries(id: string, options?: CallOptions): AsyncGenerator<ChangeEntry, void, undefined> {
    const { body } = await this.content(id, options);
    for await (const line of linesOf(body)) yield parseAnswer(line) as ChangeEntry;
  }

  #of(id: string): string {
    return `${this.#path}${path`/${id}`}`;
  }
}

/** Milliseconds between two looks at a job. */
const minPause = 200;
const maxPause = 5_000;

function errorOfJob({ metadata, requestId }: Job): ApiError {
  const { type = 'unknown', message = 'The job has failed.' } = metadata.error ?? {};
  return new ApiError(type, message, { requestId });
}
