import { isMainThread } from 'node:worker_threads';
import { type ErrorObject, str, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { LRUCache } from 'lru-cache';
import { RE2JS } from 're2js';
import type { ErrorDetail } from '../../core/errors.ts';
import { threaded } from '../../core/fairness/threads.ts';
import { canonicalJson } from '../../core/json/canonical.ts';

/** The errors of the document, or the faults of the schema. */
export type SchemaReply = { readonly details: readonly ErrorDetail[] } | { readonly fault: readonly ErrorDetail[] };

/** Max. reported errors. */
const maxDetails = 100;
const dialects = [undefined, 'https://json-schema.org/draft/2020-12/schema'];

/** By the text of the schema, which changes with its type's version. */
const compiled = new LRUCache<string, ValidateFunction>({
  max: 500,
  // Characters of schemas: a thread's memory is shared with other work.
  maxSize: 4 * 1024 * 1024,
  sizeCalculation: (_validate, schema) => schema.length,
});
const metaSchema = new Ajv2020({ strict: false, validateFormats: false, logger: false, allErrors: true });

class SchemaFault extends Error {
  readonly details: readonly ErrorDetail[];

  constructor(details: readonly ErrorDetail[]) {
    super('not a schema');
    this.details = details;
  }
}

/** Checks a schema, or a document against it. Both are JSON texts. */
export const checkWithSchema = threaded(
  import.meta.url,
  'checkWithSchema',
  (schema: string, document: string | undefined): SchemaReply => {
    try {
      const validate = compiled.get(schema) ?? compile(schema);
      if (document === undefined || validate(JSON.parse(document))) return { details: [] };
      return { details: detailsOf(validate.errors ?? []) };
    } catch (error) {
      if (error instanceof SchemaFault) return { fault: error.details };
      throw error;
    }
  },
);

// Ajv compiles its meta-schema with the first schema, which no check should wait for.
if (!isMainThread) checkWithSchema.here('{"type":"object"}', '{}');

function compile(text: string): ValidateFunction {
  const schema = JSON.parse(text);
  const { $schema: dialect } = schema;
  if (!dialects.includes(typeof dialect === 'string' ? dialect.replace(/#$/, '') : dialect)) {
    throw new SchemaFault([{ field: '$schema', message: `must be ${dialects[1]}` }]);
  }
  if (metaSchema.validateSchema(schema) !== true) throw new SchemaFault(detailsOf(metaSchema.errors ?? []));
  const validate = compileSafely(schema);
  compiled.set(text, validate);
  return validate;
}

/**
 * Each schema gets its own Ajv instance, so that it cannot see another's `$id`. Without meta-schemas or loading, a
 * `$ref` reaches only its own schema, the root by `#`.
 */
function compileSafely(schema: object | boolean): ValidateFunction {
  const ajv = new Ajv2020({
    allErrors: true,
    strict: false,
    // 1e400 is a valid JSON number, but not a finite double.
    strictNumbers: false,
    // In 2020-12, `format` is an annotation.
    validateFormats: false,
    validateSchema: false,
    meta: false,
    inlineRefs: false,
    // Excludes properties that every object inherits.
    ownProperties: true,
    logger: false,
    code: { regExp: Object.assign(linearPattern, { code: 'linearPattern' }) },
  });
  ajv.removeKeyword('uniqueItems');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    validate: hasUniqueItems,
    errors: false,
  });
  // Ajv divides doubles, in which 19.99 is not a multiple of 0.01.
  ajv.removeKeyword('multipleOf');
  ajv.addKeyword({
    keyword: 'multipleOf',
    type: 'number',
    schemaType: 'number',
    validate: isMultipleOf,
    errors: false,
    error: { message: ({ schemaCode }) => str`must be multiple of ${schemaCode}` },
  });
  try {
    const validate = ajv.compile(schema);
    if ('$async' in validate) throw new Error('$async is no keyword of JSON Schema 2020-12');
    return validate;
  } catch (error) {
    throw new SchemaFault([{ field: '', message: error instanceof Error ? error.message : 'it cannot be compiled' }]);
  }
}

/** Linear-time patterns (contract 9), run by the query language's engine. */
function linearPattern(pattern: string) {
  const expression = RE2JS.compile(RE2JS.translateRegExp(pattern));
  // Ajv tells patterns apart by this text.
  return { test: (text: string) => expression.test(text), toString: () => `/${pattern}/` };
}

/** Replaces Ajv's pairwise comparison, which is quadratic. */
function hasUniqueItems(mustBeUnique: boolean, items: readonly unknown[]): boolean {
  return !mustBeUnique || new Set(items.map(canonicalJson)).size === items.length;
}

/** One detail per wrong field: its first error. */
function detailsOf(errors: readonly ErrorObject[]): ErrorDetail[] {
  const details = new Map<string, string>();
  for (const error of errors) {
    const field = fieldOf(error);
    if (!details.has(field)) details.set(field, messageOf(error));
    if (details.size === maxDetails) break;
  }
  return [...details].map(([field, message]) => ({ field, message }));
}

/** The path of the field as in change entries; for a missing or an extra field, that field's path. */
function fieldOf({ instancePath, params }: ErrorObject): string {
  const keys = instancePath
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
  const named: unknown = params.missingProperty ?? params.additionalProperty ?? params.unevaluatedProperty;
  if (typeof named === 'string') keys.push(named);
  return keys.map((key) => key.replaceAll(/[\\.]/g, '\\$&')).join('.');
}

function messageOf({ keyword, message = 'is not valid' }: ErrorObject): string {
  if (keyword === 'required' || keyword === 'dependentRequired') return 'is required';
  if (keyword === 'additionalProperties' || keyword === 'unevaluatedProperties') return 'is not allowed';
  if (keyword === 'uniqueItems') return 'must have no equal items';
  return message;
}

/**
 * Whether a number is a multiple of `divisor`, above 0, in decimal arithmetic: 19.99 is a multiple of 0.01, although
 * the quotient of the doubles is 1998.9999999999998.
 */
function isMultipleOf(divisor: number, value: number): boolean {
  // 1e400 is valid JSON but not a finite double, so its divisibility is unknown. Only 0 is a multiple of it.
  if (!Number.isFinite(value)) return false;
  if (!Number.isFinite(divisor)) return value === 0;
  const dividend = decimalOf(value);
  const unit = decimalOf(divisor);
  const exponent = Math.min(dividend.exponent, unit.exponent);
  return scaled(dividend, exponent) % scaled(unit, exponent) === 0n;
}

/** `digits * 10 ** exponent`. */
interface Decimal {
  readonly digits: bigint;
  readonly exponent: number;
}

/** From the shortest text that identifies the double. */
function decimalOf(value: number): Decimal {
  const [mantissa = '', power = '0'] = value.toExponential().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  return { digits: BigInt(whole + fraction), exponent: Number(power) - fraction.length };
}

/** The digits in units of `10 ** exponent`. Exponents of doubles are within ±350, so the power is small. */
function scaled(decimal: Decimal, exponent: number): bigint {
  return decimal.digits * 10n ** BigInt(decimal.exponent - exponent);
}
