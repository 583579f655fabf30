import { AnnalsError, type ErrorDetail } from '../../core/errors.ts';
import { ThreadLost } from '../../core/fairness/thread.ts';
import { type ThreadPool, threads } from '../../core/fairness/threads.ts';
import { checkWithSchema, type SchemaReply } from './json-schema.ts';

export interface SchemaChecker {
  /** Throws validation_violation unless the text is a valid JSON Schema 2020-12. */
  checkSchema(schema: string): Promise<void>;
  /** Throws validation_violation with a detail for each wrong field of the document. */
  checkDocument(schema: string, document: string): Promise<void>;
}

/** Max. milliseconds of a check. Some schemas double the work with each level of a document. */
export const maxSchemaCheck = 1_000;

/**
 * Checks documents against tenants' schemas in threads: a slow schema occupies one for at most the time limit, and
 * never the event loop.
 */
export function createSchemaChecker(pool: ThreadPool = threads, timeLimit = maxSchemaCheck): SchemaChecker {
  async function check(schema: string, document?: string): Promise<SchemaReply | 'too slow'> {
    try {
      return (await pool.call(checkWithSchema.callOf(schema, document), timeLimit)) as SchemaReply;
    } catch (error) {
      // The schema and the document ended the thread, not a fault of the service.
      if (error instanceof ThreadLost) return 'too slow';
      throw error;
    }
  }

  return {
    async checkSchema(schema) {
      const reply = await check(schema);
      if (reply === 'too slow') throw invalidSchema([{ field: 'jsonSchema', message: 'takes too long to compile' }]);
      if ('fault' in reply) throw invalidSchema(reply.fault.map(withinSchema));
    },

    async checkDocument(schema, document) {
      const reply = await check(schema, document);
      if (reply === 'too slow') {
        throw invalidDocument([{ field: '', message: 'takes too long to check against the schema of its type' }]);
      }
      const details = 'fault' in reply ? reply.fault.map(withinSchema) : reply.details;
      if (details.length > 0) throw invalidDocument(details);
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
