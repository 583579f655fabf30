// The words of the OpenAPI documents of providers' formats.
import { formatLimits } from './limits.ts';

export const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
export const text = (description?: string) => ({ type: 'string', ...(description && { description }) });
export const listOf = (items: object, maxItems?: number) => ({ type: 'array', items, ...(maxItems && { maxItems }) });
export const values = (...all: string[]) => ({ type: 'string', enum: all });
export const object = (properties: object, required: string[] = [], more: object = {}) => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
  ...more,
});
export const nullable = (schema: object) => ({ anyOf: [schema, { type: 'null' }] });
export const json = (schema: object) => ({ 'application/json': { schema } });

export const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
  description:
    'For 24 hours the same key with the same body gives the same answer without a call of the provider, and 409 with another body. ' +
    `A stream of more than ${formatLimits.storedStreamBytes} bytes, or another answer of more than ${formatLimits.storedAnswerBytes}, is not stored: its repeat is 409.`,
};

export const endUser = {
  name: 'Annals-User',
  in: 'header',
  schema: { type: 'string', maxLength: formatLimits.userCharacters },
  description: 'The end user, as UTF-8.',
};
