import type { FastifySchemaCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import { compiledOnce } from '../core/compiled-once.ts';
import { AnnalsError, type ErrorDetail, maxDetails } from '../core/errors.ts';
import { TimeSlice } from '../core/fairness/time-slice.ts';
import { checkedBody } from './body-members.ts';
import { isLargeBody } from './json-body.ts';
import { compileQueryReader } from './query-parameters.ts';
import { compileFaultFinder, type Faults } from './schema-faults.ts';

type Validate = ReturnType<FastifySchemaCompiler<TSchema>>;

/** By schema and part, because many routes share schemas. */
const compiled = new WeakMap<TSchema, Map<string, Validate>>();

/** One schema is validator, static type and documentation. Input is never coerced or stripped. */
export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart = '' }) => {
  const ofSchema = compiled.getOrInsertComputed(schema, () => new Map<string, Validate>());
  return ofSchema.getOrInsertComputed(httpPart, () => compile(schema, httpPart));
};

function compile(described: TSchema, httpPart: string): Validate {
  if (httpPart === 'querystring') return compileQueryReader(described);
  const schema = httpPart === 'body' ? checkedBody(described) : described;
  const check = compiledOnce(schema);
  const faultsOf = compileFaultFinder(schema);
  const part = httpPart === 'body' ? 'request body' : httpPart === 'params' ? 'path' : 'request header';
  return (value: unknown) => {
    // Fastify's types require this mark on a promise.
    if (isLargeBody(value)) return Object.assign(validateInSlices(part, faultsOf(value)), safePromise);
    if (check().Check(value)) return { value };
    return { error: refusal(part, firstOf(faultsOf(value))) };
  };
}

const safePromise = { __linterBrands: 'SafePromiseLike' } as const;

function refusal(part: string, details: readonly ErrorDetail[]): AnnalsError {
  return new AnnalsError('validation_violation', `The ${part} is not valid.`, { details });
}

async function validateInSlices(part: string, faults: Faults): Promise<void> {
  const slice = new TimeSlice();
  const details: ErrorDetail[] = [];
  for (const fault of faults) {
    if (fault !== undefined) details.push(fault);
    if (details.length === maxDetails) break;
    if (slice.isDue) await slice.rest();
  }
  if (details.length > 0) throw refusal(part, details);
}

/** The first faults; the search stops there. */
function firstOf(faults: Faults): ErrorDetail[] {
  return faults
    .filter((fault) => fault !== undefined)
    .take(maxDetails)
    .toArray();
}
