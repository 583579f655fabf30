import { ThreadLost, threadFile } from '../../core/concurrency/thread.ts';
import { ThreadPool } from '../../core/concurrency/thread-pool.ts';
import { AnnalsError, type ErrorDetail } from '../../core/errors.ts';
import type { SchemaReply, SchemaRequest } from './schema-worker.ts';

export interface SchemaChecker {
  /** Throws validation_violation unless the text is a valid JSON Schema 2020-12. */
  checkSchema(schema: string): Promise<void>;
  /** Throws validation_violation with a detail for each wrong field of the document. */
  checkDocument(schema: string, document: string): Promise<void>;
  /** Ends the threads. */
  close(): Promise<void>;
}

/** Max. milliseconds of a check. Some schemas double the work with each level of a document. */
export const maxSchemaCheck = 1_000;
/** At most one per tenant. */
export const schemaThreads = 2;

/**
 * Checks documents against tenants' schemas in separate threads, so that a slow schema delays other tenants' checks by
 * at most the time limit, and other work not at all.
 */
export function createSchemaChecker(options: { timeLimit?: number } = {}): SchemaChecker {
  const pool = new ThreadPool<SchemaRequest, SchemaReply>({
    file: threadFile(import.meta.url, 'schema-worker'),
    threads: schemaThreads,
    memory: 256,
    name: 'checks against schemas',
  });
  const limit = options.timeLimit ?? maxSchemaCheck;

  async function check(request: SchemaRequest): Promise<SchemaReply | 'too slow'> {
    try {
      return await pool.ask(request, limit);
    } catch (error) {
      // The schema and the document ended the thread, not a fault of the service.
      if (error instanceof ThreadLost) return 'too slow';
      throw error;
    }
  }

  return {
    async checkSchema(schema) {
      const reply = await check({ schema, document: undefined });
      if (reply === 'too slow') throw invalidSchema([{ field: 'jsonSchema', message: 'takes too long to compile' }]);
      if ('fault' in reply) throw invalidSchema(reply.fault.map(withinSchema));
    },

    async checkDocument(schema, document) {
      const reply = await check({ schema, document });
      if (reply === 'too slow') {
        throw invalidDocument([{ field: '', message: 'takes too long to check against the schema of its type' }]);
      }
      const details = 'fault' in reply ? reply.fault.map(withinSchema) : reply.details;
      if (details.length > 0) throw invalidDocument(details);
    },

    close: () => pool.close(),
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
