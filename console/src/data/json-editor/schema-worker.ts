import { type Schema, Validator } from '@cfworker/json-schema';
import { faultsOfErrors } from './schema-faults.ts';

/** A schema, and a document to check against it. Both are JSON texts. */
export interface SchemaQuestion {
  readonly schema: string;
  readonly document: string;
}

let last: { readonly schema: string; readonly validator: Validator } | undefined;

addEventListener('message', ({ data: { schema, document } }: MessageEvent<SchemaQuestion>) => {
  if (last?.schema !== schema) {
    const parsed: Schema = JSON.parse(schema);
    last = { schema, validator: new Validator(parsed, '2020-12', false) };
  }
  postMessage(faultsOfErrors(last.validator.validate(JSON.parse(document)).errors));
});
