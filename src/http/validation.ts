import type { FastifySchemaCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { AnnalsError, type ErrorDetail } from '../errors.ts';
import { compileQueryReader } from './query-parameters.ts';

/** Enough to mend a request by, and few enough that a hostile body does not buy itself a long answer. */
const mostDetails = 10;

/** One schema is validator, static type and documentation; nothing that a client sent is coerced or removed. */
export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  if (httpPart === 'querystring') return compileQueryReader(schema);
  const check = Compile(schema);
  const part = httpPart === 'body' ? 'request body' : httpPart === 'params' ? 'path' : 'request header';
  return (value: unknown) => {
    if (check.Check(value)) return { value };
    const details: ErrorDetail[] = check
      .Errors(value)
      .slice(0, mostDetails)
      .map(({ instancePath, message }) => ({ field: fieldOf(instancePath), message }));
    return { error: new AnnalsError('validation_violation', `The ${part} is not valid.`, { details }) };
  };
};

/** `/messages/0/role` is written `messages.0.role`, as in the paths of change entries. */
function fieldOf(jsonPointer: string): string {
  return jsonPointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
    .join('.');
}
