import { ThreadLost, threadFile } from '../../core/concurrency/thread.ts';
import { ThreadPool } from '../../core/concurrency/thread-pool.ts';
import { AnnalsError, type ErrorDetail } from '../../core/errors.ts';
import type { SchemaReply, SchemaRequest } from './schema-worker.ts';

export interface SchemaChecker {
  /** Throws validation_violation if the text is not a usable JSON Schema 2020-12. */
  checkSchema(schema: string): Promise<void>;
  /** Throws validation_violation with a detail for each wrong field of the document. */
  checkDocument(schema: string, document: string): Promise<void>;
  /** Ends the threads. */
  close(): Promise<void>;
}

/** Maximum milliseconds of one check. In some schemas, each level of a document doubles the work. */
export const maxSchemaCheck = 1_000;
/** One tenant has one of them. */
export const schemaThreads = 2;

/**
 * Checks documents against the schemas that tenants write, in separate threads. So a slow schema delays the check of
 * another tenant for no longer than the limit, and it does not delay other work.
 */
export function createSchemaChecker(options: { timeLimit?: number } = {}): SchemaChecker {
  const pool = new ThreadPool<SchemaRequest, SchemaReply>({
    file: threadFile(import.meta.url, 'schema-worker'),
    threads: schemaThreads,
    memory: 256,
    name: 'checks against schemas',
  });
  const limit = options.timeLimit ?? maxSchemaCheck;

  async function ask(request: SchemaRequest): Promise<SchemaReply | 'too slow'> {
    try {
      return await pool.ask(request, limit);
    } catch (error) {
      // Whatever ended the thread, the schema caused it with the document. It is not a fault of the service.
      if (error instanceof ThreadLost) return 'too slow';
      throw error;
    }
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
