import { Worker } from 'node:worker_threads';
import { AnnalsError, type ErrorDetail } from '../errors.ts';
import type { SchemaReply, SchemaRequest } from './schema-worker.ts';

export interface SchemaChecker {
  /** Throws validation_violation if the text is not a usable JSON Schema 2020-12. */
  checkSchema(schema: string): Promise<void>;
  /** Throws validation_violation with a detail for each wrong field of the document. */
  checkDocument(schema: string, document: string): Promise<void>;
  /** Ends the thread. */
  close(): Promise<void>;
}

interface Task {
  readonly request: SchemaRequest;
  resolve(reply: SchemaReply | 'too slow'): void;
  reject(error: Error): void;
}

/** Maximum milliseconds of one check. In some schemas, each level of a document doubles the work. */
const timeLimit = 1_000;
/** A new thread needs this time to start before it can check anything. */
const startLimit = 10_000;
const maxWaiting = 1_000;

/**
 * Checks documents against the schemas that tenants write, one at a time in a separate thread. So a slow schema delays
 * another check for no longer than the limit, and it does not delay other work.
 */
export function createSchemaChecker(options: { timeLimit?: number } = {}): SchemaChecker {
  const limit = options.timeLimit ?? timeLimit;
  const waiting: Task[] = [];
  let worker: Worker | undefined;
  let current: Task | undefined;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  function start(): Worker {
    // The sources run both uncompiled and compiled. No import has this path, so the compiler does not rewrite it.
    const file = import.meta.url.endsWith('.ts') ? './schema-worker.ts' : './schema-worker.js';
    const started = new Worker(new URL(file, import.meta.url), {
      execArgv: [],
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: 256, stackSizeMb: 4 },
    });
    started.on('message', (reply: SchemaReply) => finish((task) => task.resolve(reply)));
    // Out of memory or out of stack: the schema caused this with the document. It is not a fault of the service.
    started.on('error', () => lose(started));
    started.on('exit', () => lose(started));
    return started;
  }

  function lose(lost: Worker): void {
    if (worker !== lost) return;
    worker = undefined;
    finish((task) => task.resolve('too slow'));
  }

  function finish(settle: (task: Task) => void): void {
    const done = current;
    current = undefined;
    clearTimeout(timer);
    if (done !== undefined) settle(done);
    next();
  }

  function next(): void {
    if (current !== undefined) return;
    current = waiting.shift();
    if (current === undefined) {
      worker?.unref();
      return;
    }
    const started = worker === undefined;
    worker ??= start();
    worker.ref();
    timer = setTimeout(
      () => {
        const slow = worker;
        if (slow === undefined) return;
        lose(slow);
        void slow.terminate();
      },
      started ? limit + startLimit : limit,
    );
    worker.postMessage(current.request);
  }

  async function ask(request: SchemaRequest): Promise<SchemaReply | 'too slow'> {
    if (closed || waiting.length >= maxWaiting) throw unavailable();
    return await new Promise((resolve, reject) => {
      waiting.push({ request, resolve, reject });
      next();
    });
  }

  return {
    async checkSchema(schema) {
      const reply = await ask({ schema, document: undefined });
      if (reply === 'too slow') throw invalidSchema([{ field: 'jsonSchema', message: 'takes too long to compile' }]);
      if ('fault' in reply) throw invalidSchema(reply.fault.map(withinSchema));
    },

    async checkDocument(schema, document) {
      const reply = await ask({ schema, document });
      if (reply === 'too slow') {
        throw invalidDocument([{ field: '', message: 'takes too long to check against the schema of its type' }]);
      }
      const details = 'fault' in reply ? reply.fault.map(withinSchema) : reply.details;
      if (details.length > 0) throw invalidDocument(details);
    },

    async close() {
      closed = true;
      for (const task of waiting.splice(0)) task.reject(unavailable());
      const last = worker;
      if (last !== undefined) {
        lose(last);
        await last.terminate();
      }
    },
  };
}

function withinSchema({ field, message }: ErrorDetail): ErrorDetail {
  return { field: field === '' ? 'jsonSchema' : `jsonSchema.${field}`, message };
}

function invalidSchema(details: readonly ErrorDetail[]): AnnalsError {
  return new AnnalsError('validation_violation', 'The jsonSchema is not valid.', { details });
}

function invalidDocument(details: readonly ErrorDetail[]): AnnalsError {
  return new AnnalsError('validation_violation', 'The instance does not satisfy the schema of its type.', { details });
}

function unavailable(): AnnalsError {
  return new AnnalsError('service_unavailable', 'Too many documents are being checked. Try again shortly.', {
    headers: { 'Retry-After': '1' },
  });
}
