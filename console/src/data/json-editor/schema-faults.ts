/** Where a document does not fit its schema. */
export interface SchemaFault {
  /** Such as `items.0.price`; empty for the whole document. */
  readonly path: string;
  readonly message: string;
}

/** An error of the validator. */
interface ValidatorError {
  readonly keyword: string;
  /** A JSON Pointer after `#`. */
  readonly instanceLocation: string;
  readonly error: string;
}

/** These only say that something below them is wrong, which is reported as well. */
const outer = new Set([
  '$ref',
  '$dynamicRef',
  'allOf',
  'properties',
  'patternProperties',
  'additionalProperties',
  'items',
  'prefixItems',
  'dependentSchemas',
  'unevaluatedProperties',
  'unevaluatedItems',
  'if',
]);
const maxFaults = 10;

/** The errors that one can mend, each once. The service takes `format` as a note, so it is not checked. */
export function faultsOfErrors(errors: readonly ValidatorError[]): SchemaFault[] {
  const found = new Map<string, SchemaFault>();
  for (const { keyword, instanceLocation, error } of errors) {
    if (keyword === 'format' || outer.has(keyword)) continue;
    const fault = { path: pathOf(instanceLocation), message: keyword === 'false' ? 'is not allowed here' : error };
    found.set(`${fault.path}\n${fault.message}`, fault);
  }
  return [...found.values()].slice(0, maxFaults);
}

function pathOf(pointer: string): string {
  return pointer
    .replace(/^#\/?/, '')
    .split('/')
    .map((part) => decoded(part).replaceAll('~1', '/').replaceAll('~0', '~'))
    .join('.');
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
