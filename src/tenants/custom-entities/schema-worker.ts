import { type ErrorObject, str, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { RE2JS } from 're2js';
import { answerRequests } from '../../core/concurrency/thread-worker.ts';
import type { ErrorDetail } from '../../core/errors.ts';
import { canonicalJson } from '../../core/json/canonical.ts';

/** A schema to check, or a document to check against it; both are JSON texts. */
export interface SchemaRequest {
  readonly schema: string;
  readonly document: string | undefined;
}

/** The errors of the document, or why the schema is not valid. */
export type SchemaReply = { readonly details: readonly ErrorDetail[] } | { readonly fault: readonly ErrorDetail[] };

/** Maximum number of errors: enough to correct a document. */
const maxDetails = 100;
const maxCompiledSchemas = 500;
const dialects = [undefined, 'https://json-schema.org/draft/2020-12/schema'];

/** The key is the text of the schema, which changes with the version of its type. */
const compiled = new Map<string, ValidateFunction>();
const metaSchema = new Ajv2020({ strict: false, validateFormats: false, logger: false, allErrors: true });

class SchemaFault extends Error {
  readonly details: readonly ErrorDetail[];

  constructor(details: readonly ErrorDetail[]) {
    super('not a schema');
    this.details = details;
  }
}

// The first schema takes long: Ajv compiles its meta-schema. The time of a check does not include that.
answer({ schema: '{"type":"object"}', document: '{}' });
answerRequests(answer);

function answer({ schema, document }: SchemaRequest): SchemaReply {
  try {
    const validate = compiled.get(schema) ?? compile(schema);
    if (document === undefined || validate(JSON.parse(document))) return { details: [] };
    return { details: detailsOf(validate.errors ?? []) };
  } catch (error) {
    if (error instanceof SchemaFault) return { fault: error.details };
    throw error;
  }
}

function compile(text: string): ValidateFunction {
  const schema = JSON.parse(text);
  if (!dialects.includes(schema.$schema?.replace?.(/#$/, ''))) {
    throw new SchemaFault([{ field: '$schema', message: `must be ${dialects[1]}` }]);
  }
  if (metaSchema.validateSchema(schema) !== true) throw new SchemaFault(detailsOf(metaSchema.errors ?? []));
  const validate = compileSafely(schema);
  if (compiled.size >= maxCompiledSchemas) compiled.delete(compiled.keys().next().value ?? '');
  compiled.set(text, validate);
  return validate;
}

/**
 * Each schema has its own instance of Ajv, so that no schema sees the `$id` of another one. The instance has no
 * meta-schemas and can load nothing, so a `$ref` reaches only its own schema, and the whole of it by `#`.
 */
function compileSafely(schema: object | boolean): ValidateFunction {
  const ajv = new Ajv2020({
    allErrors: true,
    strict: false,
    // 1e400 is a valid JSON number, but not a finite double.
    strictNumbers: false,
    // In 2020-12 a format is an annotation.
    validateFormats: false,
    validateSchema: false,
    meta: false,
    inlineRefs: false,
    // The properties that every object inherits are not in the document.
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
  // Ajv divides doubles, and 19.99 would be no multiple of 0.01.
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

/** Patterns run in time linear in the text (contract 9): the engine of the query language runs them. */
function linearPattern(pattern: string) {
  const expression = RE2JS.compile(RE2JS.translateRegExp(pattern));
  // Ajv uses this text to tell patterns apart.
  return { test: (text: string) => expression.test(text), toString: () => `/${pattern}/` };
}

/** Ajv compares each item with every other item; this function looks each item up. */
function hasUniqueItems(wanted: boolean, items: readonly unknown[]): boolean {
  return !wanted || new Set(items.map(canonicalJson)).size === items.length;
}

/** One detail for each wrong field: the first error of that field. */
function detailsOf(errors: readonly ErrorObject[]): ErrorDetail[] {
  const details = new Map<string, string>();
  for (const error of errors) {
    const field = fieldOf(error);
    if (!details.has(field)) details.set(field, messageOf(error));
    if (details.size === maxDetails) break;
  }
  return [...details].map(([field, message]) => ({ field, message }));
}

/** The path of the field as change entries write it. For a missing or an extra field, it is the path of that field. */
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
 * Whether a number is a whole multiple of another one, both as the decimals that they are written as: 19.99 is a multiple
 * of 0.01, although the quotient of the doubles is 1998.9999999999998. `divisor` is above 0.
 */
function isMultipleOf(divisor: number, value: number): boolean {
  // 1e400 is a valid JSON number, but not a finite double. Nobody can say what it is a multiple of, and of it only 0 is one.
  if (!Number.isFinite(value)) return false;
  if (!Number.isFinite(divisor)) return value === 0;
  const one = decimalOf(value);
  const other = decimalOf(divisor);
  const exponent = Math.min(one.exponent, other.exponent);
  return scaled(one, exponent) % scaled(other, exponent) === 0n;
}

/** The number is `digits * 10 ** exponent`. */
interface Decimal {
  readonly digits: bigint;
  readonly exponent: number;
}

/** Of the shortest text that names the double. */
function decimalOf(value: number): Decimal {
  const [mantissa = '', power = '0'] = value.toExponential().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  return { digits: BigInt(whole + fraction), exponent: Number(power) - fraction.length };
}

/** The digits in units of `10 ** exponent`. Exponents of doubles are within ±350, so the power is short. */
function scaled(decimal: Decimal, exponent: number): bigint {
  return decimal.digits * 10n ** BigInt(decimal.exponent - exponent);
}
